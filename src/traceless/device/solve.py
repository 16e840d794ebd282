"""Correctly rounded coefficients on a device, in torch; the host takes what is not decided here.

    A Z = Q,     A = S + diag(r),     c ≈ A⁻¹R,     d = round(2^s c),     R ← 2^s R - A d

Steps and bounds are those of `traceless.solvers.solve`, and there is one nearest float64, so the
bits are the host's too. What a device has instead of wide integers: S is cut into S = H 2^h + L
with H, L rounded, and d into two pieces, so that no sum in a product passes 2^53, and float64 has
no rounding error there. R is kept in int64 modulo 2^64. The same residual in float64 is off by less
than 2^60; where the two differ by less than 2^61 and the float64 one is below 2^62, nothing has
wrapped. The fractional bits of r and of the residual are kept in planes of a fixed number of bits,
with carries. Fractions r without an end are cut after 120 bits, as many as X has; what that leaves
out of R, below 2^-120 times X, is added in float64. X is added up in double-double arithmetic.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dgemm

from traceless.arithmetic.integers import Floats, Integers, nearest, wide
from traceless.device.matrices import TensorMatrix, sent
from traceless.device.memory import OutOfMemoryError
from traceless.device.tensors import to_array

if TYPE_CHECKING:
    from traceless.solvers.class_weights import Coding
    from traceless.solvers.ridge import Ridge

U = 2.0**-53  # unit roundoff
_DIGIT_BITS = 44  # at most, for each step: what float64 gives a well-conditioned system
_PLANES = 12  # of fractions that end
_FRACTION_BITS = 120  # of those that have no end: as many as three steps of digits
_STEPS = 6
_ENOUGH = 86  # bits from which on it is asked what they decide
_GUARD = 60  # bits of an intercept below the last digit


class HardError(Exception):
    """The system is beyond what one float64 factor, or these integers, can do."""


def solved_there(
    G: Integers, code: Coding, ridge: Ridge, shift: Integers | None, intercept: bool, device: Any
) -> tuple[Floats, NDArray[np.bool_]] | None:
    """Coefficients, and which columns are decided; None where the device cannot solve the system.

    Parameters
    ----------
    G : int64 array of shape (J, J + K)
        Σφφᵀ, and beside it Σφrᵀ, of features that are still to be shifted.
    code : callable
        Makes right-hand sides of the responses' sums.
    ridge, shift
        See `traceless.solvers.solve.solve`.
    intercept : bool
        Whether to add that of features as they were.
    device : torch.device
    """
    J, K = len(G), G.shape[1] - len(G)
    try:
        sums = sent(G, device)
        V = sums[:, J:]
        if not K or _size(V) >= 2**60 // K:
            return None
        Q = code(V)
        there = TensorMatrix.of(sums[:, :J], shift)
        if there is None:
            return None
        if shift is not None:
            if _size(Q) * (int(np.abs(shift).max()) + 1) >= 2**62:
                return None
            Q = Q - there.arrays.there(shift)[:, None] * Q[-1]
        kept = there.diagonal() != 0
        kept[:-1] &= ridge.near[:-1] > 0
        used, asked = np.flatnonzero(kept), np.flatnonzero(to_array((Q != 0).any(0)))
        if not used.size or not asked.size:
            return None
        own = shift if intercept else None
        if used.size < J:
            there, ridge = there.of_features(used), ridge.of_features(used)
            own = None if own is None else own[used]
        whole = (used.size, asked.size) == tuple(Q.shape)
        some = Q if whole else Q[there.arrays.there(used)][:, there.arrays.there(asked)]
        part, certain = System(there, ridge, own, there.arrays).solve(some)
    except (HardError, LinAlgError, OverflowError, OutOfMemoryError):
        return None
    if whole:
        return part, certain
    Z, decided = np.zeros((J + (own is not None), Q.shape[1])), np.ones(Q.shape[1], dtype=bool)
    rows = used if own is None else np.append(used, J)
    Z[np.ix_(rows, asked)], decided[asked] = part, certain
    return Z, decided


def _size(a: Any) -> int:
    """The largest absolute value."""
    return max(int(a.max()), -int(a.min()))


class System:
    """A = S + diag(r) in two limbs and a Cholesky factor; the fractions of r in planes."""

    def __init__(self, S: Any, ridge: Ridge, shift: Integers | None, on: Any) -> None:
        J, own = len(S), S.diagonal().astype(np.int64)
        if not max(ridge.near.max(), own.max()) < 2.0**61:
            raise HardError
        numerators, denominator = ridge.fractions
        self.on, whole = on, own + (numerators // denominator).astype(np.int64)
        m = int(whole.max() + 1).bit_length() + 1  # |S_ij| < 2^m, S being semidefinite
        self.h = m // 2
        # pieces of digits up to 2^g: J products with a limb stay below 2^53
        self.g = 52 - max(self.h - 1, m - self.h) - J.bit_length()
        self.bits = min(2 * self.g - 1, _DIGIT_BITS)
        if m > 62 or self.bits < 24:
            raise HardError
        self.plane_bits = 61 - self.bits  # times a digit, a plane stays below 2^62
        planes, rest = _planes(ridge, self.plane_bits)
        self.planes = on.there(np.array(planes)) if planes else None
        self.has_rest = bool(rest.any())
        self.rest = on.there(rest)
        self._prepare(ridge, shift, wide(np.asarray(S[-1, :])), 1)
        A, self._products = on.prepared(S, whole, self.h)
        scaled = (plane * 2.0 ** (-self.plane_bits * (k + 1)) for k, plane in enumerate(planes))
        on.put_diagonal(A, whole + (rest + sum(scaled))[:, 0])
        self.factor = on.factor(A)

    def _prepare(self, ridge: Ridge, shift: Integers | None, column: Integers, unit: int) -> None:
        """Bounds need ridges and, for a free intercept, the last column of S, in units."""
        near = ridge.near[:, None]
        weight = np.where(near > 0, 1.0 / np.sqrt(np.where(near > 0, near, 1)), 0.0)
        self.weight, self.mean = self.on.there(weight), None
        if ridge.is_free:
            n = np.array(int(column[-1]), dtype=object)
            self.mean = self.on.there(nearest(np.abs(column), n)[:, None] * (1 + 1e-9))
            self.weight_of_rows = float(nearest(n, np.array(unit, dtype=object)))
        self.shift: _Shift | None = None
        if shift is not None:
            self.shift = _Shift(shift, 52 - self.g - len(near).bit_length())

    def solve(self, Q: Integers) -> tuple[Floats, NDArray[np.bool_]]:
        """Z, and which columns are certainly the float64 nearest to A⁻¹Q."""
        on = self.on
        residual, X = _Residual(on, on.whole(Q)), 0.0
        E = np.zeros(Q.shape[1], dtype=np.int64)
        terms: list[Floats] = []
        moved = np.zeros(Q.shape[1], dtype=object)  # 2^E (X_b - Σ_j shift_j X_j)
        for step in range(_STEPS):
            c = on.solved(self.factor, residual.near - self._cut(X))
            size = on.largest(c)
            if not size.max() < np.inf:
                raise HardError
            shifts = self.bits - np.frexp(np.where(size > 0, size, 1))[1].astype(np.int64)
            if step:
                np.minimum(shifts, self.bits, out=shifts)  # fractions stay below 2^62
            if shifts.min() < (4 if step else 0):
                raise HardError  # a step must gain four bits
            digits = on.rint(c * on.there(np.ldexp(1.0, shifts)))
            upper = on.rint(digits * 2.0**-self.g)
            pieces = on.beside(upper, digits - upper * 2.0**self.g)
            residual = self._after(residual, (digits, pieces), shifts)
            if self.shift is not None:
                moved = (moved << shifts.astype(object)) + self.shift.apart(on.here(pieces), self.g)
            E = E + shifts
            if E.max() > 800:
                raise HardError  # so that 2^-E and the bounds stay normal numbers
            down = on.there(np.ldexp(1.0, -E))
            terms.append(digits * down)
            X = sum(terms) * on.there(np.ldexp(1.0, E))
            if (step + 1) * self.bits < _ENOUGH:
                continue
            with np.errstate(all="ignore"):  # a bound beyond float64 decides nothing
                bound = self._bound(residual, X)
                Z, certain = _rounded(terms, bound * down)
            decided = on.here(certain.all(0))
            if self.shift is not None:
                own, sure = self.shift.intercepts(moved, E, on.here(bound))
                decided = decided & sure
            if decided.all():
                break
        return on.here(Z) if self.shift is None else np.vstack([on.here(Z), own]), decided

    def _cut(self, X: Any) -> Any:
        """What the planes leave out of R."""
        return self.rest * X if self.has_rest else 0.0

    def _rest(self, residual: _Residual, X: Any) -> Any:
        cut = self._cut(X)
        bound = abs(residual.near - cut) + (8 * U) * (abs(residual.near) + abs(cut))
        return bound + (0.0 if self.planes is None else 2.0**-self.plane_bits)

    def _after(
        self, before: _Residual, digits: tuple[Any, Any], shifts: NDArray[np.int64]
    ) -> _Residual:
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

    def _bound(self, residual: Any, X: Any) -> Any:
        """A bound of |A⁻¹R|."""
        rest = self._rest(residual, X)
        if self.mean is None:
            return self._spread(rest)
        own = rest[-1] / self.weight_of_rows
        bound = self._spread(rest + self.mean * rest[-1])
        bound[-1] = (own + (self.mean[:-1] * bound[:-1]).sum(axis=0)) * (1 + 1e-6)
        return bound

    def _spread(self, rest: Floats) -> Floats:
        """r_j^(-1/2) (Σ_i rest_i² / r_i)^(1/2), over the penalised coefficients."""
        rest = rest * self.weight
        spread: Floats = self.weight * self.on.sqrt((rest * rest).sum(axis=0)) * (1 + 1e-6)
        return spread


def _planes(ridge: Ridge, bits: int) -> tuple[list[Integers], Floats]:
    """Fractional parts as Σ_k plane_k 2^(-bits (k+1)) + rest, the rest in float64."""
    numerators, denominator = ridge.fractions
    common = math.gcd(denominator, *numerators.tolist())
    numerators, denominator = numerators // common, denominator // common
    ends = denominator & (denominator - 1) == 0
    n = -(-(denominator.bit_length() - 1 if ends else _FRACTION_BITS) // bits)
    n = min(n, _PLANES) if ends else n
    together = numerators % denominator << n * bits
    rest = nearest(together % denominator, np.array(denominator, dtype=object))
    together //= denominator
    planes = [(together >> k * bits) & ((1 << bits) - 1) for k in reversed(range(n))]
    return [p.astype(np.int64)[:, None] for p in planes], np.ldexp(rest, -n * bits)[:, None]


class _Residual:
    """R, whole and (in planes, as the fractions of r) fractional; `near` is its float64."""

    def __init__(self, on: Any, whole: Any, planes: Any = None, plane_bits: int = 0) -> None:
        self.whole, self.planes = whole, planes
        self.near = on.floats(whole)
        if planes is not None:
            self.near += on.floats(planes[0]) * 2.0**-plane_bits


class _Shift:
    """Whole numbers m, cut into limbs so that Σ_j m_j x_j of digits x is exact in float64."""

    def __init__(self, m: Integers, bits: int) -> None:
        self.sizes, self.signs = np.abs(m).astype(np.float64), np.sign(m)
        places = np.arange(0, max(int(np.abs(m).max()).bit_length(), 1), bits)
        limbs = (np.abs(m)[:, None] >> places) & ((1 << bits) - 1)
        self.limbs = np.asfortranarray(limbs * self.signs[:, None], dtype=np.float64)
        self.places = wide(np.append(places, 0))[:, None]

    def apart(self, pieces: Floats, g: int) -> Integers:
        """x_b - Σ_j m_j x_j of digits, given in their two pieces, as Python integers."""
        parts = np.vstack([-dgemm(1.0, self.limbs, pieces, trans_a=True), pieces[-1:]])
        upper, lower = np.hsplit(wide(parts.astype(np.int64)), 2)
        return np.asarray((((upper << g) + lower) << self.places).sum(axis=0))

    def intercepts(
        self, moved: Integers, E: NDArray[np.int64], error: Floats
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """2^-E moved, and whether the float64 nearest to what it is near to is certain."""
        bound = (error[-1] + (self.sizes[:, None] * error).sum(axis=0)) * (1 + 1e-6)
        whole, units = moved << _GUARD, 1 << wide(E + _GUARD)
        margin = _ceiling(np.ldexp(bound, _GUARD))
        below = nearest(whole - margin, units)
        return below, below == nearest(whole + margin, units)


_ceiling = np.frompyfunc(math.ceil, 1, 1)


def _rounded(terms: list[Floats], bound: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The sum of terms, and whether all that is within `bound` of it rounds to one float64."""
    s: Any = terms[0]
    e: Any = 0.0
    size: Any = 0.0
    for term in terms[1:]:
        total = s + term
        t = total - s
        error = (s - (total - t)) + (term - t)  # s + term = total + error (Knuth)
        s, e, size = total, e + error, size + abs(error)
    bound = bound * (1 + 8 * U) + (8 * U) * size  # with the roundings of e and of e ± bound
    low = s + (e - bound)
    return low + 0.0, low == s + (e + bound)
