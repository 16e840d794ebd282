"""Follow the path of the hinge SVM from θ = 0 to θ = 1, breakpoint by breakpoint.

    g_i = y_i (f(x_i) - level_i) + shift_i (1 - θ),     f(x) = Σ_j y_j α_j k(x_j, x) + b
    Σ_j y_j α_j = total + imbalance · (1 - θ),          bound_i(θ) = bound_i(0) + θ rate_i

With the rate h of g and s of Σyα that moving bounds and decaying shifts cause,

    [K_MM 1; 1ᵀ 0] [dc; db] = [-y h; -s],      dg = y (K_·M dc + db) + h,     dα = y dc

keeps g = 0 on the margin set M (Karasuyama & Takeuchi 2009, eq. 7 to 10). Rates below the
rounding noise of their own terms are zero: most ties of degenerate data are such noise.

Fit, add, remove, other bounds and repair differ only in what moves (rates and shifts); the loop
does not know which it is. Frequent events are handled here, in compiled code; for a rare one
`follow` returns an `Event` to its caller (`traceless.hinge.solver`), and is then called again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge.cholesky import bordered, delete, extend, forward, forward_both, grow
from traceless.hinge.compiled import compiled, inner, inner_loosely
from traceless.hinge.kernel_cache import sum_of_rows_loosely

# Where a point is: INSIDE (α = 0, g ≥ 0), in the MARGIN set (g = 0) or OUTSIDE (α = bound, g ≤ 0).
# PINNED points are being removed: α = bound whatever g. ABSENT slots hold no point.
ABSENT, INSIDE, MARGIN, OUTSIDE, PINNED = -1, 0, 1, 2, 3

NOISE = 1e-14  # a rate below this part of its terms is rounding
TIE = 1e-15  # events closer than this happen at once
LONGEST = 100  # breakpoints with one working set: each may add a row and a column to `packed`


class Event(IntEnum):
    """Why `follow` returned."""

    DONE = 0  # the path is at its end
    FAILED = 1  # too many steps, too many of length zero in a row, or nowhere to go
    LINE = 2  # the kernel values of a point are not in the cache
    ROOM = 3  # the margin set has outgrown its arrays
    OPEN = 4  # a working set could be chosen
    CLOSE = 5  # a working set will do no longer
    RELEASE = 6  # a point whose bound moves has reached the margin
    ENTER = 7  # a point that depends on the margin set is to join it
    LEAVE = 8  # a member whose bound moves has reached it


# One record for each slot of the kernel cache. DRIFT is the rate of g that the margin set does not
# cause; ROOT is that of k(x, x); COURSE is what yα of a member has added up to since a working set
# was opened; LINE is the line of `gram` with the point's kernel values, -1: none
_POINT = "y root alpha bound rate g drift shift course"
POINT = np.dtype(
    [(name, np.float64) for name in _POINT.split()] + [("line", np.int64), ("side", np.int64)]
)


class Margin(NamedTuple):
    """The margin set: its members, the factor in their order, and columns of scratch."""

    members: Integers
    rows: Integers  # scratch
    R: Floats
    p: Floats  # R⁻ᵀ(-y h), kept while members come and go
    ones: Floats  # R⁻ᵀ1, likewise
    dc: Floats
    size: Floats  # of the terms of dc, before they cancel
    column: Floats


class Window(NamedTuple):
    """The working set: its points, their rates of g, and the members' kernel values with them."""

    points: Integers
    pace: Floats
    packed: Floats
    row: Integers  # of `packed`, for each slot that is a member


# Scalars. RHO is of the factor; TOTAL is what Σyα should be, PULL the rate of it that the margin
# set does not cause; SPREAD and HEAP bound the terms of drift and pull before they cancel. Of a
# working set: θ where it was chosen, θ up to which it will do, what b has added up to since, and θ
# up to which the drift of other points was counted
_FLOATS = "theta intercept rho total pull spread heap opened horizon climb mark"
# Members of the margin set, slots, breakpoints so far and the most of them, steps of length zero in
# a row, the point or place that the caller should look at, points whose bounds move. Of a working
# set: its size (-1: all points), the size that one should have (0: none is used), breakpoints
# since it was chosen, lines of `packed` in use. A point that is about to join the margin set (-1:
# none), and whether a working set can be chosen now
_INTEGERS = "k n steps limit stalls wanted movers watched few events rows next fresh"
NOW = np.dtype(
    [(name, np.float64) for name in _FLOATS.split()]
    + [(name, np.int64) for name in _INTEGERS.split()]
)


