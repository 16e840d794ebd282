"""The Cholesky factor of the margin set, kept while points enter and leave.

    RᵀR = A = K_MM + ρ 11ᵀ,     R upper triangular, its rows contiguous in memory

The bordered system of the margin set (Karasuyama & Takeuchi 2009, eq. 7)

    [K_MM 1; 1ᵀ 0] [x; t] = [p; q]      is      A x + (t - ρq) 1 = p,   1ᵀx = q

so two solves with A answer it. Adding ρ11ᵀ changes nothing on the constraint and makes a
positive definite matrix of K_MM where that is singular along 1 only, as with linear kernels.
"""

from __future__ import annotations

import numpy as np

from traceless.exact import Floats
from traceless.path.compiled import compiled, compiled_loosely

SOUND = 1e-14  # a pivot below this part of its diagonal belongs to a dependent point


@compiled
def forward(R: Floats, k: int, z: Floats) -> None:
    """Z ← R⁻ᵀ z, in place."""
    for j in range(k):
        t = z[j] / R[j, j]
        z[j] = t
        for i in range(j + 1, k):
            z[i] -= t * R[j, i]


@compiled_loosely
def backward(R: Floats, k: int, z: Floats) -> None:
    """Z ← R⁻¹ z, in place."""
    for j in range(k - 1, -1, -1):
        t = 0.0
        for i in range(j + 1, k):
            t += R[j, i] * z[i]
        z[j] = (z[j] - t) / R[j, j]


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
def delete(R: Floats, k: int, p: int) -> None:
    """Take out column p of k by Givens rotations."""
    for i in range(p):
        for j in range(p + 1, k):
            R[i, j - 1] = R[i, j]
    for i in range(p, k - 1):
        a, b = R[i, i + 1], R[i + 1, i + 1]
        r = np.hypot(a, b)
        c, s = a / r, b / r
        for j in range(i + 1, k):
            t, v = R[i, j], R[i + 1, j]
            R[i, j - 1] = c * t + s * v
            R[i + 1, j] = c * v - s * t


@compiled_loosely
def bordered(R: Floats, k: int, rho: float, q: float, room: Floats) -> float:
    """Solve the bordered system: room[0] comes as p and leaves as x; returns t.

    room[1] is scratch, room[2] becomes the size of each entry of x before cancellation. The
    two solves run side by side, so that R is read once.
    """
    for j in range(k):
        room[1, j] = 1.0
    for j in range(k):
        s, t = room[0, j] / R[j, j], room[1, j] / R[j, j]
        room[0, j], room[1, j] = s, t
        for i in range(j + 1, k):
            room[0, i] -= s * R[j, i]
            room[1, i] -= t * R[j, i]
    a, b = 0.0, 0.0
    for j in range(k):
        a += room[1, j] * room[0, j]
        b += room[1, j] * room[1, j]
    beta = (a - q) / b
    for j in range(k - 1, -1, -1):
        s, t = 0.0, 0.0
        for i in range(j + 1, k):
            s += R[j, i] * room[0, i]
            t += R[j, i] * room[1, i]
        room[0, j] = (room[0, j] - s) / R[j, j]
        room[1, j] = (room[1, j] - t) / R[j, j]
    for j in range(k):
        room[2, j] = abs(room[0, j]) + abs(beta * room[1, j])
        room[0, j] -= beta * room[1, j]
    return float(beta + rho * q)
