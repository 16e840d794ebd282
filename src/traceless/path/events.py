"""What happens at a breakpoint: a point enters the margin, leaves it, or is exchanged.

A point whose kernel column depends on those of the margin,  k_c = A v,  cannot enter it: A
would be singular. Then α_c moves by t and the margin by -t v, which leaves f as it is, until
one of them is at a bound: that member leaves, or the point itself has crossed to the other
side. Where the dependence is only nearly exact, what f changes becomes a shift that decays.
"""

from __future__ import annotations

from traceless.path.compiled import compiled, inner
from traceless.path.factor import backward, delete, forward, grow
from traceless.path.road import (
    ALPHA,
    BOUND,
    CHANGE,
    COLUMN,
    DIAGONAL,
    DRIFT,
    FINAL,
    INSIDE,
    LINE,
    MARGIN,
    MEMBERS,
    OUTSIDE,
    PULL,
    RATE,
    RHO,
    ROOT,
    SHIFT,
    SIDE,
    SOUNDNESS,
    THETA,
    G,
    K,
    N,
    Road,
    Y,
)
from traceless.path.steps import NOISE
from traceless.path.window import watch_member, watch_point


@inner
def carry(road: Road, j: int, sign: float) -> None:
    """Count the moving bound of j (OUTSIDE) among what drives g and Σyα, or no longer."""
    push = sign * road.x[Y, j] * road.x[RATE, j]
    row = road.gram[road.at[LINE, j]]
    for i in range(road.count[N]):
        road.x[DRIFT, i] += push * road.x[Y, i] * row[i]
    road.value[PULL] += push


@inner
def settle_at(road: Road, m: int, upper: bool) -> None:
    """Put a point at a bound, from where it moves with it."""
    road.x[G, m] = 0.0
    watch_point(road, m)
    if upper:
        road.x[ALPHA, m] = road.x[BOUND, m]
        road.at[SIDE, m] = OUTSIDE
        if road.x[RATE, m] != 0.0:
            carry(road, m, 1.0)
        return
    road.x[ALPHA, m] = 0.0
    road.at[SIDE, m] = INSIDE
    road.x[BOUND, m] = road.x[FINAL, m]
    road.x[RATE, m] = 0.0


@compiled
def leave(road: Road, place: int, bound: int) -> None:
    """A member leaves the factor, to its lower (0) or upper (1) bound, or as it is (-1)."""
    k, m = road.count[K], road.at[MEMBERS, place]
    delete(road.R, k, place)
    for i in range(place, k - 1):
        road.at[MEMBERS, i] = road.at[MEMBERS, i + 1]
    road.count[K] = k - 1
    if bound >= 0:
        settle_at(road, m, bound == 1)


@inner
def forgive(road: Road, c: int, amount: float) -> None:
    """What an exchange of this amount changes in f becomes a shift that decays."""
    k, n, left = road.count[K], road.count[N], 1.0 - road.value[THETA]
    if left <= 0.0 or amount == 0.0:
        return
    row, change, size = road.gram[road.at[LINE, c]], road.x[CHANGE], road.x[ROOT, c]
    for j in range(n):
        change[j] = row[j]
    for i in range(k):
        m = road.at[MEMBERS, i]
        t, member = road.room[COLUMN, i], road.gram[road.at[LINE, m]]
        size += abs(t) * road.x[ROOT, m]
        for j in range(n):
            change[j] -= t * member[j]
    for j in range(n):
        if abs(change[j]) > 10 * NOISE * road.x[ROOT, j] * size:
            push = road.x[Y, j] * amount * change[j] / left
            road.x[SHIFT, j] -= push
            road.x[DRIFT, j] += push


@inner
def exchange(road: Road, c: int) -> int:
    """Move along the dependence of c to the first bound, COLUMN being the solution v.

    Returns the place of the member that is now at a bound (its upper one: place + k), or -1
    if c itself is.
    """
    k, v = road.count[K], road.room[COLUMN]
    alpha, bound = road.x[ALPHA, c], road.x[BOUND, c]
    sense = 1.0 if alpha <= 0.5 * bound else -1.0
    if 0.0 < alpha < bound:
        sense = -sense  # a free point goes to the nearer bound
    best = bound - alpha if sense > 0.0 else alpha
    place, upper, strength, largest = -1, False, 0.0, 1.0
    for i in range(k):
        largest = max(largest, abs(v[i]))
    for i in range(k):
        m = road.at[MEMBERS, i]
        speed = -road.x[Y, m] * v[i] * road.x[Y, c] * sense
        if abs(speed) <= 1e-10 * largest:
            continue
        room = road.x[BOUND, m] - road.x[ALPHA, m] if speed > 0.0 else road.x[ALPHA, m]
        step = max(room, 0.0) / abs(speed)
        if step < best or (step == best and abs(speed) > strength):
            best, place, upper, strength = step, i, speed > 0.0, abs(speed)
    forgive(road, c, road.x[Y, c] * sense * best)
    road.x[ALPHA, c] += sense * best
    for i in range(k):
        m = road.at[MEMBERS, i]
        moved = road.x[ALPHA, m] - best * road.x[Y, m] * v[i] * road.x[Y, c] * sense
        road.x[ALPHA, m] = min(max(moved, 0.0), road.x[BOUND, m])
    if place < 0:
        settle_at(road, c, sense > 0.0)
        return -1
    return place + k if upper else place


@compiled
def enter(road: Road, c: int) -> None:
    """Point c, with g = 0, joins the margin; where it depends on it, by exchange."""
    if road.at[SIDE, c] == OUTSIDE and road.x[RATE, c] != 0.0:
        carry(road, c, -1.0)
    if road.x[RATE, c] > 0.0:  # a bound that grows need not be waited for
        road.x[BOUND, c] = road.x[FINAL, c]
        road.x[RATE, c] = 0.0
    road.at[SIDE, c] = MARGIN
    road.x[G, c] = 0.0
    row, rho, column = road.gram[road.at[LINE, c]], road.value[RHO], road.room[COLUMN]
    while True:
        k = road.count[K]
        for i in range(k):
            column[i] = row[road.at[MEMBERS, i]] + rho
        forward(road.R, k, column)
        if grow(road.R, k, column, road.x[DIAGONAL, c] + rho, road.value[SOUNDNESS]):
            road.at[MEMBERS, k] = c
            road.count[K] = k + 1
            watch_member(road, c)
            return
        backward(road.R, k, column)
        place = exchange(road, c)
        if place < 0:
            return
        leave(road, place % k, place // k)