class Path(NamedTuple):
    """All that compiled code works on."""

    points: NDArray[Any]  # of type POINT
    dg: Floats  # rates of g; while there is a working set, the g that it was opened with
    margin: Margin
    window: Window
    moving: Integers  # points whose bounds move
    gram: Floats
    now: NDArray[Any]  # one record of type NOW


@inner_loosely
def rates(path: Path, db: float, run: float) -> None:
    """Fill dg for all points, or the pace of the working set."""
    now, points, window, margin = path.now[0], path.points, path.window, path.margin
    values, out, n = path.gram, path.dg, now.n
    if now.watched >= 0:
        values, out, n = window.packed, window.pace, now.watched
    for i in range(now.k):
        m = margin.members[i]
        margin.rows[i] = points[m].line if now.watched < 0 else window.row[m]
    for j in range(n):
        out[j] = db
    sum_of_rows_loosely(values, margin.rows[: now.k], margin.dc, out[:n])
    for j in range(n):
        m = j if now.watched < 0 else window.points[j]
        out[j] = points[m].y * out[j] + run * points[m].drift


@inner
def first_on_margin(path: Path, most: float) -> Any:
    """The first member to reach a bound: (step, its place or -1, to the upper bound?)."""
    points, margin = path.points, path.margin
    best, fastest, place, upper = most, 0.0, -1, False
    for i in range(path.now[0].k):
        m = margin.members[i]
        alpha, noise = points[m].alpha, NOISE * margin.size[i]
        down = -points[m].y * margin.dc[i]
        up = -down - points[m].rate
        if down > noise:
            step = max(alpha, 0.0) / down
            if step < best - TIE or (step <= best + TIE and down > fastest):
                best, fastest, place, upper = step, down, i, False
        if up > noise:
            step = max(points[m].bound - alpha, 0.0) / up
            if step < best - TIE or (step <= best + TIE and up > fastest):
                best, fastest, place, upper = step, up, i, True
    return best, place, upper


@inner
def first_elsewhere(path: Path, most: float, base: float, run: float) -> Any:
    """The first point, of all or of the working set, to reach the margin: (step, point or -1)."""
    now, points, margin = path.now[0], path.points, path.margin
    best, fastest, who = most, 0.0, -1
    spread = run * now.spread
    for i in range(now.k):
        spread += points[margin.members[i]].root * abs(margin.dc[i])
    watched = now.watched
    for i in range(now.n if watched < 0 else watched):
        j = i if watched < 0 else path.window.points[i]
        toward = path.dg[i] if watched < 0 else path.window.pace[i]
        side, gap = points[j].side, -points[j].g
        if side == INSIDE:
            toward, gap = -toward, -gap
        elif side != OUTSIDE:
            continue
        if toward <= 0.0 or gap > (best + TIE) * toward:
            continue
        noise = NOISE * (points[j].root * spread + base + run * abs(points[j].shift))
        if toward <= noise:
            continue
        step = max(gap, 0.0) / toward
        if step < best - TIE or (step <= best + TIE and toward > fastest):
            best, fastest, who = step, toward, j
    return best, who


@inner
def advance(path: Path, step: float, db: float, run: float) -> None:
    """Go `step` along the direction; θ stands still where only b moves (run = 0)."""
    now, points, margin = path.now[0], path.points, path.margin
    for i in range(now.k):
        m = margin.members[i]
        top = points[m].bound + step * points[m].rate
        alpha = points[m].alpha + step * points[m].y * margin.dc[i]
        points[m].alpha = min(max(alpha, 0.0), top)
        points[m].course += step * margin.dc[i]
    if now.watched < 0:
        for j in range(now.n):
            points[j].g += step * path.dg[j]
    else:
        for i in range(now.watched):
            points[path.window.points[i]].g += step * path.window.pace[i]
        now.climb += step * db
    for i in range(now.k):
        points[margin.members[i]].g = 0.0
    now.intercept += step * db
    if run > 0.0:
        now.theta += step
        for i in range(now.movers):
            j = path.moving[i]
            points[j].bound += step * points[j].rate
            if points[j].rate != 0.0 and points[j].side >= OUTSIDE:
                points[j].alpha = points[j].bound


