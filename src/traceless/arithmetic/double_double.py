"""Linear systems in twofold (double-double) precision, for those float64 cannot factor.

A number is the unevaluated sum of two float64, about 106 bits (Dekker 1971, Knuth).
Slower than LAPACK by two orders of magnitude, and used only where Cholesky in float64
breaks down: condition numbers between about 1e14 and 1e28.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from traceless.arithmetic.integers import Floats, Integers, wide


@dataclass(frozen=True)
class Twofold:
    """high + low, with |low| ≤ half a unit in the last place of high."""

    high: Floats
    low: Floats

    def __getitem__(self, index: Any) -> Twofold:
        return Twofold(self.high[index], self.low[index])

    def put(self, index: Any, value: Twofold) -> None:
        """Store `value` at `index`, in place."""
        self.high[index] = value.high
        self.low[index] = value.low


def to_twofold(a: Integers) -> Twofold:
    """Integers of up to 106 bits exactly, longer ones rounded."""
    high = a.astype(np.float64)
    return Twofold(high, (wide(a) - np.frompyfunc(int, 1, 1)(high)).astype(np.float64))


def two_sum(a: Floats, b: Floats) -> Twofold:
    """``a + b`` and its rounding error."""
    s = a + b
    t = s - a
    return Twofold(s, (a - (s - t)) + (b - t))


def two_product(a: Floats, b: Floats) -> Twofold:
    """``a · b`` and its rounding error."""
    p = a * b
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return Twofold(p, ((ah * bh - p) + ah * bl + al * bh) + al * bl)


def _halves(a: Floats) -> tuple[Floats, Floats]:
    c = 134217729.0 * a  # 2^27 + 1
    high = c - (c - a)
    return high, a - high


def add(a: Twofold, b: Twofold) -> Twofold:
    """``a + b``."""
    s = two_sum(a.high, b.high)
    t = two_sum(a.low, b.low)
    s = _tidy(s.high, s.low + t.high)
    return _tidy(s.high, s.low + t.low)


def subtract(a: Twofold, b: Twofold) -> Twofold:
    """``a - b``."""
    return add(a, Twofold(-b.high, -b.low))


def multiply(a: Twofold, b: Twofold) -> Twofold:
    """``a · b``, element by element, with broadcasting."""
    p = two_product(a.high, b.high)
    return _tidy(p.high, p.low + (a.high * b.low + a.low * b.high))


def divide(a: Twofold, b: Twofold) -> Twofold:
    """``a / b``."""
    first = a.high / b.high
    zero = np.zeros_like(first)
    rest = subtract(a, multiply(b, Twofold(first, zero)))
    second = rest.high / b.high
    rest = subtract(rest, multiply(b, Twofold(second, zero)))
    return add(_tidy(first, second), Twofold(rest.high / b.high, zero))


def _tidy(a: Floats, b: Floats) -> Twofold:
    s = a + b
    return Twofold(s, b - (s - a))


class Factor:
    """The factors of a symmetric positive definite A = L D Lᵀ.

    Raises `numpy.linalg.LinAlgError` if a pivot is not positive.
    """

    def __init__(self, A: Twofold) -> None:
        A = Twofold(A.high.copy(), A.low.copy())
        n = len(A.high)
        for k in range(n):
            if not A.high[k, k] > 0:
                raise np.linalg.LinAlgError(f"pivot {k} is not positive")
            column = A[k + 1 :, k]
            ratio = divide(column, A[k, k])
            rest = (slice(k + 1, n), slice(k + 1, n))
            A.put(rest, subtract(A[rest], multiply(ratio[:, None], column[None, :])))
            A.put((slice(k + 1, n), k), ratio)
        self.A = A

    @property
    def pivots(self) -> Twofold:
        """The diagonal of D, whose product is the determinant of A."""
        return Twofold(self.A.high.diagonal(), self.A.low.diagonal())

    def forward(self, b: Twofold) -> Twofold:
        """``L⁻¹ b`` for a matrix b of right-hand sides."""
        A, n = self.A, len(b.high)
        x = Twofold(b.high.copy(), b.low.copy())
        for k in range(n):
            below = slice(k + 1, n)
            x.put(below, subtract(x[below], multiply(A[below, k, None], x[None, k])))
        return x

    def solve(self, b: Twofold) -> Floats:
        """``A⁻¹ b`` for a matrix b of right-hand sides, rounded to float64."""
        A, n = self.A, len(b.high)
        x = divide(self.forward(b), self.pivots[:, None])
        for k in range(n - 1, 0, -1):
            above = slice(0, k)
            x.put(above, subtract(x[above], multiply(A[k, above, None], x[None, k])))
        return np.asarray(x.high)
