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

*The error is bounded.* A - diag(r) is positive semidefinite, so v = A⁻¹R obeys

    |v_j| ≤ r_j^(-1/2) (Σ_i R_i² / r_i)^(1/2)

(and with `traceless.solvers.refinement`'s bound where the last coefficient is an intercept that is
not penalised). After three steps X has about 120 bits, of which the bound leaves more than enough:
it costs A_jj J / r_j, some 40 bits for the systems that one float64 factor can do. Fractions r
without an end are cut after 80 bits; what that leaves out of R, below 2^-80 times X, is added in
float64. X is added up in double-double arithmetic. Where both ends of the interval around it
round to the same float64, so does the exact coefficient: rounding is monotone.

Whatever this cannot decide (numbers beyond int64, weighted classes, ill-conditioned systems, a
coefficient exactly between two floats) is left to `traceless.solvers.refinement`. Both give the
same bits: there is one nearest float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dpotrf, dpotrs

from traceless.arithmetic.integers import Floats, Integers, as_sums, nearest, wide
from traceless.arithmetic.words import Sums, Wide
from traceless.solvers.refinement import Mixture, digits_of, powers, refined
from traceless.solvers.ridge import Ridge

__all__ = ["correctly_rounded_solve"]

_U = 2.0**-53  # unit roundoff
_DIGIT_BITS = 40  # at most, for each step
_STEPS = 6
_PLANES = 12
_PLACES = 8  # digits of ridges without an end, where R is kept in digits
_GUARD = 60  # bits of an intercept below the last digit
_CACHE = 2**15  # entries of S that are worked on together
_KEPT = 2**21  # entries of S up to which limbs are kept; larger ones are cut again for each product


