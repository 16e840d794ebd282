"""The system of the margin, solved in one order of evaluation: the same bits on every machine.

    [G 1; 1ᵀ 0] [x; t] = [p; q]

as in `traceless.path.factor`, by an unblocked Cholesky factor of G + ρ 11ᵀ and one refinement.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.path.compiled import compiled
from traceless.path.factor import ONE, SOUND, forward
from traceless.path.store import sum_of_rows

_TWO, _FOUR = np.uint64(2), np.uint64(4)
_DEPENDENT = 1e-12  # part of its norm² that a row must have of its own to be independent

Places = NDArray[np.intp]


@compiled
def _cholesky(A: Floats, limit: Floats) -> bool:
    """A ← R with RᵀR = A, in place, upper triangle; False at the first pivot within its limit.

    Rows are done four at a time, so that the rest of A is read once for all of them. Each of its
    entries loses the same products in the same order as one row at a time.
    """
    n = np.uint64(len(A))
    for start in range(np.uint64(0), n, _FOUR):
        end = min(start + _FOUR, n)
        for j in range(start, end):
            row = A[j]
            if not row[j] > limit[j]:
                return False
            root = np.sqrt(row[j])
            row[j] = root
            for i in range(j + ONE, n):
                row[i] /= root
            for r in range(j + ONE, end):
                t, lower = row[r], A[r]
                for i in range(r, n):
                    lower[i] -= t * row[i]
        if end < n:  # then these are four
            a, b, c, d = A[start], A[start + ONE], A[end - _TWO], A[end - ONE]
            for r in range(end, n):
                p, q, s, t, lower = a[r], b[r], c[r], d[r], A[r]
                for i in range(r, n):
                    lower[i] = lower[i] - p * a[i] - q * b[i] - s * c[i] - t * d[i]
    return True


@compiled
def _pivots(A: Floats, picked: Places) -> int:
    """How many rows of A are independent; `picked` begins with them, the largest pivot first."""
    n, k = len(A), 0
    left, whole, L = np.empty(n), np.empty(n), np.empty((n, n))
    for j in range(n):
        left[j] = whole[j] = A[j, j]
    while k < n:
        p, most = -1, 0.0
        for j in range(n):
            if left[j] > most and left[j] > _DEPENDENT * whole[j]:
                p, most = j, left[j]
        if p < 0:
            break
        row = L[k]
        for j in range(n):
            row[j] = A[p, j]
        for q in range(k):
            t = L[q, p]
            for j in range(n):
                row[j] -= t * L[q, j]
        root = np.sqrt(most)
        for j in range(n):
            row[j] /= root
            left[j] -= row[j] * row[j]
        picked[k], left[p] = p, 0.0
        k += 1
    return k


@compiled
def _backward(R: Floats, k: int, z: Floats) -> None:
    for j in range(k - 1, -1, -1):
        t = z[j]
        for i in range(j + 1, k):
            t -= R[j, i] * z[i]
        z[j] = t / R[j, j]


class Margin:
    """The system of a margin with the kernel values G, factored; `sound` says whether that held."""

    def __init__(self, G: Floats) -> None:
        self.G = G
        self.rho = self.shift(G)
        self.R = G + self.rho
        self.sound = bool(_cholesky(self.R, SOUND * self.R.diagonal()))

    @staticmethod
    def shift(G: Floats) -> float:
        """ρ, the mean of the diagonal."""
        mean = sum_in_order(np.ascontiguousarray(G.diagonal())) / len(G)
        return mean if mean > 0.0 else 1.0

    def solved(self, p: Floats, q: float) -> tuple[Floats, float]:
        """X and t with G x + t = p and 1ᵀx = q."""
        k, ones, x = len(p), np.ones(len(p)), p.copy()
        for z in (ones, x):
            forward(self.R, k, z)
            _backward(self.R, k, z)
        beta = (sum_in_order(x) - q) / sum_in_order(ones)
        return x - beta * ones, beta + self.rho * q

    def refined(self, p: Floats, q: float) -> tuple[Floats, float]:
        """The same, with one step of refinement."""
        x, t = self.solved(p, q)
        rest = p - sum_of_rows(self.G, np.arange(len(p)), x, np.zeros(len(p))) - t
        fix, lift = self.solved(rest, q - sum_in_order(x))
        return x + fix, t + lift


def sum_in_order(a: Floats) -> float:
    """One after the other: `numpy.sum` adds in an order of its own."""
    return float(np.add.accumulate(a)[-1]) if len(a) else 0.0


def independent(G: Floats) -> Places:
    """Places of a largest set of rows on which the system can be solved, in order."""
    picked = np.zeros(len(G), dtype=np.intp)
    n = _pivots(G + Margin.shift(G), picked)
    return np.sort(picked[:n])
