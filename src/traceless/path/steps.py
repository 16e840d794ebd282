"""One step of the path: a direction, the first event along it, and what the event does.

With the rate h of g and s of Σyα that moving bounds and decaying shifts cause,

    [K_MM 1; 1ᵀ 0] [dc; db] = [-y h; -s],      dg = y (K_·M dc + db) + h,     dα = y dc

keeps g = 0 on the margin M (Karasuyama & Takeuchi 2009, eq. 7 to 10). Rates below the
rounding noise of their own terms are zero: most ties of degenerate data are such noise.
"""

from __future__ import annotations

from typing import Any

from traceless.path.compiled import compiled, compiled_loosely
from traceless.path.factor import backward, bordered, delete, forward, grow
from traceless.path.road import (
    DRIFT,
    HEAP,
    INSIDE,
    INTERCEPT,
    MARGIN,
    OUTSIDE,
    RHO,
    SOUNDNESS,
    SPREAD,
    THETA,
    K,
    N,
    Road,
)

NOISE = 1e-14  # a rate below this part of its terms is rounding
TIE = 1e-15  # events closer than this happen at once


@compiled
def margin_direction(road: Road) -> float:
    """Fill `dc` and `size`; returns db. The margin is not empty."""
    k, s = road.count[K], road.value[DRIFT]
    for i in range(k):
        m = road.members[i]
        road.dc[i] = -road.y[m] * road.drift[m]
    db: float = bordered(road.R, k, road.value[RHO], -s, road.dc, road.ones, road.size)
    return db


@compiled_loosely
def gradient_rates(road: Road, db: float, run: float) -> float:
    """Fill `dg` for all points; returns the size of what the margin adds to it."""
    k, n = road.count[K], road.count[N]
    dg, gram = road.dg, road.gram
    for j in range(n):
        dg[j] = db
    i = 0
    while i + 4 <= k:  # four rows at a time: dg is read and written less often
        a, b, c, d = road.dc[i], road.dc[i + 1], road.dc[i + 2], road.dc[i + 3]
        r0, r1 = gram[road.line[road.members[i]]], gram[road.line[road.members[i + 1]]]
        r2, r3 = gram[road.line[road.members[i + 2]]], gram[road.line[road.members[i + 3]]]
        for j in range(n):
            dg[j] += a * r0[j] + b * r1[j] + c * r2[j] + d * r3[j]
        i += 4
    while i < k:
        a, r0 = road.dc[i], gram[road.line[road.members[i]]]
        for j in range(n):
            dg[j] += a * r0[j]
        i += 1
    for j in range(n):
        dg[j] = road.y[j] * dg[j] + run * road.drift[j]
    spread = 0.0
    for i in range(k):
        spread += road.root[road.members[i]] * abs(road.dc[i])
    return spread


@compiled
def first_on_margin(road: Road, most: float) -> Any:
    """The first member to reach a bound: (step, its place or -1, to the upper bound?)."""
    best, rate, place, upper = most, 0.0, -1, False
    for i in range(road.count[K]):
        m = road.members[i]
        down = -road.y[m] * road.dc[i]
        up = -down - road.rate[m]
        noise = NOISE * road.size[i]
        if down > noise:
            step = max(road.alpha[m], 0.0) / down
            if step < best - TIE or (step <= best + TIE and down > rate):
                best, rate, place, upper = step, down, i, False
        if up > noise:
            step = max(road.bound[m] - road.alpha[m], 0.0) / up
            if step < best - TIE or (step <= best + TIE and up > rate):
                best, rate, place, upper = step, up, i, True
    return best, place, upper


@compiled
def first_elsewhere(road: Road, most: float, spread: float, base: float, run: float) -> Any:
    """The first point to reach the margin: (step, point or -1)."""
    best, rate, who = most, 0.0, -1
    spread += run * road.value[SPREAD]
    for j in range(road.count[N]):
        side = road.side[j]
        if side == INSIDE:
            toward, gap = -road.dg[j], road.g[j]
        elif side == OUTSIDE:
            toward, gap = road.dg[j], -road.g[j]
        else:
            continue
        if toward <= 0.0 or gap > (best + TIE) * toward:
            continue
        if toward <= NOISE * (road.root[j] * spread + base + run * abs(road.shift[j])):
            continue
        step = max(gap, 0.0) / toward
        if step < best - TIE or (step <= best + TIE and toward > rate):
            best, rate, who = step, toward, j
    return best, who


@compiled
def advance(road: Road, step: float, db: float, run: float) -> None:
    """Go `step` along the direction; θ stands still where only b moves (run = 0)."""
    for i in range(road.count[K]):
        m = road.members[i]
        top = road.bound[m] + step * road.rate[m]
        alpha = road.alpha[m] + step * road.y[m] * road.dc[i]
        road.alpha[m] = min(max(alpha, 0.0), top)
    for j in range(road.count[N]):
        if road.side[j] == MARGIN:
            road.g[j] = 0.0
        else:
            road.g[j] += step * road.dg[j]
    road.value[INTERCEPT] += step * db
    if run > 0.0:
        for j in range(road.count[N]):
            if road.rate[j] != 0.0:
                road.bound[j] += step * road.rate[j]
                if road.side[j] >= OUTSIDE:
                    road.alpha[j] = road.bound[j]
        road.value[THETA] += step