def correctly_rounded_solve(
    S: Sums | Mixture, ridge: Ridge | Floats, Q: Integers, shift: Integers | None = None
) -> Floats:
    """The solution of ``(S + diag(ridge)) Z = Q``, each entry the nearest float64.

    Parameters
    ----------
    S : integer array of shape (J, J), positive semidefinite, or a Mixture of such
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
    S = S if isinstance(S, Mixture) else as_sums(S)
    Z = np.zeros((len(Q) + (shift is not None), Q.shape[1]))
    there = S.diagonal() != 0  # a feature that is always 0 has coefficient 0
    there[:-1] &= ridge.near[:-1] > 0
    used, asked = np.flatnonzero(there), np.flatnonzero(Q.any(axis=0))
    if not used.size or not asked.size:
        return Z
    if used.size < len(Q):
        S = S.of_features(used) if isinstance(S, Mixture) else S[np.ix_(used, used)]
        ridge, shift = ridge.of_features(used), None if shift is None else shift[used]
    Q = Q[np.ix_(used, asked)]
    rows = used if shift is None else np.append(used, len(Z) - 1)
    try:
        kind = _WideSystem if isinstance(S, Mixture | Wide) else _System
        part, decided = kind(S, ridge, shift).solve(Q)
    except (_HardError, LinAlgError, OverflowError):
        part, decided = np.empty((len(rows), len(asked))), np.zeros(len(asked), dtype=bool)
    if not decided.all():
        part[:, ~decided] = refined(S, ridge, Q[:, ~decided], shift)
    Z[np.ix_(rows, asked)] = part
    return Z


class _HardError(Exception):
    """The system is beyond what int64 and one float64 factor can do."""


class _Steps:
    """What the systems of both kinds do: take digits until all entries are decided."""

    factor: Floats
    bits: int
    g: int

    def _prepare(self, ridge: Ridge, shift: Integers | None, column: Integers, unit: int) -> None:
        """Bounds need ridges and, for a free intercept, the last column of S, in units."""
        near = ridge.near[:, None]
        self.weight = np.where(near > 0, 1.0 / np.sqrt(np.where(near > 0, near, 1)), 0.0)
        self.mean: Floats | None = None
        if ridge.is_free:
            n = np.array(int(column[-1]), dtype=object)
            self.mean = nearest(np.abs(column), n)[:, None] * (1 + 1e-9)
            self.weight_of_rows = float(nearest(n, np.array(unit, dtype=object)))
        self.shift: _Shift | None = None
        if shift is not None:
            self.shift = _Shift(shift, 52 - self.g - len(near).bit_length())

    def solve(self, Q: Integers) -> tuple[Floats, NDArray[np.bool_]]:
        """Z, and which columns are certainly the float64 nearest to A⁻¹Q."""
        residual, X = self._start(Q), np.zeros((1, 1))
        E = np.zeros(Q.shape[1], dtype=np.int64)
        terms: list[Floats] = []
        moved = np.zeros(Q.shape[1], dtype=object)  # 2^E (X_b - Σ_j shift_j X_j)
        for step in range(_STEPS):
            c = dpotrs(self.factor, self._near(residual, X), lower=True)[0]
            size = np.abs(c).max(axis=0)
            if not size.max() < np.inf:
                raise _HardError
            shifts = self.bits - np.frexp(np.where(size > 0, size, 1))[1].astype(np.int64)
            if step:
                np.minimum(shifts, self.bits, out=shifts)  # fractions stay below 2^62
            if shifts.min() < (4 if step else 0):
                raise _HardError  # a step must gain four bits
            digits = np.rint(c * np.ldexp(1.0, shifts))
            upper = np.rint(digits * 2.0**-self.g)
            pieces = np.hstack([upper, digits - upper * 2.0**self.g])
            residual = self._after(residual, pieces, shifts)
            if self.shift is not None:
                moved = (moved << shifts.astype(object)) + self.shift.apart(pieces, self.g)
            E = E + shifts
            if E.max() > 800:
                raise _HardError  # so that 2^-E and the bounds stay normal numbers
            down = np.ldexp(1.0, -E)
            terms.append(digits * down)
            X = sum(terms) * np.ldexp(1.0, E)
            if step < 2:
                continue
            with np.errstate(all="ignore"):  # a bound beyond float64 decides nothing
                bound = self._bound(residual, X)
                Z, decided = _rounded(terms, bound * down)
            decided = np.asarray(decided.all(axis=0))
            if self.shift is not None:
                own, certain = self.shift.intercepts(moved, E, bound)
                Z, decided = np.vstack([Z, own]), decided & certain
            if decided.all():
                break
        return Z, decided

    def _start(self, Q: Integers) -> Any:
        """R of no digits."""
        raise NotImplementedError

    def _after(self, before: Any, pieces: Floats, shifts: NDArray[np.int64]) -> Any:
        """R ← 2^shifts R - A d for digits d in two pieces, the upper and the lower."""
        raise NotImplementedError

    def _near(self, residual: Any, X: Floats) -> Floats:
        """R in float64, given the digits so far."""
        raise NotImplementedError

    def _rest(self, residual: Any, X: Floats) -> Floats:
        """A bound of |R|, given the digits so far."""
        raise NotImplementedError

    def _bound(self, residual: Any, X: Floats) -> Floats:
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
        return np.asarray(self.weight * np.sqrt((rest * rest).sum(axis=0)) * (1 + 1e-6))


class _System(_Steps):
    """A = S + diag(r): a Cholesky factor, two limbs of its rows, the fractions of r in planes."""

    def __init__(self, S: Sums, ridge: Ridge, shift: Integers | None) -> None:
        J = len(S)
        if isinstance(S, Wide) or not max(ridge.near.max(), S.diagonal().max()) < 2.0**61:
            raise _HardError
        self.S, self.whole = S, S.diagonal() + ridge.whole()
        m = int(self.whole.max() + 1).bit_length() + 1  # |S_ij| < 2^m, S being semidefinite
        self.m, self.h = m, m // 2
        # pieces of digits up to 2^g: J products with a limb stay below 2^53
        self.g = 52 - max(self.h - 1, m - self.h) - J.bit_length()
        self.bits = min(2 * self.g - 1, _DIGIT_BITS)
        if m > 62 or self.bits < 24:
            raise _HardError
        self.plane_bits = 61 - self.bits  # times a digit, a plane stays below 2^62
        self.planes, self.rest = ridge.planes(self.plane_bits, _PLANES)
        self._prepare(ridge, shift, wide(S[:, -1]), 1)
        self.factor = self._factor()
        self.limbs: tuple[Floats, Floats] | None = None
        if J * J <= _KEPT:
            self.limbs = np.empty((J, J)), np.empty((J, J))
            for rows in _strips(J):
                self._cut(rows, *(limb[rows] for limb in self.limbs))

    def _factor(self) -> Floats:
        A = np.empty(self.S.shape, order="F")
        for rows in _strips(len(A)):
            A.T[rows] = self.S[rows]
        fractions = (
            plane * 2.0 ** (-self.plane_bits * (k + 1)) for k, plane in enumerate(self.planes)
        )
        np.fill_diagonal(A, self.whole + (self.rest + sum(fractions))[:, 0])
        factor, failed = dpotrf(A, lower=True, clean=False, overwrite_a=True)
        if failed:
            raise _HardError
        return np.asarray(factor)

    def _start(self, Q: Integers) -> _Residual:
        return _Residual(np.asfortranarray(Q, dtype=np.int64))  # OverflowError beyond

    def _near(self, residual: _Residual, X: Floats) -> Floats:
        return np.asarray(residual.near - self.rest * X)  # the planes leave the rest out

    def _rest(self, residual: _Residual, X: Floats) -> Floats:
        cut = self.rest * X
        size = np.abs(residual.near) + np.abs(cut)
        bound = np.abs(residual.near - cut) + (8 * _U) * size
        return np.asarray(bound + (2.0**-self.plane_bits if self.planes else 0.0))

    def _after(self, before: _Residual, pieces: Floats, shifts: NDArray[np.int64]) -> _Residual:
        """The same in int64 and, near to it, in float64."""
        K, g, h = pieces.shape[1] // 2, self.g, self.h
        H, L = self._products(pieces)
        near = before.near * np.ldexp(1.0, shifts) - (
            (H[:, :K] * 2.0**g + H[:, K:]) * 2.0**h + (L[:, :K] * 2.0**g + L[:, K:])
        )
        high, low = H.astype(np.int64), L.astype(np.int64)
        whole = (before.whole << shifts) - (
            (((high[:, :K] << g) + high[:, K:]) << h) + (low[:, :K] << g) + low[:, K:]
        )
        planes: list[Integers] = []
        digits = (pieces[:, :K] * 2.0**g + pieces[:, K:]).astype(np.int64)
        carry: Any = np.int64(0)
        for k in reversed(range(len(self.planes))):
            held = before.planes[k] << shifts if before.planes else np.int64(0)
            total = held - self.planes[k] * digits + carry
            carry = total >> self.plane_bits
            planes.insert(0, total & ((1 << self.plane_bits) - 1))
        whole += carry
        after = _Residual(whole, planes, self.plane_bits)
        if not (np.abs(after.near - near).max() < 2.0**61 and np.abs(near).max() < 2.0**62):
            raise _HardError  # R may have wrapped
        return after

    def _products(self, pieces: Floats) -> tuple[Floats, Floats]:
        """H and L times pieces."""
        J = len(self.S)
        if self.limbs is not None:
            H, L = (dgemm(1.0, limb.T, pieces, trans_a=True) for limb in self.limbs)
            return H, L
        out = np.empty((2, pieces.shape[1], J)).transpose(0, 2, 1)
        for rows in _strips(J):
            limbs = np.empty((2, rows.stop - rows.start, J))
            self._cut(rows, *limbs)
            for product, limb in zip(out, limbs, strict=True):
                product[rows] = dgemm(1.0, limb.T, pieces, trans_a=True)
        return out[0], out[1]

    def _cut(self, rows: slice, H: Floats, L: Floats) -> None:
        """Write H and L of some rows of S + diag(whole ridge)."""
        own = np.arange(len(H)), np.arange(rows.start, rows.stop)
        if self.m <= 53:  # float64 has no rounding errors here
            L[:] = self.S[rows]
            L[own] = self.whole[rows]
            np.rint(np.multiply(L, 2.0**-self.h, out=H), out=H)
            L -= H * 2.0**self.h
        else:
            S = self.S[rows].copy()
            S[own] = self.whole[rows]
            rounded = (S + (1 << (self.h - 1))) >> self.h
            H[:], L[:] = rounded, S - (rounded << self.h)


def _strips(J: int) -> list[slice]:
    """Rows of J numbers, as many together as stay in the cache."""
    step = max(1, _CACHE // J)
    return [slice(i, min(i + step, J)) for i in range(0, J, step)]


class _WideSystem(_Steps):
    """A = S + diag(r) beyond int64: u A and u 2^F R in digits of g bits, u a power of two.

    A digit of u A times a piece of d then counts as much as a digit of u 2^F R: all products of
    one place are added up, and carries are taken care of once.
    """

    def __init__(self, S: Wide | Mixture, ridge: Ridge, shift: Integers | None) -> None:
        S = S if isinstance(S, Mixture) else Mixture((S,))
        J, unit, diagonal = len(ridge), S.unit.bit_length() - 1, S.diagonal()
        self.g = min(21, (54 - J.bit_length()) // 2)  # J products of two digits stay below 2^53
        self.bits = 2 * self.g - 1
        n_limbs = int(diagonal.max()).bit_length() // self.g + 2
        numerators, denominator = ridge.fractions
        ends = denominator & (denominator - 1) == 0
        places = -(-max(0, denominator.bit_length() - 1 - unit) // self.g) if ends else _PLACES
        self.places, self.units = places, unit + places * self.g  # F = places g
        whole = (numerators << self.units) // denominator
        self.rest = 0.0 if ends else 2.0**-self.units
        size = int((diagonal << places * self.g).max() + whole.max()).bit_length()
        if not size < 800:
            raise _HardError
        self.ridge = digits_of(whole[:, None], self.g)
        self.n_digits = (size + self.bits + J.bit_length()) // self.g + 3
        self._prepare(ridge, shift, S.column(-1), S.unit)
        self.limbs = S.digits(self.g, n_limbs)
        A = np.empty((J, J), order="F")
        for rows in _strips(J):
            part = A.T[rows]
            part[:] = self.limbs[-1, rows]
            for limb in self.limbs[-2::-1, rows]:
                part *= 2.0**self.g
                part += limb
        A *= 2.0**-unit
        A[np.diag_indices_from(A)] += ridge.near
        self.factor, failed = dpotrf(A, lower=True, clean=False, overwrite_a=True)
        if failed:
            raise _HardError

    def _start(self, Q: Integers) -> Integers:
        digits = digits_of(wide(Q), self.g)
        after = self.n_digits - self.places - len(digits)
        if after < 0:
            raise _HardError
        return np.pad(digits, [(self.places, after), (0, 0), (0, 0)])

    def _near(self, residual: Integers, X: Floats) -> Floats:  # noqa: ARG002
        total = residual[-1].astype(np.float64)
        for digit in residual[-2::-1]:
            total = total * 2.0**self.g + digit
        return np.asarray(total * 2.0**-self.units)

    def _rest(self, residual: Integers, X: Floats) -> Floats:
        return np.abs(self._near(residual, X)) * (1 + 256 * _U) + self.rest * np.abs(X)

    def _after(self, before: Integers, pieces: Floats, shifts: NDArray[np.int64]) -> Integers:
        g, F = self.g, self.places
        out = np.zeros_like(before)
        whole, places = divmod(shifts, g)
        for jump in sorted({*whole.tolist()}):
            columns = whole == jump
            if before[len(before) - jump :, :, columns].any():
                raise _HardError  # it would not fit
            out[jump:, :, columns] = before[: len(before) - jump, :, columns]
        out <<= places
        products = np.array([dgemm(1.0, limb.T, pieces, trans_a=True) for limb in self.limbs])
        self._subtract(out[F:], products.astype(np.int64))
        self._subtract(out, self.ridge * pieces.astype(np.int64))
        return _carried(out, g)

    def _subtract(self, out: Integers, products: Integers) -> None:
        """Take products with the upper and the lower pieces of digits off."""
        n, K = len(products), out.shape[2]
        out[1 : n + 1] -= products[..., :K]
        out[:n] -= products[..., K:]


def _carried(digits: Integers, g: int) -> Integers:
    """Σ_k digits_k 2^(g k) with all digits but the last between ±2^(g-1), in place."""
    for k in range(len(digits) - 1):
        carry = (digits[k] + (1 << (g - 1))) >> g
        digits[k] -= carry << g
        digits[k + 1] += carry
    return digits


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
        whole, units = moved << _GUARD, powers(E + _GUARD)
        margin = _ceiling(np.ldexp(bound, _GUARD))
        below = nearest(whole - margin, units)
        return below, below == nearest(whole + margin, units)


class _Residual:
    """R, whole and (in planes, as the fractions of r) fractional; `near` is its float64."""

    def __init__(
        self, whole: Integers, planes: Sequence[Integers] = (), plane_bits: int = 0
    ) -> None:
        self.whole, self.planes = whole, planes
        self.near = whole.astype(np.float64)
        if planes:
            self.near += planes[0] * 2.0**-plane_bits


_ceiling = np.frompyfunc(math.ceil, 1, 1)


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
