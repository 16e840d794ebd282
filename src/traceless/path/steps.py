"""The steps of a path: a direction, the first event along it, and what the event does.

With the rate h of g and s of Σyα that moving bounds and decaying shifts cause,

    [K_MM 1; 1ᵀ 0] [dc; db] = [-y h; -s],      dg = y (K_·M dc + db) + h,     dα = y dc

keeps g = 0 on the margin M (Karasuyama & Takeuchi 2009, eq. 7 to 10). Rates below the
rounding noise of their own terms are zero: most ties of degenerate data are such noise.
"""

from __future__ import annotations

from typing import Any

from traceless.path.compiled import inner, inner_loosely
from traceless.path.road import (
    ALPHA,
    BOUND,
    CLIMB,
    COURSE,
    DC,
    DG,
    DRIFT,
    INSIDE,
    INTERCEPT,
    LINE,
    MARGIN,
    MEMBERS,
    MOVERS,
    MOVING,
    OUTSIDE,
    PACE,
    RATE,
    ROOT,
    ROW,
    ROWS,
    SHIFT,
    SIDE,
    SIZE,
    SPREAD,
    THETA,
    WATCH,
    WATCHED,
    G,
    K,
    N,
    Road,
    Y,
)

NOISE = 1e-14  # a rate below this part of its terms is rounding
TIE = 1e-15  # events closer than this happen at once


@inner_loosely
def rates(road: Road, db: float, run: float) -> None:
    """Fill DG for all points, or PACE for those that are watched.

    Σ_m dc_m k_m over the margin, four members at a time, and what does not come from it.
    """
    watched = road.count[WATCHED]
    values, where, out, n = road.gram, road.at[LINE], road.x[DG], road.count[N]
    if watched >= 0:
        values, where, out, n = road.packed, road.at[ROW], road.x[PACE], watched
    for j in range(n):
        out[j] = db
    k, i = road.count[K], 0
    members, dc = road.at[MEMBERS], road.room[DC]
    while i + 4 <= k:
        a, b, c, d = dc[i], dc[i + 1], dc[i + 2], dc[i + 3]
        p, q = values[where[members[i]]], values[where[members[i + 1]]]
        r, s = values[where[members[i + 2]]], values[where[members[i + 3]]]
        for j in range(n):
            out[j] += a * p[j] + b * q[j] + c * r[j] + d * s[j]
        i += 4
    while i < k:
        a, p = dc[i], values[where[members[i]]]
        for j in range(n):
            out[j] += a * p[j]
        i += 1
    for j in range(n):
        m = j if watched < 0 else road.at[WATCH, j]
        out[j] = road.x[Y, m] * out[j] + run * road.x[DRIFT, m]


@inner
def first_on_margin(road: Road, most: float) -> Any:
    """The first member to reach a bound: (step, its place or -1, to the upper bound?)."""
    best, fastest, place, upper = most, 0.0, -1, False
    for i in range(road.count[K]):
        m = road.at[MEMBERS, i]
        alpha, noise = road.x[ALPHA, m], NOISE * road.room[SIZE, i]
        down = -road.x[Y, m] * road.room[DC, i]
        up = -down - road.x[RATE, m]
        if down > noise:
            step = max(alpha, 0.0) / down
            if step < best - TIE or (step <= best + TIE and down > fastest):
                best, fastest, place, upper = step, down, i, False
        if up > noise:
            step = max(road.x[BOUND, m] - alpha, 0.0) / up
            if step < best - TIE or (step <= best + TIE and up > fastest):
                best, fastest, place, upper = step, up, i, True
    return best, place, upper


