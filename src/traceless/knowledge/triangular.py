"""Knowledge whose sums are a triangle of float64, exact for as long as they fit.

The sums Σ [φ; r][φ; r]ᵀ are whole numbers, none larger than the largest on the diagonal
(Cauchy-Schwarz). Where that is below 2^53, and so is every sum on the way (`arithmetic.gram`),
float64 has them without rounding: BLAS adds rows and takes rows away in one triangle, which is
solved as it is (`traceless.solvers.rounded`). Integers are made of it when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.blas import dsyrk

from traceless.arithmetic.gram import padded
from traceless.arithmetic.integers import LARGEST, Floats, energy
from traceless.arithmetic.words import Wide
from traceless.features.grid import blocks, dense_rows
from traceless.knowledge.responses import Label, Responses, responses_of, union
from traceless.knowledge.sample_weights import rounded_weights

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe, Rows

Block = tuple[int, Floats]  # a sign, and rows of codes with their responses beside them


def triangular(known: Knowledge) -> Knowledge | None:
    """The same with a triangle; None where sums do not fit, or something else is kept too."""
    if known.triangle is not None:
        return known
    sums = known.total
    if isinstance(sums, Wide) or known.classwise or known.weight_bits:
        return None
    if known.fingerprint is not None or not sums.diagonal().max(initial=0) <= LARGEST:
        return None
    triangle = np.zeros((padded(len(sums)),) * 2, order="F")
    for rows in blocks(*sums.shape):
        triangle.T[rows, : rows.stop] = np.tril(sums[rows, : rows.stop], rows.start)
    found = known.of_triangle(known, known.responses, known.counts, triangle)
    found.__dict__["total"] = sums
    return found


def with_blocks(
    known: Knowledge, several: Sequence[Block], counts: Sequence[int]
) -> Knowledge | None:
    """Knowledge with further rows, or without some of them; None if the sums would not fit."""
    held = triangular(known)
    if held is None or held.triangle is None:
        return None
    bound = float(held.triangle.diagonal().max(initial=0.0))
    if not bound + sum(energy(Z) for _, Z in several) <= LARGEST:
        return None
    triangle = held.triangle.copy(order="F")
    for sign, Z in several:
        triangle = dsyrk(float(sign), Z.T, beta=1.0, c=triangle, overwrite_c=True)
    return held.of_triangle(held, held.responses, counts, triangle)


def changed(
    recipe: Recipe, known: Knowledge, sides: Iterable[tuple[int, Rows]], certain: bool
) -> Knowledge | None:
    """Knowledge after rows have come (sign 1) and gone (sign -1).

    None where float64 has no room, rows have weights, or responses come or go: other ways do it,
    or say what is wrong. `certain` says that the rows to go are known to be held.
    """
    held = triangular(known)
    if held is None:
        return None
    names, left = held.responses, [*held.counts]
    several: list[Block] = []
    for sign, rows in sides:
        found = coded(recipe, rows, names)
        if found is None:
            return None
        Z, responses = found
        where = [*range(len(left))]
        if recipe.task == "classification":
            union(names, responses.names)  # raises if 1 is to be taken for True
            where = [names.index(name) for name in responses.names]
        elif responses.names != names:
            return None
        for k, count in zip(where, responses.counts, strict=True):
            left[k] += sign * count
        several.append((sign, Z))
    after = with_blocks(held, several, left) if min(left, default=0) > 0 else None
    if after is not None and not certain and any(sign < 0 for sign, _ in several):
        after.check_possible()
    return after


def coded(recipe: Recipe, rows: Rows, names: tuple[Label, ...]) -> tuple[Floats, Responses] | None:
    """Rows of codes with their responses beside them, a column for each of these names.

    None where a row has a weight, or a response that is not among them.
    """
    X, y, sample_weight = rows
    if rounded_weights(sample_weight, X.shape[0]) is not None:
        return None
    responses = responses_of(y, None, recipe.task, recipe.target_resolution)
    if not {*responses.names} <= {*names}:
        return None
    J = recipe.n_outputs
    Z = np.zeros((X.shape[0], padded(J + len(names))))
    recipe.phi.encode(dense_rows(X, slice(None)), Z[:, :J])
    Y = np.empty((X.shape[0], len(responses.names)))
    responses.encode(slice(None), Y)
    Z[:, [J + names.index(name) for name in responses.names]] = Y
    return Z, responses