@compiled
def carry(road: Road, j: int, sign: float) -> None:
    """Count the moving bound of j (now OUTSIDE or PINNED) among what drives g and Σyα."""
    push = sign * road.y[j] * road.rate[j]
    row = road.gram[road.line[j]]
    for i in range(road.count[N]):
        road.drift[i] += push * road.y[i] * row[i]
    road.value[DRIFT] += push


@compiled
def withdraw(road: Road, place: int) -> None:
    """Take a member out of the factor."""
    k = road.count[K]
    delete(road.R, k, place)
    for i in range(place, k - 1):
        road.members[i] = road.members[i + 1]
    road.count[K] = k - 1


@compiled
def settle_at(road: Road, m: int, upper: bool) -> None:
    """Put a point at a bound, from where it moves with it."""
    road.g[m] = 0.0
    if upper:
        road.alpha[m] = road.bound[m]
        road.side[m] = OUTSIDE
        if road.rate[m] != 0.0:
            carry(road, m, 1.0)
        return
    road.alpha[m] = 0.0
    road.side[m] = INSIDE
    road.bound[m] = road.final[m]
    road.rate[m] = 0.0


@compiled
def leave(road: Road, place: int, upper: bool) -> None:
    """A member goes to one of its bounds."""
    m = road.members[place]
    withdraw(road, place)
    settle_at(road, m, upper)


@compiled
def forgive(road: Road, c: int, amount: float) -> None:
    """What an exchange of this amount changes in f becomes a shift that decays.

    A dependence is exact for equal points only; for nearly equal ones f moves a little.
    """
    k, n, left, v = road.count[K], road.count[N], 1.0 - road.value[THETA], road.column
    if left <= 0.0 or amount == 0.0:
        return
    row, change, size = road.gram[road.line[c]], road.dg, road.root[c]
    for j in range(n):
        change[j] = row[j]
    for i in range(k):
        t, member = v[i], road.gram[road.line[road.members[i]]]
        size += abs(t) * road.root[road.members[i]]
        for j in range(n):
            change[j] -= t * member[j]
    for j in range(n):
        if abs(change[j]) > 10 * NOISE * road.root[j] * size:
            push = road.y[j] * amount * change[j] / left
            road.shift[j] -= push
            road.drift[j] += push


@compiled
def exchange(road: Road, c: int) -> bool:
    """Point c depends on the margin: move along that dependence, f unchanged, to a bound.

    `column` holds the solution v of A v = k_c. Returns whether c itself ended at a bound;
    otherwise a member has left, and c may try again.
    """
    k, v = road.count[K], road.column
    lower = road.alpha[c] <= 0.5 * road.bound[c]
    sense = 1.0 if lower else -1.0
    if 0.0 < road.alpha[c] < road.bound[c]:
        sense = -sense  # a free point goes to the nearer bound
    best = road.bound[c] - road.alpha[c] if sense > 0.0 else road.alpha[c]
    place, upper, strength, largest = -1, sense > 0.0, 0.0, 1.0
    for i in range(k):
        largest = max(largest, abs(v[i]))
    for i in range(k):
        m = road.members[i]
        speed = -road.y[m] * v[i] * road.y[c] * sense
        if abs(speed) <= 1e-10 * largest:
            continue
        room = road.bound[m] - road.alpha[m] if speed > 0.0 else road.alpha[m]
        step = max(room, 0.0) / abs(speed)
        if step < best or (step == best and abs(speed) > strength):
            best, place, upper, strength = step, i, speed > 0.0, abs(speed)
    forgive(road, c, road.y[c] * sense * best)
    road.alpha[c] += sense * best
    for i in range(k):
        m = road.members[i]
        alpha = road.alpha[m] - best * road.y[m] * v[i] * road.y[c] * sense
        road.alpha[m] = min(max(alpha, 0.0), road.bound[m])
    if place < 0:
        settle_at(road, c, upper)
        return True
    leave(road, place, upper)
    return False


@compiled
def enter(road: Road, c: int) -> None:
    """Point c, with g = 0, joins the margin; where it depends on it, by exchange."""
    if road.side[c] == OUTSIDE and road.rate[c] != 0.0:
        carry(road, c, -1.0)
    if road.rate[c] > 0.0:  # a bound that grows need not be waited for
        road.bound[c] = road.final[c]
        road.rate[c] = 0.0
    road.side[c] = MARGIN
    row, rho = road.gram[road.line[c]], road.value[RHO]
    while True:
        k = road.count[K]
        for i in range(k):
            road.column[i] = row[road.members[i]] + rho
        forward(road.R, k, road.column)
        diagonal = road.diagonal[c] + rho
        if grow(road.R, k, road.column, diagonal, road.value[SOUNDNESS]):
            road.members[k] = c
            road.count[K] = k + 1
            road.g[c] = 0.0
            return
        backward(road.R, k, road.column)
        if exchange(road, c):
            return


@compiled
def idle(road: Road) -> bool:
    """Whether nothing outside an empty margin moves Σyα."""
    return abs(road.value[DRIFT]) <= NOISE * road.value[HEAP]


@compiled
def finish(road: Road) -> None:
    """Every bound has arrived."""
    road.value[THETA] = 1.0
    for j in range(road.count[N]):
        if road.rate[j] != 0.0:
            road.bound[j] = road.final[j]
            road.rate[j] = 0.0
            if road.side[j] >= OUTSIDE:
                road.alpha[j] = road.bound[j]
            elif road.side[j] == MARGIN:
                road.alpha[j] = min(road.alpha[j], road.bound[j])

