"""The KKT residual: how far a solution is from the conditions, with g computed from scratch.

    α_i = 0: g_i ≥ 0,    0 < α_i < u_i: g_i = 0,    α_i = u_i: g_i ≤ 0,    Σ y_i α_i = total

A path carries g along, and that may go wrong unnoticed: so a sample of it is computed anew
after every update, and all of it from time to time, or where the sample is off.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceless.hinge.active_set import ActiveSet, middle
from traceless.hinge.cholesky import bordered, forward_both
from traceless.hinge.compiled import compiled
from traceless.hinge.follow import ABSENT, INSIDE, MARGIN
from traceless.hinge.kernel_cache import Slots

TOLERANCE = 1e-9
_EPS = float(np.finfo(np.float64).eps)
_SAMPLE = 16  # points of each kind that are looked at
_TRUSTED = 1e-2  # of the tolerance: how far g may have drifted


@compiled
def _measured(points: NDArray[Any], n: int, total: float) -> tuple[float, float, float, float]:
    """Over the points present: the worst of g, Σyα - total, Σα and the largest root of k(x, x)."""
    worst, balance, weight, size = 0.0, -total, 0.0, 0.0
    for i in range(n):
        if points[i].side == ABSENT:
            continue
        alpha, wrong = points[i].alpha, points[i].g
        balance += points[i].y * alpha
        weight += alpha
        size = max(size, points[i].root)
        if alpha <= 0.0:
            wrong = -wrong
        elif alpha < points[i].bound:
            wrong = abs(wrong)
        if wrong > worst or wrong != wrong:  # not a number stays
            worst = wrong
    return worst, balance, weight, size


class Violation(NamedTuple):
    """How far a solution is from the KKT conditions."""

    residual: float  # the largest violation of a condition
    imbalance: float  # Σyα - total
    tolerance: float  # the promise, or what rounding of g leaves possible, with room to measure


def measured(active: ActiveSet) -> Violation:
    """The violation of the KKT conditions, g as it stands."""
    now = active.now
    worst, balance, weight, size = _measured(active.points, now["n"], now["total"])
    residual = float(np.maximum(worst, abs(balance) / max(1.0, weight)))
    return Violation(residual, balance, 0.8 * float(max(TOLERANCE, 10 * _EPS * weight * size**2)))


def thorough(active: ActiveSet) -> Violation:
    """Refine the margin set once, compute all of g, and measure."""
    _refine(active)
    points = active.present()
    active.g[points] = active.slopes(points)
    if active.now["k"] == 0:
        _centre(active, points)
    return measured(active)


def sampled(active: ActiveSet) -> Violation | None:
    """The violation by g as it stands, if a sample of g is what it should be; else None."""
    k = active.now["k"]
    if k == 0:
        return None
    others = np.flatnonzero((active.side == INSIDE) | (active.side > MARGIN))
    sample = [_some(active, active.members), others]
    if len(others) > 2 * _SAMPLE:  # some, and the points nearest to the margin
        nearest = np.argpartition(np.abs(active.g[others]), _SAMPLE)[:_SAMPLE]
        sample[1:] = [others[nearest], _some(active, others)]
    looked_at = np.concatenate(sample)
    off = np.abs(active.slopes(looked_at) - active.g[looked_at]).max()
    found = measured(active)
    worst = max(off, found.residual)
    return found._replace(residual=float(worst)) if worst <= _TRUSTED * found.tolerance else None


def _some(active: ActiveSet, points: Slots) -> Slots:
    """A few of the points, spread evenly; others after every path."""
    stride = max(1, len(points) // _SAMPLE)
    return np.asarray(points[(active.now["steps"] + stride * np.arange(_SAMPLE)) % len(points)])


def _refine(active: ActiveSet) -> None:
    """One step of iterative refinement with the true g of the margin set."""
    members, k, (_, _, R, *columns) = active.members, int(active.now["k"]), active.path.margin
    if not k:
        return
    p, ones, dc, size, column = columns
    p[:k], ones[:k] = -active.y[members] * active.slopes(members), 1.0
    forward_both(R, k, p, ones)
    excess = -measured(active).imbalance
    db = bordered(R, k, active.now["rho"], excess, p, ones, dc, column, size)
    if np.isfinite(db):
        alpha = active.alpha[members] + active.y[members] * dc[:k]
        active.alpha[members] = np.clip(alpha, 0.0, active.bound[members])
        active.now["intercept"] += db


def _centre(active: ActiveSet, points: Slots) -> None:
    """Without a margin set b is an interval: take its `middle`."""
    g, y = active.g[points], active.y[points]
    rises = (active.side[points] == INSIDE) == (y > 0)  # g of these bounds b from below
    t = -y * g
    lift = middle(t[rises], t[~rises])
    active.now["intercept"] += lift
    active.g[points] += y * lift
