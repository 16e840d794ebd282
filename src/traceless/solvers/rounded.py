"""Correctly rounded coefficients in int64 and BLAS, for the usual system.

    A Z = Q,     A = S + diag(r),     S, Q integers, S positive semidefinite, r > 0

The solution is X + A⁻¹R 2^-E with X a sum of integer digits d 2^-E, and R = 2^E (Q - A X). A
step takes c ≈ A⁻¹R from a Cholesky factor in float64, which may be as wrong as it likes, and

    d = round(2^s c),     R ← 2^s R - A d,     E ← E + s

*R is exact.* S is cut into S = H 2^h + L with H, L rounded, and d into two pieces, so that no
sum in a product of limbs and pieces passes 2^53: float64 has no rounding error there. R is kept
in int64 modulo 2^64. The same residual in float64 is off by less than 2^60; where the two differ
by less than 2^61 and the float64 one is below 2^62, nothing has wrapped. The fractional bits of r
and of the residual are kept in planes of a fixed number of bits, with carries.

*The error is bounded.* A - diag(r) is positive semidefinite, so v = A⁻¹R - c obeys

    |v_j| ≤ r_j^(-1/2) (Σ_i (R - A c)_i² / r_i)^(1/2)

where R - A c is computed in float64, with |A_ij| ≤ (A_ii A_jj)^(1/2) and |L_ij| ≤ 2^(h-1) for its
rounding errors. X + c is added in double-double arithmetic. Where both ends of the interval
around it round to the same float64, so does the exact coefficient: rounding is monotone.

Whatever this cannot decide (numbers beyond int64, weighted classes, ill-conditioned systems, a
coefficient exactly between two floats) is left to `traceless.solvers.refinement`. Both give the
same bits: there is one nearest float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dpotrf, dpotrs

from traceless.arithmetic.integers import Floats, Integers
from traceless.exceptions import RangeError
from traceless.solvers.refinement import Mixture, refined

__all__ = ["Mixture", "correctly_rounded_solve", "ridge_in_steps"]

_U = 2.0**-53  # unit roundoff
_DIGIT_BITS = 40  # at most, for each step
_STEPS = 6
_PLANES = 12
_CACHE = 2**15  # entries of S that are cut at a time
_TINY, _HUGE = np.finfo(np.float64).tiny, np.finfo(np.float64).max


def ridge_in_steps(rho: float, steps: Floats, weight_bits: int) -> Floats:
    """ρ in the units of integer knowledge, one for each feature: exact, or RangeError."""
    places = weight_bits - 2 * (np.frexp(steps)[1] - 1)  # steps are powers of two
    with np.errstate(over="ignore"):
        ridge = np.ldexp(rho, places)
    if not np.array_equal(np.ldexp(ridge, -places), np.full(len(steps), rho)):
        if np.isinf(ridge).any():
            what, limit = "large", f"at most {np.ldexp(_HUGE / 2, -places.max()):.1g}"
        else:
            what, limit = "small", f"at least {np.ldexp(_TINY * 2, -places.min()):.1g}"
        raise RangeError(
            f"rho={rho!r} is too {what} for the features' grid: rho / resolution² would be beyond "
            f"float64. Choose rho to be {limit}, or another resolution."
        )
    return np.asarray(ridge)


def correctly_rounded_solve(S: Integers | Mixture, ridge: Floats, Q: Integers) -> Floats:
    """The solution of ``(S + diag(ridge)) Z = Q``, each entry the nearest float64.

    Parameters
    ----------
    S : integer array of shape (J, J), positive semidefinite, or a Mixture of such
    ridge : float64 array of shape (J,), positive
    Q : integer array of shape (J, K)
        In the units of the mixture.

    Raises
    ------
    ConditionError
        If the system is so ill-conditioned that float64 steps no longer gain a bit.
    """
    Z = np.zeros(Q.shape)
    used = np.flatnonzero(S.diagonal())  # a feature that is always 0 has coefficient 0
    asked = np.flatnonzero(Q.any(axis=0))
    if not used.size or not asked.size:
        return Z
    if used.size < len(Z):
        S = S.of_features(used) if isinstance(S, Mixture) else S[np.ix_(used, used)]
        ridge = ridge[used]
    Q = Q[np.ix_(used, asked)]
    try:
        if isinstance(S, Mixture):
            raise _HardError
        part, decided = _System(S, ridge).solve(Q)
    except (_HardError, LinAlgError, OverflowError):
        part, decided = np.empty(Q.shape), np.zeros(Q.shape, dtype=bool)
    left = ~decided.all(axis=0)
    if left.any():
        part[:, left] = refined(S, ridge, Q[:, left])
    Z[np.ix_(used, asked)] = part
    return Z


class _HardError(Exception):
    """The system is beyond what int64 and one float64 factor can do."""


class _System:
    """A = S + diag(r) in two limbs and a Cholesky factor; the fractions of r in planes."""

    def __init__(self, S: Integers, r: Floats) -> None:
        J = len(S)
        if S.dtype != np.int64 or not max(r.max(), S.diagonal().max()) < 2.0**61:
            raise _HardError
        fraction, whole_r = np.modf(r)
        whole = S.diagonal() + whole_r.astype(np.int64)
        m = int(whole.max() + 1).bit_length() + 1  # |S_ij| < 2^m, S being semidefinite
        self.h = h = m // 2
        # pieces of digits up to 2^g: J products with a limb stay below 2^53
        self.g = 52 - max(h - 1, m - h) - J.bit_length()
        self.bits = min(2 * self.g - 1, _DIGIT_BITS)
        if m > 62 or self.bits < 24:
            raise _HardError
        A, self.high, self.low = (np.empty((J, J), order="F") for _ in range(3))
        for i in range(0, J, max(1, _CACHE // J)):
            rows = slice(i, i + max(1, _CACHE // J))
            A.T[rows] = S[rows]
            high = (S[rows] + (1 << (h - 1))) >> h
            self.high.T[rows], self.low.T[rows] = high, S[rows] - (high << h)
        high = (whole + (1 << (h - 1))) >> h
        np.fill_diagonal(self.high, high)
        np.fill_diagonal(self.low, whole - (high << h))
        diagonal = whole + fraction
        np.fill_diagonal(A, diagonal)
        self.root = np.sqrt(diagonal)[:, None] * (1 + 1e-6)
        self.weight = 1.0 / np.sqrt(r)[:, None]
        self.plane_bits = 61 - self.bits  # times a digit, a plane stays below 2^62
        self.fraction = fraction[:, None]
        self.planes: list[Integers] = []  # fraction = Σ_k planes[k] 2^(-plane_bits (k+1))
        while fraction.any():
            if len(self.planes) == _PLANES:
                raise _HardError
            fraction, plane = np.modf(np.ldexp(fraction, self.plane_bits))
            self.planes.append(plane.astype(np.int64)[:, None])
        self.factor, failed = dpotrf(A, lower=True, clean=False, overwrite_a=True)
        if failed:
            raise _HardError

    def solve(self, Q: Integers) -> tuple[Floats, NDArray[np.bool_]]:
        """Z, and which entries are certainly the float64 nearest to A⁻¹Q."""
        residual = _Residual(np.asfortranarray(Q, dtype=np.int64))  # OverflowError beyond
        E = np.zeros(Q.shape[1], dtype=np.int64)
        terms: list[Floats] = []
        for step in range(_STEPS):
            c = dpotrs(self.factor, residual.near, lower=True)[0]
            size = np.abs(c).max(axis=0)
            if not (size.min() > 0 and size.max() < np.inf):
                raise _HardError
            shifts = self.bits - np.frexp(size)[1].astype(np.int64)
            if step:
                np.minimum(shifts, self.bits, out=shifts)  # fractions stay below 2^62
            if shifts.min() < (4 if step else 0):
                raise _HardError  # a step must gain four bits
            if step >= 2:
                down = np.ldexp(1.0, -E)
                Z, decided = _rounded([*terms, c * down], self._error(residual.near, c) * down)
                if step == _STEPS - 1 or decided.all():
                    break
            digits = np.rint(c * np.ldexp(1.0, shifts))
            residual = self._after(residual, digits, shifts)
            E = E + shifts
            if E.max() > 800:
                raise _HardError  # so that 2^-E and the bounds stay normal numbers
            terms.append(digits * np.ldexp(1.0, -E))
        return Z, decided

    def _after(self, before: _Residual, digits: Floats, shifts: NDArray[np.int64]) -> _Residual:
        """R ← 2^shifts R - A digits, in int64 and, near to it, in float64."""
        K, g, h = digits.shape[1], self.g, self.h
        upper = np.rint(digits * 2.0**-g)
        pieces = np.hstack([upper, digits - upper * 2.0**g])
        H, L = dgemm(1.0, self.high, pieces), dgemm(1.0, self.low, pieces)
        near = before.near * np.ldexp(1.0, shifts) - (
            (H[:, :K] * 2.0**g + H[:, K:]) * 2.0**h + (L[:, :K] * 2.0**g + L[:, K:])
        )
        H, L = H.astype(np.int64), L.astype(np.int64)
        whole = (before.whole << shifts) - (
            (((H[:, :K] << g) + H[:, K:]) << h) + (L[:, :K] << g) + L[:, K:]
        )
        planes: list[Integers] = []
        carry: Any = np.int64(0)
        for k in reversed(range(len(self.planes))):
            held = before.planes[k] << shifts if before.planes else np.int64(0)
            total = held - self.planes[k] * digits.astype(np.int64) + carry
            carry = total >> self.plane_bits
            planes.insert(0, total & ((1 << self.plane_bits) - 1))
        whole += carry
        after = _Residual(whole, planes, self.plane_bits)
        if not (np.abs(after.near - near).max() < 2.0**61 and np.abs(near).max() < 2.0**62):
            raise _HardError  # R may have wrapped
        return after

    def _error(self, near: Floats, c: Floats) -> Floats:
        """A bound of |A⁻¹R - c|; `near` is R, rounded."""
        size, rounding = np.abs(c), (2 * len(c) + 16) * _U
        product = dgemm(1.0, self.high, c) * 2.0**self.h + dgemm(1.0, self.low, c)
        rest = np.abs(near - (product + self.fraction * c))
        rest += (4 * _U) * np.abs(near) + (2.0**-self.plane_bits if self.planes else 0.0)
        rest += rounding * self.root * (self.root * size).sum(axis=0)
        rest += 2.0 ** (self.h - 1) * rounding * size.sum(axis=0)  # of L, which is not definite
        rest *= self.weight
        return np.asarray(self.weight * np.sqrt((rest * rest).sum(axis=0)) * (1 + 1e-6))


class _Residual:
    """R, whole and (in planes, as the fractions of r) fractional; `near` is its float64."""

    def __init__(
        self, whole: Integers, planes: Sequence[Integers] = (), plane_bits: int = 0
    ) -> None:
        self.whole, self.planes = whole, planes
        self.near = whole.astype(np.float64)
        if planes:
            self.near += planes[0] * 2.0**-plane_bits


def _rounded(terms: list[Floats], bound: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The sum of terms, and whether all that is within `bound` of it rounds to one float64."""
    s, e, size = terms[0], np.zeros(1), np.zeros(1)
    for term in terms[1:]:
        total = s + term
        t = total - s
        error = (s - (total - t)) + (term - t)  # s + term = total + error (Knuth)
        s, e, size = total, e + error, size + np.abs(error)
    bound = bound * (1 + 8 * _U) + (8 * _U) * size  # with the roundings of e and of e ± bound
    low = s + (e - bound)
    return low + 0.0, low == s + (e + bound)
