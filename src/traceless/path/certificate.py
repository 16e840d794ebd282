"""How far a solution is from satisfying the KKT conditions, with g computed from scratch.

    α_i = 0: g_i ≥ 0,    0 < α_i < u_i: g_i = 0,    α_i = u_i: g_i ≤ 0,    Σ y_i α_i = 0

A path carries g along, and that may go wrong unnoticed: so a sample of it is computed anew
after every update, and all of it from time to time, or where the sample is off.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.path.compiled import compiled
from traceless.path.factor import bordered
from traceless.path.road import (
    ABSENT,
    ALPHA,
    BOUND,
    DC,
    DIAGONAL,
    INSIDE,
    INTERCEPT,
    MARGIN,
    PINNED,
    RHO,
    SIDE,
    STEPS,
    G,
    K,
    N,
    Numbers,
    Road,
    Y,
)
from traceless.path.store import Store

TOLERANCE = 1e-9
_EPS = float(np.finfo(np.float64).eps)
_SAMPLE = 16  # points of each kind that are looked at
_TRUSTED = 1e-2  # of the tolerance: how far g may have drifted

Points = NDArray[np.intp]


def present(road: Road) -> Points:
    """Points that are there, those on their way out included."""
    return np.flatnonzero(road.side[: road.count[N]] != ABSENT)


def slopes(store: Store, road: Road, points: Points) -> Floats:
    """The g of some points without shifts, from scratch."""
    support = np.flatnonzero(road.alpha[: road.count[N]] > 0.0)
    f = store.times(points, support, road.y[support] * road.alpha[support])
    return np.asarray(road.y[points] * (f + road.value[INTERCEPT]) - 1.0)


@compiled
def _measured(x: Floats, at: Numbers, n: int) -> tuple[float, float, float, float]:
    """Over the points present: the worst of g, Σyα, Σα and the largest k(x, x)."""
    worst, balance, weight, size = 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        if at[SIDE, i] == ABSENT:
            continue
        alpha, wrong = x[ALPHA, i], x[G, i]
        balance += x[Y, i] * alpha
        weight += alpha
        size = max(size, x[DIAGONAL, i])
        if alpha <= 0.0:
            wrong = -wrong
        elif alpha < x[BOUND, i]:
            wrong = abs(wrong)
        if wrong > worst or wrong != wrong:  # not a number stays
            worst = wrong
    return worst, balance, weight, size


def imbalance(road: Road) -> float:
    """Σyα."""
    return float(_measured(road.x, road.at, road.count[N])[1])


def tolerance(road: Road) -> float:
    """What is promised or what rounding of g itself leaves possible, with some room to measure."""
    _, _, weight, size = _measured(road.x, road.at, road.count[N])
    return 0.8 * float(max(TOLERANCE, 10 * _EPS * weight * size))


def violation(road: Road) -> float:
    """The largest violation of a KKT condition, g as it stands."""
    worst, balance, weight, _ = _measured(road.x, road.at, road.count[N])
    return float(np.maximum(worst, abs(balance) / max(1.0, weight)))


def thorough(store: Store, road: Road) -> float:
    """Refine the margin once, compute all of g, and return the largest violation."""
    refine(store, road)
    points = present(road)
    road.g[points] = slopes(store, road, points)
    if road.count[K] == 0:
        _centre(road, points)
    return violation(road)


def sampled(store: Store, road: Road) -> float | None:
    """The largest violation, of g as it stands, if a sample is what it should be; else None."""
    if road.count[K] == 0:
        return None
    others = np.flatnonzero((road.side == INSIDE) | (road.side > MARGIN))
    sample = [_some(road, road.members), others]
    if len(others) > 2 * _SAMPLE:  # some, and the points nearest to the margin
        nearest = np.argpartition(np.abs(road.g[others]), _SAMPLE)[:_SAMPLE]
        sample[1:] = [others[nearest], _some(road, others)]
    looked_at = np.concatenate(sample)
    off = np.abs(slopes(store, road, looked_at) - road.g[looked_at]).max()
    found = violation(road)
    if not max(off, found) <= _TRUSTED * tolerance(road):
        return None
    return float(max(off, found))


def _some(road: Road, points: Points) -> Points:
    """A few of the points, far apart, and others after every path."""
    stride = max(1, len(points) // _SAMPLE)
    return np.asarray(points[(road.count[STEPS] + stride * np.arange(_SAMPLE)) % len(points)])


def drop_pinned(road: Road) -> None:
    """Points on their way out have arrived."""
    gone = np.flatnonzero(road.side == PINNED)
    road.side[gone] = ABSENT
    for a in (road.alpha, road.bound, road.final, road.g):
        a[gone] = 0.0


def refine(store: Store, road: Road) -> None:
    """One step of iterative refinement with the true g of the margin."""
    members, k, room = road.members, int(road.count[K]), road.room
    if not k:
        return
    room[DC, :k] = -road.y[members] * slopes(store, road, members)
    db = bordered(road.R, k, road.value[RHO], -imbalance(road), room)
    if np.isfinite(db):
        alpha = road.alpha[members] + road.y[members] * room[DC, :k]
        road.alpha[members] = np.clip(alpha, 0.0, road.bound[members])
        road.value[INTERCEPT] += db


def _centre(road: Road, points: Points) -> None:
    """An empty margin leaves b an interval: its middle, as in LIBSVM."""
    g, y = road.g[points], road.y[points]
    rises = (road.side[points] == INSIDE) == (y > 0)  # g of these bounds b from below
    t = -y * g
    low, high = t[rises].max(initial=-np.inf), t[~rises].min(initial=np.inf)
    if np.isfinite(low) and np.isfinite(high):
        road.value[INTERCEPT] += 0.5 * (low + high)
        road.g[points] += y * 0.5 * (low + high)
