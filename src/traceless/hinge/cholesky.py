"""The Cholesky factor of the margin set, which points enter and leave.

    RᵀR = A = K_MM + ρ 11ᵀ,     R upper triangular, its rows contiguous in memory

The bordered system of the margin set (Karasuyama & Takeuchi 2009, eq. 7)

    [K_MM 1; 1ᵀ 0] [x; t] = [p; q]      is      A x + (t - ρq) 1 = p,   1ᵀx = q

so two solves with A answer it. Adding ρ11ᵀ changes nothing on the constraint and makes a
positive definite matrix of K_MM where that is singular along 1 only, as with linear kernels.

Points enter and leave it by `grow` and `delete`, with sums in any order.
"""

from __future__ import annotations

import numpy as np

from traceless.arithmetic.integers import Floats
from traceless.hinge.compiled import compiled, compiled_loosely
from traceless.hinge.margin import SOUND

# Places are counted in unsigned integers: numba lets others count from the end, and checks for it
# at every access, which costs loops that do not start at 0 two thirds of their speed
_ONE = np.uint64(1)


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
