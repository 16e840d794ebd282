"""Probabilities of a classifier: Platt's sigmoid of decision values of rows that were left out.

    p = P(y = 1 | f) = 1 / (1 + exp(a f + b)),    a ≤ 0

a and b minimise -Σ ω (t log p + (1 - t) log(1 - p)) over the rows of a binary problem, where f is
the decision value of a row by the solution of all others, and t = (N₊ + 1) / (N₊ + 2) for y = 1,
1 / (N₋ + 2) for y = -1 (Platt 1999; Newton's method as in Lin, Lin & Weng 2007). Where held-out
values contradict the labels, a would be positive: it is 0 then, and b is that of the counts.

Held-out values are canonical, sums are correctly rounded (`math.fsum`) and functions are those of
`traceless.arithmetic.elementary`. So a and b depend on the rows, not on their order or history.

Pairs of classes are coupled as in LIBSVM (Wu, Lin & Weng 2004, their second method): with r_ij the
probability of class i in the pair of i and j, p minimises Σ_{i<j} (r_ji p_i - r_ij p_j)², Σp = 1:

    (Q + 11ᵀ) p ∝ 1,    Q_ii = Σ_{j≠i} r_ji²,    Q_ij = -r_ji r_ij

Q + 11ᵀ is well-conditioned, since r_ij + r_ji = 1: where two elements of v have opposite signs,
(r_ji v_i - r_ij v_j)² is at least the smaller of their squares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceless.arithmetic.elementary import exponential, logarithm
from traceless.arithmetic.integers import Floats
from traceless.progress import progress

if TYPE_CHECKING:
    from traceless.hinge.machines import Pair
    from traceless.hinge.model import HingeModel

LEAST = 1e-7  # probability in a pair, as in LIBSVM
_MOST_STEPS, _SHORTEST = 100, 1e-10  # Newton's, and its smallest part of a step


class Sigmoid(NamedTuple):
    """The two numbers of a sigmoid."""

    a: float
    b: float

    def __call__(self, f: Floats) -> tuple[Floats, Floats]:
        """The probabilities of the negative and of the positive class."""
        z = self.a * f + self.b
        return 1.0 / (1.0 + exponential(-z)), 1.0 / (1.0 + exponential(z))


def sigmoids(model: HingeModel) -> tuple[Sigmoid, ...]:
    """The sigmoid of each problem of a model."""
    values, found = held_out(model), []
    for pair, problem in model.problems.items():
        weight = model.rows.weight[np.searchsorted(model.rows.ids, problem.ids)]
        found.append(sigmoid(values[pair], problem.y, weight))
    return tuple(found)


def held_out(model: HingeModel) -> dict[Pair, Floats]:
    """Decision values of the points of each problem, each by the solution of all other rows.

    A row whose class would vanish with it counts as one of the other class.
    """
    problems = model.problems
    values = {pair: p.canonical().decision_function(p.X) for pair, p in problems.items()}
    left_out = model.decisive_ids().tolist()  # without any other row the solution is the same
    for one in progress(left_out, "leaving one out", model.settings.verbose):
        others = model.without(np.array([one])).problems
        for pair, problem in problems.items():
            at = np.flatnonzero(problem.ids == one)
            if not at.size:
                continue
            values[pair][at] = -problem.y[at]
            if pair in others:
                values[pair][at] = others[pair].canonical().decision_function(problem.X[at])
    return values


def sigmoid(f: Floats, y: Floats, weight: Floats) -> Sigmoid:
    """The sigmoid that fits labels -1 and 1 best, given decision values."""
    few, many = (math.fsum(weight[y == sign]) for sign in (-1.0, 1.0))
    t = np.where(y > 0.0, (many + 1.0) / (many + 2.0), 1.0 / (few + 2.0))
    flat = Sigmoid(0.0, _log((few + 1.0) / (many + 1.0)))
    best, loss = flat, _loss(flat, f, t, weight)
    for _ in range(_MOST_STEPS):
        q, p = best(f)
        g, h = weight * (t - p), weight * p * q
        slopes = math.fsum(g * f), math.fsum(g)
        aa, ab, bb = math.fsum(h * f * f) + 1e-12, math.fsum(h * f), math.fsum(h) + 1e-12
        det = aa * bb - ab * ab
        da = -(bb * slopes[0] - ab * slopes[1]) / det
        db = -(aa * slopes[1] - ab * slopes[0]) / det
        fall, part = slopes[0] * da + slopes[1] * db, 1.0
        while part >= _SHORTEST:
            new = Sigmoid(best.a + part * da, best.b + part * db)
            now = _loss(new, f, t, weight)
            if now < loss + 1e-4 * part * fall:
                break
            part *= 0.5
        else:
            break  # as low as rounding lets it be
        best, loss = new, now
    if best.a <= 0.0:
        return best
    share = math.fsum(weight * t) / math.fsum(weight)
    return Sigmoid(0.0, _log((1.0 - share) / share))


def _loss(s: Sigmoid, f: Floats, t: Floats, weight: Floats) -> float:
    z = s.a * f + s.b
    each = np.where(z >= 0.0, t, t - 1.0) * z + logarithm(1.0 + exponential(-np.abs(z)))
    return math.fsum(weight * each)


def _log(x: float) -> float:
    return float(logarithm(np.array([x]))[0])


# --- many classes ----------------------------------------------------------------------------


def probabilities(
    values: Floats, fitted: Sequence[Sigmoid], n_classes: int, pairwise: bool
) -> Floats:
    """One column for each class, from decision values that are positive for the second of two.

    Parameters
    ----------
    values : ndarray of shape (n, n_problems)
    fitted : the sigmoid of each problem
    n_classes : int
    pairwise : bool
        Whether there is a problem for each pair of classes, or one for each class.
    """
    if not fitted:
        return np.ones((len(values), 1))
    both = [one(f) for one, f in zip(fitted, values.T, strict=True)]
    if n_classes == 2:
        return np.column_stack(both[0])
    return coupled(both, n_classes) if pairwise else normalised(np.array([p for _, p in both]))


def coupled(pairs: Sequence[tuple[Floats, Floats]], n_classes: int) -> Floats:
    """Probabilities of classes from those of their pairs, the first and the second of each."""
    n = len(pairs[0][0])
    A = np.ones((n_classes, n_classes + 1, n))
    for (i, j), both in zip(combinations(range(n_classes), 2), pairs, strict=True):
        first, second = (np.clip(r, LEAST, 1.0 - LEAST) for r in both)
        A[i, i] += second * second
        A[j, j] += first * first
        A[[i, j], [j, i]] -= first * second
    for c in range(n_classes):  # Gauss and Jordan, in an order that no library chooses
        row = A[c] / A[c, c]
        A -= A[:, c, None] * row
        A[c] = row
    return normalised(A[:, -1])


def normalised(p: Floats) -> Floats:
    """Numbers of each class (rows), none negative, that add up to 1: one column for each class."""
    p = np.maximum(p, np.finfo(np.float64).tiny)
    return np.ascontiguousarray((p / sum(p[1:], p[0])).T)  # in order, whatever the batch
