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

*A free intercept* is a feature with ridge 0; features are counted from their means, so that L is
sound. *Standardised* ridges change with the rows: without F they are R + Δ. With A + Δ for A,
w̃ = w - (A + Δ)⁻¹Δw for w, and Z = (A + Δ)⁻¹C_Fᵀ, of which Z ← A⁻¹(C_Fᵀ - ΔZ) finds one digit or
more per step (Δ is one part in n), the same equations hold:

    (I - C_F Z W_F) e = y_F - C_F w̃,     C_F w̃ = C_F w - ZᵀΔw,     C_F w₋ = y_F - e

w is the correctly rounded one, so that float64 touches only the correction. Where the smallest
pivot times the reciprocal condition number is below `_TRUST`, even that is refused, and the
caller takes the fold out exactly instead.

Scores are ranked, and classes chosen by the largest. Rows with equal codes get equal scores, as
from any one model. Where other scores are closer to each other than their error, so that only
exact arithmetic can tell a tie from a difference, the fold is refused too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dsyrk, dtrmm
from scipy.linalg.lapack import dpocon, dpotrf, dpotrs, dtrtri

from traceless.arithmetic.integers import Floats
from traceless.knowledge.sums import Knowledge
from traceless.model_selection.dataset import Dataset, System
from traceless.model_selection.splits import Indices
from traceless.progress import progress
from traceless.solvers.ridge import Penalty

_STEPS = 30  # towards the ridge of the other rows; where that is not enough, the fold is solved
_TINY = np.finfo(np.float64).tiny
_BLOCK = 1024  # rows half-solved at a time: enough for an efficient product
_TRUST = 1e-8  # where this held, errors were below 1e-10 of the largest value
_EPS = np.finfo(np.float64).eps


class CholeskyFactor:
    """S + diag(ridge) = LLᵀ in float64, its rows and columns scaled by powers of two.

    Features without a coefficient are left out.
    """

    def __init__(self, system: System) -> None:
        used = system.used()
        self._used: Any = slice(None) if used.size in (0, len(system.S)) else used
        A = np.asfortranarray(system.S[self._used][:, self._used].astype(np.float64))
        A[np.diag_indices_from(A)] += system.ridge.near[self._used]
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
        some = V.copy() if isinstance(self._used, slice) else V.take(self._used, axis=1)
        return np.asarray(dtrmm(1.0, self._half, some.T, lower=True, overwrite_b=True))

    @cached_property
    def _half(self) -> Floats:
        """L⁻¹, scaled: to multiply by it takes two thirds of the time of a solve."""
        return np.asarray(dtrtri(self._L, lower=True)[0] * self._scale)

    def solve(self, Q: Floats) -> Floats:
        """The coefficients (S + diag(ridge))⁻¹ Q."""
        scale = self._scale[:, None]
        right = np.asfortranarray(Q[self._used] * scale)
        W = np.zeros(Q.shape)
        W[self._used] = dpotrs(self._L, right, lower=True, overwrite_b=True)[0] * scale
        return W


