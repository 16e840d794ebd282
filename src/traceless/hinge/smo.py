"""Sequential minimal optimisation (Platt 1998): where paths start, and where they do not help.

With c = yα and e = level - Kc, a solution has a b with

    max {e_i : c_i may grow}  ≤  b  ≤  min {e_j : c_j may shrink},       Σc = total

The pair i, j that is furthest from it moves by t = (e_i - e_j) / (k_ii + k_jj - 2 k_ij), or as
far as its bounds allow; j is chosen for what that gains (Fan, Chen & Lin 2005). It gets near the
solution quickly, from anywhere, and solves no system: a path takes it from there to exactness
in a handful of breakpoints. To get all the way takes far more steps, but points so near to each
other that no factor of their kernel matrix is sound do it no harm: a pair that meets no curvature
ends at a bound.
"""

from __future__ import annotations

import math

import numpy as np

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge.active_set import ActiveSet, middle
from traceless.hinge.compiled import compiled
from traceless.hinge.follow import INSIDE, MARGIN, OUTSIDE

_EPS = float(np.finfo(np.float64).eps)
_LOOK = 500  # pairs after which points are dropped that will not move any more
_ROUNDS = 5  # after each, e is computed from scratch, of all points
_FLAT, _TINY = 1e-16, 1e-300  # a curvature below this part of its terms is rounding


def descend(active: ActiveSet, gap: float, most: int) -> None:
    """Move pairs until no two e are further apart than this, or so many have moved.

    α, b, g and the sides are set; the margin set is left without a factor.
    """
    points, cache, n = active.present(), active.cache, int(active.now["n"])
    y, bound = active.y[points], active.bound[points]
    ends = np.zeros((2, n))
    low, high = ends
    low[points], high[points] = np.minimum(y * bound, 0.0), np.maximum(y * bound, 0.0)
    c = _balanced(active.y[:n] * active.alpha[:n], low, high, float(active.now["total"]))
    for _ in range(_ROUNDS):
        e, some, counts = _errors(active, c), points.astype(np.int64), np.array([len(points), most])
        while True:
            values = cache.gram, cache.line, cache.diagonal
            wanted = _pairs(*values, ends, c, e, gap, some, counts)
            if wanted < 0:
                break
            cache.need(wanted, points[:0])
        if counts[1] in (0, most):  # none are left, or none were moved
            break
        most = int(counts[1])
    e = _errors(active, c)[points]
    c, low, high = c[points], low[points], high[points]
    b = middle(e[c < high], e[c > low])
    active.alpha[points], active.now["intercept"], active.g[points] = np.abs(c), b, y * (b - e)
    active.side[points] = np.where(np.abs(c) < bound, MARGIN, OUTSIDE)
    active.side[points[c == 0.0]] = INSIDE
    active.now["k"] = 0
    active.refresh()


@compiled
def _pairs(
    gram: Floats,
    line: Integers,
    diagonal: Floats,
    ends: Floats,
    c: Floats,
    e: Floats,
    gap: float,
    some: Integers,
    counts: Integers,
) -> int:
    """Move pairs of some points until their e are near; returns a slot whose line is needed, or -1.

    `counts` are the number of these points, and of the pairs that may be moved. Points at a bound
    that nobody would pair with are dropped on the way, and their e stays as it is.
    """
    low, high, top, i = ends[0], ends[1], -np.inf, -1
    for t in some[: counts[0]]:
        if e[t] > top and c[t] < high[t]:
            i, top = t, e[t]
    while counts[1] > 0 and i >= 0:
        if line[i] < 0:
            return i
        row, own, j, bottom, best = gram[line[i]], diagonal[i], -1, top, 0.0
        for t in some[: counts[0]]:
            if e[t] < top and c[t] > low[t]:
                d, bottom = top - e[t], min(bottom, e[t])
                curve = own + diagonal[t] - 2.0 * row[t]
                curve = max(curve, _FLAT * (abs(own) + abs(diagonal[t])) + _TINY)
                if d * d > best * curve:
                    j, best = t, d * d / curve
        if top - bottom <= gap:
            return -1
        if line[j] < 0:
            return j
        if counts[1] % _LOOK == 0:
            k = 0
            for t in some[: counts[0]]:
                if not ((e[t] < bottom and c[t] <= low[t]) or (e[t] > top and c[t] >= high[t])):
                    some[k] = t
                    k += 1
            counts[0] = k
        other, a, b = gram[line[j]], c[i], c[j]
        curve = own + diagonal[j] - 2.0 * row[j]
        curve = max(curve, _FLAT * (abs(own) + abs(diagonal[j])) + _TINY)
        step = min((top - e[j]) / curve, high[i] - a, b - low[j])
        c[i] = high[i] if step == high[i] - a else a + step
        c[j] = low[j] if step == b - low[j] else b - step
        a, b, top, i = c[i] - a, c[j] - b, -np.inf, -1
        for t in some[: counts[0]]:
            e[t] -= a * row[t] + b * other[t]
            if e[t] > top and c[t] < high[t]:
                i, top = t, e[t]
        counts[1] -= 1
    return -1


def _errors(active: ActiveSet, c: Floats) -> Floats:
    """The e of all points, from scratch."""
    support, every = np.flatnonzero(c), np.arange(len(c))
    return np.asarray(active.level[: len(c)] - active.cache.times(every, support, c[support]))


def _balanced(c: Floats, low: Floats, high: Floats, total: float) -> Floats:
    """Clip c to its bounds and restore Σc = total, to rounding."""
    c = np.clip(c, low, high)
    for _ in range(3):
        missing = total - math.fsum(c)
        if abs(missing) <= _EPS * np.abs(c).sum():
            break
        room = high - c if missing > 0.0 else c - low
        taken = np.clip(abs(missing) - (np.cumsum(room) - room), 0.0, room)
        c = np.clip(c + math.copysign(1.0, missing) * taken, low, high)
    return c
