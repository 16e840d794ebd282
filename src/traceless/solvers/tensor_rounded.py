"""Correctly rounded coefficients on a device: `traceless.solvers.rounded`, in torch.

The same steps, bounds and proofs: digits from a Cholesky factor in float64, residuals that are
exact because products of limbs and pieces stay below 2^53 and int64 is checked not to wrap, and a
bound of the error that says which coefficients are decided. There is one nearest float64, so the
bits are those of the host, which takes what is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from traceless.arithmetic.integers import Floats, Integers
from traceless.device.matrices import OutOfMemoryError, TensorMatrix
from traceless.solvers.centring import shifted_right_side
from traceless.solvers.ridge import Ridge
from traceless.solvers.rounded import _HardError as HardError
from traceless.solvers.rounded import _Shift as Shift

_U = 2.0**-53  # unit roundoff
_DIGIT_BITS = 40  # at most, for each step
_STEPS = 6
_PLANES = 12


def solved_there(
    S: Any, Q: Integers, ridge: Ridge, shift: Integers | None, intercept: bool, device: Any
) -> tuple[Floats, NDArray[np.bool_]] | None:
    """Coefficients, and which columns are decided; None where the device cannot solve the system.

    Parameters are those of `traceless.solvers.rounded.correctly_rounded_solve`, of features that
    are still to be shifted; `intercept` asks for that of features as they were.
    """
    try:
        there = TensorMatrix.of(S, shift, device)
        if there is None:
            return None
        Q = Q if shift is None else shifted_right_side(Q, shift)
        kept = there.diagonal() != 0
        kept[:-1] &= ridge.near[:-1] > 0
        used, asked = np.flatnonzero(kept), np.flatnonzero(Q.any(axis=0))
        if not used.size or not asked.size:
            return None
        own = shift if intercept else None
        if used.size < len(Q):
            there, ridge = there.of_features(used), ridge.of_features(used)
            own = None if own is None else own[used]
        whole = (used.size, asked.size) == Q.shape
        some = Q if whole else Q[np.ix_(used, asked)]
        part, certain = _System(there, ridge, own, there.arrays).solve(some)
    except (HardError, LinAlgError, OverflowError, OutOfMemoryError):
        return None
    if whole:
        return part, certain
    Z, decided = np.zeros((len(Q) + (own is not None), Q.shape[1])), np.ones(Q.shape[1], dtype=bool)
    rows = used if own is None else np.append(used, len(Q))
    Z[np.ix_(rows, asked)], decided[asked] = part, certain
    return Z, decided


class _System:
    """A = S + diag(r) in two limbs and a Cholesky factor; the fractions of r in planes."""

    def __init__(self, S: Any, ridge: Ridge, shift: Integers | None, on: Any) -> None:
        J, own = len(S), S.diagonal()
        if S.dtype != np.int64 or not max(ridge.near.max(), own.max()) < 2.0**61:
            raise HardError
        self.on = on
        whole = own + ridge.whole()
        m = int(whole.max() + 1).bit_length() + 1  # |S_ij| < 2^m, S being semidefinite
        self.h = h = m // 2
        # pieces of digits up to 2^g: J products with a limb stay below 2^53
        self.g = 52 - max(h - 1, m - h) - J.bit_length()
        self.bits = min(2 * self.g - 1, _DIGIT_BITS)
        if m > 62 or self.bits < 24:
            raise HardError
        A, self.high, self.low = on.limbs(S, h)
        high = (whole + (1 << (h - 1))) >> h
        on.put_diagonal(self.high, high)
        on.put_diagonal(self.low, whole - (high << h))
        self.plane_bits = 61 - self.bits  # times a digit, a plane stays below 2^62
        planes, rest = ridge.planes(self.plane_bits, _PLANES)
        fraction = rest + sum(
            plane * 2.0 ** (-self.plane_bits * (k + 1)) for k, plane in enumerate(planes)
        )
        self.planes, self.has_rest = [on.there(plane) for plane in planes], bool(rest.any())
        self.rest, self.fraction = on.there(rest), on.there(fraction)
        diagonal = whole + fraction[:, 0]
        on.put_diagonal(A, diagonal)
        self.root = on.there(np.sqrt(diagonal)[:, None] * (1 + 1e-6))
        penalised = ridge.near[:, None] > 0
        self.weight = on.there(
            np.where(penalised, 1.0 / np.sqrt(np.where(penalised, ridge.near[:, None], 1)), 0.0)
        )
        last = np.asarray(S[:, -1])
        mean = np.abs(last[:, None]) / last[-1] * (1 + 1e-9) if ridge.is_free else None
        self.mean = None if mean is None else on.there(mean)
        self.weight_of_rows = float(last[-1])
        self.shift = None if shift is None else Shift(shift, 52 - self.g - J.bit_length())
        self.factor = on.factor(A)

    def solve(self, Q: Integers) -> tuple[Floats, NDArray[np.bool_]]:
        """Z, and which columns are certainly the float64 nearest to A⁻¹Q."""
        on = self.on
        residual = _Residual(on, on.whole(Q))  # OverflowError beyond
        E = np.zeros(Q.shape[1], dtype=np.int64)
        terms: list[Floats] = []
        moved = np.zeros(Q.shape[1], dtype=object)  # 2^E (X_b - Σ_j shift_j X_j)
        cut: Any = 0.0  # what the planes leave out of R
        for step in range(_STEPS):
            near = residual.near - cut
            c = on.solved(self.factor, near)
            size = on.largest(c)
            if not (size.min() > 0 and size.max() < np.inf):
                raise HardError
            shifts = self.bits - np.frexp(size)[1].astype(np.int64)
            if step:
                np.minimum(shifts, self.bits, out=shifts)  # fractions stay below 2^62
            if shifts.min() < (4 if step else 0):
                raise HardError  # a step must gain four bits
            if step >= 2:
                down = on.there(np.ldexp(1.0, -E))
                error = self._error(near, c, abs(residual.near) + 4 * abs(cut))
                Z, certain = _rounded([*terms, c * down], error * down)
                decided = on.here(certain.all(0))
                if self.shift is not None:
                    own, sure = self.shift.intercepts(moved, E, on.here(c), on.here(error))
                    decided = decided & sure
                if step == _STEPS - 1 or decided.all():
                    break
            digits = on.rint(c * on.there(np.ldexp(1.0, shifts)))
            upper = on.rint(digits * 2.0**-self.g)
            pieces = on.beside(upper, digits - upper * 2.0**self.g)
            residual = self._after(residual, digits, pieces, shifts)
            if self.shift is not None:
                moved = (moved << shifts.astype(object)) + self.shift.apart(on.here(pieces), self.g)
            E = E + shifts
            if E.max() > 800:
                raise HardError  # so that 2^-E and the bounds stay normal numbers
            terms.append(digits * on.there(np.ldexp(1.0, -E)))
            if self.has_rest:
                cut = self.rest * (sum(terms) * on.there(np.ldexp(1.0, E)))
        return on.here(Z) if self.shift is None else np.vstack([on.here(Z), own]), decided

    def _after(
        self, before: _Residual, digits: Floats, pieces: Floats, shifts: NDArray[np.int64]
    ) -> _Residual:
        """R ← 2^shifts R - A digits, in int64 and, near to it, in float64."""
        on, K, g, h = self.on, digits.shape[1], self.g, self.h
        H, L = on.product(self.high, pieces), on.product(self.low, pieces)
        near = before.near * on.there(np.ldexp(1.0, shifts)) - (
            (H[:, :K] * 2.0**g + H[:, K:]) * 2.0**h + (L[:, :K] * 2.0**g + L[:, K:])
        )
        H, L, up, whole_digits = on.whole(H), on.whole(L), on.there(shifts), on.whole(digits)
        whole = (before.whole << up) - (
            (((H[:, :K] << g) + H[:, K:]) << h) + (L[:, :K] << g) + L[:, K:]
        )
        planes: list[Integers] = []
        carry: Any = 0
        for k in reversed(range(len(self.planes))):
            held: Any = before.planes[k] << up if before.planes else 0
            total = held - self.planes[k] * whole_digits + carry
            carry = total >> self.plane_bits
            planes.insert(0, total & ((1 << self.plane_bits) - 1))
        whole += carry
        after = _Residual(on, whole, planes, self.plane_bits)
        if not (abs(after.near - near).max() < 2.0**61 and abs(near).max() < 2.0**62):
            raise HardError  # R may have wrapped
        return after

    def _error(self, near: Floats, c: Floats, parts: Floats) -> Floats:
        """A bound of |A⁻¹R - c|; `near` is R, rounded, from parts of this size."""
        on, size, rounding = self.on, abs(c), (2 * len(c) + 16) * _U
        product = on.product(self.high, c) * 2.0**self.h + on.product(self.low, c)
        rest = abs(near - (product + self.fraction * c))
        rest += (4 * _U) * (abs(near) + parts)
        rest += 2.0**-self.plane_bits if self.planes else 0.0
        rest += rounding * self.root * (self.root * size).sum(axis=0)
        rest += 2.0 ** (self.h - 1) * rounding * size.sum(axis=0)  # of L, which is not definite
        if self.mean is None:
            return self._spread(rest)
        own = rest[-1] / self.weight_of_rows
        bound = self._spread(rest + self.mean * rest[-1])
        bound[-1] = (own + (self.mean[:-1] * bound[:-1]).sum(axis=0)) * (1 + 1e-6)
        return bound

    def _spread(self, rest: Floats) -> Floats:
        """r_j^(-1/2) (Σ_i rest_i² / r_i)^(1/2), over the penalised coefficients."""
        rest = rest * self.weight
        total: Floats = self.weight * self.on.sqrt((rest * rest).sum(axis=0)) * (1 + 1e-6)
        return total


class _Residual:
    """R, whole and (in planes, as the fractions of r) fractional; `near` is its float64."""

    def __init__(
        self, on: Any, whole: Integers, planes: Sequence[Integers] = (), plane_bits: int = 0
    ) -> None:
        self.whole, self.planes = whole, planes
        self.near = on.floats(whole)
        if planes:
            self.near += on.floats(planes[0]) * 2.0**-plane_bits


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
    bound = bound * (1 + 8 * _U) + (8 * _U) * size  # with the roundings of e and of e ± bound
    low = s + (e - bound)
    return low + 0.0, low == s + (e + bound)