@inner
def first_elsewhere(road: Road, most: float, base: float, run: float) -> Any:
    """The first point, of all or of those watched, to reach the margin: (step, point or -1)."""
    best, fastest, who = most, 0.0, -1
    spread = run * road.value[SPREAD]
    for i in range(road.count[K]):
        spread += road.x[ROOT, road.at[MEMBERS, i]] * abs(road.room[DC, i])
    watched = road.count[WATCHED]
    n = road.count[N] if watched < 0 else watched
    pace = road.x[DG] if watched < 0 else road.x[PACE]
    g, sides, watch = road.x[G], road.at[SIDE], road.at[WATCH]
    for i in range(n):
        j = i if watched < 0 else watch[i]
        side, toward, gap = sides[j], pace[i], -g[j]
        if side == INSIDE:
            toward, gap = -toward, -gap
        elif side != OUTSIDE:
            continue
        if toward <= 0.0 or gap > (best + TIE) * toward:
            continue
        noise = NOISE * (road.x[ROOT, j] * spread + base + run * abs(road.x[SHIFT, j]))
        if toward <= noise:
            continue
        step = max(gap, 0.0) / toward
        if step < best - TIE or (step <= best + TIE and toward > fastest):
            best, fastest, who = step, toward, j
    return best, who


@inner
def advance(road: Road, step: float, db: float, run: float) -> None:
    """Go `step` along the direction; θ stands still where only b moves (run = 0)."""
    n, watched = road.count[N], road.count[WATCHED]
    for i in range(road.count[K]):
        m = road.at[MEMBERS, i]
        top = road.x[BOUND, m] + step * road.x[RATE, m]
        alpha = road.x[ALPHA, m] + step * road.x[Y, m] * road.room[DC, i]
        road.x[ALPHA, m] = min(max(alpha, 0.0), top)
        road.x[COURSE, m] += step * road.room[DC, i]
    g = road.x[G]
    if watched < 0:
        dg = road.x[DG]
        for j in range(n):
            g[j] += step * dg[j]
    else:
        pace, watch = road.x[PACE], road.at[WATCH]
        for i in range(watched):
            g[watch[i]] += step * pace[i]
        road.value[CLIMB] += step * db
    for i in range(road.count[K]):
        g[road.at[MEMBERS, i]] = 0.0
    road.value[INTERCEPT] += step * db
    if run > 0.0:
        road.value[THETA] += step
        for i in range(road.count[MOVERS]):
            j = road.at[MOVING, i]
            road.x[BOUND, j] += step * road.x[RATE, j]
            if road.x[RATE, j] != 0.0 and road.at[SIDE, j] >= OUTSIDE:
                road.x[ALPHA, j] = road.x[BOUND, j]


@inner
def joined(road: Road, c: int) -> None:
    """Point c, with g = 0 and a bound that stands, has joined the margin as its last member."""
    k, row = road.count[K], road.gram[road.at[LINE, c]]
    road.at[MEMBERS, k], road.at[SIDE, c], road.x[G, c] = c, MARGIN, 0.0
    road.count[K] = k + 1
    if road.count[WATCHED] >= 0:
        at = road.count[ROWS]
        road.count[ROWS], road.at[ROW, c] = at + 1, at
        for i in range(road.count[WATCHED]):
            road.packed[at, i] = row[road.at[WATCH, i]]


@inner
def left(road: Road, place: int, upper: bool) -> None:
    """The member at this place of the factor has gone to a bound that stands."""
    k, m = road.count[K], road.at[MEMBERS, place]
    for i in range(place, k - 1):
        road.at[MEMBERS, i] = road.at[MEMBERS, i + 1]
    road.count[K] = k - 1
    road.x[G, m] = 0.0
    road.at[SIDE, m] = OUTSIDE if upper else INSIDE
    road.x[ALPHA, m] = road.x[BOUND, m] if upper else 0.0
    w = road.count[WATCHED]
    for i in range(w):
        if road.at[WATCH, i] == m:
            return
    if w >= 0:  # it is near the margin
        road.count[WATCHED], road.at[WATCH, w] = w + 1, m
        for i in range(k - 1):
            j = road.at[MEMBERS, i]
            road.packed[road.at[ROW, j], w] = road.gram[road.at[LINE, j], m]
