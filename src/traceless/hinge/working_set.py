"""Working sets: for some breakpoints only points that may reach the margin soon are looked at.

Time per breakpoint is reading the kernel values of the margin set with all points, most of which
are far from the margin. The points that could reach it soonest are packed into a small matrix;
later, g of the others catches up in one pass. A point that has crossed unseen gets a shift that
decays with 1 - θ, so that the path goes on from a valid point; at θ = 1 that is another path. For
the next working set the rates of g are the averages over this one, for the first the drift.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceless.hinge.active_set import ActiveSet
from traceless.hinge.follow import INSIDE, OUTSIDE
from traceless.hinge.margin import gather, sum_of_rows

_SHORT = 0.02  # part of what is left of the path: it takes a full step as long
_BOLD = 3.0  # how far beyond what is expected it is used: few points cross unseen
_MISSED = 1e-12  # g on the wrong side by more than rounding


def open_working_set(active: ActiveSet) -> None:
    """Choose the points that could reach the margin soonest, from g and its rates.

    None are chosen where more points than a working set has could reach it almost at once.
    """
    now, members = active.now, active.members
    n, k, few, theta = now["n"], now["k"], now["few"], now["theta"]
    g, dg, side = active.g[:n], active.dg[:n], active.side[:n]
    sense = np.where(side == INSIDE, 1.0, -1.0)
    typical = 0.5 * np.abs(dg).mean() + 1e-30
    time = sense * g / (np.maximum(-sense * dg, 0.0) + typical)
    time[(side != INSIDE) & (side != OUTSIDE)] = np.inf
    order = np.argpartition(time, few)
    watch, horizon = np.sort(order[:few]), float(time[order[few]])
    if not horizon > _SHORT * (1.0 - theta):
        return
    active.watch[:few], active.row[members] = watch, np.arange(k)
    gather(active.path.gram, active.line[members], watch, active.path.window.packed)
    active.course[:n], active.gone[:n], dg[:] = 0.0, 0.0, g
    now["climb"], now["opened"], now["mark"] = 0.0, theta, theta
    now["horizon"] = theta + _BOLD * horizon
    now["watched"], now["rows"], now["events"] = few, k, 0


def close_working_set(active: ActiveSet) -> NDArray[np.bool_]:
    """Let g of the other points catch up, and note the average rates of all.

    Returns which points are at the end of the path on the wrong side of the margin.
    """
    now, n, left = active.now, active.now["n"], 1.0 - active.now["theta"]
    g, dg, side = active.g[:n], active.dg[:n], active.side[:n]
    moved = np.flatnonzero(active.course[:n])
    c, climb = active.course[moved], np.full(n, now["climb"])
    change = sum_of_rows(active.path.gram, active.line[moved], c, climb)
    change *= active.y[:n]
    active.count_drift()
    change += active.gone[:n]
    change[active.watch[: now["watched"]]] = 0.0  # these are up to date
    change[active.members] = 0.0
    g += change
    if now["theta"] > now["opened"]:
        dg[:] = (g - dg) / (now["theta"] - now["opened"])
    now["watched"] = -1
    missed = np.where(side == INSIDE, g < -_MISSED, (side == OUTSIDE) & (g > _MISSED))
    if left > 0.0 and missed.any():
        active.shift[:n][missed] -= g[missed] / left
        active.drift[:n][missed] += g[missed] / left
        g[missed] = 0.0
        missed[:] = False
    return np.asarray(missed)
