"""Drive a path to its end: start it, restart it where it stalls, measure what comes out.

A path can be started from *any* α and b. The violation of each KKT condition becomes a shift
of the linear term that decays with 1 - θ, and so does the violation of Σyα = total:

    shift_i = max(0, -g_i) + ξ_i  inside,    -max(0, g_i) - ξ_i  outside,    -g_i  on the margin

ξ ≥ 0 is zero, or random where the path stalled on ties: it breaks them, and vanishes at θ = 1.
The KKT residual is measured at the end of every path (`traceless.hinge.kkt`); a residual above the
tolerance is removed by the same means.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.linalg.lapack import dpotrf

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge.active_set import ActiveSet, is_one_sided
from traceless.hinge.follow import ABSENT, INSIDE, MARGIN, OUTSIDE, PINNED, Event, follow
from traceless.hinge.kernel_cache import KernelCache, Slots
from traceless.hinge.kkt import TOLERANCE, Violation, measured, sampled, thorough
from traceless.hinge.margin import SOUND, gather
from traceless.hinge.smo import descend
from traceless.hinge.working_set import close_working_set, open_working_set

RESTARTS = (1e-2, 1.0)  # sizes of the random shifts, one after the other
# What is tried where a path ends above the tolerance, one after the other: a path from there with
# random shifts of some size, or SMO
REPAIRS = 2 * (0.0, 1e-2, None)
NEAR = 1e-3  # how near SMO gets to the solution before a path takes over
_LONG = 50  # pairs for each point that it may take: with huge bounds it takes for ever
MANY = 1000  # points from which on working sets pay
_PART = 16  # of the points are a working set


class Factor(NamedTuple):
    """The Cholesky factor of a margin set, whose members are places of points."""

    R: Floats  # with room for more members
    members: Slots
    rho: float


class PathEnd(NamedTuple):
    """The end of a path, one number for each point."""

    alpha: Floats
    bounds: Floats
    slopes: Floats  # g
    sides: Integers
    intercept: float
    factor: Factor | None  # None where the path did not end with one


class PathSolver:
    """A path to follow, over points that are first put into `active`.

    Parameters
    ----------
    cache : KernelCache
    seed : int
        Of the random shifts.
    steps : int
        Breakpoints of earlier paths.
    margin : int
        Members of the margin set to have room for.

    Attributes
    ----------
    active : ActiveSet
    violation : Violation
        Of the KKT conditions, at the end of the path.
    trusting : bool
        Whether a sample of g will do to measure it.
    thorough : bool
        Whether it was measured on all points.
    factored : bool
        Whether the margin set has a factor that the next path can start from.
    """

    violation: Violation

    def __init__(self, cache: KernelCache, seed: int = 0, steps: int = 0, margin: int = 0) -> None:
        self.active = ActiveSet(cache, cache.n // _PART if cache.n >= MANY else 0, margin)
        self.active.now["steps"] = steps
        self.seed = seed
        self.trusting = self.thorough = False
        self.factored = True
        self.restarts = self.repairs = 0

    @cached_property
    def rng(self) -> Generator:
        """The generator of random shifts: made when one is needed, which is seldom."""
        return np.random.default_rng(self.seed)

    # --- what moves --------------------------------------------------------------------------

    def resume(self, slots: Slots, path_end: PathEnd) -> None:
        """Put points where an earlier path has left them."""
        active, (alpha, bounds, g, sides, b, factor) = self.active, path_end
        active.alpha[slots], active.bound[slots], active.final[slots] = alpha, bounds, bounds
        active.g[slots], active.side[slots], active.now["intercept"] = g, sides, b
        if factor is None:  # make one, so that the path is that of any other solution
            self.start_anywhere(0.0)
            self.solve()
            return
        k = len(factor.members)
        margin = active.path.margin
        margin.R[:k, :k], margin.members[:k] = factor.R[:k, :k], slots[factor.members]
        active.now["k"], active.now["rho"] = k, factor.rho
        active.fetch_all(active.members)  # a change that was given up may have used their lines

    def end(self, slots: Slots) -> PathEnd:
        """The end of the path for these points, and the factor."""
        active, factor = self.active, None
        place = np.zeros(active.cache.capacity, dtype=np.intp)
        place[slots] = np.arange(len(slots))
        if self.factored:
            R, k = active.path.margin.R, active.now["k"]
            R[k:], R[:, k:] = 0.0, 0.0  # of members that were
            factor = Factor(R, place[active.members], float(active.now["rho"]))
        alpha, bounds, g, b = active.alpha, active.bound, active.g, active.now["intercept"]
        return PathEnd(alpha[slots], bounds[slots], g[slots], active.side[slots], float(b), factor)

    def set_levels(self, slots: Slots, levels: Floats, total: float) -> None:
        """The f of points on the margin, and Σyα."""
        self.active.level[slots], self.active.now["total"] = levels, total

    def remove(self, gone: Slots) -> None:
        """Points that go are pinned to bounds that shrink to 0."""
        active = self.active
        for m in gone[active.side[gone] == MARGIN] if active.now["k"] else ():
            active.withdraw(int(np.flatnonzero(active.members == m)[0]))
        idle = gone[active.alpha[gone] <= 0.0]
        active.side[gone], active.side[idle] = PINNED, ABSENT
        active.bound[gone], active.final[gone] = active.alpha[gone], 0.0
        active.rate[gone] = -active.bound[gone]

    def move_bounds(self, slots: Slots, final: Floats) -> None:
        """Points that stay get other bounds."""
        active = self.active
        active.final[slots] = final
        at_once = slots[(active.side[slots] == INSIDE) | (active.side[slots] == MARGIN)]
        inside = active.side[at_once] == INSIDE
        wider = at_once[inside | (active.final[at_once] >= active.bound[at_once])]
        active.bound[wider] = active.final[wider]
        active.rate[slots] = active.final[slots] - active.bound[slots]

    def add(self, new: Slots, bounds: Floats) -> None:
        """New points with g ≥ 0 are inside; the others are outside a bound that grows from 0."""
        active = self.active
        active.alpha[new], active.bound[new], active.final[new] = 0.0, 0.0, bounds
        active.g[new] = active.slopes(new)
        inside = new[active.g[new] >= 0.0]
        active.side[new], active.side[inside] = OUTSIDE, INSIDE
        active.bound[inside] = active.final[inside]
        active.rate[new] = active.final[new] - active.bound[new]

    # --- the way to the end ------------------------------------------------------------------

    def fit(self, slots: Slots, bounds: Floats) -> None:
        """Solve for these points, from whatever their α is now."""
        active, levels = self.active, self.active.level[slots]
        active.bound[slots] = active.final[slots] = bounds
        active.side[slots] = INSIDE
        if is_one_sided(active.y[slots], active.now["total"]):  # f is the class there is
            active.now["intercept"] = levels[0] if len(levels) else 0.0
            active.alpha[:] = 0.0
            self.violation = Violation(0.0, 0.0, TOLERANCE)
            return
        descend(active, NEAR, _LONG * len(slots))
        self.start_anywhere(0.0)
        self.solve()

    def solve(self) -> None:
        """Follow the path that has been set up, measure its end and repair it if need be."""
        self.follow_path()
        self.measure()
        for how in REPAIRS:
            if self.violation.residual <= self.violation.tolerance:
                return
            best = self.active.copy(), self.violation, self.factored
            self.repairs += 1
            self.trusting = False
            if how is None:
                descend(self.active, 0.2 * self.violation.tolerance, 20_000)
                self.violation, self.factored = measured(self.active), False
            else:  # the violations decay, and all points are looked at
                self.active.now["few"] = 0
                self.start_anywhere(how)
                self.follow_path()
                self.measure()
            if not self.violation.residual < np.inf or self.violation.residual > best[1].residual:
                self.active, self.violation, self.factored = best  # NaN is no better
                self.active.refresh()

    def follow_path(self) -> None:
        """Follow the path to θ = 1; where it fails, restart it with random shifts."""
        if self._follow_once():
            return
        for size in RESTARTS:
            self.restarts += 1
            self.start_anywhere(size)
            if self._follow_once():
                return
        self.end_path()  # by force: what that violates is left to repair
        self.trusting = False

    def _follow_once(self) -> bool:
        """Follow the path to its end; returns whether it got there."""
        active, now = self.active, self.active.now
        now["stalls"], now["limit"] = 0, now["steps"] + 1000 + 20 * active.cache.n
        while (event := follow(active.path)) != Event.FAILED:
            if event != Event.DONE:
                self._handle(event, int(now["wanted"]))
            elif not self._goes_on():
                break
        return bool(event == Event.DONE)

    def _handle(self, event: int, wanted: int) -> None:
        """Do what a path needs to go on."""
        active, now = self.active, self.active.now
        if event in (Event.ENTER, Event.LEAVE) and now["watched"] >= 0:
            close_working_set(active)
        match event:
            case Event.LINE:
                active.fetch(wanted)
            case Event.ROOM:
                active.make_room(2 * int(now["k"]))
            case Event.OPEN:
                open_working_set(active)
            case Event.CLOSE:
                close_working_set(active)
            case Event.RELEASE:
                active.release(wanted)
                now["next"] = wanted
            case Event.ENTER:
                active.release(wanted)
                active.enter(wanted)
            case Event.LEAVE:
                k = int(now["k"])
                active.settle_at(active.withdraw(wanted % k), wanted >= k)

    def _goes_on(self) -> bool:
        """End the path; if points have crossed the margin unseen, start another from there."""
        active, n = self.active, self.active.cache.n
        missed = close_working_set(active) if active.now["watched"] >= 0 else np.zeros(n, bool)
        self.end_path()
        if not missed.any():
            return False
        active.shift[:n] = np.where(missed, -active.g[:n], 0.0)
        active.g[:n][missed] = 0.0
        active.now["few"] //= 2
        self.start()
        return True

    def end_path(self) -> None:
        """Set θ = 1 and every bound to its final value."""
        active = self.active
        active.now["theta"] = 1.0
        active.bound[:], active.rate[:] = active.final, 0.0
        at_bound = active.side >= OUTSIDE
        active.alpha[at_bound] = active.bound[at_bound]
        np.minimum(active.alpha, active.bound, out=active.alpha)

    def start(self) -> None:
        """Set the drift of a path from bounds that are to move; g, sides and R are good."""
        active, now, n = self.active, self.active.now, self.active.cache.n
        moving = np.flatnonzero(active.rate[:n])
        active.moving[: len(moving)], now["movers"] = moving, len(moving)
        movers = moving[active.side[moving] >= OUTSIDE]
        push = active.y[movers] * active.rate[movers]
        e = measured(active).imbalance
        active.drift[:n] = active.y[:n] * active.cache.times(np.arange(n), movers, push)
        active.drift[:n] -= active.shift[:n]
        active.dg[:n] = active.drift[:n]
        now["theta"], now["fresh"], now["watched"], now["next"] = 0.0, 1, -1, -1
        now["pull"] = push.sum() + e
        now["spread"] = active.root[movers] @ np.abs(push)
        now["heap"] = np.abs(push).sum() + active.alpha[:n].sum() + abs(e)

    def start_anywhere(self, size: float) -> None:
        """Set up a path from whatever α and b are now, with random shifts of this size."""
        active, n, points = self.active, self.active.cache.n, self.active.present()
        free = points[active.side[points] != PINNED]
        if size > 0.0:  # members at a bound are where ties come from
            near = 1e-10 * active.bound[free]
            active.alpha[free[active.alpha[free] <= near]] = 0.0
            high = free[active.alpha[free] >= active.bound[free] - near]
            active.alpha[high] = active.bound[high]
        inside = free[active.alpha[free] <= 0.0]
        outside = np.setdiff1d(free[active.alpha[free] >= active.bound[free]], inside)
        active.side[free] = MARGIN
        active.side[inside], active.side[outside] = INSIDE, OUTSIDE
        active.rate[:n] = active.final[:n] - active.bound[:n]
        side = active.side[points]
        still = points[(side == INSIDE) | ((side == MARGIN) & (active.rate[points] > 0.0))]
        active.bound[still], active.rate[still] = active.final[still], 0.0
        active.shift[:n], active.g[:n] = 0.0, 0.0
        g = active.slopes(points)
        noise = size * self.rng.uniform(0.5, 1.5, size=len(points))
        sign = np.where(side == INSIDE, 1.0, -1.0)
        shift = sign * (np.maximum(0.0, -sign * g) + noise)
        shift = np.where(side == MARGIN, -g, shift)
        shift[side == PINNED] = 0.0
        active.shift[points], active.g[points] = shift, g + shift
        self.start()
        self._factor(points)
        self.factored = True

    def measure(self) -> None:
        """The KKT residual at the end: by a sample of g where that will do, else on all points."""
        active = self.active
        gone = np.flatnonzero(active.side == PINNED)
        active.side[gone] = ABSENT
        for values in (active.alpha, active.bound, active.final, active.g):
            values[gone] = 0.0
        active.shift[:] = 0.0
        found = sampled(active) if self.trusting else None
        self.thorough = self.thorough or found is None
        self.violation = thorough(active) if found is None else found

    def _factor(self, points: Slots) -> None:
        """Factor the margin set anew; dependent points leave it by exchange."""
        active = self.active
        members = np.flatnonzero(active.side[: active.cache.n] == MARGIN)
        k, diagonal, active.now["k"] = len(members), active.cache.diagonal[points], 0
        active.make_room(k)
        mean = float(diagonal.mean()) if diagonal.size else 0.0
        rho = active.now["rho"] = mean if mean > 0.0 else 1.0
        active.fetch_all(members)
        A = gather(active.path.gram, active.line[members], members, np.empty((k, k))) + rho
        R, failed = dpotrf(A.T, lower=0, clean=1)
        if not failed and (R.diagonal() ** 2 > 100 * SOUND * A.diagonal()).all():
            margin, active.now["k"] = active.path.margin, k
            margin.R[:k, :k], margin.members[:k] = R, members
            return
        for m in members:
            active.release(int(m))
            active.enter(int(m))
