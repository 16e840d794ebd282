"""Windows: for some breakpoints only points that may reach the margin soon are looked at.

Time per breakpoint is reading the kernel values of the margin with all points, most of which
are far from it. When a window opens, those that could reach it soonest are packed into a
small matrix; when it closes, g of the others catches up in one pass. One that has crossed
unseen gets a shift that decays with 1 - θ, so that the path goes on from a valid point. For the
next window the rates of g are what they were on average in this one. The last step of a path
always looks at all points.
"""

from __future__ import annotations

import numpy as np

from traceless.path.events import count_drift
from traceless.path.road import (
    CLIMB,
    COURSE,
    DG,
    EVENTS,
    FEW,
    GONE,
    HORIZON,
    INSIDE,
    MARK,
    OPENED,
    OUTSIDE,
    ROW,
    ROWS,
    THETA,
    WATCH,
    WATCHED,
    K,
    N,
    Road,
)
from traceless.path.store import gather, sum_of_rows

_MISSED = 1e-12  # g on the wrong side by more than rounding


def open_window(road: Road) -> None:
    """Watch the points that could reach the margin soonest, from g and its rates.

    None is opened where more points than can be watched are at the margin already.
    """
    n, k, few = road.count[N], road.count[K], road.count[FEW]
    dg, side = road.x[DG, :n], road.side[:n]
    sense = np.where(side == INSIDE, 1.0, -1.0)
    typical = 0.5 * np.abs(dg).mean() + 1e-30
    time = sense * road.g[:n] / (np.maximum(-sense * dg, 0.0) + typical)
    time[(side != INSIDE) & (side != OUTSIDE)] = np.inf
    order = np.argpartition(time, few)
    watch, horizon = np.sort(order[:few]), float(time[order[few]])
    if not horizon > 0.0:
        return
    members = road.members
    road.at[WATCH, :few], road.at[ROW, members] = watch, np.arange(k)
    gather(road.gram, road.line[members], watch, road.packed)
    road.x[COURSE : GONE + 1, :n] = 0.0
    road.x[DG, :n], road.value[OPENED] = road.g[:n], road.value[THETA]
    road.value[CLIMB], road.value[MARK] = 0.0, road.value[THETA]
    road.value[HORIZON] = road.value[THETA] + 0.5 * horizon
    road.count[WATCHED], road.count[ROWS], road.count[EVENTS] = few, k, 0


def close_window(road: Road) -> None:
    """Let g of the points that were not watched catch up, and note the average rates of all."""
    n, left = road.count[N], 1.0 - road.value[THETA]
    moved = np.flatnonzero(road.x[COURSE, :n])
    c = road.x[COURSE, moved]
    change = sum_of_rows(road.gram, road.line[moved], c, np.full(n, road.value[CLIMB]))
    change *= road.y[:n]
    count_drift(road)
    change += road.x[GONE, :n]
    change[road.at[WATCH, : road.count[WATCHED]]] = 0.0  # these are up to date
    change[road.members] = 0.0
    g, side = road.g[:n], road.side[:n]
    g += change
    if road.value[THETA] > road.value[OPENED]:
        road.x[DG, :n] = (g - road.x[DG, :n]) / (road.value[THETA] - road.value[OPENED])
    road.count[WATCHED] = -1
    missed = np.where(side == INSIDE, g < -_MISSED, (side == OUTSIDE) & (g > _MISSED))
    if left > 0.0 and missed.any():
        road.shift[:n][missed] -= g[missed] / left
        road.drift[:n][missed] += g[missed] / left
        g[missed] = 0.0