@inner
def joined(path: Path, c: int) -> None:
    """Point c, with g = 0 and a bound that stands, has joined the margin set as its last member."""
    now, points, window = path.now[0], path.points, path.window
    path.margin.members[now.k], points[c].side, points[c].g = c, MARGIN, 0.0
    now.k += 1
    if now.watched >= 0:
        at, row = now.rows, path.gram[points[c].line]
        now.rows, window.row[c] = at + 1, at
        for i in range(now.watched):
            window.packed[at, i] = row[window.points[i]]


@inner
def left(path: Path, place: int, upper: bool) -> None:
    """The member at this place of the factor has gone to a bound that stands."""
    now, points, window = path.now[0], path.points, path.window
    members, m = path.margin.members, path.margin.members[place]
    now.k -= 1
    for i in range(place, now.k):
        members[i] = members[i + 1]
    points[m].g = 0.0
    points[m].side = OUTSIDE if upper else INSIDE
    points[m].alpha = points[m].bound if upper else 0.0
    w = now.watched
    for i in range(w):
        if window.points[i] == m:
            return
    if w >= 0:  # it is near the margin: the working set gets it
        now.watched, window.points[w] = w + 1, m
        for i in range(now.k):
            j = members[i]
            window.packed[window.row[j], w] = path.gram[points[j].line, m]


@compiled
def follow(path: Path) -> int:
    """Follow the path until it is DONE, or return what it needs to go on.

    Long on purpose: what calls the functions of the factor stands here and not in functions of
    its own, since numba would compile those once more on every level.
    """
    now, points, margin, R = path.now[0], path.points, path.margin, path.margin.R
    kept = False  # whether p and ones are those of the present members and drift
    while True:
        k, watching = now.k, now.watched >= 0
        if now.steps >= now.limit or now.stalls > 60 + 2 * k:
            return Event.FAILED
        if k + 1 >= len(margin.column):
            return Event.ROOM
        if now.next >= 0:  # the point that the last step has led to joins the margin set
            who, column = now.next, margin.column
            row = path.gram[points[who].line]
            now.next = -1
            for i in range(k):
                column[i] = row[margin.members[i]] + now.rho
            forward(R, k, column)
            if not grow(R, k, column, row[who] + now.rho):
                now.wanted = who
                return Event.ENTER
            if kept:
                extend(column, k, R[k, k], margin.p, -points[who].y * points[who].drift)
                extend(column, k, R[k, k], margin.ones, 1.0)
            joined(path, who)
            continue
        if now.fresh > 0 and now.few > 0:
            now.fresh = 0
            return Event.OPEN
        if watching and (now.events >= LONGEST or now.theta >= now.horizon):
            now.fresh = now.events > 0
            return Event.CLOSE
        # a direction, and the first event along it
        run, db, end = 1.0, 0.0, min(1.0, now.horizon) if watching else 1.0
        if k > 0:
            if not kept:
                for i in range(k):
                    m = margin.members[i]
                    margin.p[i], margin.ones[i] = -points[m].y * points[m].drift, 1.0
                forward_both(R, k, margin.p, margin.ones)
                kept = True
            p, ones, dc, column = margin.p, margin.ones, margin.dc, margin.column
            db = bordered(R, k, now.rho, -now.pull, p, ones, dc, column, margin.size)
        elif abs(now.pull) > NOISE * now.heap:
            run, db = 0.0, np.sign(now.pull)  # no margin set: b alone moves, until there is one
        step, place, upper = first_on_margin(path, max(end - now.theta, 0.0) if run else np.inf)
        rates(path, db, run)
        step, who = first_elsewhere(path, step, abs(db), run)
        if not np.isfinite(step):
            return Event.CLOSE if watching else Event.FAILED
        if who >= 0 and points[who].line < 0:
            now.wanted = who
            return Event.LINE
        # go there, and let it happen
        advance(path, step, db, run)
        if who < 0 and place < 0:
            now.theta = end
            if end >= 1.0:
                return Event.DONE
            continue
        now.steps += 1
        now.events += 1
        now.stalls = now.stalls + 1 if step <= TIE else 0
        if who >= 0:
            if points[who].rate != 0.0:
                now.wanted = who
                return Event.RELEASE
            now.next = who
        elif points[margin.members[place]].rate != 0.0:
            now.wanted = place + k if upper else place
            return Event.LEAVE
        else:
            delete(R, k, place, margin.column, margin.p, margin.ones)
            left(path, place, upper)
        now.fresh = not watching and run > 0.0
