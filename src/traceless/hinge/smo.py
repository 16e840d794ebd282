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

from traceless.arithmetic.integers import Floats
from traceless.hinge.active_set import ActiveSet, middle
from traceless.hinge.compiled import compiled
from traceless.hinge.follow import INSIDE, MARGIN, OUTSIDE
from traceless.hinge.kernel_cache import Slots

_EPS = float(np.finfo(np.float64).eps)
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
    for _ in range(2):  # e is carried along: once more with e from scratch
        e, left = _errors(active, c), np.array([most])
        while (wanted := _pairs(cache.gram, cache.line, cache.diagonal, ends, c, e, gap, left)) >= 0:
            cache.need(wanted, points[:0])
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
    line: Slots,
    diagonal: Floats,
    ends: Floats,
    c: Floats,
    e: Floats,
    gap: float,
    left: Slots,
) -> int:
    """Move at most `left` pairs; returns a slot whose line is needed, or -1."""
    n, low, high = len(c), ends[0], ends[1]
    while left[0] > 0:
        i, top = -1, -np.inf
        for t in range(n):
            if e[t] > top and c[t] < high[t]:
                i, top = t, e[t]
        if i < 0 or line[i] < 0:
            return i
        row, own, j, apart, best = gram[line[i]], diagonal[i], -1, 0.0, 0.0
        for t in range(n):
            if c[t] > low[t] and e[t] < top:
                d = top - e[t]
                apart = max(apart, d)
                curve = own + diagonal[t] - 2.0 * row[t]
                curve = max(curve, _FLAT * (abs(own) + abs(diagonal[t])) + _TINY)
                if d * d > best * curve:
                    j, best = t, d * d / curve
        if apart <= gap:
            return -1
        if line[j] < 0:
            return j
        other = gram[line[j]]
        curve = own + diagonal[j] - 2.0 * row[j]
        curve = max(curve, _FLAT * (abs(own) + abs(diagonal[j])) + _TINY)
        step = min((top - e[j]) / curve, high[i] - c[i], c[j] - low[j])
        a, b = c[i], c[j]
        c[i] = high[i] if step == high[i] - a else a + step
        c[j] = low[j] if step == b - low[j] else b - step
        a, b = c[i] - a, c[j] - b
        for t in range(n):
            e[t] -= a * row[t] + b * other[t]
        left[0] -= 1
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
