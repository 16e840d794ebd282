"""Exact sums in float64, for as long as they fit.

The sums Σ [φ; r][φ; r]ᵀ of a `Knowledge` are whole numbers. Where none of them, and no sum on the
way to them, is larger than 2^53, float64 has them without rounding (`traceless.arithmetic.gram`):
BLAS adds rows and takes rows away in one triangle, and integers are made of it when they are asked
for.

*Whether rows can have such sums* is decided as in `traceless.knowledge.feasibility`, whose
tolerance τ is relative to a unit diagonal. Errors of Cholesky are below (m + 1) u √(G_ii G_jj),
however rows and columns are scaled, so τ G_ii is subtracted from the diagonal instead. A singular
matrix, which fails that, is looked at as there. Only a success is final; anything else is left to
that module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.blas import dger, dsyrk
from scipy.linalg.lapack import dpotrf

from traceless.arithmetic.integers import LARGEST, Floats, Integers, energy, mirror
from traceless.arithmetic.words import Wide
from traceless.features.grid import dense_rows
from traceless.knowledge.feasibility import TWOFOLD, tolerance, triangle_can_be_semidefinite
from traceless.knowledge.responses import responses_of
from traceless.knowledge.sample_weights import rounded_weights
from traceless.solvers.equations import Equations

if TYPE_CHECKING:
    from traceless.knowledge.responses import Label, Responses
    from traceless.knowledge.sums import Knowledge, Recipe, Rows

Block = tuple[int, Floats]  # a sign, and rows of codes with their responses beside them


class FloatSums:
    """The sums of some rows as the upper triangle of a float64 matrix, all of them exact.

    Parameters
    ----------
    like : Knowledge
        Of the same features and responses.
    counts : tuple of int
    triangle : ndarray of shape (W, W), column-major
        W is `padded_width`; not to be changed any more.
    """

    def __init__(self, like: Knowledge, counts: tuple[int, ...], triangle: Floats) -> None:
        self._like, self.counts, self.triangle = like, counts, triangle
        self.responses = like.responses

    @classmethod
    def of(cls, known: Knowledge) -> FloatSums | None:
        """The same sums; None where they do not fit, or something else has to be kept too."""
        sums = known.total
        if isinstance(sums, Wide) or sums.ndim != 2 or known.weight_bits:
            return None
        if known.fingerprint is not None or not sums.diagonal().max(initial=0) <= LARGEST:
            return None
        width = len(sums)
        triangle = np.zeros((padded_width(width),) * 2, order="F")
        triangle.T[:width, :width] = np.tril(sums)
        found = cls(known, known.counts, triangle)
        found.__dict__["knowledge"] = known
        return found

    def after(self, blocks: Sequence[Block], counts: tuple[int, ...]) -> FloatSums | None:
        """The sums with further rows, or without some of them; None if they would not fit."""
        bound = float(self.triangle.diagonal().max(initial=0.0))
        if not bound + sum(energy(Z) for _, Z in blocks) <= LARGEST:
            return None
        triangle = self.triangle.copy(order="F")
        for sign, Z in blocks:
            triangle = dsyrk(float(sign), Z.T, beta=1.0, c=triangle, overwrite_c=True)
        return FloatSums(self._like, counts, triangle)

    @cached_property
    def knowledge(self) -> Knowledge:
        """In integers."""
        width = len(self._like.total)
        sums: Integers = mirror(self.triangle.T.astype(np.int64))[:width, :width].copy()
        sums.setflags(write=False)
        return replace(self._like, counts=self.counts, total=sums)

    def equations(self, steps: Floats, m: Integers) -> Equations | None:
        """The normal equations of features less m steps; None where these do not fit.

        S_jk - m_j s_k - (s_j - n m_j) m_k as in `traceless.solvers.centring`.
        """
        J, K = len(steps), len(self.responses)
        A, V = self.triangle, self.triangle[:J, J : J + K]
        if m.any():
            shift, s, n = m.astype(np.float64), A[:J, J - 1].copy(), A[J - 1, J - 1]
            far, most = np.abs(shift).max(), np.abs(V).max(initial=0.0)
            largest = np.abs(s).max() + n * far
            if not A.diagonal().max() + far * (2.0 * largest + most) <= LARGEST / 2:
                return None
            A = A[:J, :J].copy(order="F")
            A = dger(-1.0, shift, s, a=A, overwrite_a=True)
            A = dger(-1.0, s - n * shift, shift, a=A, overwrite_a=True)
            V = V - shift[:, None] * V[-1]
        return Equations(A, steps, V * steps[:, None])

    def check_possible(self) -> None:
        """Raise `NotLearnedError` if no rows add up to this."""
        if not self._are_surely_possible():
            self.knowledge.check_possible()

    def _are_surely_possible(self) -> bool:
        J, K = len(self._like.total) - len(self.responses), len(self.responses)
        biased = self._like.specification["features"].get("bias") is True
        several = self._like.task != "regression"
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


def padded_width(width: int) -> int:
    """Whole cache lines: BLAS is a tenth faster."""
    return -(-width // 8) * 8


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
    Z = np.zeros((X.shape[0], padded_width(J + len(names))))
    recipe.phi.encode(dense_rows(X, slice(None)), Z[:, :J])
    Y = np.empty((X.shape[0], len(responses.names)))
    responses.encode(slice(None), Y)
    Z[:, [J + names.index(name) for name in responses.names]] = Y
    return Z, responses
