"""Probabilities of the classes: discriminant analysis of the scores, with Student tails.

The scores of a row are f = φ·W, coded ±1. Only their differences matter, so of K > 2 scores
z = fH is kept, H the K × (K - 1) Helmert basis (to drop one score would depend on the order of the
labels); of two classes z is the one score. In the rows that were learned, with weights ω,

    M_c = m_c·Z,    T = ZᵀSZ - Σ_c ω_c M_c M_cᵀ,    Z = WH,    d = Σ_i h_i,    h_i = ω_i φ_iᵀPφ_i

are the means of z in class c (m_c those of φ, ω_c the weight of all its rows), the scatter within
the classes, and the sum of the leverages, which is the number of degrees of freedom. A row pulls
the model towards itself: left out, its error would be (y - f) / (1 - h). With the mean leverages
h_c of the classes, and h̄ of all rows, rows that were not learned are expected to have

    μ_c = Y_c - (Y_c - M_c) / (1 - h_c),      Σ = T / ω / (1 - h̄)² + n^-1.5 I

(Y_c the code of class c times H, ω = Σ ω_c), and the probability of a class is

    log p_c = log π_c - (ν + K - 1) / 2 · log(1 + d_c² / ν) + const,    d_c² = (z-μ_c)ᵀΣ⁻¹(z-μ_c)

with ν = 5: the sums do not know the kurtosis, and 4 to 8 serve equally well.

*Leverages.* Σ_i h_i over class c is ω_c m_cᵀPm_c, and what its rows' distances from m_c add: the
trace of P times their scatter where the knowledge is class-wise, else a share of what is left
of d, in proportion to ω_c(1 - 1/n_c). h_c is this over n_c, the number of its rows; or their weight
where that is larger, since a row of weight 2 counts as two. With a free intercept m_cᵀPm_c is
1/ω + (m_c - φ̄)ᵀP(m_c - φ̄).

*Class-wise knowledge* of more than two classes gives each a covariance of its own, drawn to Σ,

    Σ_c = (n_c T_c / ω_c / (1 - h_c)² + 10K Σ) / (n_c + 10K),      and -½ log|Σ_c| in log p_c.

That is K² numbers for each class, and K³ operations for each row: more than 100 classes share Σ.

*Two classes.* p must not fall where the score rises. With δ = (μ_1 - μ_0)/2 and t = z - (μ_0+μ_1)/2
the log-odds have their extremes at |t| = r = √(νΣ + δ²), so t is clipped to [-r, r]; and a term of
at most 2^-10 that increases with the score keeps all rows in their order beyond. This needs
one Σ for both, so class-wise knowledge changes nothing here; and where μ_1 < μ_0 (noise), δ = 0.

*Agreement with the scores.* Of more than two classes, the largest p_c may be that of another class
than the largest score f_w. Where predictions go by the scores, p is replaced by the nearest q (in
Kullback and Leibler's sense) whose largest is q_w: with p sorted, without p_w, as p_(1) ≥ p_(2) ...

    a = max_j (p_w + p_(1) + ... + p_(j)) / (1 + j),     q_w = a,     q_c = min(p_c, a)

*Same bits.* Scores are the nearest float64 to the exact ones. M, T and h come from BLAS, whose last
bits depend on threads and machines: they are rounded to `BITS` and `LEVERAGE_BITS`. What follows
is elementwise arithmetic in a fixed order, with our own logarithm and exponential. Two machines
differ only if the middle between two rounded numbers lies between what they computed. Three kernels
of OpenBLAS differed by 4e-8 of a step or less (600 features, four classes, ρ from 1e-6 to 1): that
is one number of 25 million, and a model has K(K + 1) or so; more where P is ill conditioned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.core import core
from traceless.arithmetic.elementary import exponential, logarithm
from traceless.arithmetic.integers import Floats
from traceless.features.feature_map import BoundMap
from traceless.solvers.centring import whole_means
from traceless.solvers.class_weights import Coding
from traceless.solvers.moments import Moments, in_floats

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge

NU = 5.0
BITS = 26  # of means and scatters, relative to the codes ±1 and to the scatter of all scores
LEVERAGE_BITS = 20  # of 1 - h, which depends on P and so on its condition
HOPELESS = 1e-6  # smallest share of the degrees of freedom that the errors must have
RISE = 2.0**-10  # of the log-odds of two classes, over all scores, where tails are flat
BELOW = 1.0 - 2.0**-50  # so that the largest probability is only one class's
_MOST = 100  # classes that may have a covariance each
_PRIOR_ROWS = 10  # times K: what Σ counts for beside the rows of a class
_CACHE = 2**16  # probabilities at a time
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Discriminant:
    """Where the scores of each class are expected, in the coordinates z of the module's text.

    Attributes
    ----------
    means : ndarray of shape (K, D)
        μ_c, where D is K - 1.
    covariances : ndarray of shape (1, D, D) or (K, D, D)
        Σ, or Σ_c of each class.
    priors : ndarray of shape (K,)
        π_c: the share of each class in the weight of all rows.
    is_informative : bool
        False where the model has as many degrees of freedom as rows: its scores say nothing.
    """

    means: Floats
    covariances: Floats
    priors: Floats
    is_informative: bool

    def probabilities(
        self,
        scores: Floats,
        priors: Floats | None = None,
        *,
        agree: bool = False,
        log: bool = False,
    ) -> Floats:
        """Probabilities of the classes, or their logarithms, for some rows.

        Parameters
        ----------
        scores : ndarray of shape (n, K), or (n, 1) for one or two classes
        priors : ndarray of shape (K,), optional
            In place of those that the rows have.
        agree : bool
            Whether the largest of K > 2 is to be that of the largest score.
        log : bool
            Whether logarithms are asked for.

        Returns
        -------
        ndarray of shape (n, K)
        """
        shares = self.priors if priors is None else priors
        floor = np.where(shares > 0.0, logarithm(np.where(shares > 0.0, shares, 1.0)), -np.inf)
        out = np.empty((len(scores), len(shares)))
        size = max(1, _CACHE // len(shares))
        for start in range(0, len(scores), size):
            rows = slice(start, start + size)
            L = self._densities(scores[rows].T.copy()) + floor[:, None]
            L -= L.max(axis=0)
            p = exponential(L)
            p /= (total := _added(p))
            out[rows] = (L - logarithm(total) if log else p).T
            if agree and self.is_informative and len(shares) > 2:
                winners = scores[rows].argmax(axis=1)
                # where no other is near the winner's, that is the largest, and q is p
                near = p >= p[winners, range(len(winners))] * (1.0 - 2.0**-30)
                rivals = np.flatnonzero(near.sum(axis=0) > 1)
                if rivals.size:
                    q, own = _agreeing(p.T[rivals], winners[rivals]), out[rows][rivals]
                    out[start + rivals] = np.where(
                        q == p.T[rivals], own, logarithm(q) if log else q
                    )
        return out

    @cached_property
    def whitenings(self) -> tuple[Floats, Floats]:
        """Of each covariance the inverse A of its Cholesky factor, so AᵀA = Σ⁻¹, and ½ log|Σ|."""
        S, half_volume = self.covariances.copy(), np.zeros(len(self.covariances))
        A = np.zeros_like(S) + np.eye(S.shape[1])
        for j in range(S.shape[1]):
            pivot, below = np.sqrt(S[:, j, j]), slice(j + 1, None)
            half_volume += logarithm(pivot)
            A[:, j] /= pivot[:, None]
            column = S[:, below, j] / pivot[:, None]
            S[:, below, below] -= column[:, :, None] * column[:, None]
            A[:, below] -= column[:, :, None] * A[:, j, None]
        return A, half_volume

    @cached_property
    def _centers(self) -> Floats:
        """AM of the class means, a row for each, where all classes share A."""
        A, moved = self.whitenings[0][0], self.means.T[0] * self.whitenings[0][0][:, :1]
        for j in range(1, len(A)):
            moved[j:] += self.means.T[j] * A[j:, j, None]
        return np.ascontiguousarray(moved.T)

    @property
    def exponent(self) -> float:
        """Half of ν + K - 1."""
        return (NU + len(self.means) - 1) / 2

    @property
    def of_two(self) -> tuple[float, float, float, float]:
        """Of two classes (μ_0 + μ_1)/2, δ, νΣ and r."""
        (low,), (high,) = self.means.tolist()
        delta, spread = max((high - low) / 2, 0.0), NU * float(self.covariances[0, 0, 0])
        return (low + high) / 2, delta, spread, float(np.sqrt(spread + delta * delta))

    def _densities(self, scores: Floats) -> Floats:
        """The logarithms of the classes' densities, up to a number that all share: K × n."""
        K = len(self.means)
        if K == 1 or not self.is_informative:
            return np.zeros((K, scores.shape[1]))
        return self._log_odds(scores[0]) if K == 2 else self._of_many(contrasts(scores.T).T)

    def _log_odds(self, z: Floats) -> Floats:
        """0 for the first of two classes, and the log-odds for the second."""
        middle, delta, spread, reach = self.of_two
        u = (z - middle) / reach
        t = np.clip(z - middle, -reach, reach)
        near, far = t - delta, t + delta
        odds = self.exponent * logarithm((spread + far * far) / (spread + near * near))
        odds += RISE * (u / (1.0 + np.abs(u)))
        return np.array([np.zeros_like(odds), odds])

    def _of_many(self, z: Floats) -> Floats:
        (A, half_volume), M = self.whitenings, self.means
        if len(A) == 1:
            half_volume, M = np.zeros(1), self._centers
        distances = np.empty((len(M), z.shape[1]))
        core.distances(z, A, M, distances, 1)
        return -self.exponent * logarithm(1.0 + distances / NU) - half_volume[:, None]