class FullModel:
    """The model of all rows, factored, from which folds are held out."""

    def __init__(self, data: Dataset, total: Knowledge, rho: float | None = None) -> None:
        self.data, self.total = data, total
        self._system = data.system(total, total.responses, rho)
        self._factor = CholeskyFactor(self._system)
        self.usable = bool(self._factor.trusted())
        self._w = self._system.solution().Z if self.usable else np.zeros((0, 0))
        self._weights = data.weights(total)
        self._moving = _MovingRidge(total, self._system, data.penalty(rho))

    def folds(self, folds: Sequence[Indices], verbose: bool = False) -> Iterator[Floats | None]:
        """The held-out scores of each fold in turn, or None where float64 cannot be trusted."""
        for batch in progress(_batches(folds), "holding out", verbose):
            index = np.concatenate(batch)
            if not self.usable:
                yield from [None] * len(batch)
            elif len(index) == len(batch):
                _, held_out, error = self.singles(index)
                clear = ~self._unclear_class(held_out, error)
                yield from (v[None] if c else None for v, c in zip(held_out, clear, strict=True))
            else:
                ends = np.cumsum([len(fold) for fold in batch])
                yield from self._several(index, ends)

    def singles(self, index: Indices) -> tuple[Floats, Floats, Floats]:
        """Scores of rows with them in, with each held out alone, and the error (or infinity)."""
        codes, fitted, residual, weight = self._rows(index)
        if not self._moving:
            Phi = self._factor.half_solve(codes)
            k = np.einsum("jn,jn->n", Phi, Phi)
            found = np.ones(len(index), dtype=bool)
            own = residual
        else:
            Delta = self._moving.without_each(codes, weight)
            Z, found = self._moved_solve(codes, Delta)
            k = np.einsum("nj,nj->n", Z, codes)
            own = residual + dgemm(1.0, self._w.T, (Z * Delta).T).T
        pivot = 1.0 - weight * k
        trusted = found & self._factor.trusted(pivot)
        pivot = np.where(trusted, pivot, 1.0)
        gain = np.where(trusted, weight * k / pivot, 0.0)[:, None]
        error = np.where(trusted, self._error(fitted, residual, pivot), np.inf)
        return fitted, fitted - (own - residual) - gain * own, error

    def _several(self, index: Indices, ends: Indices) -> Iterator[Floats | None]:
        codes, fitted, residual, weight = self._rows(index)
        Phi = None if self._moving else self._factor.half_solve(codes)
        for start, end in pairwise([0, *ends.tolist()]):
            fold = slice(start, end)
            rows = residual[fold], weight[fold]
            if Phi is not None:
                correction, pivot = self._correction(Phi[:, fold], *rows)
            else:
                correction, pivot = self._moved_correction(codes[fold], *rows)
            scores = fitted[fold] - correction
            trusted = self._factor.trusted(pivot)
            settled = trusted and self._settled(scores, codes[fold], residual[fold], pivot)
            yield scores if settled else None

    def _correction(self, Phi: Floats, residual: Floats, weight: Floats) -> tuple[Floats, float]:
        """C_F w - C_F w₋ of one fold, and the smallest pivot (0: there is no such value)."""
        s = np.sqrt(weight)
        B = np.asfortranarray(Phi * s)
        M = dsyrk(-1.0, B, trans=True)  # upper triangle only
        M[np.diag_indices_from(M)] += 1.0
        U, failed = dpotrf(M, overwrite_a=True)
        if failed:
            return residual, 0.0
        u, _ = dpotrs(U, np.asfortranarray(s[:, None] * residual), overwrite_b=True)
        correction = dgemm(1.0, Phi, dgemm(1.0, B, u), trans_a=True)
        return correction, float((U.diagonal() ** 2).min())

    def _moved_correction(
        self, codes: Floats, residual: Floats, weight: Floats
    ) -> tuple[Floats, float]:
        """C_F w - C_F w₋ = e - r of one fold, and the smallest pivot, where the ridge moves."""
        Delta = self._moving.without(codes, weight)
        Z, found = self._moved_solve(codes, Delta)
        own = residual + dgemm(1.0, self._w.T, (Z * Delta).T).T
        s = np.sqrt(weight)
        M = np.eye(len(codes)) - dgemm(1.0, codes.T, Z.T, trans_a=True) * s * s[:, None]
        U, failed = dpotrf(np.asfortranarray(M), overwrite_a=True)
        if failed or not found.all():
            return residual, 0.0
        # e = own + K W e: with u = s e, (I - sKs) u = s own; a row without weight has no u
        u, _ = dpotrs(U, np.asfortranarray(s[:, None] * own), overwrite_b=True)
        step = dgemm(1.0, Z.T, np.asfortranarray(s[:, None] * u))
        correction = own - residual + dgemm(1.0, codes.T, step, trans_a=True)
        return correction, float((U.diagonal() ** 2).min())

    def _settled(self, scores: Floats, codes: Floats, residual: Floats, pivot: float) -> bool:
        """Give equal rows equal scores; whether all others are told apart, and their classes."""
        error = self._error(scores, residual, np.full(len(scores), pivot))
        close = np.flatnonzero(_close(scores, error))
        first = close[first_of_equal(codes[close])]
        scores[close] = scores[first]
        distinct = np.unique(first)
        unclear = _close(scores[distinct], error[distinct])
        return not (unclear.any() or self._unclear_class(scores, error).any())

    def _unclear_class(self, scores: Floats, error: Floats) -> NDArray[np.bool_]:
        """The rows whose class, or any value, is within the error."""
        if self.total.task == "regression":
            return ~np.isfinite(error)
        if scores.shape[1] == 1:
            return np.asarray(np.abs(scores[:, 0]) <= error)
        second, first = np.partition(scores, -2, axis=1)[:, -2:].T
        return np.asarray(first - second <= 2 * error)

    def _error(self, scores: Floats, residual: Floats, pivot: Floats) -> Floats:
        """How far each row's scores may be off."""
        size = np.abs(scores).max(axis=1) + np.abs(residual).max(axis=1)
        return np.asarray(_EPS * size.max(initial=0.0) / (pivot * self._factor.rcond))

    def _moved_solve(self, codes: Floats, Delta: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """(A + Δ)⁻¹c of each row c, with Δ of its own or one for all, and which were found."""
        Z = self._factor.solve(codes.T).T
        first, Delta = Z.copy(), np.broadcast_to(Delta, codes.shape)
        size = before = np.abs(Z * codes).sum(axis=1)
        found, left = np.zeros(len(codes), dtype=bool), np.arange(len(codes))
        for _ in range(_STEPS):
            after = first[left] - self._factor.solve((Delta[left] * Z[left]).T).T
            error = np.abs((after - Z[left]) * codes[left]).sum(axis=1)
            # each step has the last one's gain, so what is left now is error²/before
            gains = error <= before / 2
            found[left] = gains & (error * error <= 2.0**-50 * size[left] * before)
            Z[left] = after
            again = gains & ~found[left]
            left, before = left[again], error[again]
            if not left.size:
                break
        return Z, found

    def _rows(self, index: Indices) -> tuple[Floats, Floats, Floats, Floats]:
        """Codes of some rows, their scores, residuals and weights."""
        codes = self._system.moved(self.data.codes(index))
        fitted = np.asarray(dgemm(1.0, self._w.T, codes.T).T)
        residual = self.data.targets(index, self.total) - fitted
        weight = np.ones(len(index)) if self._weights is None else self._weights[index]
        return codes, fitted, residual, weight


class _MovingRidge:
    """A standardised ridge, and how it changes when rows leave; false where the ridge stays."""

    def __init__(self, total: Knowledge, system: System, penalty: Penalty) -> None:
        self._moves: bool = penalty.standardize
        self._ridge = system.ridge.near
        self._rho = penalty.rho * 2.0**total.weight_bits
        self._squares = system.S.diagonal().astype(np.float64)
        self._sums = system.S[:, -1].astype(np.float64)

    def __bool__(self) -> bool:
        return self._moves

    def without(self, codes: Floats, weight: Floats) -> Floats:
        """The change of the ridge without some rows together: one row of it."""
        parts = codes * weight[:, None], codes**2 * weight[:, None], weight
        sums, squares, total = (part.sum(axis=0, keepdims=True) for part in parts)
        return self._changes(sums, squares, total)

    def without_each(self, codes: Floats, weight: Floats) -> Floats:
        """The change of the ridge without each of some rows alone."""
        return self._changes(codes * weight[:, None], codes**2 * weight[:, None], weight)

    def _changes(self, sums: Floats, squares: Floats, weight: Floats) -> Floats:
        n = np.maximum(self._sums[-1] - weight, _TINY)[:, None]
        ridge = self._rho * ((self._squares - squares) / n - ((self._sums - sums) / n) ** 2)
        ridge[:, -1] = self._ridge[-1]
        return np.where(self._ridge > 0, np.maximum(ridge, 0.0) - self._ridge, 0.0)


def _close(scores: Floats, error: Floats) -> NDArray[np.bool_]:
    """The rows with a score that may be equal to another row's."""
    order = np.argsort(scores, axis=0)
    gaps = np.diff(np.take_along_axis(scores, order, axis=0), axis=0)
    close = gaps <= error[order[1:]] + error[order[:-1]]
    out = np.zeros(len(scores), dtype=bool)
    out[order[1:][close]] = out[order[:-1][close]] = True
    return out


def first_of_equal(rows: Iterable[Floats]) -> list[int]:
    """The number of the first row that is equal to each."""
    seen: dict[bytes, int] = {}
    # + 0.0 makes zero of -0.0
    return [seen.setdefault((row + 0.0).tobytes(), i) for i, row in enumerate(rows)]


def blocks(n: int) -> list[Indices]:
    """All rows, some at a time."""
    return [np.arange(start, min(start + _BLOCK, n)) for start in range(0, n, _BLOCK)]


def _batches(folds: Sequence[Indices]) -> list[list[Indices]]:
    """Consecutive folds that together have about `_BLOCK` rows."""
    starts = accumulate(map(len, folds), initial=0)
    runs = groupby(zip(folds, starts, strict=False), key=lambda fold: fold[1] // _BLOCK)
    return [[fold for fold, _ in run] for _, run in runs]


def leave_one_out_scores(data: Dataset, total: Knowledge) -> tuple[Floats, Floats]:
    """Scores with each row in, and with it held out; exact where float64 cannot be trusted."""
    full = FullModel(data, total)
    verbose, everything = bool(data.probe.verbose), np.arange(len(data))
    if full.usable:
        watched = progress(blocks(len(data)), "leaving one out", verbose)
        parts = [full.singles(index) for index in watched]
        fitted, held_out, error = (np.concatenate(part) for part in zip(*parts, strict=True))
    else:
        fitted = _exact_scores(data, total, total, everything)
        held_out, error = np.empty(fitted.shape), np.full(len(data), np.inf)

    untrusted = np.flatnonzero(np.isinf(error))
    if full.usable and untrusted.size:
        fitted[untrusted] = _exact_scores(data, total, total, untrusted)
    for i in progress(untrusted.tolist(), "leaving one out, exactly", verbose):
        row = np.array([i])
        held_out[row] = _exact_scores(data, total, total - data.knowledge(row), row)
    return fitted, held_out


def _exact_scores(data: Dataset, total: Knowledge, known: Knowledge, index: Indices) -> Floats:
    """Scores of some rows by the model of `known`, in the classes of `total`."""
    return data.system(known, total.responses).solution().times(data.codes(index))
