"""Cholesky factors of the margin set: one that points enter and leave, and one in a fixed order.

    RᵀR = A = K_MM + ρ 11ᵀ,     R upper triangular, its rows contiguous in memory

The bordered system of the margin set (Karasuyama & Takeuchi 2009, eq. 7)

    [K_MM 1; 1ᵀ 0] [x; t] = [p; q]      is      A x + (t - ρq) 1 = p,   1ᵀx = q

so two solves with A answer it. Adding ρ11ᵀ changes nothing on the constraint and makes a
positive definite matrix of K_MM where that is singular along 1 only, as with linear kernels.

A path updates its factor (`grow`, `delete`), with sums in any order. `MarginSystem` factors from
scratch in one order of evaluation, so that canonical solutions have the same bits on every
machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.hinge.compiled import compiled, compiled_loosely
from traceless.hinge.kernel_cache import sum_of_rows

SOUND = 1e-14  # a pivot below this part of its diagonal belongs to a dependent point
_DEPENDENT = 1e-12  # part of its norm² that a row must have of its own to be independent

Places = NDArray[np.intp]

# Places are counted in unsigned integers: numba lets others count from the end, and checks for it
# at every access, which costs loops that do not start at 0 two thirds of their speed
_ONE, _TWO, _FOUR = np.uint64(1), np.uint64(2), np.uint64(4)


@compiled
def forward(R: Floats, k: int, z: Floats) -> None:
    """Solve Rᵀx = z, in place."""
    n = np.uint64(k)
    for j in range(n):
        row = R[j]
        t = z[j] / row[j]
        z[j] = t
        for i in range(j + _ONE, n):
            z[i] -= t * row[i]


@compiled_loosely
def backward(R: Floats, k: int, z: Floats) -> None:
    """Solve R x = z, in place."""
    n = np.uint64(k)
    for below in range(n):
        at, t = n - _ONE - below, 0.0
        row = R[at]
        for i in range(at + _ONE, n):
            t += row[i] * z[i]
        z[at] = (z[at] - t) / row[at]


@compiled_loosely
def grow(R: Floats, k: int, column: Floats, diagonal: float) -> bool:
    """Append a point, its column already solved `forward`, unless the pivot is unsound."""
    total = 0.0
    for i in range(k):
        total += column[i] * column[i]
    pivot = diagonal - total
    if not pivot > SOUND * diagonal:
        return False
    for i in range(k):
        R[i, k] = column[i]
    R[k, k] = np.sqrt(pivot)
    return True


@compiled
def delete(R: Floats, k: int, p: int, lower: Floats) -> None:
    """Take out column p of k by Givens rotations; `lower` is scratch, the lower row of each."""
    n, first = np.uint64(k), np.uint64(p)
    for i in range(first):
        row = R[i]
        for j in range(first + _ONE, n):
            row[j - _ONE] = row[j]
    for j in range(first, n):
        lower[j] = R[first, j]
    for i in range(first, n - _ONE):
        out, other = R[i], R[i + _ONE]
        a, b = lower[i + _ONE], other[i + _ONE]
        r = np.hypot(a, b)
        c, s = a / r, b / r
        for j in range(i + _ONE, n):
            t, v = lower[j], other[j]
            out[j - _ONE] = c * t + s * v
            lower[j] = c * v - s * t


@compiled_loosely
def bordered(R: Floats, k: int, rho: float, q: float, room: Floats) -> float:
    """Solve the bordered system: room[0] comes as p and leaves as x; returns t.

    room[1] is scratch, room[2] becomes the size of each entry of x before cancellation. The
    two solves run side by side, so that R is read once.
    """
    n, x, z, size = np.uint64(k), room[0], room[1], room[2]
    for j in range(n):
        z[j] = 1.0
    for j in range(n):
        row = R[j]
        s, t = x[j] / row[j], z[j] / row[j]
        x[j], z[j] = s, t
        for i in range(j + _ONE, n):
            x[i] -= s * row[i]
            z[i] -= t * row[i]
    a, b = 0.0, 0.0
    for j in range(n):
        a += z[j] * x[j]
        b += z[j] * z[j]
    beta = (a - q) / b
    for below in range(n):
        at, s, t = n - _ONE - below, 0.0, 0.0
        row = R[at]
        for i in range(at + _ONE, n):
            s += row[i] * x[i]
            t += row[i] * z[i]
        x[at] = (x[at] - s) / row[at]
        z[at] = (z[at] - t) / row[at]
    for j in range(n):
        size[j] = abs(x[j]) + abs(beta * z[j])
        x[j] -= beta * z[j]
    return float(beta + rho * q)


# --- in one order of evaluation -----------------------------------------------------------------


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
            for i in range(j + _ONE, n):
                row[i] /= root
            for r in range(j + _ONE, end):
                t, lower = row[r], A[r]
                for i in range(r, n):
                    lower[i] -= t * row[i]
        if end < n:  # then these are four
            a, b, c, d = A[start], A[start + _ONE], A[end - _TWO], A[end - _ONE]
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
    """Solve R x = z, in place, one product after the other."""
    for j in range(k - 1, -1, -1):
        t = z[j]
        for i in range(j + 1, k):
            t -= R[j, i] * z[i]
        z[j] = t / R[j, j]


class MarginSystem:
    """The bordered system of kernel values G, factored; `sound` is False where that failed."""

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
        """The x and t with G x + t = p and 1ᵀx = q."""
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
    """Σa, one after the other: `numpy.sum` adds in an order of its own."""
    return float(np.add.accumulate(a)[-1]) if len(a) else 0.0


def independent(G: Floats) -> Places:
    """Places of a largest set of rows on which the system can be solved, in order."""
    picked = np.zeros(len(G), dtype=np.intp)
    n = _pivots(G + MarginSystem.shift(G), picked)
    return np.sort(picked[:n])
