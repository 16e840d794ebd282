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
sound. *Standardised* ridges change with the rows: without F they are D' = D + Δ. With A + Δ for A,
w̃ = w - (A + Δ)⁻¹Δw for w, and Z = (A + Δ)⁻¹C_Fᵀ, the same equations hold:

    (I - K W_F) e = r + ZᵀΔw,     K = C_F Z,     C_F w₋ = y_F - e

Δ is one part in n, and z₀ = A⁻¹C_Fᵀ, z₋ = -A⁻¹Δz a series for Z; as A + Δ ≥ D', what is not yet in
the sums up to z₋ is bounded by numbers at hand,

    |ZᵀΔw - Σ zᵀΔw| ≤ ‖Δz‖ ‖Δw‖,    |K - (C_F Σ z - z₀ᵀΔz)| ≤ ‖Δz₀‖ ‖Δz‖,    ‖v‖² = Σ v_j²/D'_j

and for nearly all rows z₀ is enough: two half-solves where a ridge that stays takes one.

*Of many rows* the matrix without them is cheaper than K: with A₋ = A + Δ - C_FᵀW_F C_F

    w₋ = w - A₋⁻¹ (C_FᵀW_F r + Δw)

w is the correctly rounded one, so that float64 touches only the correction. Where the smallest
pivot times the reciprocal condition number is below `_TRUST`, or a feature no longer varies, even
that is refused, and the caller takes the fold out exactly instead.

Scores are ranked, and classes chosen by the largest. Rows with equal codes get equal scores, as
from any one model. Where other scores are closer to each other than their error, so that only
exact arithmetic can tell a tie from a difference, the fold is refused too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dsyrk, dtrmm
from scipy.linalg.lapack import dpocon, dpotrf, dpotrs, dtrtri

from traceless.arithmetic.integers import Floats
from traceless.knowledge.sums import Knowledge
from traceless.model_selection.dataset import Dataset
from traceless.model_selection.splits import Indices
from traceless.progress import progress
from traceless.solvers.ridge import Penalty

_STEPS = 30  # terms of the series; where that is not enough, the fold is solved
_REST = 2.0**-34  # of the series that is left out, relative to the score it belongs to
_TINY = np.finfo(np.float64).tiny
_VARIES = 1e-9  # of a feature's variance: what is left below that is rounding
_BLOCK = 1024  # rows half-solved at a time: enough for an efficient product
_TRUST = 1e-8  # where this held, errors were below 1e-10 of the largest value
_EPS = np.finfo(np.float64).eps


