"""Correctly rounded coefficients of any system, with residuals in Python integers.

    (S + diag(r)) Z = Q,     S, Q integers, S = Σ ω φφᵀ, r > 0

or a `Mixture` of weighted classes. It is solved in float64 by Cholesky, and the solution is then
extended, a few bits at a time, with residuals computed *exactly* from the integers:

    c = A⁻¹ R (float64),   d = round(2^s c),   X ← 2^s X + d,   R ← 2^s R - A d

so that always X · 2^-p + A⁻¹ R · 2^-p is the solution. Because A - diag(r) is positive
semidefinite, the error is bounded rigorously:

    |A⁻¹ R|_j ≤ r_j^(-1/2) · (Σ_i R_i² / r_i)^(1/2)

and a coefficient is finished when both ends of its interval round to the same float64.
The last may be an intercept b that is not penalised, r_b = 0. With n = S_bb and s = S_·b the
others then solve a system whose matrix less diag(r) is semidefinite too (the Schur complement),

    |v_j| ≤ r_j^(-1/2) · (Σ_i (|R_i| + |s_i R_b| / n)² / r_i)^(1/2)
    |v_b| ≤ (|R_b| + Σ_j |s_j v_j|) / n

and the intercept of features that are not shifted, x_b - Σ m_j x_j, is decided beside it
(`traceless.solvers.centring`). Ridges are fractions; their common denominator multiplies all.

The result depends on the integers alone, not on BLAS, threads or machine. A coefficient
that lies exactly on a boundary (zero, or halfway between two floats) is recognised by
Cramer's rule: it is a fraction with denominator det A ≤ Π A_jj, hence either on the
boundary or farther from it than one over that.

Float64 sees only leading bits, with their exponents kept apart, so neither ρ nor the
targets are limited by its range. A step is of use if the correction c has become smaller
by four bits or more than in any step before, either as it is or in the variables that give
A a diagonal near one: rounding to digits shrinks the first, Cholesky the second, and where
columns differ in size one of them may grow for a step. Where neither shrinks, float64 is
too short for the system.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from traceless.arithmetic.double_double import Factor, Twofold, to_twofold, two_sum
from traceless.arithmetic.integers import Floats, Integers, nearest, powers, wide
from traceless.arithmetic.words import Sums
from traceless.exceptions import ConditionError, RangeError
from traceless.solvers.mixture import Mixture
from traceless.solvers.ridge import Ridge

__all__ = ["refined"]

_STEP_BITS = 20  # bits added to the solution by each step, at most
_LEAST_GAIN = 4  # bits
_LEADING_BITS = 200  # of a residual that float64, or a pair of them, is given at least
_HUGE = np.finfo(np.float64).max


def refined(
    S: Sums | Mixture,
    ridge: Ridge,
    Q: Integers,
    shift: Integers | None = None,
    begin: Callable[[int], tuple[Integers, Integers, NDArray[np.int64]]] | None = None,
) -> Floats:
    """The solution of ``(S + diag(ridge)) Z = Q``, each entry the nearest float64.

    No column of Q and no entry of the diagonal of S is zero. With a shift there is one row more:
    the last entry less the sum of the shifts times the others. Where somebody has found a part
    of the solution, `begin` gives, for a denominator d, 2^p X, d R and p.
    """
    S = S if isinstance(S, Mixture) else Mixture((S,))
    for twofold in (False, True):
        try:
            return _System(S, ridge, shift, twofold).solve(Q, begin)
        except LinAlgError:
            continue
    raise ConditionError(
        "The linear system is too ill-conditioned to be solved to the last bit, even in twofold "
        "precision: rho is too small for the size of the features. Increase rho, or use "
        "standardize=True, which takes the units out of it."
    )


class _System:
    """A = S + diag(ridge), factored. Raises LinAlgError where the precision is too low."""

    def __init__(self, S: Mixture, ridge: Ridge, shift: Integers | None, twofold: bool) -> None:
        self.S, self.ridge = S, ridge
        self.shift = None if shift is None else wide(shift)
        numerators, own = ridge.fractions
        denominator = math.lcm(S.unit, own)
        self.per_unit = denominator // S.unit
        self.places = denominator.bit_length() - 1
        self.mantissa = denominator / (1 << self.places)  # 1 to 2; 1 unless standardised
        self.whole_ridge = (numerators * (denominator // own))[:, None]
        self.scale, self.apply_inverse = _approximate_inverse(S, ridge.near, twofold)
        self.scale_places = np.frexp(self.scale)[1].astype(np.int64) - 1

    def solve(
        self,
        Q: Integers,
        begin: Callable[[int], tuple[Integers, Integers, NDArray[np.int64]]] | None = None,
    ) -> Floats:
        state = _Expansion.start(wide(Q) * self.per_unit, self.scale_places)
        if begin is not None:
            X, residual, bits = begin(self.per_unit * self.S.unit)
            state = replace(state, X=X, residual=residual, bits=bits)
        Z = np.full((len(Q) + (self.shift is not None), Q.shape[1]), np.nan)
        columns = np.arange(Q.shape[1])  # those with unfinished coefficients
        cramer_bits = self._cramer_bits()
        while columns.size:
            state = self._step(state)
            X, bound = self._with_intercept(state.X, self._error_bound(state))
            low, high = X - bound, X + bound
            below, above = nearest(low, state.unit), nearest(high, state.unit)
            if (below > _HUGE / 2).any() or (above < -_HUGE / 2).any():
                raise RangeError(
                    "A coefficient, in steps of the grids, is larger than 2**1022. Scale the "
                    "targets down, or the columns up."
                )
            found = np.where(below == above, below, Z[:, columns])
            if state.bits.max() > cramer_bits:
                for j, k in np.argwhere(np.isnan(found)):
                    found[j, k] = _boundary(low[j, k], high[j, k], state.bits[k], cramer_bits)
            Z[:, columns] = found
            unfinished = np.asarray(np.isnan(found).any(axis=0))
            columns, state = columns[unfinished], state.of(unfinished)
        return Z

    def _with_intercept(self, X: Integers, bound: Integers) -> tuple[Integers, Integers]:
        """Another row: the intercept of the features before they were shifted."""
        if self.shift is None:
            return X, bound
        own = X[-1] - self.shift @ X, bound[-1] + np.abs(self.shift) @ bound
        return np.vstack([X, own[0]]), np.vstack([bound, own[1]])

    def _step(self, state: _Expansion) -> _Expansion:
        """The solution with as many bits more as are new, at most _STEP_BITS."""
        v, exponents = state.leading
        with np.errstate(all="ignore"):
            y = self.apply_inverse(v) / self.mantissa
            c = y * self.scale
        if not np.isfinite(c).all():
            raise LinAlgError("a factor of the matrix is too close to zero")
        _, own = np.frexp(np.abs(c).max(axis=0))
        _, scaled = np.frexp(np.abs(y).max(axis=0))
        exponents = exponents - self.places
        sizes = state.gain(exponents + own, exponents + scaled)
        digits = np.rint(np.ldexp(c, _STEP_BITS - own))
        product = self.S.times(digits, _STEP_BITS) * self.per_unit
        product += wide(digits.astype(np.int64)) * self.whole_ridge
        return state.extended(_STEP_BITS - own - exponents, digits, product, sizes)

    def _error_bound(self, state: _Expansion) -> Integers:
        """|A⁻¹ R| ≤ bound, in whole units of the last place of the expansion."""
        v, exponents = state.leading
        R = np.abs(v).astype(np.float64) + 1.0  # + 1 for the bits that v lacks; times d
        if not self.ridge.is_free:
            return self._bound(R, exponents, v)
        s = np.abs(self.S.column(-1))[:, None]
        n = int(s[-1, 0])
        mean = nearest(s, np.array(n, dtype=object)) * (self.scale / self.scale[-1])
        R += mean * (1 + 1e-9) * R[-1]
        bound = self._bound(R[:-1], exponents, v)
        # in units of the expansion: |R_b| / n, and |s_j| / n times the bounds, each rounded up
        own = -(-np.abs(state.residual[-1]) // (n * self.per_unit))
        return np.vstack([bound, own + (-(-s[:-1] // n) * bound).sum(axis=0)])

    def _bound(self, R: Floats, exponents: NDArray[np.int64], v: Integers) -> Integers:
        """The bound by semidefiniteness, for as many features as R has rows."""
        root = np.sqrt(self.ridge.near[: len(R)])[:, None]
        R = R / (root * self.scale[: len(R)])
        largest = R.max(axis=0, initial=0.0)
        R /= largest
        length, length_exponents = np.frexp(np.sqrt((R * R).sum(axis=0)) * largest)
        bound = length * (1 + 1e-6) / np.frexp(root)[0]
        exponents = exponents + length_exponents - self.places - np.frexp(root)[1]
        exponents = np.maximum(exponents, -1000)  # ldexp must not make it zero
        exponents[:, ~v.any(axis=0)] = -2000  # unless nothing is left
        beyond = max(int(exponents.max(initial=0)) - 1000, 0)  # what float64 cannot hold
        whole = np.frompyfunc(math.ceil, 1, 1)(np.ldexp(bound, exponents - beyond))
        return np.asarray(whole << beyond if beyond else whole)

    def _cramer_bits(self) -> int:
        """log2 of a bound of the determinant of the system scaled to integers."""
        diagonal = self.S.diagonal() * self.per_unit + self.whole_ridge[:, 0]
        return sum(int(v).bit_length() for v in diagonal)


@dataclass(frozen=True)
class _Expansion:
    """A solution X · 2^-bits (bits per column) and its residual, all integers.

    `sizes` has the smallest corrections of each column so far, as exponents of two, and
    `scale_places` the exponents of powers of two d for which d A d has a diagonal near one.
    """

    X: Integers
    residual: Integers
    bits: NDArray[np.int64]
    sizes: NDArray[np.int64]
    scale_places: NDArray[np.int64]

    @classmethod
    def start(cls, residual: Integers, scale_places: NDArray[np.int64]) -> _Expansion:
        K = residual.shape[1]
        zero = np.zeros(residual.shape, dtype=np.int64).astype(object)
        bits, sizes = np.zeros(K, dtype=np.int64), np.full((2, K), 2**62)
        return cls(zero, residual, bits, sizes, scale_places)

    @cached_property
    def leading(self) -> tuple[Integers, NDArray[np.int64]]:
        """The leading bits v of d times the residual: v · 2^exponents, rounded down.

        An entry that is smaller than others by as much as the d differ may still move the
        solution by more: where ρ is huge, that of a free intercept does.
        """
        lengths = np.asarray(np.frompyfunc(int.bit_length, 1, 1)(self.residual)).astype(np.int64)
        lengths += np.where(lengths > 0, self.scale_places, self.scale_places.min())
        spread = int(self.scale_places.max() - self.scale_places.min())
        exponents = lengths.max(axis=0) - _LEADING_BITS - spread
        places = self.scale_places - exponents
        v = self.residual
        if (places > 0).any():
            v = v << wide(np.maximum(places, 0))
        if (places < 0).any():
            v = v >> wide(np.maximum(-places, 0))
        return v, exponents

    @property
    def unit(self) -> Integers:
        """2^bits."""
        return powers(self.bits)

    def of(self, columns: NDArray[np.bool_]) -> _Expansion:
        """The same for some of the columns."""
        if columns.all():
            return self
        parts = self.X, self.residual, self.bits, self.sizes
        X, residual, bits, sizes = (part[..., columns] for part in parts)
        return _Expansion(X, residual, bits, sizes, self.scale_places)

    def gain(self, *exponents: NDArray[np.int64]) -> NDArray[np.int64]:
        """`sizes` with a correction that is about to be made; raises if it gains too little."""
        sizes = np.array(exponents) - self.bits
        if not (self.sizes - sizes >= _LEAST_GAIN).any(axis=0).all():
            raise LinAlgError("a step gains less than four bits")
        return np.asarray(np.minimum(self.sizes, sizes))

    def extended(
        self,
        shifts: NDArray[np.int64],
        digits: Floats,
        product: Integers,
        sizes: NDArray[np.int64],
    ) -> _Expansion:
        """2^shift X + digits, and the residual without their product."""
        added = wide(digits.astype(np.int64))
        if (shifts < 0).any():  # where the correction is large
            coarse = powers(np.maximum(-shifts, 0))
            added, product = added * coarse, product * coarse
        finer = np.maximum(shifts, 0)
        scale = powers(finer)
        X, residual = self.X * scale + added, self.residual * scale - product
        return _Expansion(X, residual, self.bits + finer, sizes, self.scale_places)


def _boundary(low: int, high: int, bits: int, cramer_bits: int) -> float:
    """The solution if [low, high] · 2^-bits is narrow enough to prove it a boundary, else NaN.

    A boundary is 0 or the middle of two neighbouring floats: where rounding changes.
    """
    below, above = nearest(np.array([low, high], dtype=object), np.array(1 << int(bits)))
    if not (math.isfinite(below) and math.isfinite(above)):
        return math.nan
    middle = Fraction(0) if low <= 0 <= high else (Fraction(below) + Fraction(above)) / 2
    needed = cramer_bits + middle.denominator.bit_length() + (high - low).bit_length()
    return float(middle) if needed < bits else math.nan


# --- approximate inverses -----------------------------------------------------------------

Apply = Callable[[Integers], Floats]


def _approximate_inverse(S: Mixture, ridge: Floats, twofold: bool) -> tuple[Floats, Apply]:
    """Powers of two d, and a map v ↦ y with d A d y ≈ v: a matrix with a diagonal near one."""
    if twofold:
        A = _scaled(to_twofold(S.integers()), np.array(1.0 / S.unit))
    else:
        A = Twofold(S.floats(), np.zeros((1, 1)))
    diagonal = two_sum(A.high.diagonal(), ridge)
    scale = np.ldexp(1.0, -(np.frexp(diagonal.high)[1] // 2))[:, None]
    np.fill_diagonal(A.high, diagonal.high)
    if twofold:
        A.low[np.diag_indices_from(A.low)] += diagonal.low
        factor = Factor(_scaled(A, scale * scale.T))
        return scale, lambda v: factor.solve(to_twofold(v))
    A.high[:] *= scale
    A.high[:] *= scale.T
    cholesky = cho_factor(A.high, lower=True, overwrite_a=True, check_finite=False)
    return scale, lambda v: cho_solve(cholesky, v.astype(np.float64), check_finite=False)


def _scaled(a: Twofold, scale: Floats) -> Twofold:
    return Twofold(a.high * scale, a.low * scale)
