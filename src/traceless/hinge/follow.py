"""Follow the path of the hinge SVM from θ = 0 to θ = 1, breakpoint by breakpoint.

    g_i = y_i (f(x_i) - level_i) + shift_i (1 - θ),     f(x) = Σ_j y_j α_j k(x_j, x) + b
    Σ_j y_j α_j = total + imbalance · (1 - θ),          bound_i(θ) = bound_i(0) + θ rate_i

With the rate h of g and s of Σyα that moving bounds and decaying shifts cause,

    [K_MM 1; 1ᵀ 0] [dc; db] = [-y h; -s],      dg = y (K_·M dc + db) + h,     dα = y dc

keeps g = 0 on the margin set M (Karasuyama & Takeuchi 2009, eq. 7 to 10). Rates below the
rounding noise of their own terms are zero: most ties of degenerate data are such noise.

Fit, add, remove, other bounds and repair differ only in what moves (rates and shifts); the loop
does not know which it is. Frequent events are handled here, in compiled code; for a rare one
`follow` returns a code to its caller (`traceless.hinge.solver`), and is then called again.

Compilers take long over many arrays, so the numbers of all points are the rows of two matrices, `x`
for floats and `at` for integers, and the scalars of the path are one record.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.hinge.cholesky import bordered, delete, forward, grow
from traceless.hinge.compiled import compiled, inner, inner_loosely
from traceless.hinge.kernel_cache import sum_of_rows_loosely

# Where a point is: INSIDE (α = 0, g ≥ 0), in the MARGIN set (g = 0) or OUTSIDE (α = bound, g ≤ 0).
# PINNED points are being removed: α = bound whatever g. ABSENT slots hold no point.
ABSENT, INSIDE, MARGIN, OUTSIDE, PINNED = -1, 0, 1, 2, 3

# Why `follow` returned: the path is at its end, failed, or needs its caller to do something
DONE, STALLED, STUCK, TOO_LONG = range(4)
NEED_ROW, NEED_ROOM, OPEN, CLOSE, TURN, RELEASE, ENTER, LEAVE = range(4, 12)

# Rows of `x`. DRIFT is the rate of g that the margin set does not cause. DG is the rate of g, or,
# while there is a working set, the g that it was opened with; then COURSE and GONE are what yα of
# members and the drift have added up to since, and PACE is the rate of g of the working set. LEVEL
# is the value of f on the margin
DIAGONAL, ROOT, Y, ALPHA, BOUND, FINAL, RATE, G, DRIFT, SHIFT, DG = range(11)
COURSE, GONE, PACE, LEVEL, FLOATS = range(11, 16)
# Rows of `at`: the line of `gram` with the point's kernel values (-1: none), its side, the members
# of the margin set in the order of the factor, the points whose bounds move, the points of the
# working set, and the line of `packed` with a member's kernel values with them
LINE, SIDE, MEMBERS, MOVING, WATCH, ROW, INTEGERS = range(7)
# Rows of `room`, scratch as long as the margin set may grow
DC, ONES, SIZE, COLUMN, ROOMS = range(5)

# The scalars of a path. RHO is of the factor; TOTAL is what Σyα should be, PULL the rate of it that
# the margin set does not cause; SPREAD and HEAP bound the terms of drift and pull before they
# cancel. Of a working set: θ where it was chosen, θ up to which it will do, what b has added up to
# since, and θ up to which GONE counts the drift
_FLOATS = "theta intercept rho total pull spread heap opened horizon climb mark"
# Members of the margin set, slots, breakpoints so far and the most of them, steps of length zero in
# a row, the point or place that the caller should look at, points whose bounds move. Of a working
# set: its size (-1: all points), the size that one should have (0: none is used), breakpoints
# since it was chosen, lines of `packed` in use. A point that is about to join the margin set (-1:
# none), and whether a step has just looked at all points
_INTEGERS = "k n steps limit stalls wanted movers watched few events rows next fresh"
NOW = np.dtype(
    [(name, np.float64) for name in _FLOATS.split()]
    + [(name, np.int64) for name in _INTEGERS.split()]
)

NOISE = 1e-14  # a rate below this part of its terms is rounding
TIE = 1e-15  # events closer than this happen at once
LONGEST = 100  # breakpoints with one working set: each may add a row and a column to `packed`


class Arrays(NamedTuple):
    """All that compiled code works on; the names of rows are above."""

    gram: Floats
    x: Floats
    at: NDArray[np.int64]
    R: Floats
    room: Floats
    packed: Floats
    now: NDArray[Any]  # one record of type NOW


@inner_loosely
def rates(path: Arrays, db: float, run: float) -> None:
    """Fill DG for all points, or PACE for the working set."""
    now = path.now[0]
    watched = now.watched
    values, where, out, n = path.gram, path.at[LINE], path.x[DG], now.n
    if watched >= 0:
        values, where, out, n = path.packed, path.at[ROW], path.x[PACE], watched
    for j in range(n):
        out[j] = db
    sum_of_rows_loosely(values, where[path.at[MEMBERS, : now.k]], path.room[DC], out[:n])
    for j in range(n):
        m = j if watched < 0 else path.at[WATCH, j]
        out[j] = path.x[Y, m] * out[j] + run * path.x[DRIFT, m]


@inner
def first_on_margin(path: Arrays, most: float) -> Any:
    """The first member to reach a bound: (step, its place or -1, to the upper bound?)."""
    best, fastest, place, upper = most, 0.0, -1, False
    for i in range(path.now[0].k):
        m = path.at[MEMBERS, i]
        alpha, noise = path.x[ALPHA, m], NOISE * path.room[SIZE, i]
        down = -path.x[Y, m] * path.room[DC, i]
        up = -down - path.x[RATE, m]
        if down > noise:
            step = max(alpha, 0.0) / down
            if step < best - TIE or (step <= best + TIE and down > fastest):
                best, fastest, place, upper = step, down, i, False
        if up > noise:
            step = max(path.x[BOUND, m] - alpha, 0.0) / up
            if step < best - TIE or (step <= best + TIE and up > fastest):
                best, fastest, place, upper = step, up, i, True
    return best, place, upper


@inner
def first_elsewhere(path: Arrays, most: float, base: float, run: float) -> Any:
    """The first point, of all or of the working set, to reach the margin: (step, point or -1)."""
    now = path.now[0]
    best, fastest, who = most, 0.0, -1
    spread = run * now.spread
    for i in range(now.k):
        spread += path.x[ROOT, path.at[MEMBERS, i]] * abs(path.room[DC, i])
    watched = now.watched
    n = now.n if watched < 0 else watched
    pace = path.x[DG] if watched < 0 else path.x[PACE]
    g, sides, watch = path.x[G], path.at[SIDE], path.at[WATCH]
    for i in range(n):
        j = i if watched < 0 else watch[i]
        side, toward, gap = sides[j], pace[i], -g[j]
        if side == INSIDE:
            toward, gap = -toward, -gap
        elif side != OUTSIDE:
            continue
        if toward <= 0.0 or gap > (best + TIE) * toward:
            continue
        noise = NOISE * (path.x[ROOT, j] * spread + base + run * abs(path.x[SHIFT, j]))
        if toward <= noise:
            continue
        step = max(gap, 0.0) / toward
        if step < best - TIE or (step <= best + TIE and toward > fastest):
            best, fastest, who = step, toward, j
    return best, who


@inner
def advance(path: Arrays, step: float, db: float, run: float) -> None:
    """Go `step` along the direction; θ stands still where only b moves (run = 0)."""
    now = path.now[0]
    n, watched = now.n, now.watched
    for i in range(now.k):
        m = path.at[MEMBERS, i]
        top = path.x[BOUND, m] + step * path.x[RATE, m]
        alpha = path.x[ALPHA, m] + step * path.x[Y, m] * path.room[DC, i]
        path.x[ALPHA, m] = min(max(alpha, 0.0), top)
        path.x[COURSE, m] += step * path.room[DC, i]
    g = path.x[G]
    if watched < 0:
        dg = path.x[DG]
        for j in range(n):
            g[j] += step * dg[j]
    else:
        pace, watch = path.x[PACE], path.at[WATCH]
        for i in range(watched):
            g[watch[i]] += step * pace[i]
        now.climb += step * db
    for i in range(now.k):
        g[path.at[MEMBERS, i]] = 0.0
    now.intercept += step * db
    if run > 0.0:
        now.theta += step
        for i in range(now.movers):
            j = path.at[MOVING, i]
            path.x[BOUND, j] += step * path.x[RATE, j]
            if path.x[RATE, j] != 0.0 and path.at[SIDE, j] >= OUTSIDE:
                path.x[ALPHA, j] = path.x[BOUND, j]


@inner
def joined(path: Arrays, c: int) -> None:
    """Point c, with g = 0 and a bound that stands, has joined the margin set as its last member."""
    now = path.now[0]
    k, row = now.k, path.gram[path.at[LINE, c]]
    path.at[MEMBERS, k], path.at[SIDE, c], path.x[G, c] = c, MARGIN, 0.0
    now.k = k + 1
    if now.watched >= 0:
        at = now.rows
        now.rows, path.at[ROW, c] = at + 1, at
        for i in range(now.watched):
            path.packed[at, i] = row[path.at[WATCH, i]]


@inner
def left(path: Arrays, place: int, upper: bool) -> None:
    """The member at this place of the factor has gone to a bound that stands."""
    now = path.now[0]
    k, m = now.k, path.at[MEMBERS, place]
    for i in range(place, k - 1):
        path.at[MEMBERS, i] = path.at[MEMBERS, i + 1]
    now.k = k - 1
    path.x[G, m] = 0.0
    path.at[SIDE, m] = OUTSIDE if upper else INSIDE
    path.x[ALPHA, m] = path.x[BOUND, m] if upper else 0.0
    w = now.watched
    for i in range(w):
        if path.at[WATCH, i] == m:
            return
    if w >= 0:  # it is near the margin: the working set gets it
        now.watched, path.at[WATCH, w] = w + 1, m
        for i in range(k - 1):
            j = path.at[MEMBERS, i]
            path.packed[path.at[ROW, j], w] = path.gram[path.at[LINE, j], m]


@compiled
def follow(path: Arrays) -> int:
    """Follow the path until it is DONE, or return what it needs to go on.

    Long on purpose: what calls the functions of the factor stands here and not in functions of
    its own, since numba would compile those once more on every level.
    """
    now = path.now[0]
    while True:
        k, watching = now.k, now.watched >= 0
        # is it allowed, and able, to go on?
        if now.steps >= now.limit:
            return TOO_LONG
        if now.stalls > 60 + 2 * k:
            return STALLED
        if k + 1 >= path.room.shape[1]:
            return NEED_ROOM
        # the point that the last step has led to joins the margin set
        if now.next >= 0:
            who = now.next
            now.next = -1
            row, column = path.gram[path.at[LINE, who]], path.room[COLUMN]
            for i in range(k):
                column[i] = row[path.at[MEMBERS, i]] + now.rho
            forward(path.R, k, column)
            if grow(path.R, k, column, path.x[DIAGONAL, who] + now.rho):
                joined(path, who)
                continue
            now.wanted = who
            return ENTER
        # the working set
        if now.fresh > 0 and now.few > 0:
            now.fresh = 0
            return OPEN
        if watching and (now.events >= LONGEST or now.theta >= now.horizon):
            return TURN
        # a direction, and the first event along it
        run, db = 1.0, 0.0
        if k > 0:
            for i in range(k):
                m = path.at[MEMBERS, i]
                path.room[DC, i] = -path.x[Y, m] * path.x[DRIFT, m]
            db = bordered(path.R, k, now.rho, -now.pull, path.room)
        elif abs(now.pull) > NOISE * now.heap:
            run, db = 0.0, np.sign(now.pull)  # no margin set: b alone moves, until there is one
        most = max(1.0 - now.theta, 0.0) if run > 0.0 else np.inf
        step, place, upper = first_on_margin(path, most)
        rates(path, db, run)
        step, who = first_elsewhere(path, step, abs(db), run)
        at_end = who < 0 and place < 0
        if watching and (at_end or not np.isfinite(step)):
            return CLOSE  # the last step looks at all points
        if not np.isfinite(step):
            return STUCK
        if who >= 0 and path.at[LINE, who] < 0:
            now.wanted = who
            return NEED_ROW
        # go there, and let it happen
        advance(path, step, db, run)
        if at_end:
            return DONE
        now.steps += 1
        now.events += 1
        now.stalls = now.stalls + 1 if step <= 1e-15 else 0
        if who >= 0:
            if path.x[RATE, who] != 0.0:
                now.wanted = who
                return RELEASE
            now.next = who
        elif path.x[RATE, path.at[MEMBERS, place]] != 0.0:
            now.wanted = place + k if upper else place
            return LEAVE
        else:
            delete(path.R, k, place, path.room[COLUMN])
            left(path, place, upper)
        now.fresh = not watching and run > 0.0