def discriminant(
    known: Knowledge,
    moments: Moments,
    phi: BoundMap,
    Z: Floats,
    code: Coding,
    class_weights: tuple[float, ...] | None = None,
) -> Discriminant:
    """What the sums say about the scores that new rows of each class will get.

    Parameters
    ----------
    known : Knowledge
    moments : Moments
        Of this knowledge, with these class weights.
    phi : BoundMap
    Z : ndarray of shape (J, K), or (J, 1) for two classes
        The coefficients of the codes of the features.
    code : callable
        The ±1 coding of the classes.
    class_weights : tuple of float, optional
    """
    totals, K, J = moments.totals, len(moments.totals), len(moments.C)
    n = np.maximum(moments.counts, [float(total) for total in known.class_totals])
    is_empty = not moments.weight > 0.0  # all classes have the weight 0, and the scores are 0
    shares, Y = (n / n.sum() if is_empty else totals / moments.weight), contrasts(code(np.eye(K)))
    if is_empty or K == 1 or not 1.0 - moments.degrees_of_freedom / n.sum() > HOPELESS:
        return Discriminant(Y, np.ones((1, K - 1, K - 1)), shares, False)
    W = contrasts(Z[:J] / phi.steps[:J, None])
    m = np.divide(moments.c, totals, out=np.zeros_like(moments.c), where=totals > 0)
    traces, parts = None, None
    if known.classwise and K > 2:
        traces, parts = _class_scatters(known, moments, phi, W, class_weights)
    errors = _errors(moments, m, n, traces)
    # m counts from the mean of all rows, whose score is the mean code, where the intercept is free
    base = contrasts(code(shares[None])) if moments.is_centred else 0.0
    M = np.where(totals[:, None] > 0, _on_grid(m.T @ W + base, 2.0**-BITS), Y)
    means = Y - (Y - M) / errors[:, None]
    return Discriminant(means, _covariances(moments, W, m, n, errors, parts), shares, True)


