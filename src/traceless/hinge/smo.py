"""Sequential minimal optimisation (Platt 1998): the last resort where paths end too far off.

With c = yα and e = level - Kc, a solution has a b with

    max {e_i : c_i may grow}  ≤  b  ≤  min {e_j : c_j may shrink},       Σc = total

The pair i, j that is furthest from it moves by t = (e_i - e_j) / (k_ii + k_jj - 2 k_ij), or as
far as its bounds allow; j is chosen for what that gains (Fan, Chen & Lin 2005). This takes
hundreds of steps where a path takes a few, and far more where bounds are huge; but it solves no
system. Points so near to each other that no factor of their kernel matrix is sound do it no
harm: a pair that meets no curvature ends at a bound.
"""

from __future__ import annotations

import math

import numpy as np

from traceless.arithmetic.integers import Floats
from traceless.hinge.active_set import ActiveSet, middle
from traceless.hinge.follow import INSIDE, MARGIN, OUTSIDE
from traceless.hinge.kernel_cache import KernelCache, Slots

_MOST = 20_000  # pairs
_LOOK = 500  # pairs after which e is computed from scratch
_EPS = float(np.finfo(np.float64).eps)
_FLAT, _TINY = 1e-16, 1e-300  # a curvature below this part of its terms is rounding


def descend(active: ActiveSet, gap: float) -> None:
    """Move pairs until no two e are further apart than this.

    α, b, g and the sides are set; the margin set is left without a factor.
    """
    points, cache = active.present(), active.cache
    y, bound, d = active.y[points], active.bound[points], active.diagonal[points]
    low, high = np.minimum(y * bound, 0.0), np.maximum(y * bound, 0.0)
    c = _balanced(y * active.alpha[points], low, high, float(active.now["total"]))
    for step in range(_MOST):
        if step % _LOOK == 0:
            e = _errors(active, points, c)
        i = int(np.argmax(np.where(c < high, e, -np.inf)))
        apart = np.where(c > low, np.maximum(e[i] - e, 0.0), 0.0)
        if apart.max() <= gap:
            break
        row = _line(cache, points, i)
        curve = np.maximum(d[i] + d - 2.0 * row, _FLAT * (abs(d[i]) + np.abs(d)) + _TINY)
        j = int(np.argmax(apart**2 / curve))
        t = min(apart[j] / curve[j], high[i] - c[i], c[j] - low[j])
        before = c[i], c[j]
        c[i] = high[i] if t == high[i] - c[i] else c[i] + t
        c[j] = low[j] if t == c[j] - low[j] else c[j] - t
        e -= (c[i] - before[0]) * row + (c[j] - before[1]) * _line(cache, points, j)
    e = _errors(active, points, c)
    b = middle(e[c < high], e[c > low])
    active.alpha[points], active.now["intercept"], active.g[points] = np.abs(c), b, y * (b - e)
    active.side[points] = np.where(np.abs(c) < bound, MARGIN, OUTSIDE)
    active.side[points[c == 0.0]] = INSIDE
    active.now["k"] = 0
    active.refresh()


def _errors(active: ActiveSet, points: Slots, c: Floats) -> Floats:
    """The e of all points, from scratch."""
    support = np.flatnonzero(c)
    return np.asarray(
        active.level[points] - active.cache.times(points, points[support], c[support])
    )


def _line(cache: KernelCache, points: Slots, i: int) -> Floats:
    """Kernel values of one of the points with all of them."""
    slot = int(points[i])
    cache.need(slot, points[:0])
    return np.asarray(cache.gram[cache.line[slot], points])


def _balanced(c: Floats, low: Floats, high: Floats, total: float) -> Floats:
    """Clip c to its bounds and restore Σc = total, to rounding, where there is most room."""
    c = np.clip(c, low, high)
    for _ in range(len(c)):
        too_much = math.fsum([*c, -total])
        if abs(too_much) <= _EPS * np.abs(c).sum():
            break
        room = c - low if too_much > 0.0 else high - c
        i = int(np.argmax(room))
        c[i] -= math.copysign(min(abs(too_much), room[i]), too_much)
    return c
