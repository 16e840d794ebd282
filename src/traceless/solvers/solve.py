"""Correctly rounded coefficients: one solve for every system.

    A Z = Q,     A = S + diag(r),     S = Σ ω φφᵀ, Q whole numbers, r ≥ 0 fractions

of features φ less m where they are shifted (`traceless.solvers.centring`). The solution is

    Z = X 2^-E + A⁻¹R 2^-E,     R = 2^E (Q - A X 2^-E),     X and R whole numbers

once all is multiplied by the denominator of the ridges. A step takes c ≈ A⁻¹R from a factor in
float64, which may be as wrong as it likes, and moves its digits from R, which stays exact, to X:

    d = round(2^s c),     X ← 2^s X + d,     R ← 2^s R - A d,     E ← E + s

S d is made of S as it was learned: features less m are those times (I - e_b mᵀ), b the last, so the
digits of b become d_b - m·d, and R'_j = R_j - m_j R_b is what a step looks at. What is left obeys,
since A - diag(r) is positive semidefinite,

    |A⁻¹R|_j ≤ r_j^(-1/2) (Σ_i R_i² / r_i)^(1/2)

The intercept may be free, r_b = 0. With n = S_bb and s = S_·b the others then solve a system whose
matrix less diag(r) is semidefinite too (the Schur complement),

    |v_j| ≤ r_j^(-1/2) (Σ_i (|R_i| + |s_i R_b| / n)² / r_i)^(1/2)
    |v_b| ≤ (|R_b| + Σ_j |s_j v_j|) / n

A coefficient is decided where both ends of its interval round to the same float64. One that lies
exactly on a boundary (0, or halfway between two floats) is recognised by Cramer's rule: it is a
fraction with denominator det A ≤ Π A_jj, hence either on the boundary or farther from it than one
over that. So the result depends on the numbers alone, not on BLAS, threads or machine.

Features are scaled by powers of two 2^-e, so that A has a diagonal near one. A step must make the
correction smaller by two bits, as it is or scaled; where columns differ in size, one of the two
may grow for a step. If neither shrinks, float64 is too short for the system, and a factor of
numbers of 106 bits takes its place.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpftrf, dpftrs, dpotrf, dpotrs

from traceless.arithmetic.core import core
from traceless.arithmetic.integers import Floats, Integers, Wide, nearest, wide
from traceless.arithmetic.plain import Limbs, integers, limbs, put
from traceless.exceptions import ConditionError, RangeError
from traceless.solvers.ridge import Ridge

__all__ = ["System", "solve", "weighted"]

_DIGIT = 47  # bits of a step, at most: two digits of the core, about what float64 gives
_LEAST_GAIN = 2  # bits
_LOOK = 2  # steps from which on it is asked what they decide
_PACKED = 2048  # features above which a matrix is kept in half the memory
_TWOFOLD = 4096  # features up to which a factor of twofold numbers is made: a minute
THREADS = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, 8)
_WORTH = 2**22  # products that are worth more than starting threads
_HUGE = np.finfo(np.float64).max
_ONE = limbs(1)
_LEAST = 1e-300  # a bound is never rounded to 0
_U = 2.0**-53


def solve(
    S: Any,
    ridge: Ridge | Floats,
    Q: Integers,
    shift: Integers | None = None,
    intercept: bool = False,
    unit: int = 0,
) -> Floats:
    """The solution of ``(S + diag(ridge)) Z = Q``, each entry the nearest float64.

    Parameters
    ----------
    S : positive semidefinite matrix of integers, of shape (J, J), or its limbs
    ridge : Ridge, or float64 array of shape (J,), positive
        The last may be zero, if S has a positive number there. A feature with S_jj = 0 or
        ridge_j = 0 that is not the last has coefficient 0.
    Q : integers of shape (J, K)
    shift : int64 array of shape (J,), optional
        What is subtracted from each feature, of which the last is 1: S and Q are of features as
        they were, Z and `ridge` of shifted ones. The last ridge is 0. These are means, rounded:
        shifted sums must fit into the limbs of S.
    intercept : bool
        Whether a last row is to be the intercept of the features as they were.
    unit : int
        S and Q are counted in units of 2^-unit.

    Returns
    -------
    float64 array of shape (J, K), or (J + 1, K) with an intercept

    Raises
    ------
    ConditionError
        If the system is so ill-conditioned that steps no longer gain two bits.
    """
    ridge = ridge if isinstance(ridge, Ridge) else Ridge(ridge)
    system = System(S, ridge, shift, unit)
    A = system.matrix(packed=len(ridge) > _PACKED)
    there = system.there  # a feature that is always 0 has coefficient 0
    there[:-1] &= ridge.near[:-1] > 0
    used, asked = np.flatnonzero(there), np.flatnonzero(Q.any(axis=0))
    if asked.size and (used.size, asked.size) == Q.shape:
        return system.solve(A, Q, intercept)
    Z = np.zeros((len(Q) + intercept, Q.shape[1]))
    if used.size and asked.size:
        rows = np.append(used, len(Q)) if intercept else used
        part, m = system.S[:, used][:, :, used], None if shift is None else shift[used]
        part, ridge = np.ascontiguousarray(part), ridge.of_features(used)
        Z[np.ix_(rows, asked)] = solve(part, ridge, Q[np.ix_(used, asked)], m, intercept, unit)
    return Z


def weighted(parts: Sequence[Any], weights: Sequence[float]) -> tuple[Limbs, tuple[int, ...], int]:
    """Σ_c ω_c S_c in limbs, the weights as whole numbers, and the bits u of their unit 2^-u.

    There is room for features less their means in all parts together, which may be far from those
    of weighted rows: Σ ω (φ - m)² ≤ 4 max ω Σφ².
    """
    exactly = [Fraction(weight) for weight in weights]
    unit = max(f.denominator for f in exactly)
    whole = tuple(int(f * unit) for f in exactly)
    several = [_limbs(part) for part in parts]
    most = sum(integers(S.diagonal(axis1=1, axis2=2)).max(initial=0) for S in several)
    size = (max(whole) * most).bit_length() + 2
    total = np.zeros((size // 64 + 1, *several[0].shape[1:]), dtype=np.uint64)
    J = total.shape[1]
    for S, w in zip(several, whole, strict=True):
        core.advance(total, np.zeros(J, np.int64), np.ascontiguousarray(S), limbs(w))
    return total, whole, unit.bit_length() - 1


class System:
    """A = S' 2^-unit + diag(r), its whole-numbered multiple, and what bounds A⁻¹R.

    Attributes
    ----------
    S, m : limbs of S, and what its features are shifted by
    weight, whole : what S is multiplied by, and r then: Python integers
    places, mantissa : the multiple of A, 2^places times a number from 1 to 2
    e, there : how `matrix` scales features, and where S' has a diagonal that is not 0
    """

    def __init__(self, S: Any, ridge: Ridge, shift: Integers | None = None, unit: int = 0) -> None:
        self.S, self.unit, self.ridge = _limbs(S), unit, ridge
        self.m = np.zeros(len(ridge), np.int64) if shift is None else shift
        self._far = _bits(self.m) + len(self.m).bit_length()  # bits of a sum of such multiples
        numerators, own = ridge.fractions
        multiple = math.lcm(1 << unit, own)
        self.weight, self.whole = multiple >> unit, numerators * (multiple // own)
        self.places = multiple.bit_length() - 1
        self.mantissa = multiple / (1 << self.places)
        self.e, self.there = np.empty(len(ridge), np.int64), np.empty(len(ridge), bool)

    def solve(self, A: Floats, Q: Integers, intercept: bool) -> Floats:
        """Z, with the cheaper of two factors that can do it; `matrix` is given away."""
        J, free = len(Q), self.ridge.is_free
        if free:
            last = A[-1] if len(A) == len(A.T) else np.append(A[-1], A[: J // 2, -1])
            self.rows = last[-1]
            self.mean = np.abs(last[:-1, None]) / self.rows * (1 + 1e-9)
        spread, places = np.frexp(1.0 / np.sqrt(self.ridge.near[: J - free, None]))
        places = places + self.e[: J - free, None]
        self.most = int(places.max(initial=0))
        self.spread = np.ldexp(spread, places - self.most)  # r^(-1/2) 2^(e - most)
        with suppress(LinAlgError):
            factor = _Factor(A) if len(A) == len(A.T) else _Packed(A, J)
            return self._expanded(factor, Q, intercept)
        if J <= _TWOFOLD:
            with suppress(LinAlgError):
                return self._expanded(_Twofold(self._scaled(2)), Q, intercept)
        raise ConditionError(
            "The linear system is too ill-conditioned to be solved to the last bit, even in "
            "twofold precision: rho is too small for the size of the features. Increase rho, or "
            "use standardize=True, which takes the units out of it."
            if J <= _TWOFOLD
            else f"The linear system of {J} features is too ill-conditioned for float64, and for "
            f"twofold precision it is too large: that takes minutes above {_TWOFOLD} features. "
            "Increase rho, or use standardize=True, which takes the units out of it."
        )

    def matrix(self, packed: bool = False) -> Floats:
        """2^-e A 2^-e, with a diagonal near one; e and `there` are found with it."""
        return np.asarray(self._scaled(1, packed)[0])

    def _scaled(self, parts: int, packed: bool = False) -> Floats:
        """The same in so many floats; or a triangle of it, as `_Packed` takes it."""
        J = len(self.m)
        s = t = np.ascontiguousarray(self.S[:, -1])
        if self.m.any():
            whole = integers(s)
            whole[:-1] -= whole[-1] * wide(self.m[:-1])
            t = np.empty_like(s)
            put(t, whole)
        A = np.empty((parts, J + 1 - J % 2, J - J // 2) if packed else (parts, J, J))
        core.matrix(self.S, self.m, s, t, self.ridge.near, self.unit, A, self.e, self.there)
        return A

    def _expanded(
        self, factor: _Factor | _Packed | _Twofold, Q: Integers, intercept: bool
    ) -> Floats:
        """Z, digit by digit."""
        (J, K), e, far, R = Q.shape, self.e[:, None], self._far, self._whole(Q)
        V, x = self._leading(R, self.e)
        bound, places = self.bound(np.abs(V[0]), x - self.places)
        # where coefficients are large, first digits count 2^extra: A is multiplied by as much
        extra = max(0, int((np.frexp(bound)[1] + places).max()) - _DIGIT)
        weight, ridge = limbs(self.weight << extra), limbs(self.whole << extra)
        down, size = self.places + extra, 64 * max(len(self.S) + len(weight), len(ridge)) + 64 + far
        found, smallest = _Solution(self, Q.shape, intercept, extra, far), np.full((2, K), 2**62)
        threads, moved = self._worth_threads(K), bool(self.m.any())
        for step in itertools.count(1):
            y, x, K = factor.solve(V) / self.mantissa, x - down, len(x)
            tops, s = np.empty((2, K), np.int64), np.empty(K, np.int64)
            D, last = np.empty((1, J, K), np.uint64), np.empty((2, K), np.uint64)
            d = D[0].view(np.int64)
            fit = core.digits(y, self.e, self.m, x, _DIGIT, tops, s, d, last)
            if not fit or not (smallest - (tops - found.E) >= _LEAST_GAIN).any(axis=0).all():
                raise LinAlgError
            smallest = np.minimum(smallest, tops - found.E)
            found.extend(s, D, last)
            rest = None
            if step > _LOOK:
                c = np.ldexp(d, -np.maximum(x + s - e, -2000)) * self.mantissa
                rest = factor.rest(V, c)
            if rest is not None and found.decides(rest, x + s):
                return found.Z
            R = _room(R, max(int((x + s).max()) + down + int(self.e.max()) + far, size) + far + 2)
            last = last if moved else last[:0]
            core.residual(R, s, self.S, D, last, weight, ridge, threads)
            V, x = self._leading(R, self.e)
            if step >= _LOOK:
                if rest is None and found.decides(np.abs(V[0]), x - down):
                    return found.Z
                left = found.keep_undecided()
                smallest, x = smallest[:, left], x[left]
                R, V = np.ascontiguousarray(R[..., left]), V[..., left]
        raise AssertionError

    def residual(self, Q: Integers, Z: Floats) -> tuple[Floats, Floats]:
        """Z, rounded to 58 bits of the largest of a column, and Q - A Z of that, rounded once.

        Raises LinAlgError where a number of Z is not finite, or not below 2^58.
        """
        (J, K), e = Z.shape, np.zeros(len(Z), np.int64)
        x = -np.frexp(np.abs(Z).max(axis=0))[1].astype(np.int64)
        tops, s = np.empty((2, K), np.int64), np.empty(K, np.int64)
        D, last = np.empty((1, J, K), np.uint64), np.empty((2, K), np.uint64)
        d = D[0].view(np.int64)
        if not core.digits(Z, e, self.m, x, 58, tops, s, d, last) or (x < -58).any():
            raise LinAlgError
        places, weight, ridge = s + x, limbs(self.weight), limbs(self.whole)
        R = self._whole(Q)
        size = 64 * max(len(R) + int(places.max()) // 64, len(self.S) + len(weight), len(ridge))
        R = _room(R, size + 128 + 2 * self._far)
        last = last if self.m.any() else last[:0]
        core.residual(R, places, self.S, D, last, weight, ridge, self._worth_threads(K))
        V, x = self._leading(R, e)
        return np.ldexp(d, -places), np.ldexp(V[0], x - places - self.places) / self.mantissa

    def _whole(self, Q: Integers) -> Limbs:
        """Q times the multiple of A."""
        R = np.zeros((1, *Q.shape), np.uint64)
        R = _room(R, _bits(Q) + self.weight.bit_length() + self._far + 1)
        core.advance(R, np.zeros(Q.shape[1], np.int64), _limbs(Q), limbs(self.weight))
        return R

    def _leading(self, R: Limbs, e: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
        """2^-e R' in two floats V, and exponents x of columns: 2^-e R' = V 2^x."""
        V, x = np.empty((2, *R.shape[1:])), np.empty(R.shape[2], dtype=np.int64)
        core.leading(R, self.m, e, V, x)
        return V, x

    def _worth_threads(self, K: int) -> int:
        """Threads for a residual of K columns."""
        return THREADS if self.S.size * K > _WORTH else 1

    def bound(self, rest: Floats, height: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
        """A bound of |A⁻¹R| in float64, and its exponents, for 2^-e |R| ≤ rest 2^height."""
        any_left, last = rest.any(axis=0), rest[-1]
        if self.ridge.is_free:
            rest = rest[:-1] + self.mean * last
        rest = rest * self.spread * (1 + 1e-9)
        most = rest.max(axis=0, initial=0.0)
        length = most * np.sqrt(((rest / np.where(most > 0, most, 1.0)) ** 2).sum(axis=0))
        bound = self.spread * length * (1 + 1e-6)
        if self.ridge.is_free:
            own = last / self.rows * 2.0 ** (-2 * self.most) + (self.mean * bound).sum(axis=0)
            bound = np.vstack([bound, own * (1 + 1e-6)])
        bound = np.where(any_left, np.maximum(bound, _LEAST), 0.0)
        return np.ascontiguousarray(bound), height - self.e[:, None] + 2 * self.most


class _Solution:
    """X 2^-E, and what is decided of it: columns that are leave X."""

    def __init__(
        self, system: System, shape: tuple[int, int], intercept: bool, extra: int, far: int
    ) -> None:
        (J, K), self.system, self.intercept, self.far = shape, system, intercept, far
        self.X, self.moved = (np.zeros((1, n, K), np.uint64) for n in (J, 1))
        self.E, self.bits, self.columns = np.full(K, -extra), 63, np.arange(K)
        self.cramer = int((2 * system.e + 3 + system.places).sum())  # of det A, or more
        self.Z = np.full((J + intercept, K), np.nan)

    def extend(self, s: NDArray[np.int64], D: Limbs, last: Limbs) -> None:
        """X ← 2^s X + D, and with `last` for the intercept of features as they were."""
        self.E, self.bits = self.E + s, self.bits + int(s.max()) + 1
        self.X = _room(self.X, self.bits)
        core.advance(self.X, s, D, _ONE)
        if self.intercept:
            self.moved = _room(self.moved, self.bits + self.far)
            core.advance(self.moved, s, last[:, None], _ONE)

    def decides(self, rest: Floats, height: NDArray[np.int64]) -> bool:
        """Whether all is decided, for 2^-e |R| ≤ rest 2^height."""
        bound, places = self.system.bound(rest, height)
        parts = [(self.X, bound, places)]
        if self.intercept:
            most = places.max(axis=0)
            own = np.ldexp(bound, places - most)
            own = own[-1] + np.abs(self.system.m).astype(np.float64) @ own
            parts += [(self.moved, own[None] * (1 + 1e-6), most[None])]
        J, found = bound.shape[0], np.empty((len(self.Z), len(self.E)))
        for (X, bound, places), Z in zip(parts, (found[:J], found[J:]), strict=False):
            core.decide(X, bound, places, self.E, Z)  # NaN: several floats are near
        for j, k in np.argwhere(np.isnan(found) & (self.cramer < self.E)):
            X, bound, places = parts[j // J]
            at = j % J, k
            off = math.ceil(Fraction(bound[at]) * Fraction(2) ** int(places[at]))
            found[j, k] = _boundary(int(integers(X[:, *at])), off, int(self.E[k]), self.cramer)
        if (np.abs(found) > _HUGE / 2).any():
            raise RangeError(
                "A coefficient, in steps of the grids, is larger than 2**1022. Scale the targets "
                "down, or the columns up."
            )
        self.Z[:, self.columns] = found
        return not np.isnan(found).any()

    def keep_undecided(self) -> NDArray[np.bool_]:
        """Which columns are left; the others go."""
        left = np.asarray(np.isnan(self.Z[:, self.columns]).any(axis=0))
        self.columns, self.E = self.columns[left], self.E[left]
        self.X, self.moved = (np.ascontiguousarray(a[..., left]) for a in (self.X, self.moved))
        return left


class _Factor:
    """A ≈ L Lᵀ in float64. A is overwritten, but for the triangle that `rest` reads."""

    def __init__(self, A: Floats) -> None:
        self.diagonal = A.diagonal()[:, None].copy()
        self.factor, failed = dpotrf(A.T, lower=True, clean=False, overwrite_a=True)
        if failed:
            raise LinAlgError

    def solve(self, V: Floats) -> Floats:
        """A⁻¹V."""
        return np.asarray(dpotrs(self.factor, V[0], lower=True)[0])

    def rest(self, V: Floats, y: Floats) -> Floats | None:
        """A bound of |V - A y|: entries of A, of its factor and of V are below 2."""
        J, own = len(y), self.diagonal - self.factor.diagonal()[:, None]
        product = np.empty_like(y)
        core.symmetric_times(self.factor.T, y, product, 1)
        product += own * y
        off = (4 * J + 64) * _U * (V[0].any(axis=0) + np.abs(y).sum(axis=0))
        return np.asarray(np.abs(V[0] - product) + off)


class _Packed:
    """The same in half the memory: LAPACK's rectangular full packed format."""

    def __init__(self, A: Floats, J: int) -> None:
        self.J, packed = J, A.reshape(-1)
        self.factor, failed = dpftrf(J, packed, transr="T", uplo="L", overwrite_a=True)
        if failed:
            raise LinAlgError

    def solve(self, V: Floats) -> Floats:
        """A⁻¹V."""
        return np.asarray(dpftrs(self.J, self.factor, V[0], transr="T", uplo="L")[0])

    def rest(self, V: Floats, y: Floats) -> Floats | None:
        """No bound: A is not kept, and the residual is summed up exactly."""


