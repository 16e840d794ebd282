"""Elementary functions that give the same bits on every machine.

libm, SVML and the vector loops of NumPy differ in the last place. These use only
additions, multiplications, divisions, square roots and rounding, each of which IEEE 754
defines to the last bit, one element at a time and in a fixed order. Angles are counted
in turns (1 = 2π), so that reducing them to one period is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceless.arithmetic.integers import Floats

# sin(2πu) = u · p(u²) on |u| ≤ 1/4, minimax, absolute error 1.4e-11
SINE = (
    6.283185306487503,
    -41.34170192977076,
    81.60520943085447,
    -76.7036678177511,
    41.99998964416068,
    -14.337023492177538,
)
LN2_HIGH = 6.93147180369123816490e-01  # 33 bits: its product with an exponent is exact
LN2_LOW = 1.90821492927058770002e-10
LOG2_E = 1.4426950408889634
# 1/k! for exp on |r| ≤ ln(2)/2: relative error below 1e-15
EXP = tuple(1.0 / f for f in (1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800, 39916800))


def _horner(coefficients: Sequence[Floats | float], x: Floats) -> Floats:
    out = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        out *= x
        out += c
    return out


def cosine(turns: Floats, scale: Floats | float = 1.0) -> Floats:
    """``scale · cos(2π turns)``, absolute error below 2e-11 · scale; one scale, or one a column."""
    u = np.rint(turns)
    np.subtract(turns, u, out=u)
    np.abs(u, out=u)
    np.subtract(0.25, u, out=u)
    out = _horner([scale * c for c in SINE], u * u)
    out *= u
    return out


def exponential(x: Floats) -> Floats:
    """``e^x``, relative error below 1e-14 (0 below -700, exact limits kept at 700)."""
    x = np.clip(x, -700.0, 700.0)
    k = np.rint(x * LOG2_E)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    return np.where(x <= -700.0, 0.0, np.ldexp(_horner(EXP, r), k.astype(np.int64)))


def logarithm(x: Floats) -> Floats:
    """``ln x`` for positive x, relative error below 1e-14 away from 1."""
    mantissa, exponent = np.frexp(x)
    small = mantissa < 0.7071067811865476
    mantissa = np.where(small, 2.0 * mantissa, mantissa)
    exponent = exponent - small
    s = (mantissa - 1.0) / (mantissa + 1.0)
    series = _horner([2.0 / (2 * k + 1) for k in range(11)], s * s) * s
    return exponent * LN2_LOW + series + exponent * LN2_HIGH


def uniform(seed: int, stream: str, size: int) -> Floats:
    """Numbers strictly between 0 and 1, multiples of 2^-53 off by a half step.

    PCG64 and SeedSequence keep their raw streams across NumPy versions; the
    distributions of `numpy.random.Generator` do not.
    """
    entropy = [seed, *stream.encode()]
    raw = np.random.PCG64(np.random.SeedSequence(entropy)).random_raw(size)
    return ((raw >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def normal(seed: int, stream: str, size: int) -> Floats:
    """Standard normal numbers, by Box and Muller."""
    radius = np.sqrt(-2.0 * logarithm(uniform(seed, stream + " radius", size)))
    return radius * cosine(uniform(seed, stream + " angle", size))