class CholeskyFactor:
    """S + diag(ridge) = LLᵀ in float64, its rows and columns scaled by powers of two.

    Parameters
    ----------
    S : ndarray of shape (J, J)
        Overwritten if it is column-major; only the lower triangle is meaningful.
    ridge : ndarray of shape (J,)
    """

    def __init__(self, S: Floats, ridge: Floats) -> None:
        A = np.asfortranarray(S)
        A[np.diag_indices_from(A)] += ridge
        self._scale = np.ldexp(1.0, -(np.frexp(A.diagonal())[1] // 2))
        A *= self._scale
        A *= self._scale[:, None]
        lower = np.abs(np.tril(A))
        size = float((lower.sum(axis=0) + lower.sum(axis=1) - lower.diagonal()).max())
        self._L, failed = dpotrf(A, lower=True, overwrite_a=True, clean=True)
        self.rcond = 0.0 if failed else float(dpocon(self._L, size, uplo="L")[0])

    def trusted(self, pivot: Any = 1.0) -> Any:
        """Whether float64 is accurate enough, here or for folds with these smallest pivots."""
        return pivot * self.rcond > _TRUST

    def half_solve(self, V: Floats) -> Floats:
        """L⁻¹Vᵀ for row-major rows V: a column for each row."""
        return np.asarray(dtrmm(1.0, self._half, V.copy().T, lower=True, overwrite_b=True))

    def other_half(self, Phi: Floats) -> Floats:
        """L⁻ᵀΦ, row-major: with what `half_solve` gave, the solution for each row."""
        return np.asarray(dtrmm(1.0, self._half, Phi, lower=True, trans_a=True).T)

    @cached_property
    def _half(self) -> Floats:
        """L⁻¹, scaled: to multiply by it takes two thirds of the time of a solve."""
        return np.asarray(dtrtri(self._L, lower=True)[0] * self._scale)

    def solve(self, Q: Floats) -> Floats:
        """The coefficients (S + diag(ridge))⁻¹ Q."""
        scale = self._scale[:, None]
        right = np.asfortranarray(Q * scale)
        return np.asarray(dpotrs(self._L, right, lower=True, overwrite_b=True)[0] * scale)


class Rows(NamedTuple):
    """Rows that are held out."""

    codes: Floats  # of the features that have a coefficient
    fitted: Floats  # scores by the model of all rows
    residual: Floats  # targets less these
    weight: Floats

    def part(self, some: slice) -> Rows:
        """Some of them."""
        return Rows(*(values[some] for values in self))


class FullModel:
    """The model of all rows, factored, from which folds are held out."""

    def __init__(self, data: Dataset, total: Knowledge, rho: float | None = None) -> None:
        self.data, self.total = data, total
        system = data.system(total, total.responses, rho)
        used = system.used()
        self._system, self._used = system, slice(None) if used.size in (0, len(system.S)) else used
        self._S = np.asfortranarray(system.S[self._used][:, self._used].astype(np.float64))
        self._ridge = system.ridge.near[self._used]
        self._factor = CholeskyFactor(self._S.copy(order="F"), self._ridge)
        self.usable = bool(self._factor.trusted())
        self._w = system.solution().Z[self._used] if self.usable else np.zeros((0, 0))
        self._weights = data.weights(total)
        self._moving = self._moving_ridge(data.penalty(rho))

    def _moving_ridge(self, penalty: Penalty) -> _MovingRidge | None:
        if not penalty.standardize:
            return None
        rho = penalty.rho * 2.0**self.total.weight_bits
        sums = self._system.S[:, -1].astype(np.float64)
        return _MovingRidge(rho, self._S.diagonal(), sums[self._used], sums[-1], self._ridge)

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
                yield from self._several(self._rows(index), list(pairwise([0, *ends.tolist()])))

    def singles(self, index: Indices) -> tuple[Floats, Floats, Floats]:
        """Scores of rows with them in, with each held out alone, and the error (or infinity)."""
        rows = self._rows(index)
        codes, fitted, residual, weight = rows
        Phi = self._factor.half_solve(codes)
        if self._moving is None:
            k, own, found = np.einsum("jn,jn->n", Phi, Phi), residual, np.ones(len(index), bool)
        else:
            Delta, ridge = self._moving.without_each(codes, weight)
            z = self._series(rows, Phi, Delta, ridge)
            k = np.einsum("nj,nj->n", z.total, codes)
            k -= np.einsum("nj,nj,nj->n", z.first, Delta, z.last)
            own, found = residual + self._times_w(z.total * Delta), z.found
        pivot = 1.0 - weight * k
        found &= self._factor.trusted(pivot)
        pivot = np.where(found, pivot, 1.0)
        gain = np.where(found, weight * k / pivot, 0.0)[:, None]
        error = np.where(found, self._error(fitted, residual, pivot, self._factor), np.inf)
        return fitted, fitted - (own - residual) - gain * own, error

    def _several(self, rows: Rows, spans: Sequence[tuple[int, int]]) -> Iterator[Floats | None]:
        """The held-out scores of folds, which are consecutive rows."""
        most = len(self._ridge) / (2 if self._moving is None else 6)  # for K to be the cheaper way
        small = [span for span in spans if span[1] - span[0] <= most]
        by_own = dict(zip(small, self._by_gain(rows, small), strict=True)) if small else {}
        for span in spans:
            fold = rows.part(slice(*span))
            scores, pivot, factor = by_own.get(span) or self._by_matrix(fold)
            error = self._error(scores, fold.residual, np.full(len(scores), pivot), factor)
            trusted = factor.trusted(pivot)
            yield scores if trusted and self._settled(scores, fold.codes, error) else None

    def _by_matrix(self, fold: Rows) -> Answer:
        """Scores of a fold by A₋, which has no pivots of its own."""
        codes, fitted, residual, weight = fold
        B = codes * np.sqrt(weight)[:, None]
        S = dsyrk(-1.0, B.T, beta=1.0, c=self._S, lower=True)
        right, ridge = codes.T @ (weight[:, None] * residual), self._ridge
        if self._moving is not None:
            Delta, moved = self._moving.without(codes, weight)
            right, ridge = right + Delta[0][:, None] * self._w, moved[0]
        factor = CholeskyFactor(S, ridge)
        if not factor.trusted():
            return fitted, 0.0, factor
        return fitted - dgemm(1.0, factor.solve(right).T, codes.T).T, 1.0, factor

    def _by_gain(self, rows: Rows, spans: Sequence[tuple[int, int]]) -> Iterator[Answer]:
        """Scores of folds by K and the smallest pivot of I - K W_F."""
        Phi = self._factor.half_solve(rows.codes)
        if self._moving is not None:
            each = [self._moving.without(*rows.part(slice(*span))[::3]) for span in spans]
            sizes = [end - start for start, end in spans]
            Delta, ridge = (np.repeat(np.concatenate(m), sizes, 0) for m in zip(*each, strict=True))
            chosen = np.concatenate([np.arange(*span) for span in spans])
            rows, Phi = Rows(*(values[chosen] for values in rows)), Phi[:, chosen]
            z = self._series(rows, Phi, Delta, ridge)
            left, own = z.first * Delta, rows.residual + self._times_w(z.total * Delta)
            spans = list(pairwise(accumulate(sizes, initial=0)))
        for span in spans:
            some = slice(*span)
            codes, fitted, residual, weight = rows.part(some)
            if self._moving is None:
                K = dgemm(1.0, Phi[:, some], Phi[:, some], trans_a=True)
                yield self._answer(K, fitted, residual, residual, weight)
            elif z.found[some].all():
                K = dgemm(1.0, codes.T, z.total[some].T, trans_a=True)
                K -= dgemm(1.0, left[some].T, z.last[some].T, trans_a=True)
                yield self._answer(K, fitted, residual, own[some], weight)
            else:
                yield fitted, 0.0, self._factor

    def _answer(
        self, K: Floats, fitted: Floats, residual: Floats, own: Floats, weight: Floats
    ) -> Answer:
        """Scores of one fold from e = own + K W e, with the smallest pivot (0: it is none)."""
        s = np.sqrt(weight)  # with u = s e, (I - sKs) u = s own; a row without weight has no u
        U, failed = dpotrf(np.asfortranarray(np.eye(len(K)) - K * s * s[:, None]))
        if failed:
            return fitted, 0.0, self._factor
        u, _ = dpotrs(U, np.asfortranarray(s[:, None] * own), overwrite_b=True)
        scores = fitted - (own - residual) - dgemm(1.0, K, np.asfortranarray(s[:, None] * u))
        return scores, float((U.diagonal() ** 2).min()), self._factor

    def _series(self, rows: Rows, Phi: Floats, Delta: Floats, ridge: Floats) -> _Series:
        """(A + Δ)⁻¹c of each row c, as far as its score needs it."""
        first = last = self._factor.other_half(Phi)
        total = first.copy()
        size = np.abs(rows.fitted).max(axis=1) + np.abs(rows.residual).max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):  # of features that no longer vary
            measure = np.where(Delta == 0.0, 0.0, Delta * Delta / ridge)
            of_w = np.sqrt(dgemm(1.0, (self._w**2).T, measure.T).max(axis=0))
            of_last = np.sqrt(np.einsum("nj,nj,nj->n", measure, first, first))
            rest = np.fmax(of_w / np.maximum(size, _TINY), rows.weight * of_last)
            found = rest * of_last <= _REST
        left = np.flatnonzero(~found & np.isfinite(of_last) & np.isfinite(rest))
        if left.size:
            last = first.copy()
        for _ in range(_STEPS):
            if not left.size:
                break
            z = -self._factor.other_half(self._factor.half_solve(Delta[left] * last[left]))
            last[left] = z
            total[left] += z
            after = np.sqrt(np.einsum("nj,nj,nj->n", measure[left], z, z))
            gains = after <= of_last[left] / 2
            found[left] = gains & (rest[left] * after <= _REST)
            of_last[left] = after
            left = left[gains & ~found[left]]
        return _Series(first, last, total, found)

    def _times_w(self, rows: Floats) -> Floats:
        return np.asarray(dgemm(1.0, self._w.T, rows.T).T)

    def _settled(self, scores: Floats, codes: Floats, error: Floats) -> bool:
        """Give equal rows equal scores; whether all others are told apart, and their classes."""
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

    def _error(
        self, scores: Floats, residual: Floats, pivot: Floats, factor: CholeskyFactor
    ) -> Floats:
        """How far each row's scores may be off; infinite where there is no pivot."""
        size = np.abs(scores).max(axis=1) + np.abs(residual).max(axis=1)
        rest = 0.0 if self._moving is None else _REST
        with np.errstate(divide="ignore"):
            return np.asarray(size.max(initial=0.0) * (_EPS / factor.rcond + rest) / pivot)

    def _rows(self, index: Indices) -> Rows:
        """What is needed of some rows."""
        codes = self._system.moved(self.data.codes(index))
        codes = np.ascontiguousarray(codes[:, self._used])
        fitted = self._times_w(codes)
        residual = self.data.targets(index, self.total) - fitted
        weight = np.ones(len(index)) if self._weights is None else self._weights[index]
        return Rows(codes, fitted, residual, weight)


Answer = tuple[Floats, float, CholeskyFactor]  # scores, the smallest pivot, what it belongs to


class _Series(NamedTuple):
    """Terms of (A + Δ)⁻¹c, a row for each c, and for which rows these are enough."""

    first: Floats
    last: Floats
    total: Floats
    found: NDArray[np.bool_]


@dataclass(frozen=True)
class _MovingRidge:
    """A standardised ridge, and how it changes when rows leave.

    Attributes
    ----------
    rho : float
    squares, sums : ndarray of shape (J,)
        Of the features, over all rows.
    n : float
        The weight of all rows.
    ridge : ndarray of shape (J,)
        Of all rows. Where it is 0 it stays, and an intercept's, which is last.
    """

    rho: float
    squares: Floats
    sums: Floats
    n: float
    ridge: Floats

    def without(self, codes: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """The change of the ridge without some rows together, and what it is then: one row each."""
        parts = codes * weight[:, None], codes**2 * weight[:, None], weight
        return self._moved(*(part.sum(axis=0, keepdims=True) for part in parts))

    def without_each(self, codes: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """The changes of the ridge without each of some rows alone, and what it is then."""
        weighted = codes * weight[:, None]
        return self._moved(weighted, weighted * codes, weight)

    def _moved(self, sums: Floats, squares: Floats, weight: Floats) -> tuple[Floats, Floats]:
        n = np.maximum(self.n - weight, _TINY)[:, None]
        ridge = self.rho * ((self.squares - squares) / n - ((self.sums - sums) / n) ** 2)
        ridge[:, -1] = self.ridge[-1]
        ridge[ridge < _VARIES * self.ridge] = 0.0
        return ridge - self.ridge, ridge


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