def _covariances(
    moments: Moments, W: Floats, m: Floats, n: Floats, errors: Floats, parts: Floats | None
) -> Floats:
    """Σ, or Σ_c of each class where their scatters are given."""
    totals, K, one = moments.totals, len(n), np.eye(W.shape[1])
    M, whole = m.T @ W, W.T @ moments.C @ W
    grid = _power_of_two(whole.diagonal().max() / moments.weight) * 2.0**-BITS

    def rounded(T: Floats) -> Floats:
        # positive definite, whatever the rounding
        return np.asarray(_on_grid(T, grid) + K * grid * one)

    T = rounded((whole - (M.T * totals) @ M) / moments.weight)
    error, size = sum((totals / moments.weight * errors).tolist()), float(n.sum())
    pooled: Floats = T / (error * error) + one / (size * np.sqrt(size))
    if parts is None:
        return pooled[None]
    each = [rounded(T_c / max(w, _TINY)) for T_c, w in zip(parts, totals, strict=True)]
    own = np.array(each) / (errors * errors)[:, None, None]
    rows, prior = n[:, None, None], _PRIOR_ROWS * K
    return np.asarray((rows * own + prior * pooled) / (rows + prior))


def _errors(moments: Moments, m: Floats, n: Floats, traces: Floats | None) -> Floats:
    """1 - h_c, the part of a row's error that the row itself has not taken away."""
    between = moments.totals * ((m * (moments.P @ m)).sum(axis=0))
    if moments.is_centred:
        between += moments.totals / moments.weight
    share = moments.totals * (1.0 - 1.0 / n)
    if traces is not None:
        within = traces
    elif share.any():
        within = share * ((moments.degrees_of_freedom - between.sum()) / share.sum())
    else:
        within = np.zeros_like(n)
    return _significant(np.clip(1.0 - (between + within) / n, HOPELESS, 1.0), LEVERAGE_BITS)


