"""Drive the path to its end: start it, restart it where it stalls, certify what comes out.

A path can be started from *any* α and b. The violation of each KKT condition becomes a shift
of the linear term that decays with 1 - θ, and so does the violation of Σyα = 0:

    shift_i = max(0, -g_i) + ξ_i  inside,    -max(0, g_i) - ξ_i  outside,    -g_i  on the margin

ξ ≥ 0 is zero, or random where the path stalled on ties: it breaks them, and vanishes at θ = 1.
The end of every path is certified (`traceless.path.certificate`); what is left over above
the tolerance is removed by the same means.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.random import Generator
from scipy.linalg.lapack import dpotrf

from traceless.arithmetic.integers import Floats
from traceless.path.certificate import (
    drop_pinned,
    imbalance,
    present,
    sampled,
    slopes,
    thorough,
    tolerance,
)
from traceless.path.events import enter, release, settle_at, withdraw
from traceless.path.factor import SOUND
from traceless.path.follow import follow
from traceless.path.pairs import descend
from traceless.path.road import (
    ABSENT,
    CLOSE,
    COURSE,
    DIAGONAL,
    DONE,
    ENTER,
    FEW,
    FLOATS,
    FRESH,
    HEAP,
    INSIDE,
    INTEGERS,
    INTERCEPT,
    LIMIT,
    LINE,
    MARGIN,
    MEMBERS,
    MOVERS,
    MOVING,
    NEED_ROOM,
    NEED_ROW,
    NEXT,
    OPEN,
    OPENED,
    OUTSIDE,
    PINNED,
    PULL,
    RELEASE,
    RHO,
    ROOMS,
    ROOT,
    SHIFT,
    SIDE,
    SPARE,
    SPREAD,
    STALLED,
    STALLS,
    STEPS,
    STUCK,
    THETA,
    TOO_LONG,
    TURN,
    WANTED,
    WATCH,
    WATCHED,
    K,
    N,
    Road,
    Y,
)
from traceless.path.seed import seed
from traceless.path.store import Store
from traceless.path.window import close_window, open_window

RESTARTS = (1e-2, 1.0, 1e-4, 10.0, 0.1)  # sizes of the random shifts, one after the other
# what is tried where a path ends above the tolerance, one after the other: a path with random
# shifts of some size from the best end so far, from nothing or from a guess; or pairs, from there
HERE, NOTHING, GUESS = range(3)
REPAIRS = 2 * ((HERE, 0.0), (HERE, 1e-2), (NOTHING, 1e-2), (GUESS, 0.0), None)
MANY = 1000  # points from which on windows pay
_PART = 16  # of the points are watched in a window
_ROOM = 32  # members of the margin there is room for at first


class Walk:
    """One way along a path, on a copy of the state it starts from.

    Parameters
    ----------
    store : Store
    road : Road
        Left as it is.
    seed : int
        Of the random shifts.
    trusting : bool
        Whether a sample of g will do for a certificate.
    """

    def __init__(self, store: Store, road: Road, seed: int = 0, trusting: bool = False) -> None:
        self.store = store
        self.road = _copied(road, store)
        self.seed = seed
        self.watch: Callable[[Road], None] | None = None  # told of every breakpoint
        self.residual = np.inf
        self.trusting, self.thorough = trusting, False
        self.factored = True
        self.restarts = 0
        self.repairs = 0

    @cached_property
    def rng(self) -> Generator:
        """Of the random shifts: made when one is needed, which is seldom."""
        return np.random.default_rng(self.seed)

    def settle(self) -> None:
        """Follow the path that has been set up, certify its end and repair it if need be."""
        self.travel()
        self.certify()
        for how in REPAIRS:
            if self.residual <= tolerance(self.road):
                return
            best = _copied(self.road, self.store), self.residual, self.factored
            self.repairs += 1
            self.trusting = False
            self._descend() if how is None else self._follow_again(*how)
            if not self.residual < np.inf or self.residual > best[1]:  # NaN is no better
                self.road, self.residual, self.factored = best

    def _follow_again(self, start: int, size: float) -> None:
        """Take the path on which what is violated decays, without windows."""
        road, points = self.road, present(self.road)
        road.count[FEW] = 0
        if start == NOTHING:
            road.alpha[:], road.value[INTERCEPT] = 0.0, 0.0
        elif start == GUESS:
            guess, road.value[INTERCEPT] = seed(self.store, points, road.bound[points])
            road.alpha[points] = guess
        self.start_anywhere(size)
        self.travel()
        self.certify()

    def _descend(self) -> None:
        """Go pair by pair; the margin is without a factor then."""
        self.residual = descend(self.store, self.road, 0.2 * tolerance(self.road))
        self.road = self.road._replace(gram=self.store.gram)
        self.road.at[LINE] = self.store.line
        self.factored = False

    def travel(self) -> None:
        """To θ = 1, restarting with random shifts where the path does not get there."""
        if self.go_on():
            return
        for size in RESTARTS:
            self.restarts += 1
            self.start_anywhere(size)
            if self.go_on():
                return
        self.arrive()  # by force: what that violates is left to repair
        self.trusting = False

    def go_on(self) -> bool:
        """Follow the path until it is done or has failed, and do what it asks for."""
        self.road.count[STALLS] = 0
        self.road.count[LIMIT] = self.road.count[STEPS] + 1000 + 20 * self.store.n
        while (code := self._follow()) not in (DONE, STALLED, STUCK, TOO_LONG):
            wanted = int(self.road.count[WANTED])
            if code == NEED_ROW:
                self._fetch(wanted)
            elif code == NEED_ROOM:
                self.road = _roomier(self.road, self.store, 2 * len(self.road.R))
            elif code == OPEN:
                open_window(self.road)
            elif code in (CLOSE, TURN):
                close_window(self.road)
                if code == TURN and self.road.value[THETA] > self.road.value[OPENED]:
                    open_window(self.road)
            else:
                self._happen(code, wanted)
        if code == DONE:
            self.arrive()
            if self.watch is not None:
                self.watch(self.road)
        return bool(code == DONE)

    def _follow(self) -> int:
        """Follow the path; if it is watched, from breakpoint to breakpoint, without windows."""
        if self.watch is None:
            return int(follow(self.road))
        count = self.road.count
        most, count[FEW] = count[LIMIT], 0
        self.watch(self.road)
        while True:
            count[LIMIT] = min(most, count[STEPS] + 1)
            code = int(follow(self.road))
            if code != TOO_LONG or count[STEPS] >= most:
                count[LIMIT] = most
                return code
            self.watch(self.road)

    def _happen(self, code: int, wanted: int) -> None:
        """An event that is not as usual."""
        road = self.road
        if code == RELEASE:
            release(road, wanted)
            road.count[NEXT] = wanted
            return
        if road.count[WATCHED] >= 0:
            close_window(road)
        if code == ENTER:
            release(road, wanted)
            enter(road, wanted)
        else:
            k = int(road.count[K])
            settle_at(road, withdraw(road, wanted % k), wanted >= k)

    def arrive(self) -> None:
        """Every bound is where it should end."""
        road = self.road
        road.value[THETA] = 1.0
        road.bound[:], road.rate[:] = road.final, 0.0
        at_bound = road.side >= OUTSIDE
        road.alpha[at_bound] = road.bound[at_bound]
        np.minimum(road.alpha, road.bound, out=road.alpha)

    def start(self) -> None:
        """Set the drift of a path from bounds that are to move; g, sides and R are good."""
        road, n = self.road, self.store.n
        moving = np.flatnonzero(road.rate[:n])
        road.at[MOVING, : len(moving)], road.count[MOVERS] = moving, len(moving)
        movers = moving[road.side[moving] >= OUTSIDE]
        push = road.y[movers] * road.rate[movers]
        e = imbalance(road)
        road.drift[:n] = road.y[:n] * self.store.times(np.arange(n), movers, push)
        road.drift[:n] -= road.shift[:n]
        road.value[THETA] = 0.0
        road.count[WATCHED] = road.count[NEXT] = -1
        road.count[FRESH] = 0
        road.value[PULL] = push.sum() + e
        road.value[SPREAD] = road.root[movers] @ np.abs(push)
        road.value[HEAP] = np.abs(push).sum() + road.alpha[:n].sum() + abs(e)

    def start_anywhere(self, size: float) -> None:
        """Set up a path from whatever α and b are now, with random shifts of this size."""
        road, n = self.road, self.store.n
        points = present(self.road)
        free = points[road.side[points] != PINNED]
        if size > 0.0:  # members at a bound are where ties come from
            near = 1e-10 * road.bound[free]
            road.alpha[free[road.alpha[free] <= near]] = 0.0
            high = free[road.alpha[free] >= road.bound[free] - near]
            road.alpha[high] = road.bound[high]
        inside = free[road.alpha[free] <= 0.0]
        outside = np.setdiff1d(free[road.alpha[free] >= road.bound[free]], inside)
        road.side[free] = MARGIN
        road.side[inside], road.side[outside] = INSIDE, OUTSIDE
        road.rate[:n] = road.final[:n] - road.bound[:n]
        still = points[
            (road.side[points] == INSIDE)
            | ((road.side[points] == MARGIN) & (road.rate[points] > 0.0))
        ]
        road.bound[still], road.rate[still] = road.final[still], 0.0
        road.shift[:n], road.g[:n] = 0.0, 0.0
        g = slopes(self.store, road, points)
        noise = size * self.rng.uniform(0.5, 1.5, size=len(points))
        sign = np.where(road.side[points] == INSIDE, 1.0, -1.0)
        shift = sign * (np.maximum(0.0, -sign * g) + noise)
        shift = np.where(road.side[points] == MARGIN, -g, shift)
        shift[road.side[points] == PINNED] = 0.0
        road.shift[points], road.g[points] = shift, g + shift
        self.start()
        self._factor()
        self.factored = True

    def certify(self) -> None:
        """Measure the end of the path: by a sample of g where that will do, else thoroughly."""
        drop_pinned(self.road)
        self.road.shift[:] = 0.0
        looked = sampled(self.store, self.road) if self.trusting else None
        self.thorough = self.thorough or looked is None
        self.residual = thorough(self.store, self.road) if looked is None else looked

    # --- memory and factor -----------------------------------------------------------------

    def _fetch(self, point: int) -> None:
        n = self.store.n
        course = self.road.x[COURSE, :n] * (self.road.count[WATCHED] >= 0)
        self.store.need(point, np.union1d(self.road.members, np.flatnonzero(course)))
        self.road = self.road._replace(gram=self.store.gram)
        self.road.at[LINE] = self.store.line

    def _factor(self) -> None:
        """Factor the margin anew; dependent points leave it by exchange."""
        road, points = self.road, present(self.road)
        members = np.flatnonzero(road.side[: self.store.n] == MARGIN)
        self.road.count[K] = 0
        room = max(_ROOM, len(members) + len(members) // 4 + 8)
        self.road = _roomier(self.road, self.store, room)
        road.value[RHO] = _rho(road.diagonal[points])
        for m in members:
            self._fetch(int(m)) if road.line[m] < 0 else None
        road = self.road
        A = road.gram[np.ix_(road.line[members], members)] + road.value[RHO]
        R, failed = dpotrf(A.T, lower=0, clean=1)
        if not failed and (R.diagonal() ** 2 > 100 * SOUND * A.diagonal()).all():
            k = len(members)
            road.R[:k, :k], road.at[MEMBERS, :k], road.count[K] = R, members, k
            return
        for m in members:
            release(road, int(m))
            enter(road, int(m))


def _rho(diagonal: Floats) -> float:
    mean = float(diagonal.mean()) if diagonal.size else 0.0
    return mean if mean > 0.0 else 1.0


def _roomier(road: Road, store: Store, room: int) -> Road:
    """The same with room for a larger margin."""
    k, few = road.count[K], road.count[FEW]
    R, (lines, columns) = np.empty((room, room)), road.packed.shape
    R[:k, :k] = road.R[:k, :k]
    if few and not (room + SPARE <= lines and few + SPARE <= columns):
        packed = np.empty((room + SPARE, few + SPARE))
        packed[:lines, :columns] = road.packed[: len(packed), : packed.shape[1]]
        store.packed = packed
    return road._replace(R=R, room=np.zeros((ROOMS, room)), packed=store.packed)


def _copied(road: Road, store: Store) -> Road:
    """A road of its own for all that changes, with the kernel values of the store."""
    old, n = road.x.shape[1], store.n
    x, at = np.zeros((FLOATS, store.capacity)), np.zeros((INTEGERS, store.capacity), dtype=np.int64)
    x[:SHIFT, :old], at[:WATCH, :old] = road.x[:SHIFT], road.at[:WATCH]
    at[SIDE, old:] = ABSENT
    x[DIAGONAL], x[ROOT], x[Y], at[LINE] = store.diagonal, store.root, store.y, store.line
    count = road.count.copy()
    count[N], count[WATCHED], count[NEXT], count[FRESH] = n, -1, -1, 0
    count[FEW] = n // _PART if n >= MANY else 0
    copy = road._replace(x=x, at=at, value=road.value.copy(), count=count, gram=store.gram)
    return _roomier(copy._replace(packed=store.packed), store, len(road.R))
