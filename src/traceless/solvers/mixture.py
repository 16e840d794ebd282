"""A matrix of weighted classes, whose integers are never added up.

    S = Σ_c ω_c S_c,     S_c integers, ω_c float64 weights

The sums of classes are known, and weights are chosen when they are solved. With weights in units of
the smallest bit of them all, S is integers too, too long for int64: it is multiplied part by part,
or cut into digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm

from traceless.arithmetic.integers import Floats, Integers, as_sums, matrix_times, parts, wide
from traceless.arithmetic.words import Sums, Wide, in_digits

__all__ = ["Mixture", "digits_of"]

_CACHE = 2**14  # integers that are worked on together


@dataclass(frozen=True)
class Mixture:
    """The matrix Σ_c ω_c S_c, never added up: its integers would be too long for int64.

    Attributes
    ----------
    parts : integer arrays of shape (J, J), which add up to a positive semidefinite one
    weights : whole numbers, the ω_c in units of 1/`unit`
    unit : a power of two
    """

    parts: Sequence[Sums]
    weights: tuple[int, ...] = (1,)
    unit: int = 1

    @classmethod
    def of(cls, parts: Sequence[Sums], weights: Sequence[float]) -> Mixture:
        """A mixture with float64 weights: each is a fraction over a power of two."""
        exactly = [Fraction(weight) for weight in weights]
        unit = max(f.denominator for f in exactly)
        return cls(parts, tuple(int(f * unit) for f in exactly), unit)

    def digits(self, g: int, n: int) -> Floats:
        """The matrix in units as n matrices of digits, Σ_k digits_k 2^(g k), between ±2^(g-1).

        Digits of the parts times digits of the weights are added up by BLAS, place by place.
        """
        if self.weights == (1,) and isinstance(self.parts[0], Wide):
            return in_digits(self.parts[0].words, g, n)
        cut = self._in_words()
        weights = digits_of(np.array(cut.weights, dtype=object), g)
        bits = max(int(np.abs(part).max(initial=0)) for part in cut.parts).bit_length()
        J, C, m = len(cut.parts[0]), len(cut.parts), bits // g + 1
        if n < m or not C * m * 4**g < 2**55:
            raise OverflowError("the products of digits are too many for float64")
        out = np.empty((n, J, J))
        strip = max(1, _CACHE // J)
        for rows in [slice(i, min(i + strip, J)) for i in range(0, J, strip)]:
            own = np.empty((m, C, (rows.stop - rows.start) * J))
            for c, part in enumerate(cut.parts):
                _cut(np.asarray(part[rows]).reshape(-1), g, own[:, c])
            total = np.zeros((max(n, m + len(weights)), own.shape[2]))
            for k, digits in enumerate(own):
                total[k : k + len(weights)] += dgemm(1.0, digits.T, weights.T).T
            for k in range(len(total) - 1):
                carry = np.rint(total[k] * 2.0**-g)
                total[k] -= carry * 2.0**g
                total[k + 1] += carry
            if total[n:].any():
                raise OverflowError(f"the matrix has more than {n} digits")
            out[:, rows] = total[:n].reshape(n, -1, J)
        return out

    def _in_words(self) -> Mixture:
        """The same matrix with parts of int64, which are far quicker to multiply with."""
        cut = [
            (part, weight << shift)
            for whole, weight in zip(self.parts, self.weights, strict=True)
            for shift, part in parts(as_sums(whole))
        ]
        return Mixture([part for part, _ in cut], tuple(weight for _, weight in cut), self.unit)

    def diagonal(self) -> Integers:
        """The diagonal of the whole matrix, in units."""
        return self._sum(wide(part.diagonal()) for part in self.parts)

    def column(self, j: int) -> Integers:
        """One column of the whole matrix, in units."""
        return self._sum(wide(part[:, j]) for part in self.parts)

    def of_features(self, used: NDArray[np.intp]) -> Mixture:
        """The same for some of the features."""
        return replace(self, parts=[part[np.ix_(used, used)] for part in self.parts])

    def times(self, D: Floats, bits: int) -> Integers:
        """The matrix times integers ``|D| ≤ 2^bits``, exactly, in units."""
        return self._sum(matrix_times(part, D, bits) for part in self.parts)

    def floats(self) -> Floats:
        """The matrix in float64, rounded, column-major."""
        total = np.zeros(self.parts[0].shape, order="F")
        for weight, part in zip(self.weights, self.parts, strict=True):
            total += part.astype(np.float64).T * (weight / self.unit)
        return total

    def integers(self) -> Integers:
        """The matrix in Python integers, in units: slow."""
        return self._sum(wide(part) for part in self.parts)

    def _sum(self, values: Iterable[Integers]) -> Integers:
        return np.asarray(sum(w * v for w, v in zip(self.weights, values, strict=True)))


def digits_of(a: Integers, g: int) -> Integers:
    """Python integers as digits of g bits between ±2^(g-1), as many as it takes."""
    out: list[Integers] = []
    while a.any() or not out:
        high = (a + (1 << (g - 1))) >> g
        out.append((a - (high << g)).astype(np.int64))
        a = high
    return np.array(out)


def _cut(a: Integers, g: int, out: Floats) -> None:
    """Write the digits of int64 numbers, as many as there is room for."""
    for digits in out[:-1]:
        high = (a + (1 << (g - 1))) >> g
        digits[:] = a - (high << g)
        a = high
    out[-1] = a
