"""Windows: for some breakpoints only points that may reach the margin soon are looked at.

Time per breakpoint is reading the kernel values of the margin with all points. Most points
are far from it. When a window opens, those that could reach it soonest are packed into a
small matrix; when it closes, g of the others catches up in one pass. One that has crossed
unseen gets a shift that decays with 1 - θ, so that the path goes on from a valid point; the
last step of a path always looks at all.
"""

from __future__ import annotations

from traceless.path.compiled import inner
from traceless.path.road import (
    CHANGE,
    CLIMB,
    COURSE,
    DG,
    DRIFT,
    EVENTS,
    FEW,
    GONE,
    HORIZON,
    INSIDE,
    LINE,
    MEMBERS,
    OUTSIDE,
    REACH,
    ROW,
    ROWS,
    SHIFT,
    SIDE,
    SPARE,
    THETA,
    WATCH,
    WATCHED,
    G,
    K,
    N,
    Road,
    Y,
)

LONGEST = 32  # events in one window


@inner
def close_window(road: Road) -> None:
    """Let g of the points that were not watched catch up; look at all from here."""
    n, left = road.count[N], 1.0 - road.value[THETA]
    change = road.x[CHANGE]
    for j in range(n):
        change[j] = road.value[CLIMB]
    for i in range(n):
        c = road.x[COURSE, i]
        if c != 0.0:
            row = road.gram[road.at[LINE, i]]
            for j in range(n):
                change[j] += c * row[j]
    for i in range(road.count[WATCHED]):  # these are up to date
        j = road.at[WATCH, i]
        change[j] = 0.0
        road.x[GONE, j] = 0.0
    road.count[WATCHED] = -1
    for j in range(n):
        side = road.at[SIDE, j]
        if side != INSIDE and side != OUTSIDE:
            continue
        g = road.x[G, j] + road.x[Y, j] * change[j] + road.x[GONE, j]
        missed = g < -1e-12 if side == INSIDE else g > 1e-12
        if missed and left > 0.0:
            road.x[SHIFT, j] -= g / left
            road.x[DRIFT, j] += g / left
            g = 0.0
        road.x[G, j] = g


@inner
def watch_member(road: Road, c: int) -> None:
    """Pack the kernel values of a new member with the points watched."""
    if road.count[WATCHED] < 0:
        return
    at = road.count[ROWS]
    if at >= len(road.packed):
        close_window(road)
        return
    road.count[ROWS] = at + 1
    road.at[ROW, c] = at
    row, packed = road.gram[road.at[LINE, c]], road.packed[at]
    for i in range(road.count[WATCHED]):
        packed[i] = row[road.at[WATCH, i]]


@inner
def watch_point(road: Road, j: int) -> None:
    """Watch a point that has left the margin."""
    w = road.count[WATCHED]
    if w < 0:
        return
    for i in range(w):
        if road.at[WATCH, i] == j:
            return
    if w >= road.packed.shape[1]:
        close_window(road)
        return
    road.at[WATCH, w] = j
    for i in range(road.count[K]):
        m = road.at[MEMBERS, i]
        road.packed[road.at[ROW, m], w] = road.gram[road.at[LINE, m], j]
    road.count[WATCHED] = w + 1


@inner
def soonest(road: Road, reach: float, typical: float) -> int:
    """List the points that could reach the margin within `reach`, and count them."""
    w, most = 0, road.packed.shape[1] - SPARE
    for j in range(road.count[N]):
        side = road.at[SIDE, j]
        gap = road.x[G, j] if side == INSIDE else -road.x[G, j]
        toward = -road.x[DG, j] if side == INSIDE else road.x[DG, j]
        if side != INSIDE and side != OUTSIDE:
            continue
        if gap <= reach * (max(toward, 0.0) + typical):
            if w < most:
                road.at[WATCH, w] = j
            w += 1
    return w


@inner
def open_window(road: Road) -> None:
    """Choose points to watch, from g and its present rates, about FEW of them."""
    n, few = road.count[N], road.count[FEW]
    if few == 0 or road.count[K] + SPARE > len(road.packed):
        return
    typical = 0.0
    for j in range(n):
        typical += abs(road.x[DG, j])
    typical = 0.5 * typical / n
    reach, w = road.value[REACH], 0
    for _ in range(20):
        w = soonest(road, reach, typical)
        if w > few:
            reach *= 0.5
        elif w < few // 3:
            reach *= 1.7
        else:
            break
    road.value[REACH] = reach
    if w > few:
        return
    road.count[WATCHED], road.count[ROWS], road.count[EVENTS] = w, 0, 0
    road.value[HORIZON], road.value[CLIMB] = road.value[THETA] + 0.5 * reach, 0.0
    for j in range(n):
        road.x[COURSE, j] = 0.0
        road.x[GONE, j] = 0.0
    for i in range(road.count[K]):
        watch_member(road, road.at[MEMBERS, i])


@inner
def window_is_over(road: Road) -> bool:
    """Whether what was predicted when it opened no longer holds."""
    return road.count[EVENTS] >= LONGEST or road.value[THETA] >= road.value[HORIZON]
