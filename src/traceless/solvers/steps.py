"""Digits of a solution until every coefficient is decided: what `rounded` and `wide` share.

The solution of A Z = Q is X + A⁻¹R 2^-E with X a sum of integer digits d 2^-E, and
R = 2^E (Q - A X). A step takes c ≈ A⁻¹R from a Cholesky factor in float64, which may be as wrong as
it likes, and

    d = round(2^s c),     R ← 2^s R - A d,     E ← E + s

R is exact: how, the systems say themselves. A - diag(r) is positive semidefinite, so v = A⁻¹R obeys

    |v_j| ≤ r_j^(-1/2) (Σ_i R_i² / r_i)^(1/2)

(and with `traceless.solvers.refinement`'s bound where the last coefficient is an intercept that is
not penalised). After three steps X has about 120 bits, of which the bound leaves more than enough:
it costs A_jj J / r_j, some 40 bits for the systems that one float64 factor can do. X is added up in
double-double arithmetic. Where both ends of the interval around it round to the same float64, so
does the exact coefficient: rounding is monotone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dgemm, dsymm, dsymv, dtrsv
from scipy.linalg.lapack import dpotrf, dpotrs

from traceless.arithmetic.integers import Floats, Integers, mirror, nearest, powers, wide
from traceless.solvers.ridge import Ridge

U = 2.0**-53  # unit roundoff
_STEPS = 6
_ENOUGH = 86  # bits from which on it is asked what they decide
_GUARD = 60  # bits of an intercept below the last digit
_CACHE = 2**15  # entries of S that are worked on together
_ROWS = 128  # of a large S that are cut together: fewer make slow products
_KEPT = 8192  # features up to which limbs are kept; larger ones are cut again for each product

_COLUMNS = 4  # up to which products of one vector are faster

Expanded = tuple[Integers, Integers, NDArray[np.int64]]
Digits = tuple[Any, Any]  # as they are, and in pieces
Products = Callable[[Any, int], tuple[Any, Any]]


class HardError(Exception):
    """The system is beyond what one float64 factor, or the integers of a system, can do."""


class Host:
    """What a solve needs of arrays, in NumPy and LAPACK."""

    here = staticmethod(np.asarray)  # an array for the host
    there = staticmethod(np.asarray)  # the same for the solve
    sqrt, rint = np.sqrt, np.rint

    def prepared(self, S: Any, whole: Integers, h: int) -> tuple[Floats, Products]:
        """A, which is S in float64, and products with H 2^h + L = S with another diagonal.

        These are of digits in two pieces, u 2^g + v, in float64 and modulo 2^64. Of a `Triangle`
        S, and of A, which a factor is written over, there is one triangle.
        """
        J = len(S)
        A = np.empty((J, J), order="F")
        for rows in strips(J):
            A.T[rows, : rows.stop] = S[rows, : rows.stop]
        return A, _Limbs(S, whole, h, A.T).products

    def put_diagonal(self, A: Floats, values: Any) -> None:
        """Replace the diagonal."""
        np.fill_diagonal(A, values)

    def factor(self, A: Floats) -> Floats:
        """The Cholesky factor of A, in the upper triangle, whose memory is used for it."""
        factor, failed = dpotrf(A, clean=False, overwrite_a=True)
        if failed:
            raise LinAlgError("not positive definite")
        return np.asarray(factor)

    def solved(self, factor: Floats, B: Floats) -> Floats:
        """A⁻¹B."""
        if B.shape[1] > 1:
            return np.asarray(dpotrs(factor, B)[0])
        half = dtrsv(factor, B[:, 0], trans=True)
        return np.asarray(dtrsv(factor, half, overwrite_x=True)[:, None])

    def beside(self, A: Floats, B: Floats) -> Floats:
        """Two matrices beside each other."""
        return np.concatenate([A, B], axis=1)

    def whole(self, A: Any) -> Integers:
        """Integers as int64, or OverflowError."""
        return np.asfortranarray(A, dtype=np.int64)

    def floats(self, A: Integers) -> Floats:
        """In float64."""
        return A.astype(np.float64)

    def largest(self, A: Floats) -> Floats:
        """The largest absolute value of each column."""
        return np.asarray(np.abs(A).max(axis=0))


HOST = Host()


class _Limbs:
    """H and L of H 2^h + L = S with another diagonal; H, L rounded.

    Their lower triangles are kept, made of A, which is S in float64, where that is exact. Those of
    a large matrix would take twice its memory: they are cut a few rows at a time, for each
    product, while these are in the cache.
    """

    def __init__(self, S: Any, whole: Integers, h: int, A: Floats) -> None:
        self.whole, self.h = whole, h
        self.is_short = int(whole.max()) < 2**52  # so float64 has no rounding errors
        self.kept: list[Floats] | None = None
        J = len(S)
        if J <= _KEPT:
            self.kept = [np.empty((J, J)), np.empty((J, J))]
            for rows in strips(J):
                own = np.s_[rows, : rows.stop]
                limbs = [limb[own] for limb in self.kept]
                self._cut((A if self.is_short else S)[own], rows, *limbs)
        else:
            self.S = S if isinstance(S, np.ndarray) else mirror(A.copy())

    def products(self, pieces: Floats, g: int) -> tuple[Floats, Integers]:
        """(H 2^h + L)(u 2^g + v) for pieces u beside v, in float64 and modulo 2^64."""
        P = self._parts(pieces).reshape(4, -1, len(pieces))  # Hu, Hv, Lu, Lv
        places = np.array([self.h + g, self.h, g, 0])
        near = np.einsum("i,ikn->kn", np.ldexp(1.0, places), P)
        return near.T, np.einsum("i,ikn->kn", 1 << places, P.astype(np.int64)).T

    def _parts(self, pieces: Floats) -> Floats:
        """H and L times pieces, exactly, transposed."""
        J, n = pieces.shape
        if self.kept is not None and n <= _COLUMNS:
            return np.array([[dsymv(1.0, limb.T, p) for p in pieces.T] for limb in self.kept])
        if self.kept is not None:
            return np.array([dsymm(1.0, limb.T, pieces).T for limb in self.kept])
        out, memory = np.empty((2, n, J)), np.empty((2, _ROWS, J))
        for rows in strips(J, _ROWS):
            limbs = memory[:, : rows.stop - rows.start]
            self._cut(self.S[rows], rows, *limbs)
            for product, limb in zip(out, limbs, strict=True):
                product[:, rows] = dgemm(1.0, limb.T, pieces, trans_a=True).T
        return out

    def _cut(self, S: Any, rows: slice, H: Floats, L: Floats) -> None:
        """Write H and L of some rows of S, whole or up to their own column."""
        whole = self.whole[rows]
        own = np.arange(len(H)), rows.start + np.arange(len(H))
        if self.is_short:
            np.rint(np.multiply(S, 2.0**-self.h, out=H), out=H)
            H[own] = upper = np.rint(whole * 2.0**-self.h)
            np.multiply(H, -(2.0**self.h), out=L)
            L += S
            L[own] = whole - upper * 2.0**self.h
        else:
            S = S.astype(np.int64)
            S[own] = whole
            rounded = (S + (1 << (self.h - 1))) >> self.h
            H[:], L[:] = rounded, S - (rounded << self.h)


def strips(J: int, step: int | None = None) -> list[slice]:
    """Rows of J numbers, so many together, or as many as stay in the cache."""
    step = max(1, _CACHE // J) if step is None else step
    return [slice(i, min(i + step, J)) for i in range(0, J, step)]


class Steps:
    """A system that is solved digit by digit; a subclass says how R is kept."""

    on: Any = HOST

    factor: Any
    bits: int
    g: int

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
        residual, X = self._start(Q), 0.0
        E = np.zeros(Q.shape[1], dtype=np.int64)
        terms: list[Floats] = []
        taken: list[tuple[Any, NDArray[np.int64]]] = []
        moved = np.zeros(Q.shape[1], dtype=object)  # 2^E (X_b - Σ_j shift_j X_j)
        for step in range(_STEPS):
            c = on.solved(self.factor, self._near(residual, X))
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
            taken.append((digits, E))
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
        self._ended = residual, taken
        return on.here(Z) if self.shift is None else np.vstack([on.here(Z), own]), decided

    def left(self, columns: NDArray[np.bool_], ridge: Ridge, denominator: int) -> Expanded:
        """2^E X, `denominator` times R, and E of some columns, exactly: where others may go on.

        What was kept is N = 2^units R', with ridges r' cut after as many bits: R = R' - (r - r') X.
        """
        residual, taken = self._ended
        X, E = np.zeros(1, dtype=object), np.zeros(1, dtype=np.int64)
        for digits, places in taken:
            E, before = places[columns], E
            own = wide(self.on.here(digits)[:, columns].astype(np.int64))
            X = (X << wide(E - before)) + own
        numerators, whole = ridge.fractions
        missing = ((numerators << self.units) % whole)[:, None]
        R = (self._kept(residual, columns) * whole - missing * X) * denominator
        return X, R // (whole << self.units), E

    units: int

    def _kept(self, residual: Any, columns: NDArray[np.bool_]) -> Integers:
        """2^units R of some columns, as it was kept, in Python integers."""
        raise NotImplementedError

    def _start(self, Q: Integers) -> Any:
        """R of no digits."""
        raise NotImplementedError

    def _after(self, before: Any, digits: Digits, shifts: NDArray[np.int64]) -> Any:
        """R ← 2^shifts R - A d for digits d, whole and in two pieces, the upper first."""
        raise NotImplementedError

    def _near(self, residual: Any, X: Any) -> Any:
        """R in float64, given the digits so far."""
        raise NotImplementedError

    def _rest(self, residual: Any, X: Any) -> Any:
        """A bound of |R|, given the digits so far."""
        raise NotImplementedError

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
