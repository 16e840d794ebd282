"""What several test files share: one instance of every feature map, and exact oracles."""

import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import settings

from ours import feature_maps
from traceless.arithmetic.core import COMPILED
from traceless.features import FeatureMap


class Cubes(FeatureMap):
    """A user's own map."""

    def __init__(self, bias=True, resolution=2**-10):
        self.bias = bias
        self.resolution = resolution

    def values(self, X):
        return X * X * X


def any_width(feature_map):
    """Whether a map takes rows of any number of columns, and makes few features of them."""
    few = getattr(feature_map, "degree", 2) == 2
    return few and not np.ndim(feature_map.resolution) and feature_map.table is None


MAPS = [*filter(any_width, feature_maps()), Cubes()]


PAPER = {"free_intercept": False, "standardize": False}  # that of Lee et al. and of Zhu et al.
PENALTIES = [
    {"free_intercept": free, "standardize": scaled}
    for free in (True, False)
    for scaled in (True, False)
]


def penalty_name(penalty):
    """A readable test id of one of the PENALTIES."""
    free, scaled = penalty["free_intercept"], penalty["standardize"]
    return f"{'free' if free else 'penalised'}-{'standardised' if scaled else 'plain'}"


def examples(n):
    """How many cases a property is tried on; `make soak` tries more, the plain twin fewer."""
    n = n if COMPILED else max(n // 5, 5)
    return settings(max_examples=n * int(os.environ.get("TRACELESS_SOAK", "1")))


slow_plainly = pytest.mark.skipif(not COMPILED, reason="the plain twin takes too long")


def name(feature_map):
    """A readable test id."""
    return repr(feature_map).replace(" ", "").replace("\n", "")


def whole(a):
    """An array of integers as Python integers."""
    return np.array([int(v) for v in np.ravel(a)], dtype=object).reshape(np.shape(a))


def narrow(a):
    """Python integers as int64, if each and its negative fits."""
    return a.astype(np.int64) if abs(a).max(initial=0) < 2**63 else a


def exact_gram(codes, weights=None):
    """Σ ω c cᵀ in Python integers."""
    C = whole(codes)
    return C.T @ C if weights is None else (C.T * whole(weights)) @ C


def nearest_float(fraction):
    """The float64 nearest to a Fraction: division of Python integers rounds correctly."""
    return fraction.numerator / fraction.denominator


def rational_solve(S, ridge, Q):
    """The exact solution of (S + diag(ridge)) Z = Q, rounded once."""
    n = len(S)
    rows = [
        [Fraction(int(S[i, j])) + (Fraction(ridge[i]) if i == j else 0) for j in range(n)]
        + [Fraction(int(v)) for v in Q[i]]
        for i in range(n)
    ]
    return rounded_once(gauss_jordan(rows))


def gauss_jordan(rows):
    """Z of A Z = Q from the rows of [A Q], in fractions; A is positive definite."""
    n = len(rows)
    for i in range(n):
        pivot = rows[i][i]
        rows[i] = [v / pivot for v in rows[i]]
        for k in range(n):
            if k != i and rows[k][i]:
                factor = rows[k][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[n:] for row in rows]


def rounded_once(rows):
    """Fractions as the nearest floats."""
    return np.array([[nearest_float(v) for v in row] for row in rows])


def exact_model(F, Y, rho, penalty, steps, weights=None, class_weights=None):
    """Coefficients (J, K) and intercepts (K,) of features F, in fractions, rounded once.

    Rows are centred for a free intercept, and scales are those of the rows' own weights, so
    nothing is shared with the code that is tested. F and Y are whole, rho is in real units.
    """
    F = [[Fraction(int(v)) for v in row] for row in F]
    Y = [[Fraction(int(v)) for v in row] for row in Y]
    own = [Fraction(float(v)) for v in (np.ones(len(F)) if weights is None else weights)]
    extra = np.ones(len(F)) if class_weights is None else class_weights
    omega = [v * Fraction(float(c)) for v, c in zip(own, extra, strict=True)]
    J, K = len(F[0]), len(Y[0])
    if penalty["standardize"]:
        ridge = [Fraction(rho) * _variance([row[j] for row in F], own) for j in range(J)]
    else:
        ridge = [Fraction(rho) / Fraction(float(step)) ** 2 for step in steps]
    used = [j for j in range(J) if ridge[j]]
    if penalty["free_intercept"]:
        middle = [_mean([row[j] for row in F], omega) for j in range(J)]
        level = [_mean([row[k] for row in Y], omega) for k in range(K)]
        columns = [[row[j] - middle[j] for row in F] for j in used]
        ridge = [ridge[j] for j in used]
    else:
        columns = [[row[j] for row in F] for j in used] + [[Fraction(1)] * len(F)]
        ridge, level = [ridge[j] for j in used] + [Fraction(rho)], [Fraction(0)] * K
    targets = [[row[k] - level[k] for row in Y] for k in range(K)]
    right = columns + targets
    rows = [[_dot(a, b, omega) for b in right] for a in columns]
    for i, r in enumerate(ridge):
        rows[i][i] += r
    solved = gauss_jordan(rows)
    Z = [[Fraction(0)] * K for _ in range(J)]
    for j, row in zip(used, solved, strict=False):
        Z[j] = row
    if penalty["free_intercept"]:
        b = [level[k] - sum(middle[j] * Z[j][k] for j in range(J)) for k in range(K)]
    else:
        b = solved[-1]
    return rounded_once(Z), rounded_once([b])[0]


def _dot(a, b, weights):
    return sum((w * u * v for u, v, w in zip(a, b, weights, strict=True)), Fraction(0))


def _mean(values, weights):
    total = sum(weights)
    return _dot(values, [1] * len(values), weights) / total if total else Fraction(0)


def _variance(values, weights):
    return _mean([v * v for v in values], weights) - _mean(values, weights) ** 2