def _class_scatters(
    known: Knowledge,
    moments: Moments,
    phi: BoundMap,
    W: Floats,
    class_weights: tuple[float, ...] | None,
) -> tuple[Floats, Floats | None]:
    """tr(PC_c) and ZᵀC_cZ of the scatter C_c of each class around its own mean."""
    n_outputs, J = known.n_outputs, len(moments.C)
    m = whole_means(known.feature_gram) if moments.is_centred else None
    weights = [1.0] * len(known.counts) if class_weights is None else class_weights
    steps = phi.steps[:J]
    P, V = moments.P * steps * steps[:, None], W * steps[:, None]  # for features in steps
    traces, scatters = [], []
    for part, weight in zip(known.total, weights, strict=True):
        S, s = in_floats(part[:n_outputs, :n_outputs], part[:n_outputs, n_outputs:], m)
        C, total = S[:J, :J], s[:J, 0]
        mean, z = total / float(part[n_outputs, n_outputs]), V.T @ total
        unit = weight * 2.0**-known.weight_bits
        traces.append(unit * (np.vdot(P, C) - total @ (P @ mean)))
        if len(weights) <= _MOST:
            scatters.append(unit * (V.T @ C @ V - np.outer(z, V.T @ mean)))
    return np.array(traces), np.array(scatters) if scatters else None


# --- arithmetic in a fixed order ----------------------------------------------------------------


def contrasts(F: Floats) -> Floats:
    """FH, the columns' differences in Helmert's basis; a single column is left alone."""
    if F.shape[1] == 1:
        return F
    out, before = np.empty_like(F[:, 1:], dtype=np.float64), F[:, 0].astype(np.float64)
    for j in range(1, F.shape[1]):
        out[:, j - 1] = (before - j * F[:, j]) / np.sqrt(j * (j + 1.0))
        before = before + F[:, j]
    return out


def _added(rows: Floats) -> Floats:
    """Their sum, from the first to the last."""
    total: Floats = rows[0].copy()
    for row in rows[1:]:
        total += row
    return total


def _agreeing(p: Floats, winners: NDArray[np.intp]) -> Floats:
    """The nearest probabilities of which the winners have the largest."""
    at = winners[:, None]
    others = p.copy()
    np.put_along_axis(others, at, np.inf, axis=1)
    others = -np.sort(-others, axis=1)
    others[:, :1] = np.take_along_axis(p, at, axis=1)
    means = np.cumsum(others, axis=1) / np.arange(1.0, p.shape[1] + 1.0)
    largest = means.max(axis=1, keepdims=True)
    q: Floats = np.minimum(p, largest * BELOW)
    np.put_along_axis(q, at, largest, axis=1)
    return q


def _power_of_two(x: float) -> float:
    """The power of two that x is below, or a tiny one."""
    return float(np.ldexp(1.0, np.frexp(max(x, _TINY * 2.0**BITS))[1]))


def _on_grid(x: Floats, grid: float) -> Floats:
    return np.asarray(np.rint(x / grid) * grid)


def _significant(x: Floats, bits: int) -> Floats:
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits))
