"""The equations (D + S) U = V that P and U of a live model are held against.

    R = V - (D + S) U,    U ← U + P R

takes the rounding errors of a history out of U, for as long as R gets smaller; and P A x should
be x. R is what is left when numbers of the size of V cancel, so S U must be known to more digits
than float64 has: a residual of float64 would make U worse than that of a new factor. With

    T = T₁ + T₂,    X = X₁ + X₂,    T X = T₁ X₁ + (T₁ X₂ + T₂ X)

where T₁ and X₁ are the first b bits of T and X, counted from the largest number of each, BLAS
computes T₁ X₁ without rounding: its terms are multiples of one unit, and J of them are below
2^(2b) J ≤ 2^53 units. The other two products are smaller by 2^b, and so are their errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.blas import dnrm2

from traceless.arithmetic.integers import Floats
from traceless.arithmetic.plain import less_product, two_sum
from traceless.solvers.inverse import Inverse
from traceless.solvers.stored import symmetric_times

_REFINEMENTS = 4  # at most, each time the residual is looked at


@dataclass(frozen=True)
class Equations:
    """S = diag(steps) T diag(steps), and V, in the units of the features.

    Attributes
    ----------
    T : ndarray of shape (J, J) or more, column-major
        Only the upper triangle of its first rows and columns is meaningful.
    steps : ndarray of shape (J,)
    V : ndarray of shape (J, K)
    """

    T: Floats
    steps: Floats
    V: Floats

    def matrix(self) -> Floats:
        """S in new memory, of which the upper triangle is meaningful."""
        J = len(self.steps)
        S = self.T[:J, :J] * self.steps
        S *= self.steps[:, None]
        return S

    @cached_property
    def size(self) -> float:
        """The trace of S, which no sum of its eigenvalues exceeds."""
        return float((self.T.diagonal()[: len(self.steps)] * self.steps**2).sum())


def polished(inverse: Inverse, equations: Equations) -> bool:
    """Refine the U of a new factor once; False if that is not enough, and nothing is done then.

    A step makes the error smaller by as much as it is itself smaller than U. Where that is a
    factor of 2^27, the next one would be below the rounding of U.
    """
    U = inverse.U
    step = inverse.times(_residual(Product(equations), equations.V, inverse.ridge[:, None], U))
    if not _norm(step) <= 2.0**-27 * _norm(U):
        return False
    inverse.U = np.asfortranarray(U + step)
    return True


def mended(inverse: Inverse, equations: Equations) -> tuple[float, float]:
    """Refine U for as long as that makes the residual smaller.

    Returns
    -------
    residual : float
        What is left, relative to the terms in it.
    decay : float
        How far P A x is from x, relatively, for a probe x: the error that P has.
    """
    V, ridge = equations.V, inverse.ridge[:, None]
    product = Product(equations)

    def residual(U: Floats) -> tuple[Floats, float]:
        R = _residual(product, V, ridge, U)
        size = _norm(V) + (float(ridge.max()) + equations.size) * _norm(U)
        return R, _norm(R) / size if size else 0.0

    inverse.tail = None
    R, size = residual(inverse.U)
    for _ in range(_REFINEMENTS):
        U, step = inverse.U, inverse.times(R)
        inverse.U = np.asfortranarray(U + step)
        before, (R, size) = size, residual(inverse.U)
        if size >= before:
            inverse.U, size = U, before
        if size > before / 4 or _norm(step) <= 2.0**-48 * _norm(U):
            break
    x = np.cos(np.arange(1.0, len(ridge) + 1.0))[:, None]
    y = ridge * x + sum(product.times(x))
    return size, _norm(inverse.times(y) - x) / _norm(x)


class Product:
    """S, to be multiplied with more digits than float64 has."""

    def __init__(self, equations: Equations) -> None:
        self._T, self._steps = equations.T, equations.steps[:, None]
        self._bits = (53 - len(self._T).bit_length()) // 2
        self._first = _first_bits(self._T, float(self._T.diagonal().max(initial=0.0)), self._bits)
        self._rest = self._T - self._first

    def times(self, U: Floats) -> tuple[Floats, Floats]:
        """``S U`` in two floats, the first large."""
        J = len(self._steps)
        X = np.zeros((len(self._T), U.shape[1]), order="F")
        np.multiply(U, self._steps, out=X[:J])
        first = _first_bits(X, float(np.abs(X).max(initial=0.0)), self._bits)
        rest = symmetric_times(self._first, X - first) + symmetric_times(self._rest, X)
        return symmetric_times(self._first, first)[:J] * self._steps, rest[:J] * self._steps


def _residual(product: Product, V: Floats, ridge: Floats, U: Floats) -> Floats:
    """V - (D + S) U, in numbers of two floats."""
    zero, (first, rest) = np.zeros_like(U), product.times(U)
    high, low = less_product(*(np.array([a + zero, zero]) for a in (V, ridge, U)))
    left, error = two_sum(high, -first)
    return np.asarray(left + (error + (low - rest)))


def _first_bits(A: Floats, largest: float, bits: int) -> Floats:
    """Numbers rounded to so many bits, counted from the largest of them."""
    shift = math.ldexp(1.5, 52 + math.frexp(largest)[1] - bits)
    out: Floats = A + shift
    out -= shift
    return out


def _norm(a: Floats) -> float:
    """Euclidean length, by the one BLAS that is used here (numpy.linalg.norm has another)."""
    return float(dnrm2(a.ravel(order="K"))) if a.size else 0.0