class _Twofold:
    """A = L D Lᵀ in twofold numbers."""

    def __init__(self, A: Floats) -> None:
        if core.twofold_factor(A, A.shape[1], THREADS) < A.shape[1]:
            raise LinAlgError
        self.factor = A

    def solve(self, V: Floats) -> Floats:
        """A⁻¹V."""
        y = V.copy()
        core.twofold_solve(self.factor, y)
        return np.asarray(y[0])

    def rest(self, V: Floats, y: Floats) -> Floats | None:
        """No bound: float64 would say nothing here."""


def _limbs(S: Any) -> Limbs:
    """A matrix of integers in limbs, whose rows have no gaps."""
    if isinstance(S, Wide):
        S = S.limbs
    elif S.dtype == np.int64:
        S = S.view(np.uint64)[None]
    elif S.dtype == object:
        S = limbs(S)
    return S if S.strides[-1] == S.itemsize else np.ascontiguousarray(S)


def _bits(a: Integers) -> int:
    """Bits of the largest, without a sign."""
    return max(int(a.max()), -int(a.min())).bit_length()


def _room(a: Limbs, bits: int) -> Limbs:
    """The same numbers, in limbs for so many bits and a sign."""
    more = bits // 64 + 1 - len(a)
    if more <= 0:
        return a
    sign = (a[-1:].view(np.int64) >> 63).view(np.uint64)
    return np.concatenate([a, *[sign] * more])


def _boundary(X: int, off: int, bits: int, cramer: int) -> float:
    """The solution if X ± off is narrow enough to prove it a boundary, else NaN.

    A boundary is 0 or the middle of two neighbouring floats: where rounding changes. What is too
    large has none to be looked for.
    """
    low, high = X - off, X + off
    below, above = nearest(np.array([low, high], dtype=object), np.array(1 << bits))
    if max(below, -above) > _HUGE / 2:
        return math.inf
    if not (math.isfinite(below) and math.isfinite(above)):
        return math.nan
    middle = Fraction(0) if low <= 0 <= high else (Fraction(below) + Fraction(above)) / 2
    needed = cramer + middle.denominator.bit_length() + (high - low).bit_length()
    return float(middle) if needed < bits else math.nan
