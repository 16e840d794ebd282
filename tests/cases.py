"""What several test files share: one instance of every feature map, and exact oracles."""

import os
from fractions import Fraction

import numpy as np
from hypothesis import settings

from traceless.features import (
    FeatureMap,
    Landmarks,
    Linear,
    Polynomial,
    RandomFourier,
    RandomLayer,
)


class Cubes(FeatureMap):
    """A user's own map."""

    def __init__(self, bias=True, resolution=2**-10):
        self.bias = bias
        self.resolution = resolution

    def values(self, X):
        return X * X * X


MAPS = [
    Linear(),
    Linear(bias=False, resolution=2**-8),
    Polynomial(degree=2),
    RandomFourier(50, gamma=0.1, random_state=3),
    RandomLayer(40, random_state=1),
    RandomLayer(40, activation="tanh", bias=False),
    RandomLayer(40, activation="relu"),
    RandomLayer(40, activation="sine", scale=0.5),
    Landmarks(40, gamma=0.1, random_state=2),
    Cubes(),
]


def examples(n):
    """How many cases a property is tried on; `make soak` tries many times as many."""
    return settings(max_examples=n * int(os.environ.get("TRACELESS_SOAK", "1")))


def name(feature_map):
    """A readable test id."""
    return repr(feature_map).replace(" ", "").replace("\n", "")


def whole(a):
    """An array of integers as Python integers."""
    return np.array([int(v) for v in np.ravel(a)], dtype=object).reshape(np.shape(a))


def exact_gram(codes, weights=None):
    """Σ ω c cᵀ in Python integers."""
    C = whole(codes)
    return C.T @ C if weights is None else (C.T * whole(weights)) @ C


def nearest_float(fraction):
    """The float64 nearest to a Fraction: division of Python integers rounds correctly."""
    return fraction.numerator / fraction.denominator


def rational_solve(S, ridge, Q):
    """The exact solution of (S + diag(ridge)) Z = Q, rounded once, by Gauss-Jordan."""
    n = len(S)
    rows = [
        [Fraction(int(S[i, j])) + (Fraction(ridge[i]) if i == j else 0) for j in range(n)]
        + [Fraction(int(v)) for v in Q[i]]
        for i in range(n)
    ]
    for i in range(n):
        pivot = rows[i][i]
        rows[i] = [v / pivot for v in rows[i]]
        for k in range(n):
            if k != i and rows[k][i]:
                factor = rows[k][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    return np.array([[nearest_float(v) for v in row[n:]] for row in rows])
