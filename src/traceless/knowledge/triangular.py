"""Knowledge whose sums are a triangle of float64, exact for as long as they fit.

The sums Σ [φ; r][φ; r]ᵀ are whole numbers, none larger than the largest on the diagonal
(Cauchy-Schwarz). Where that is below 2^53, and so is every sum on the way (`arithmetic.gram`),
float64 has them without rounding: BLAS adds rows and takes rows away in one triangle, which is
solved as it is (`traceless.solvers.rounded`). Integers are made of it when they are asked for.

*Whether rows can have such sums* is decided as in `traceless.knowledge.feasibility`, whose
tolerance τ is relative to a unit diagonal. Errors of Cholesky are below (m + 1) u √(G_ii G_jj),
however rows and columns are scaled, so τ G_ii is subtracted from the diagonal instead. A singular
matrix, which fails that, is looked at as there. Only a success is final; anything else is left to
that module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf

from traceless.arithmetic.gram import padded
from traceless.arithmetic.integers import LARGEST, Floats, Integers, energy
from traceless.arithmetic.triangle import Triangle
from traceless.arithmetic.words import Sums, Wide
from traceless.features.grid import dense_rows
from traceless.knowledge.feasibility import TWOFOLD, tolerance, triangle_can_be_semidefinite
from traceless.knowledge.responses import Label, Responses, responses_of, union
from traceless.knowledge.sample_weights import rounded_weights
from traceless.knowledge.sums import Knowledge, Recipe, Rows

Block = tuple[int, Floats]  # a sign, and rows of codes with their responses beside them


class TriangularKnowledge(Knowledge):
    """Knowledge that has a triangle of its sums, and makes the matrix when it must.

    It is pooled, without fingerprint, and of rows without weights.

    Attributes
    ----------
    triangle : ndarray of shape (W, W), column-major
        The upper one; W is the `padded` width. Not to be changed any more.
    """

    triangle: Floats

    @classmethod
    def made(
        cls, like: Knowledge | Recipe, names: tuple[Label, ...], counts: Sequence[int], sums: Floats
    ) -> Self:
        """Of rows with these responses, so many of each, whose sums are this triangle."""
        known = cls.__new__(cls)
        known.__dict__ |= {
            "specification": dict(like.specification),
            "task": like.task,
            "responses": names,
            "counts": tuple(counts),
            "weight_bits": 0,
            "fingerprint": None,
            "n_outputs": like.n_outputs,
            "classwise": False,
            "triangle": sums,
        }
        return known

    @classmethod
    def like(cls, known: Knowledge) -> TriangularKnowledge | None:
        """The same sums; None where they do not fit, or something else has to be kept too."""
        if isinstance(known, TriangularKnowledge) and "triangle" in vars(known):
            return known
        sums = known.total
        if isinstance(sums, Wide) or sums.ndim != 2 or known.weight_bits:
            return None
        if known.fingerprint is not None or not sums.diagonal().max(initial=0) <= LARGEST:
            return None
        width = len(sums)
        triangle = np.zeros((padded(width),) * 2, order="F")
        triangle.T[:width, :width] = np.tril(sums)
        found = cls.made(known, known.responses, known.counts, triangle)
        found.__dict__["total"] = sums
        return found

    def after(self, blocks: Sequence[Block], counts: Sequence[int]) -> TriangularKnowledge | None:
        """With further rows, or without some of them; None if the sums would not fit."""
        bound = float(self.triangle.diagonal().max(initial=0.0))
        if not bound + sum(energy(Z) for _, Z in blocks) <= LARGEST:
            return None
        triangle = self.triangle.copy(order="F")
        for sign, Z in blocks:
            triangle = dsyrk(float(sign), Z.T, beta=1.0, c=triangle, overwrite_c=True)
        return self.made(self, self.responses, counts, triangle)

    @cached_property
    def total(self) -> Sums:
        """The whole matrix in integers."""
        width = self.n_outputs + len(self.responses)
        total = Triangle(self.triangle.T[:width, :width]).whole()
        total.setflags(write=False)
        return total

    @property
    def response_sums(self) -> Integers:
        """Σ φ rᵀ."""
        if "triangle" not in vars(self):  # a sum, or what else was made of it
            return super().response_sums
        J = self.n_outputs
        return np.asarray(self.triangle[:J, J : J + len(self.responses)].astype(np.int64))

    def normal_equations(self) -> tuple[Any, Integers]:
        """Σ φφᵀ, of which there is a triangle, and Σ φ rᵀ."""
        if "triangle" not in vars(self):
            return super().normal_equations()
        J = self.n_outputs
        return Triangle(self.triangle.T[:J, :J]), self.response_sums

    def check_possible(self) -> Knowledge:
        """Raise `NotLearnedError` if no rows add up to this; else return self."""
        if "triangle" in vars(self) and self._are_surely_possible():
            return self
        return super().check_possible()

    def _are_surely_possible(self) -> bool:
        J, K = self.n_outputs, len(self.responses)
        biased = self.specification["features"].get("bias") is True
        several = self.task != "regression"
        diagonal = self.triangle.diagonal()
        totals = diagonal[J : J + K] if several else diagonal[J - 1 : J] if biased else ()
        if 0 in self.counts or not np.array_equal(totals, self.counts[: len(totals)]):
            return False
        if (diagonal < 0).any():
            return False
        zero = np.flatnonzero(diagonal == 0)
        above = np.arange(len(diagonal))[:, None] < zero
        if np.where(above, self.triangle[:, zero], self.triangle[zero].T).any():
            return False
        kept = np.where(diagonal > 0, diagonal, 1.0)

        def regular(less: float) -> Floats:
            A = self.triangle.copy(order="F")
            A.T.reshape(-1)[:: len(A) + 1] = kept * (1.0 - less)
            if several and biased:  # the constant feature is the sum of the responses
                A[:J, J - 1], A[J - 1, J:], A[J - 1, J - 1] = 0.0, 0.0, 1.0
            return A

        if dpotrf(regular(tolerance(len(diagonal))), overwrite_a=True, clean=False)[1] == 0:
            return True
        return len(diagonal) > TWOFOLD and triangle_can_be_semidefinite(regular(0.0))

    @cached_property
    def _plain(self) -> Knowledge:
        """The same in integers."""
        return Knowledge(*self._fields())

    def __reduce__(self) -> Any:
        """Copies, and what pickle makes, are knowledge as any other."""
        return Knowledge, self._fields()

    def _fields(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(Knowledge))


def changed(
    recipe: Recipe, known: Knowledge, sides: Iterable[tuple[int, Rows]], certain: bool
) -> TriangularKnowledge | None:
    """Knowledge after rows have come (sign 1) and gone (sign -1).

    None where float64 has no room, rows have weights, or responses come or go: other ways do it,
    or say what is wrong. `certain` says that the rows to go are known to be held.
    """
    names, left = known.responses, [*known.counts]
    blocks: list[Block] = []
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
        blocks.append((sign, Z))
    if min(left, default=0) <= 0:
        return None
    held = TriangularKnowledge.like(known)
    after = None if held is None else held.after(blocks, left)
    if after is not None and not certain and any(sign < 0 for sign, _ in blocks):
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
    J = len(recipe.phi.steps)
    Z = np.zeros((X.shape[0], padded(J + len(names))))
    recipe.phi.encode(dense_rows(X, slice(None)), Z[:, :J])
    Y = np.empty((X.shape[0], len(responses.names)))
    responses.encode(slice(None), Y)
    Z[:, [J + names.index(name) for name in responses.names]] = Y
    return Z, responses
