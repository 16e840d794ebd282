"""Correctly rounded coefficients in int64 and BLAS, for the usual system.

    A Z = Q,     A = S + diag(r),     S, Q integers, S positive semidefinite, r > 0

Steps are those of `traceless.solvers.steps`, with an exact residual R ← 2^s R - A d. S is cut into
S = H 2^h + L with H, L rounded, and d into two pieces, so that no sum in a product of limbs
and pieces passes 2^53: float64 has no rounding error there. R is kept in int64 modulo 2^64. The
same residual in float64 is off by less than 2^60; where the two differ by less than 2^61 and the
float64 one is below 2^62, nothing has wrapped. The fractional bits of r and of the residual are
kept in planes of a fixed number of bits, with carries. Fractions r without an end are cut after 120
bits, as many as X has; what that leaves out of R, below 2^-120 times X, is added in float64.

Weighted classes and numbers beyond int64 are for `traceless.solvers.wide`. Whatever neither can
decide (ill-conditioned systems, a coefficient exactly between two floats) is left to
`traceless.solvers.refinement`. All give the same bits: there is one nearest float64.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from traceless.arithmetic.integers import Floats, Integers, as_sums, wide
from traceless.arithmetic.triangle import Triangle
from traceless.arithmetic.words import Sums, Wide
from traceless.solvers.mixture import Mixture
from traceless.solvers.refinement import refined
from traceless.solvers.ridge import Ridge
from traceless.solvers.steps import HOST, Digits, HardError, Steps, U
from traceless.solvers.wide import WideSystem

__all__ = ["correctly_rounded_solve"]

_DIGIT_BITS = 44  # at most, for each step: what float64 gives a well-conditioned system
_PLANES = 12


def correctly_rounded_solve(
    S: Sums | Triangle | Mixture, ridge: Ridge | Floats, Q: Integers, shift: Integers | None = None
) -> Floats:
    """The solution of ``(S + diag(ridge)) Z = Q``, each entry the nearest float64.

    Parameters
    ----------
    S : integer array of shape (J, J), positive semidefinite, a Triangle, or a Mixture
    ridge : Ridge, or float64 array of shape (J,), positive
        The last may be zero, if S has a positive number there. A feature with S_jj = 0 or
        ridge_j = 0 that is not the last has coefficient 0.
    Q : integer array of shape (J, K)
        In the units of the mixture.
    shift : int64 array of shape (J,), optional
        What was subtracted from each feature to make S; the last is 0.

    Returns
    -------
    float64 array of shape (J, K), or (J + 1, K) with a shift
        In that case the last row is Z_b - Σ_j shift_j Z_j, the intercept of the features as they
        were, correctly rounded too.

    Raises
    ------
    ConditionError
        If the system is so ill-conditioned that float64 steps no longer gain a bit.
    """
    ridge = ridge if isinstance(ridge, Ridge) else Ridge(ridge)
    S = S if isinstance(S, Mixture | Triangle) else as_sums(S)
    shape = len(Q) + (shift is not None), Q.shape[1]
    there = S.diagonal() != 0  # a feature that is always 0 has coefficient 0
    there[:-1] &= ridge.near[:-1] > 0
    used, asked = np.flatnonzero(there), np.flatnonzero(Q.any(axis=0))
    if not used.size or not asked.size:
        return np.zeros(shape)
    if used.size < len(Q):
        S = S[used][:, used] if isinstance(S, np.ndarray | Wide) else S.of_features(used)
        ridge, shift = ridge.of_features(used), None if shift is None else shift[used]
    whole = (used.size, asked.size) == Q.shape
    Q = Q if whole else Q[np.ix_(used, asked)]
    rows = used if shift is None else np.append(used, shape[0] - 1)
    begin = None
    try:
        system = _system(S, ridge, shift)
        part, decided = system.solve(Q)
        begin = system.left
    except (HardError, LinAlgError, OverflowError):
        part, decided = np.empty((len(rows), len(asked))), np.zeros(len(asked), dtype=bool)
    if not decided.all():
        go_on = None if begin is None else partial(begin, ~decided, ridge)
        part[:, ~decided] = refined(_whole(S), ridge, Q[:, ~decided], shift, go_on)
    if whole:
        return part
    Z = np.zeros(shape)
    Z[np.ix_(rows, asked)] = part
    return Z


def _system(S: Any, ridge: Ridge, shift: Integers | None) -> Steps:
    """The system of the kind that its numbers need."""
    if isinstance(S, Mixture | Wide):
        return WideSystem(S, ridge, shift)
    try:
        return System(S, ridge, shift)
    except HardError:  # too large for limbs of two
        return WideSystem(Mixture((_whole(S),)), ridge, shift)


def _whole(S: Any) -> Any:
    return S.whole() if isinstance(S, Triangle) else S


class System(Steps):
    """A = S + diag(r) in two limbs and a Cholesky factor; the fractions of r in planes."""

    def __init__(self, S: Any, ridge: Ridge, shift: Integers | None, on: Any = HOST) -> None:
        J, own = len(S), S.diagonal().astype(np.int64)
        if not max(ridge.near.max(), own.max()) < 2.0**61:
            raise HardError
        self.on, whole = on, own + ridge.whole()
        m = int(whole.max() + 1).bit_length() + 1  # |S_ij| < 2^m, S being semidefinite
        self.h = m // 2
        # pieces of digits up to 2^g: J products with a limb stay below 2^53
        self.g = 52 - max(self.h - 1, m - self.h) - J.bit_length()
        self.bits = min(2 * self.g - 1, _DIGIT_BITS)
        if m > 62 or self.bits < 24:
            raise HardError
        self.plane_bits = 61 - self.bits  # times a digit, a plane stays below 2^62
        planes, rest = ridge.planes(self.plane_bits, _PLANES)
        self.planes = on.there(np.array(planes)) if planes else None
        self.has_rest = bool(rest.any())
        self.rest = on.there(rest)
        self.units = self.plane_bits * len(planes)
        self._prepare(ridge, shift, wide(np.asarray(S[-1, :])), 1)
        A, self._products = on.prepared(S, whole, self.h)
        scaled = (plane * 2.0 ** (-self.plane_bits * (k + 1)) for k, plane in enumerate(planes))
        on.put_diagonal(A, whole + (rest + sum(scaled))[:, 0])
        self.factor = on.factor(A)

    def _start(self, Q: Integers) -> _Residual:
        return _Residual(self.on, self.on.whole(Q))  # OverflowError beyond

    def _near(self, residual: _Residual, X: Any) -> Any:
        return residual.near - self._cut(X)

    def _kept(self, residual: _Residual, columns: NDArray[np.bool_]) -> Integers:
        total = wide(self.on.here(residual.whole)[:, columns])
        for plane in () if residual.planes is None else residual.planes:
            total = (total << self.plane_bits) + wide(self.on.here(plane)[:, columns])
        return total

    def _cut(self, X: Any) -> Any:
        """What the planes leave out of R."""
        return self.rest * X if self.has_rest else 0.0

    def _rest(self, residual: _Residual, X: Any) -> Any:
        cut = self._cut(X)
        bound = abs(residual.near - cut) + (8 * U) * (abs(residual.near) + abs(cut))
        return bound + (0.0 if self.planes is None else 2.0**-self.plane_bits)

    def _after(self, before: _Residual, digits: Digits, shifts: NDArray[np.int64]) -> _Residual:
        """The same in int64 and, near to it, in float64."""
        on, up, planes = self.on, self.on.there(shifts), None
        near, whole = self._products(digits[1], self.g)
        near = before.near * on.there(np.ldexp(1.0, shifts)) - near
        whole = (before.whole << up) - whole
        if self.planes is not None:
            planes, carry = -self.planes * on.whole(digits[0]), 0
            if before.planes is not None:
                planes += before.planes << up
            for k in reversed(range(len(planes))):
                planes[k] += carry
                carry = planes[k] >> self.plane_bits
            whole += carry
            planes &= (1 << self.plane_bits) - 1
        after = _Residual(on, whole, planes, self.plane_bits)
        if not (abs(after.near - near).max() < 2.0**61 and abs(near).max() < 2.0**62):
            raise HardError  # R may have wrapped
        return after


class _Residual:
    """R, whole and (in planes, as the fractions of r) fractional; `near` is its float64."""

    def __init__(self, on: Any, whole: Any, planes: Any = None, plane_bits: int = 0) -> None:
        self.whole, self.planes = whole, planes
        self.near = on.floats(whole)
        if planes is not None:
            self.near += on.floats(planes[0]) * 2.0**-plane_bits
