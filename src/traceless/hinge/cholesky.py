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

from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.hinge.compiled import compiled, compiled_loosely, inner
from traceless.hinge.kernel_cache import sum_of_rows

SOUND = 1e-14  # a pivot below this part of its diagonal belongs to a dependent point
_DEPENDENT = 1e-12  # part of its norm² that a row must have of its own to be independent

Places = NDArray[np.intp]

# Places are counted in unsigned integers: numba lets others count from the end, and checks for it
# at every access, which costs loops that do not start at 0 two thirds of their speed
_ZERO, _ONE, _TWO, _THREE, _FOUR = (np.uint64(i) for i in range(5))
_ROWS, _TILE = np.uint64(8), np.uint64(256)


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


@compiled
def backward(R: Floats, k: int, z: Floats) -> None:
    """Solve R x = z, in place."""
    for j in range(k - 1, -1, -1):
        t = z[j]
        for i in range(j + 1, k):
            t -= R[j, i] * z[i]
        z[j] = t / R[j, j]


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


@compiled_loosely
def extend(column: Floats, k: int, pivot: float, z: Floats, value: float) -> None:
    """Append an entry to z = R⁻ᵀ(…), after `grow` has appended this column."""
    for i in range(k):
        value -= column[i] * z[i]
    z[k] = value / pivot


@compiled
def delete(R: Floats, k: int, p: int, lower: Floats, w: Floats, z: Floats) -> None:
    """Take out column p of k by Givens rotations, which also turn two kept columns, w and z.

    `lower` is scratch, the lower row of each rotation.
    """
    n, first = np.uint64(k), np.uint64(p)
    for i in range(first):
        row = R[i]
        for j in range(first + _ONE, n):
            row[j - _ONE] = row[j]
    for j in range(first, n):
        lower[j] = R[first, j]
    a_w, a_z = w[first], z[first]
    for i in range(first, n - _ONE):
        out, other = R[i], R[i + _ONE]
        a, b = lower[i + _ONE], other[i + _ONE]
        r = np.hypot(a, b)
        c, s = a / r, b / r
        for j in range(i + _ONE, n):
            t, v = lower[j], other[j]
            out[j - _ONE] = c * t + s * v
            lower[j] = c * v - s * t
        b_w, b_z = w[i + _ONE], z[i + _ONE]
        w[i], z[i] = c * a_w + s * b_w, c * a_z + s * b_z
        a_w, a_z = c * b_w - s * a_w, c * b_z - s * a_z


@compiled_loosely
def forward_both(R: Floats, k: int, x: Floats, z: Floats) -> None:
    """Solve Rᵀx = x and Rᵀz = z, in place, so that R is read once."""
    n = np.uint64(k)
    for j in range(n):
        row = R[j]
        s, t = x[j] / row[j], z[j] / row[j]
        x[j], z[j] = s, t
        for i in range(j + _ONE, n):
            x[i] -= s * row[i]
            z[i] -= t * row[i]


@compiled_loosely
def bordered(
    R: Floats,
    k: int,
    rho: float,
    q: float,
    p: Floats,
    ones: Floats,
    x: Floats,
    z: Floats,
    size: Floats,
) -> float:
    """Solve the bordered system from R⁻ᵀp and R⁻ᵀ1; x is filled, and t returned.

    z is scratch, `size` becomes the size of each entry of x before cancellation. The two solves run
    side by side, so that R is read once.
    """
    n, a, b = np.uint64(k), 0.0, 0.0
    for j in range(n):
        a += ones[j] * p[j]
        b += ones[j] * ones[j]
    beta = (a - q) / b
    for below in range(n):
        at, s, t = n - _ONE - below, 0.0, 0.0
        row = R[at]
        for i in range(at + _ONE, n):
            s += row[i] * x[i]
            t += row[i] * z[i]
        x[at] = (p[at] - s) / row[at]
        z[at] = (ones[at] - t) / row[at]
    for j in range(n):
        size[j] = abs(x[j]) + abs(beta * z[j])
        x[j] -= beta * z[j]
    return float(beta + rho * q)


# --- in one order of evaluation -----------------------------------------------------------------


@compiled
def _cholesky(A: Floats, limit: Floats) -> bool:
    """A ← R with RᵀR = A, in place, upper triangle; False at the first pivot within its limit.

    Rows are done eight at a time, so that the rest of A is read once for all of them, and in tiles
    of columns for which these rows stay in the cache. Each entry of A loses the same products in
    the same order as one row at a time.
    """
    n = np.uint64(len(A))
    for start in range(_ZERO, n, _ROWS):
        end = min(start + _ROWS, n)
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
        for tile in range(end, n, _TILE):  # none where fewer than eight rows are left
            last = min(tile + _TILE, n)
            for r in range(end, last):
                _lose(A, start, r, max(r, tile), last)
    return True


@inner
def _lose(A: Floats, start: Any, r: Any, begin: Any, end: Any) -> None:
    """A[r, i] -= Σ A[j, r] A[j, i] over eight rows j from `start` on, in order."""
    j, out = start, A[r]
    a, b, c, d = A[j], A[j + _ONE], A[j + _TWO], A[j + _THREE]
    j += _FOUR
    e, f, g, h = A[j], A[j + _ONE], A[j + _TWO], A[j + _THREE]
    p, q, s, t, u, v, w, x = a[r], b[r], c[r], d[r], e[r], f[r], g[r], h[r]
    for i in range(begin, end):
        z = out[i] - p * a[i] - q * b[i] - s * c[i] - t * d[i]
        out[i] = z - u * e[i] - v * f[i] - w * g[i] - x * h[i]


@compiled
def _pivots(A: Floats, picked: Places, L: Floats, left: Floats) -> int:
    """How many rows of A are independent; `picked` begins with them, the largest pivot first.

    L is scratch, and `left` the diagonal of A.
    """
    n, k = len(A), 0
    while k < n:
        p, most = -1, 0.0
        for j in range(n):
            if left[j] > most and left[j] > _DEPENDENT * A[j, j]:
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
            backward(self.R, k, z)
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
    A = G + MarginSystem.shift(G)
    n = _pivots(A, picked, np.empty_like(A), A.diagonal().copy())
    return np.sort(picked[:n])
