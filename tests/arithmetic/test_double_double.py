import math
from fractions import Fraction

import numpy as np
import pytest

from traceless.arithmetic import double_double
from traceless.arithmetic.double_double import Factor, Twofold


def pair(rng):
    high = rng.normal(size=200) * 2.0 ** rng.integers(-20, 20, size=200)
    return Twofold(high, high * 2.0**-54 * rng.uniform(-1, 1, size=200))


def error(result, a, b, operation):
    exact = [
        operation(
            Fraction(a.high[i]) + Fraction(a.low[i]), Fraction(b.high[i]) + Fraction(b.low[i])
        )
        for i in range(200)
    ]
    got = [Fraction(result.high[i]) + Fraction(result.low[i]) for i in range(200)]
    return max(abs(float((g - e) / e)) for g, e in zip(got, exact, strict=True))


@pytest.mark.parametrize(
    ("ours", "operation"),
    [
        (double_double.add, lambda x, y: x + y),
        (double_double.subtract, lambda x, y: x - y),
        (double_double.multiply, lambda x, y: x * y),
        (double_double.divide, lambda x, y: x / y),
    ],
)
def test_operations_are_good_to_a_hundred_bits(rng, ours, operation):
    a, b = pair(rng), pair(rng)
    assert error(ours(a, b), a, b, operation) < 2.0**-98


def test_factor_solves_what_float64_cannot():
    n = 12
    H = np.array([[1.0 / (i + j + 1) for j in range(n)] for i in range(n)])  # Hilbert, cond 2e16
    low = np.array(
        [[float(Fraction(1, i + j + 1) - Fraction(H[i, j])) for j in range(n)] for i in range(n)]
    )
    b = np.ones((n, 1))
    x = Factor(Twofold(H, low)).solve(Twofold(b, np.zeros_like(b)))
    ratio = x[:, 0] / np.array([float(v) for v in _hilbert_times_ones(n)])
    assert np.abs(ratio - 1).max() < 1e-13


def _hilbert_times_ones(n):
    """Row sums of the inverse of the Hilbert matrix, exactly."""
    return [
        sum(
            (-1) ** (i + j)
            * (i + j - 1)
            * math.comb(n + i - 1, n - j)
            * math.comb(n + j - 1, n - i)
            * math.comb(i + j - 2, i - 1) ** 2
            for j in range(1, n + 1)
        )
        for i in range(1, n + 1)
    ]


def test_factor_refuses_what_is_not_positive_definite():
    A = np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(np.linalg.LinAlgError, match="not positive"):
        Factor(Twofold(A, np.zeros_like(A)))
