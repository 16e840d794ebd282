"""The rarer events: bounds that move, and points that depend on the margin.

A point whose kernel column depends on those of the margin,  k_c = A v,  cannot enter it: A
would be singular. Then α_c moves by t and the margin by -t v, which leaves f as it is, until
one of them is at a bound: that member leaves, or the point itself has crossed to the other
side. Where the dependence is only nearly exact, what f changes becomes a shift that decays.
"""

from __future__ import annotations

import numpy as np

from traceless.arithmetic.integers import Floats
from traceless.path.factor import backward, delete, forward, grow
from traceless.path.road import (
    COLUMN,
    GONE,
    INSIDE,
    MARGIN,
    MARK,
    MEMBERS,
    OUTSIDE,
    PULL,
    RHO,
    THETA,
    K,
    N,
    Road,
)
from traceless.path.steps import NOISE
from traceless.path.store import sum_of_rows


def carry(road: Road, j: int, sign: float) -> None:
    """Count the moving bound of j (OUTSIDE) among what drives g and Σyα, or no longer."""
    push, n = sign * road.y[j] * road.rate[j], road.count[N]
    count_drift(road)
    road.drift[:n] += push * road.y[:n] * road.gram[road.line[j], :n]
    road.value[PULL] += push


def count_drift(road: Road) -> None:
    """What the drift has added to g in a window, up to here: it is about to change, or needed."""
    road.x[GONE] += (road.value[THETA] - road.value[MARK]) * road.drift
    road.value[MARK] = road.value[THETA]


def settle_at(road: Road, m: int, upper: bool) -> None:
    """Put a point at a bound, from where it moves with it."""
    road.g[m] = 0.0
    road.side[m] = OUTSIDE if upper else INSIDE
    if not upper:
        road.bound[m], road.rate[m] = road.final[m], 0.0
    road.alpha[m] = road.bound[m] if upper else 0.0
    if road.rate[m] != 0.0:
        carry(road, m, 1.0)


def withdraw(road: Road, place: int) -> int:
    """Take a member out of the factor; returns which it was."""
    k, m = road.count[K], int(road.members[place])
    delete(road.R, k, place, road.room[COLUMN])
    road.at[MEMBERS, place : k - 1] = road.at[MEMBERS, place + 1 : k]
    road.count[K] = k - 1
    return m


def release(road: Road, c: int) -> None:
    """Point c is about to enter the margin, and no longer moves with its bound."""
    if road.side[c] == OUTSIDE and road.rate[c] != 0.0:
        carry(road, c, -1.0)
    if road.rate[c] > 0.0:  # a bound that grows need not be waited for
        road.bound[c], road.rate[c] = road.final[c], 0.0
    road.side[c], road.g[c] = MARGIN, 0.0


def enter(road: Road, c: int) -> None:
    """Point c, released, joins the margin; where it depends on it, by exchange."""
    rho, column = road.value[RHO], road.room[COLUMN]
    while True:
        k = road.count[K]
        column[:k] = road.gram[road.line[c], road.members] + rho
        forward(road.R, k, column)
        if grow(road.R, k, column, road.diagonal[c] + rho):
            road.at[MEMBERS, k], road.count[K] = c, k + 1
            return
        backward(road.R, k, column)
        if _exchange(road, c, column[:k]):
            return


def _exchange(road: Road, c: int, v: Floats) -> bool:
    """Move along the dependence of c to the first bound; returns whether that is its own."""
    members = road.members
    alpha, bound = road.alpha[c], road.bound[c]
    up = bool(alpha <= 0.5 * bound) != bool(0.0 < alpha < bound)  # free: to the nearer bound
    amount = road.y[c] if up else -road.y[c]  # of y α of c, for a unit
    speed = -road.y[members] * v * amount
    room = np.where(speed > 0.0, road.bound[members] - road.alpha[members], road.alpha[members])
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.maximum(room, 0.0) / np.abs(speed)
    steps[np.abs(speed) <= 1e-10 * np.abs(v).max(initial=1.0)] = np.inf
    own = bound - alpha if up else alpha
    best = min(own, steps.min(initial=np.inf))
    _forgive(road, c, v, amount * best)
    road.alpha[c] += best if up else -best
    road.alpha[members] = np.clip(road.alpha[members] + best * speed, 0.0, road.bound[members])
    if own <= best:
        settle_at(road, c, up)
        return True
    first = np.flatnonzero(steps == best)
    if not first.size:  # nothing of v is finite: this point at least has a place to go
        settle_at(road, c, up)
        return True
    place = int(first[np.argmax(np.abs(speed[first]))])
    to_upper = bool(speed[place] > 0.0)
    settle_at(road, withdraw(road, place), to_upper)
    return False


def _forgive(road: Road, c: int, v: Floats, amount: float) -> None:
    """What an exchange of this amount changes in f becomes a shift that decays."""
    n, left, members = road.count[N], 1.0 - road.value[THETA], road.members
    if left <= 0.0 or amount == 0.0:
        return
    change = sum_of_rows(road.gram, road.line[members], -v, road.gram[road.line[c], :n].copy())
    size = road.root[c] + np.abs(v) @ road.root[members]
    change[np.abs(change) <= 10 * NOISE * size * road.root[:n]] = 0.0
    push = road.y[:n] * (amount / left) * change
    road.shift[:n] -= push
    road.drift[:n] += push
