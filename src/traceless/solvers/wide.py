"""Correctly rounded coefficients of systems beyond int64: weighted classes, very large columns.

    A Z = Q,     A = S + diag(r),     u S and u Q integers of any size, u a power of two

Steps are those of `traceless.solvers.steps`. u S, u 2^F r (F so large that it is whole, or cut
after 160 bits) and u 2^F R are kept in digits of g bits, between ±2^(g-1). A digit of u S times a
piece of d, which has g bits too, counts as much as a digit of u 2^F R, and J of these products add
up to less than 2^53: BLAS takes all of them exactly, they are added place by place in int64, and
carries are taken care of once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm

from traceless.arithmetic.integers import Floats, Integers, wide
from traceless.arithmetic.words import Wide
from traceless.solvers.mixture import Mixture, digits_of
from traceless.solvers.ridge import Ridge
from traceless.solvers.steps import Digits, HardError, Steps, U, strips

_PLACES = 8  # digits of ridges without an end


class WideSystem(Steps):
    """A in digits, and R in digits."""

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
            raise HardError
        self.ridge = digits_of(whole[:, None], self.g)
        self.n_digits = (size + self.bits + J.bit_length()) // self.g + 3
        self._prepare(ridge, shift, S.column(-1), S.unit)
        self.limbs = S.digits(self.g, n_limbs)
        A = np.empty((J, J), order="F")
        for rows in strips(J):
            part = A.T[rows]
            part[:] = self.limbs[-1, rows]
            for limb in self.limbs[-2::-1, rows]:
                part *= 2.0**self.g
                part += limb
        A *= 2.0**-unit
        A[np.diag_indices_from(A)] += ridge.near
        self.factor = self.on.factor(A)

    def _start(self, Q: Integers) -> Integers:
        digits = digits_of(wide(Q), self.g)
        after = self.n_digits - self.places - len(digits)
        if after < 0:
            raise HardError
        return np.pad(digits, [(self.places, after), (0, 0), (0, 0)])

    def _near(self, residual: Integers, X: Any) -> Floats:  # noqa: ARG002
        total = residual[-1].astype(np.float64)
        for digit in residual[-2::-1]:
            total = total * 2.0**self.g + digit
        return np.asarray(total * 2.0**-self.units)

    def _kept(self, residual: Integers, columns: NDArray[np.bool_]) -> Integers:
        total = wide(residual[-1][:, columns])
        for digit in residual[-2::-1]:
            total = (total << self.g) + wide(digit[:, columns])
        return total

    def _rest(self, residual: Integers, X: Any) -> Floats:
        return np.asarray(np.abs(self._near(residual, X)) * (1 + 256 * U) + self.rest * np.abs(X))

    def _after(self, before: Integers, digits: Digits, shifts: NDArray[np.int64]) -> Integers:
        g, F, pieces = self.g, self.places, digits[1]
        out = np.zeros_like(before)
        whole, places = divmod(shifts, g)
        for jump in sorted({*whole.tolist()}):
            columns = whole == jump
            if before[len(before) - jump :, :, columns].any():
                raise HardError  # it would not fit
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
