"""The Cholesky factor of the margin set, kept while points enter and leave.

    RᵀR = A = K_MM + ρ 11ᵀ,     R upper triangular, its rows contiguous in memory

The bordered system of the margin set (Karasuyama & Takeuchi 2009, eq. 7)

    [K_MM 1; 1ᵀ 0] [x; t] = [p; q]      is      A x + (t - ρq) 1 = p,   1ᵀx = q

so two solves with A answer it. Adding ρ11ᵀ changes nothing on the constraint and makes a
positive definite matrix of K_MM where that is singular along 1 only, as with linear kernels.
"""

from __future__ import annotations

import numpy as np

from traceless.arithmetic.integers import Floats
from traceless.path.compiled import compiled, compiled_loosely

SOUND = 1e-14  # a pivot below this part of its diagonal belongs to a dependent point


# Places are counted in unsigned integers: numba lets others count from the end, and checks for it
# at every access, which costs loops that do not start at 0 two thirds of their speed
ONE = np.uint64(1)


@compiled
def forward(R: Floats, k: int, z: Floats) -> None:
    """Z ← R⁻ᵀ z, in place."""
    n = np.uint64(k)
    for j in range(n):
        row = R[j]
        t = z[j] / row[j]
        z[j] = t
        for i in range(j + ONE, n):
            z[i] -= t * row[i]


@compiled_loosely
def backward(R: Floats, k: int, z: Floats) -> None:
    """Z ← R⁻¹ z, in place."""
    n = np.uint64(k)
    for below in range(n):
        at, t = n - ONE - below, 0.0
        row = R[at]
        for i in range(at + ONE, n):
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
        for j in range(first + ONE, n):
            row[j - ONE] = row[j]
    for j in range(first, n):
        lower[j] = R[first, j]
    for i in range(first, n - ONE):
        out, other = R[i], R[i + ONE]
        a, b = lower[i + ONE], other[i + ONE]
        r = np.hypot(a, b)
        c, s = a / r, b / r
        for j in range(i + ONE, n):
            t, v = lower[j], other[j]
            out[j - ONE] = c * t + s * v
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
        for i in range(j + ONE, n):
            x[i] -= s * row[i]
            z[i] -= t * row[i]
    a, b = 0.0, 0.0
    for j in range(n):
        a += z[j] * x[j]
        b += z[j] * z[j]
    beta = (a - q) / b
    for below in range(n):
        at, s, t = n - ONE - below, 0.0, 0.0
        row = R[at]
        for i in range(at + ONE, n):
            s += row[i] * x[i]
            t += row[i] * z[i]
        x[at] = (x[at] - s) / row[at]
        z[at] = (z[at] - t) / row[at]
    for j in range(n):
        size[j] = abs(x[j]) + abs(beta * z[j])
        x[j] -= beta * z[j]
    return float(beta + rho * q)
