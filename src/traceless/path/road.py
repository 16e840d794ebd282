"""What the path follower works on: a few arrays, so that compiled code can take them.

    g_i = y_i f(x_i) - 1 + shift_i (1 - θ),     f(x) = Σ_j y_j α_j k(x_j, x) + b
    Σ_j y_j α_j = imbalance · (1 - θ),          bound_i(θ) = bound_i(0) + θ rate_i

θ runs from 0 to 1. Points are in one of the sets INSIDE (α = 0, g ≥ 0), MARGIN (g = 0) and
OUTSIDE (α = bound, g ≤ 0); PINNED points are on their way out, α = bound whatever g; ABSENT
ones are slots that hold no point.

Compilers take long over many arrays, so numbers of points are rows of one array each: x for
floats, `at` for integers. Outside compiled code they have names: ``road.alpha``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats

Numbers = NDArray[np.int64]

ABSENT, INSIDE, MARGIN, OUTSIDE, PINNED = -1, 0, 1, 2, 3

# why the follower came back: it is done, does not get on, or needs something done for it
DONE, STALLED, STUCK, TOO_LONG = range(4)
NEED_ROW, NEED_ROOM, OPEN, CLOSE, TURN, RELEASE, ENTER, LEAVE = range(4, 12)

# rows of `x`, one number for each point. DRIFT is the rate of g that the margin does not cause,
# DG the rate of g, or in a window the g it was opened with; COURSE, GONE: what y α of members and
# the drift have added up to since then, PACE: the rate of g of the points watched
DIAGONAL, ROOT, Y, ALPHA, BOUND, FINAL, RATE, G, DRIFT, SHIFT, DG = range(11)
COURSE, GONE, PACE, FLOATS = range(11, 15)
# rows of `at`: where the point's kernel values are in `gram` (-1 if they are not), its side,
# the members of the margin in the order of the factor, the points whose bounds moved at the start,
# the points watched, and where a member's kernel values with them are in `packed`
LINE, SIDE, MEMBERS, MOVING, WATCH, ROW, INTEGERS = range(7)
# rows of `room`: scratch as long as the margin may grow
DC, ONES, SIZE, COLUMN, ROOMS = range(5)
# `value`: PULL is the rate of Σyα that the margin does not cause; SPREAD and HEAP bound the
# terms of drift and pull before they cancel; CLIMB is what b has added up to in a window, MARK
# the θ up to which GONE counts the drift, OPENED and HORIZON where it begins and is to end
THETA, INTERCEPT, PULL, RHO, SPREAD, HEAP, CLIMB, MARK, OPENED, HORIZON, VALUES = range(11)
# `count`: k members, n slots, breakpoints, the most of them, steps of length zero in a row, the
# point or place in question, moving points, points watched (-1: all), how many should be, events
# since, rows of `packed` used, a point that is about to join the margin (-1: none), and whether a
# step has just looked at all points
K, N, STEPS, LIMIT, STALLS, WANTED, MOVERS, WATCHED, FEW, EVENTS, ROWS, NEXT, FRESH = range(13)
COUNTS = 13

SPARE = 128  # columns and rows of `packed` beyond those that a window starts with


class Road(NamedTuple):
    """The state of a path, and room to work in; the names of rows are above."""

    gram: Floats
    x: Floats
    at: Numbers
    R: Floats
    room: Floats
    packed: Floats
    value: Floats
    count: Numbers  # type: ignore[assignment]  # of a tuple, which nobody calls here

    @property
    def y(self) -> Floats:
        """Labels."""
        return np.asarray(self.x[Y])

    @property
    def diagonal(self) -> Floats:
        """k(x_i, x_i)."""
        return np.asarray(self.x[DIAGONAL])

    @property
    def root(self) -> Floats:
        """Square roots of the diagonal."""
        return np.asarray(self.x[ROOT])

    @property
    def alpha(self) -> Floats:
        """Dual variables."""
        return np.asarray(self.x[ALPHA])

    @property
    def bound(self) -> Floats:
        """Upper bounds of α, as they are now."""
        return np.asarray(self.x[BOUND])

    @property
    def final(self) -> Floats:
        """Upper bounds of α at θ = 1."""
        return np.asarray(self.x[FINAL])

    @property
    def rate(self) -> Floats:
        """Rates of the bounds."""
        return np.asarray(self.x[RATE])

    @property
    def g(self) -> Floats:
        """Y f - 1, shifted."""
        return np.asarray(self.x[G])

    @property
    def drift(self) -> Floats:
        """The rate of g that the margin does not cause."""
        return np.asarray(self.x[DRIFT])

    @property
    def shift(self) -> Floats:
        """Of the linear term, at θ = 0."""
        return np.asarray(self.x[SHIFT])

    @property
    def side(self) -> Numbers:
        """INSIDE, MARGIN, OUTSIDE, PINNED or ABSENT."""
        return np.asarray(self.at[SIDE])

    @property
    def line(self) -> Numbers:
        """Where the kernel values of each point are."""
        return np.asarray(self.at[LINE])

    @property
    def members(self) -> Numbers:
        """Points of the margin, in the order of the factor."""
        return self.at[MEMBERS, : self.count[K]]


def blank(capacity: int, room: int = 32) -> Road:
    """A road without points."""
    at = np.zeros((INTEGERS, capacity), dtype=np.int64)
    at[SIDE] = ABSENT
    count = np.zeros(COUNTS, dtype=np.int64)
    count[WATCHED] = count[NEXT] = -1
    return Road(
        gram=np.zeros((0, 0)),
        x=np.zeros((FLOATS, capacity)),
        at=at,
        R=np.zeros((room, room)),
        room=np.zeros((ROOMS, room)),
        packed=np.zeros((0, 0)),
        value=np.zeros(VALUES),
        count=count,
    )


def at_rest(road: Road, slots: NDArray[np.intp]) -> Road:
    """What is kept of a road that was followed to its end: nothing of points elsewhere, no scratch.

    Nobody changes it after that; a walk makes a copy (`traceless.path.walk`).
    """
    k, x, at, R = road.count[K], road.x[:SHIFT].copy(), road.at[:WATCH].copy(), road.R.copy()
    elsewhere = np.ones(x.shape[1], dtype=bool)
    elsewhere[slots] = False
    x[:, elsewhere] = 0.0
    R[k:], R[:, k:] = 0.0, 0.0
    none = np.zeros((0, 0))
    return road._replace(gram=none, x=x, at=at, R=R, room=none, packed=none)


def moved(road: Road, slots: NDArray[np.intp]) -> Road:
    """The same road with the points of these slots at the front, and no others."""
    where = np.zeros(road.x.shape[1], dtype=np.int64)
    where[slots] = np.arange(len(slots))
    k, at = road.count[K], road.at[:, slots]
    at[MEMBERS, :k] = where[road.members]
    return road._replace(x=road.x[:, slots], at=at)
