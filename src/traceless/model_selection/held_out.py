"""Held-out predictions in closed form: the answers of a model that has not seen some rows.

With features C (one row each), weights W = diag(ω) and targets y, the model of all rows is

    A w = q,     A = CᵀWC + R,     q = CᵀWy     (R the ridge, A = LLᵀ)

Without the rows F it would be (A - C_FᵀW_F C_F) w₋ = q - C_FᵀW_F y_F (Lee et al. 2019,
section 1.1: cross-validation is unlearning). Move the fold's terms to the right,

    A w₋ = q - C_FᵀW_F (y_F - C_F w₋) = q - C_FᵀW_F e,     e = y_F - C_F w₋

and multiply by C_F A⁻¹: with K = C_F A⁻¹ C_Fᵀ and the residuals r = y_F - C_F w,

    e = r + K W_F e,     so that     (I - K W_F) e = r

The held-out residuals are the residuals, divided by what the fold did not explain of
itself. In terms of the half-solved rows Φ = L⁻¹C_Fᵀ, with s = √ω, B = Φ diag(s) and u = s e,
everything is symmetric, and no weight is divided by:

    (I - BᵀB) u = s r,     C_F w₋ = C_F w - Φᵀ B u

I - BᵀB is positive definite, and its smallest pivot says how nearly the fold alone determines
a coefficient. A single row gives C w₋ = ŷ - k ω r / (1 - ω k), k = ‖Φ‖²: the well-known
leave-one-out formula, for many rows at a time. The cost is n J² for the half-solve of n rows,
beside J³/3 for the factor; no fold's model is computed.

w is the correctly rounded one, so that float64 touches only the correction. Where the smallest
pivot times the reciprocal condition number is below `_TRUST`, even that is refused, and the
caller takes the fold out exactly instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dsyrk, dtrsm
from scipy.linalg.lapack import dpocon, dpotrf, dpotrs

from traceless.arithmetic.integers import Floats, Integers
from traceless.knowledge.sums import Knowledge
from traceless.model_selection.dataset import Dataset, Indices
from traceless.progress import progress
from traceless.solvers.rounded import correctly_rounded_solve

_BLOCK = 1024  # rows half-solved at a time: enough for an efficient product
_TRUST = 1e-8  # where this held, errors were below 1e-10 of the largest value


class CholeskyFactor:
    """S + diag(ridge) = LLᵀ in float64, its rows and columns scaled by powers of two.

    Features that are always 0 are left out: they have coefficient 0.
    """

    def __init__(self, S: Integers, ridge: Floats) -> None:
        self._used = used_features(S)
        A = S[self._used][:, self._used].astype(np.float64, order="F")
        A[np.diag_indices_from(A)] += ridge[self._used]
        self._scale = np.ldexp(1.0, -(np.frexp(A.diagonal())[1] // 2))
        A *= self._scale
        A *= self._scale[:, None]
        size = float(np.abs(A).sum(axis=0).max())
        self._L, failed = dpotrf(A, lower=True, overwrite_a=True)
        self.rcond = 0.0 if failed else float(dpocon(self._L, size, uplo="L")[0])

    def trusted(self, pivot: Any = 1.0) -> Any:
        """Whether float64 is accurate enough, here or for folds with these smallest pivots."""
        return pivot * self.rcond > _TRUST

    def half_solve(self, V: Floats) -> Floats:
        """L⁻¹Vᵀ for row-major rows V: a column for each row."""
        scaled = V[:, self._used] * self._scale
        return np.asarray(dtrsm(1.0, self._L, scaled.T, lower=True, overwrite_b=True))

    def solve(self, Q: Floats) -> Floats:
        """The coefficients (S + diag(ridge))⁻¹ Q."""
        scale = self._scale[:, None]
        right = np.asfortranarray(Q[self._used] * scale)
        W = np.zeros(Q.shape)
        W[self._used] = dpotrs(self._L, right, lower=True, overwrite_b=True)[0] * scale
        return W


def used_features(S: Integers) -> Any:
    """The features that are not always 0, as an index: a slice if they are all."""
    used = np.flatnonzero(S.diagonal())
    return slice(None) if used.size in (0, len(S)) else used


class FullModel:
    """The model of all rows, factored, from which folds are held out."""

    def __init__(self, data: Dataset, total: Knowledge, rho: float | None = None) -> None:
        self.data, self.total = data, total
        self._factor = CholeskyFactor(total.feature_gram, data.ridge(total, rho))
        self.usable = bool(self._factor.trusted())
        if self.usable:
            Q = data.right_sides(total, total.responses)
            self._w = correctly_rounded_solve(total.feature_gram, data.ridge(total, rho), Q)
        self._weights = data.weights(total)

    def folds(self, folds: Sequence[Indices], verbose: bool = False) -> Iterator[Floats | None]:
        """The held-out scores of each fold in turn, or None where float64 cannot be trusted."""
        for batch in progress(_batches(folds), "holding out", verbose):
            index = np.concatenate(batch)
            if not self.usable:
                yield from [None] * len(batch)
            elif len(index) == len(batch):
                _, held_out, trusted = self.singles(index)
                yield from (v[None] if t else None for v, t in zip(held_out, trusted, strict=True))
            else:
                ends = np.cumsum([len(fold) for fold in batch])
                yield from self._several(index, ends)

    def singles(self, index: Indices) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Scores of rows with them in, with each of them held out alone, and which to trust."""
        Phi, fitted, residual, weight = self._half_solved(index)
        k = np.einsum("jn,jn->n", Phi, Phi)
        pivot = 1.0 - weight * k
        trusted = self._factor.trusted(pivot)
        gain = weight * k / np.where(trusted, pivot, 1.0)
        return fitted, fitted - gain[:, None] * residual, trusted

    def _several(self, index: Indices, ends: Indices) -> Iterator[Floats | None]:
        Phi, fitted, residual, weight = self._half_solved(index)
        for start, end in pairwise([0, *ends.tolist()]):
            fold = slice(start, end)
            correction = self._correction(Phi[:, fold], residual[fold], np.sqrt(weight[fold]))
            yield None if correction is None else fitted[fold] - correction

    def _correction(self, Phi: Floats, residual: Floats, s: Floats) -> Floats | None:
        B = np.asfortranarray(Phi * s)
        M = dsyrk(-1.0, B, trans=True)  # upper triangle only
        M[np.diag_indices_from(M)] += 1.0
        U, failed = dpotrf(M, overwrite_a=True)
        if failed or not self._factor.trusted((U.diagonal() ** 2).min()):
            return None
        u, _ = dpotrs(U, np.asfortranarray(s[:, None] * residual), overwrite_b=True)
        return np.asarray(dgemm(1.0, Phi, dgemm(1.0, B, u), trans_a=True))

    def _half_solved(self, index: Indices) -> tuple[Floats, Floats, Floats, Floats]:
        """L⁻¹Cᵀ of some rows, their scores, residuals and weights."""
        codes = self.data.codes(index)
        fitted = np.asarray(dgemm(1.0, self._w.T, codes.T).T)
        residual = self.data.targets(index, self.total) - fitted
        weight = np.ones(len(index)) if self._weights is None else self._weights[index]
        return self._factor.half_solve(codes), fitted, residual, weight


def blocks(n: int) -> list[Indices]:
    """All rows, some at a time."""
    return [np.arange(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK)]


def _batches(folds: Sequence[Indices]) -> list[list[Indices]]:
    """Consecutive folds that together have about `_BLOCK` rows."""
    starts = accumulate(map(len, folds), initial=0)
    runs = groupby(zip(folds, starts, strict=False), key=lambda fold: fold[1] // _BLOCK)
    return [[fold for fold, _ in run] for _, run in runs]
