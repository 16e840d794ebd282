"""The points of a path: dual variables, sides, and the Cholesky factor of the margin set.

Points are INSIDE, in the MARGIN set or OUTSIDE, and `traceless.hinge.follow` moves them from one
set to another. The rarer events are here: bounds that move, and points that depend on the margin
set.

A point whose kernel column depends on those of the margin set,  k_c = A v,  cannot enter it: A
would be singular. Then α_c moves by t and the margin set by -t v, which leaves f as it is, until
one of them is at a bound: that member leaves, or the point itself has crossed to the other
side. Where the dependence is only nearly exact, what f changes becomes a shift that decays.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge import follow
from traceless.hinge.cholesky import backward, delete, forward, grow
from traceless.hinge.follow import (
    ABSENT,
    INSIDE,
    MARGIN,
    NOISE,
    OUTSIDE,
    POINT,
    Margin,
    Path,
    Window,
)
from traceless.hinge.kernel_cache import KernelCache, Slots
from traceless.hinge.margin import sum_of_rows

_SPARE = 128  # columns and rows of `packed` beyond those that a working set starts with


class ActiveSet:
    """The points in the slots of a kernel cache; none is present at first.

    Parameters
    ----------
    cache : KernelCache
    few : int
        Size of working sets; 0 for none.
    margin : int
        Members of the margin set to have room for.

    Attributes
    ----------
    y, root, alpha, bound, rate, g, drift, shift, course, line, side, dg : one number for each slot
        Described in `traceless.hinge.follow`.
    final, level, gone : likewise
        The bound at the end of the path, the f of points on the margin, and the drift of g since a
        working set was opened.
    now : the scalars of the path, by name
    path : all of it, as compiled code takes it
    """

    now: Any

    def __init__(self, cache: KernelCache, few: int, margin_size: int) -> None:
        self.cache = cache
        self._name(np.zeros(cache.capacity, POINT), np.zeros((4, cache.capacity)))
        self.moving, self.watch, self.row = np.empty((3, cache.capacity), np.int64)
        none, nobody = np.empty(0), np.empty(0, np.int64)
        margin = Margin(nobody, nobody, np.empty((0, 0)), none, none, none, none, none)
        window = Window(self.watch, np.zeros(cache.capacity), cache.packed, self.row)
        now = np.zeros(1, follow.NOW)
        self.path = Path(self.points, self.dg, margin, window, self.moving, cache.gram, now)
        self.now = now[0]
        self.root[:], self.y[:], self.level[:] = cache.root, cache.y, cache.y
        self.line[:], self.side[:] = cache.line, ABSENT
        self.now["n"], self.now["few"], self.now["watched"], self.now["next"] = cache.n, few, -1, -1
        self.make_room(margin_size)

    def _name(self, points: Any, others: Floats) -> None:
        """Give names to the numbers of points."""
        self.points, self._others = points, others
        self.y, self.root, self.alpha, self.bound, *rest = (
            points[name] for name in POINT.names or ()
        )
        self.rate, self.g, self.drift, self.shift, self.course, self.line, self.side = rest
        self.dg, self.final, self.level, self.gone = others

    def copy(self) -> Self:
        """A copy, to go back to if what is tried next does not help."""
        other, path = copy.copy(self), self.path
        other._name(self.points.copy(), self._others.copy())
        now, margin = path.now.copy(), Margin(*(values.copy() for values in path.margin))
        other.path = path._replace(points=other.points, dg=other.dg, margin=margin, now=now)
        other.now = now[0]
        return other

    def make_room(self, size: int) -> None:
        """Allocate room for a margin set of this size, and some more."""
        room = max(32, size + size // 4 + 8)
        k, few, packed, margin = self.now["k"], self.now["few"], self.cache.packed, self.path.margin
        R, (lines, columns) = np.empty((room, room)), packed.shape
        R[:k, :k] = margin.R[:k, :k]
        members = np.empty(room, np.int64)
        members[:k] = margin.members[:k]
        if few and not (room + _SPARE <= lines and few + _SPARE <= columns):
            larger = np.empty((room + _SPARE, few + _SPARE))
            larger[:lines, :columns] = packed[: len(larger), : larger.shape[1]]
            self.cache.packed = packed = larger
        self.path = self.path._replace(
            margin=Margin(members, np.empty(room, np.int64), R, *np.empty((5, room))),
            window=self.path.window._replace(packed=packed),
        )

    def fetch(self, point: int) -> None:
        """Bring the kernel values of this point into the cache."""
        moved = self.course[: self.now["n"]] * (self.now["watched"] >= 0)
        self.cache.need(point, np.union1d(self.members, np.flatnonzero(moved)))
        self.refresh()

    def fetch_all(self, members: Slots) -> None:
        """Bring the kernel values of a margin set into the cache, all at once or not at all."""
        missing = members[self.cache.line[members] < 0]
        for m in missing:
            self.cache.need(int(m), members)
        if missing.size:
            self.refresh()

    def refresh(self) -> None:
        """Use the lines that the cache holds now."""
        self.path = self.path._replace(gram=self.cache.gram)
        self.line[:] = self.cache.line

    # --- points ------------------------------------------------------------------------------

    @property
    def members(self) -> Integers:
        """Points of the margin set, in the order of the factor."""
        return self.path.margin.members[: self.now["k"]]

    def present(self) -> Slots:
        """Slots that hold a point, those of points that are being removed included."""
        return np.flatnonzero(self.side[: self.now["n"]] != ABSENT)

    def slopes(self, points: Slots) -> Floats:
        """The g = y (f - level) of some points without shifts, from scratch."""
        support = np.flatnonzero(self.alpha[: self.now["n"]] > 0.0)
        f = self.cache.times(points, support, self.y[support] * self.alpha[support])
        return np.asarray(self.y[points] * (f + self.now["intercept"] - self.level[points]))

    # --- events ------------------------------------------------------------------------------

    def count_drift(self) -> None:
        """Bring `gone`, the drift of g since the working set was chosen, up to the present θ."""
        self.gone += (self.now["theta"] - self.now["mark"]) * self.drift
        self.now["mark"] = self.now["theta"]

    def carry(self, j: int, sign: float) -> None:
        """Add the moving bound of j (OUTSIDE) to the rates of g and Σyα, or take it out again."""
        push, n = sign * self.y[j] * self.rate[j], self.now["n"]
        self.count_drift()
        self.drift[:n] += push * self.y[:n] * self.path.gram[self.line[j], :n]
        self.now["pull"] += push

    def settle_at(self, m: int, upper: bool) -> None:
        """Put a point at a bound; if the bound moves, α moves with it."""
        self.g[m] = 0.0
        self.side[m] = OUTSIDE if upper else INSIDE
        if not upper:
            self.bound[m], self.rate[m] = self.final[m], 0.0
        self.alpha[m] = self.bound[m] if upper else 0.0
        if upper and self.rate[m] != 0.0:
            self.carry(m, 1.0)

    def withdraw(self, place: int) -> int:
        """Take the member at this place out of the factor; returns its slot."""
        k, margin = self.now["k"], self.path.margin
        m = int(margin.members[place])
        delete(margin.R, k, place, margin.column, margin.p, margin.ones)
        margin.members[place : k - 1] = margin.members[place + 1 : k]
        self.now["k"] = k - 1
        return m

    def release(self, c: int) -> None:
        """Point c is about to enter the margin set, and no longer moves with its bound."""
        if self.side[c] == OUTSIDE and self.rate[c] != 0.0:
            self.carry(c, -1.0)
        if self.rate[c] > 0.0:  # a bound that grows need not be waited for
            self.bound[c], self.rate[c] = self.final[c], 0.0
        self.side[c], self.g[c] = MARGIN, 0.0

    def enter(self, c: int) -> None:
        """Put point c, released, into the margin set; if it depends on the members, by exchange."""
        rho, R, column = self.now["rho"], self.path.margin.R, self.path.margin.column
        while True:
            k = self.now["k"]
            row = self.path.gram[self.line[c]]
            column[:k] = row[self.members] + rho
            forward(R, k, column)
            if grow(R, k, column, row[c] + rho):
                self.path.margin.members[k], self.now["k"] = c, k + 1
                return
            backward(R, k, column)
            if self._exchange(c, column[:k]):
                return

    def _exchange(self, c: int, v: Floats) -> bool:
        """Move along the dependence of c to the first bound; returns whether that is its own."""
        members = self.members
        alpha, bound = self.alpha[c], self.bound[c]
        up = bool(alpha <= 0.5 * bound) != bool(0.0 < alpha < bound)  # free: to the nearer bound
        amount = self.y[c] if up else -self.y[c]  # of y α of c, for a unit
        speed = -self.y[members] * v * amount
        room = np.where(speed > 0.0, self.bound[members] - self.alpha[members], self.alpha[members])
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.maximum(room, 0.0) / np.abs(speed)
        steps[np.abs(speed) <= 1e-10 * np.abs(v).max(initial=1.0)] = np.inf
        own = bound - alpha if up else alpha
        best = min(own, steps.min(initial=np.inf))
        self._forgive(c, v, amount * best)
        self.alpha[c] += best if up else -best
        self.alpha[members] = np.clip(self.alpha[members] + best * speed, 0.0, self.bound[members])
        first = np.flatnonzero(steps == best)
        if own <= best or not first.size:  # none: nothing of v is finite, but c can go to its bound
            self.settle_at(c, up)
            return True
        place = int(first[np.argmax(np.abs(speed[first]))])
        to_upper = bool(speed[place] > 0.0)
        self.settle_at(self.withdraw(place), to_upper)
        return False

    def _forgive(self, c: int, v: Floats, amount: float) -> None:
        """What an exchange of this amount changes in f becomes a shift that decays."""
        n, left, members = self.now["n"], 1.0 - self.now["theta"], self.members
        if left <= 0.0 or amount == 0.0:
            return
        gram = self.path.gram
        change = sum_of_rows(gram, self.line[members], -v, gram[self.line[c], :n].copy())
        size = self.root[c] + np.abs(v) @ self.root[members]
        change[np.abs(change) <= 10 * NOISE * size * self.root[:n]] = 0.0
        push = self.y[:n] * (amount / left) * change
        self.shift[:n] -= push
        self.drift[:n] += push


def middle(below: Floats, above: Floats) -> float:
    """The middle of the interval that has these limits, as in LIBSVM; of half a line its end."""
    low, high = below.max(initial=-np.inf), above.min(initial=np.inf)
    ends = [end for end in (low, high) if np.isfinite(end)]
    return float(sum(ends) / len(ends)) if ends else 0.0


def is_one_sided(y: Floats, total: float) -> bool:
    """Whether α = 0 is the only solution: Σyα is 0, and there is one sign or no point."""
    return total == 0.0 and (not len(y) or bool(y.min() == y.max()))
