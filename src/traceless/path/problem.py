"""The binary hinge SVM as a state that points join and leave (Karasuyama & Takeuchi 2009).

    min ½ αᵀQα - 1ᵀα,    0 ≤ α_i ≤ u_i,    Σ y_i α_i = 0,     Q_ij = y_i y_j k(x_i, x_j)

Points added and removed, and bounds that change, are one path: the bounds of what is removed
shrink to 0, those of what is added grow from 0, all at once (`traceless.path.follow`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traceless.exact import Floats
from traceless.path.canonical import Canonical, canonical
from traceless.path.certificate import present, slopes, violation
from traceless.path.events import withdraw
from traceless.path.kernels import Kernel
from traceless.path.road import (
    ABSENT,
    INSIDE,
    INTERCEPT,
    MARGIN,
    OUTSIDE,
    PINNED,
    STEPS,
    THETA,
    K,
    Road,
    blank,
    moved,
)
from traceless.path.seed import seed
from traceless.path.store import Store
from traceless.path.walk import Walk

_ENOUGH = 200  # points from which on a new fit can be faster than an update
# A path and a new fit take equally long where the part of the points that changes is this over the
# size of the margin, on which each step depends (measured: 1 at 715, 0.5 at 1124), or the second
# number where kernel values are computed on the way (0.08 at 1761)
_BREAK_EVEN, _BREAK_EVEN_LINES = 600, 100
_LOOK = 32  # updates after which all of g is computed from scratch

Points = NDArray[np.intp]
Watch = Callable[[float, Floats], None]  # θ, and α of all points: those held, then the new ones


@dataclass(frozen=True, eq=False)
class Change:
    """The end of a path that is not taken yet: what is to be where, what is new and what goes."""

    walk: Walk
    slots: Points
    new: Points
    gone: Points


class HingeProblem:
    """One binary problem, solved at all times.

    Parameters
    ----------
    kernel : Kernel
    width : int
        Columns of a row.
    memory : int
        Bytes the kernel matrix may take; beyond, only lines of the margin are kept.
    seed : int
        Of the random shifts that break ties.

    Attributes
    ----------
    residual : float
        The largest violation of a KKT condition, as last certified.
    n_breakpoints, n_restarts, n_repairs : int
        What the paths have taken, all together.
    watch : callable(θ, α), optional
        Told of the start, the breakpoints and the end of each path.

    Examples
    --------
    >>> import numpy as np
    >>> from traceless.path import HingeProblem, Kernel
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0], [0.9]])
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0, -1.0])
    >>> problem = HingeProblem(Kernel("linear"), width=1).fit(X, y, 10.0)
    >>> problem.update(remove=[4]).decision_function([[0.5]])
    array([0.5])
    >>> problem.update(add=([[0.0]], [1.0], 10.0)).decision_function([[0.5]])
    array([2.])
    """

    def __init__(self, kernel: Kernel, width: int, memory: int = 1 << 30, seed: int = 0) -> None:
        self.kernel, self.seed = kernel, seed
        self._store = Store(kernel, width, memory)
        self._road = blank(0)
        self._slots = np.zeros(0, dtype=np.intp)  # of the rows, in the order they came
        self._canonical: Canonical | None = None
        self.watch: Watch | None = None
        self._looks = 0  # updates since g was last computed from scratch
        self._later: Store | None = None  # of a restored problem: to be filled at the next change
        self._factored = True  # whether the path can start from a factor of the margin
        self.residual = 0.0
        self.n_breakpoints = 0
        self.n_restarts = 0
        self.n_repairs = 0

    # --- what is there ---------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def X(self) -> Floats:  # noqa: N802
        """Rows, in the order they came."""
        return np.ascontiguousarray(self._store.rows[:, self._slots].T)

    @property
    def y(self) -> Floats:
        """Labels, -1.0 and 1.0."""
        return self._store.y[self._slots]

    @property
    def bounds(self) -> Floats:
        """The largest that each α may be."""
        return self._road.bound[self._slots]

    @property
    def alpha(self) -> Floats:
        """Dual variables."""
        return self._road.alpha[self._slots]

    @property
    def intercept(self) -> float:
        """The b of f(x) = Σ y α k + b."""
        return float(self._road.value[INTERCEPT])

    @property
    def slopes(self) -> Floats:
        """The g = y f - 1 of each point, as the path left it."""
        return self._road.g[self._slots]

    @property
    def sides(self) -> NDArray[np.int64]:
        """INSIDE (0), MARGIN (1) or OUTSIDE (2)."""
        return self._road.side[self._slots]

    def canonical(self) -> Canonical:
        """The solution as a function of the data alone; kept until the next change."""
        if self._canonical is None:
            self._canonical = canonical(
                self._store, self._slots, self.alpha, self.bounds, self.intercept, self.slopes
            )
        return self._canonical

    def decision_function(self, X: ArrayLike) -> Floats:
        """F at other rows, from the canonical solution."""
        return self.canonical().decision_function(np.asarray(X, dtype=np.float64) + 0.0)

    def kkt_residual(self) -> float:
        """The largest violation of a KKT condition, from scratch."""
        road = Walk(self._store, self._road).road
        points = present(road)
        road.g[points] = slopes(self._store, road, points)
        return violation(road)

    # --- changes ---------------------------------------------------------------------------

    def fit(self, X: ArrayLike, y: ArrayLike, bounds: ArrayLike) -> HingeProblem:
        """Forget everything and learn these points."""
        memory = (self._later or self._store).memory
        fresh = HingeProblem(self.kernel, self._store.rows.shape[0], memory, self.seed)
        X, y, bounds = _checked(X, y, bounds, self._store.rows.shape[0])
        slots = fresh._store.place(X, y)
        fresh.take(fresh._learned(slots, bounds, np.zeros(0, dtype=np.intp)))
        self.__dict__.update(fresh.__dict__)
        return self

    def restore(
        self,
        points: tuple[Floats, Floats, Floats],
        alpha: Floats,
        slopes: Floats,
        intercept: float,
    ) -> None:
        """Take a solution over as another process left it: X, y and bounds of all points first.

        What only changes need, the kernel matrix and the factor of the margin, is left to the
        next change; that starts from any α and b, so it would also mend what is not a solution.
        """
        X, y, bounds = points
        self._later, self._store = self._store, Store(self.kernel, X.shape[1], 0)
        slots = self._store.place(X, y)
        self._store.take(slots, slots[:0])
        road = Walk(self._store, self._road).road
        road.bound[slots] = road.final[slots] = bounds
        road.alpha[slots], road.g[slots], road.value[INTERCEPT] = alpha, slopes, intercept
        road.side[slots] = np.where(alpha <= 0.0, INSIDE, MARGIN)
        road.side[slots[alpha >= bounds]] = OUTSIDE
        self._road, self._slots, self._canonical = moved(road, slots), slots, None
        self._factored = False

    def _wake(self) -> None:
        """Compute the kernel matrix that `restore` has left out."""
        if self._later is not None:
            self._later.kernel = self.kernel
            slots = self._later.place(self.X, self.y)
            self._later.take(slots, slots[:0])
            self._store, self._later = self._later, None

    def update(
        self,
        add: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
        remove: ArrayLike = (),
        bounds: ArrayLike | None = None,
    ) -> HingeProblem:
        """Add points, remove points (by their place) and change bounds, on one path.

        What is left keeps its order, what is new comes last. All or nothing: after an
        exception the state is what it was.

        Parameters
        ----------
        add : (X, y, bounds)
        remove : places of points
        bounds : array of len(self), of the points there are now, optional
        """
        return self.take(self.prepare(add, remove, bounds))

    def prepare(
        self,
        add: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
        remove: ArrayLike = (),
        bounds: ArrayLike | None = None,
    ) -> Change:
        """Follow the path of an `update` to its end, and leave the state as it is.

        The change is to be taken, looked at with `ahead`, or dropped, before the next one.
        """
        self._wake()
        width = self._store.rows.shape[0]
        X, y, u = _checked(*add, width) if add is not None else _nothing(width)
        places = _places(remove, len(self))
        final = self.bounds if bounds is None else _bounds(bounds, len(self))
        final = np.delete(final, places)
        gone, new = self._slots[places], self._store.place(X, y)
        slots = np.concatenate([np.delete(self._slots, places), new])
        if self._better_refitted(slots, len(new) + len(gone)):
            return self._learned(slots, np.concatenate([final, u]), gone)
        walk = Walk(self._store, self._road, self.seed, trusting=self._looks < _LOOK)
        if not self._factored:  # make a factor, so that the path is that of any other state
            walk.start_anywhere(0.0)
            walk.settle()
        if self.watch is not None:
            walk.watch = partial(_tell, self.watch, np.concatenate([self._slots, new]))
        _dismiss(walk, gone)
        if bounds is not None:
            _aim(walk, slots[: len(final)], final)
        _welcome(walk, new, u)
        walk.start() if walk.factored else walk.start_anywhere(0.0)
        walk.settle()
        return Change(walk, slots, new, gone)

    def take(self, change: Change) -> HingeProblem:
        """Make the end of a prepared path the state."""
        walk, slots = change.walk, change.slots
        store, road, places = self._store, walk.road, slots
        if len(slots) + _ENOUGH < store.n // 2:  # most slots are empty
            store, road = store.compact(slots), moved(road, slots)
            places = np.arange(len(slots))
        else:
            store.take(change.new, change.gone)
        self._store, self._road, self._slots, self._canonical = store, road, places, None
        self.residual, self._factored = walk.residual, walk.factored
        self._looks = 0 if walk.thorough else self._looks + 1
        self.n_breakpoints = int(walk.road.count[STEPS])
        self.n_restarts += walk.restarts
        self.n_repairs += walk.repairs
        return self

    def ahead(self, change: Change) -> Self:
        """The state at the end of a prepared path, only to be read: it shares our kernel matrix."""
        other = copy.copy(self)
        other._road, other._slots, other._canonical = change.walk.road, change.slots, None
        return other

    def use(self, kernel: Kernel) -> None:
        """Go on with another kernel, which must have the same values for the points there are."""
        self.kernel = self._store.kernel = kernel

    def _better_refitted(self, slots: Points, n_changed: int) -> bool:
        """Whether there is no path to follow, or it would take longer than a new fit."""
        y, n = self._store.y, len(self)
        if not (_two_classes(y[self._slots]) and _two_classes(y[slots])):
            return True
        margin = max(1, int((self.sides == MARGIN).sum()))
        even = _BREAK_EVEN if self._store.whole else _BREAK_EVEN_LINES
        return self.watch is None and n >= _ENOUGH and n_changed > n * min(1.0, even / margin)

    def set_bounds(self, bounds: ArrayLike) -> HingeProblem:
        """Follow the path to other bounds: another C, other weights."""
        return self.update(bounds=np.broadcast_to(np.asarray(bounds, np.float64), len(self)))

    def _learned(self, slots: Points, bounds: Floats, gone: Points) -> Change:
        """Solve for these slots from scratch."""
        walk = Walk(self._store, blank(0), self.seed)
        road = walk.road
        road.bound[slots] = road.final[slots] = bounds
        road.side[slots] = INSIDE
        labels = road.y[slots]
        if not _two_classes(labels):  # α = 0, and f is the class there is
            road.value[INTERCEPT] = labels[0] if len(labels) else 0.0
            walk.residual = 0.0
        else:
            road.alpha[slots], road.value[INTERCEPT] = seed(self._store, slots, bounds)
            cold = not road.alpha.any()
            walk.start_anywhere(1e-2 if cold else 0.0)
            walk.settle()
        road.count[STEPS] += self.n_breakpoints
        return Change(walk, slots, slots, gone)


def _tell(watch: Watch, points: Points, road: Road) -> None:
    watch(float(road.value[THETA]), road.alpha[points].copy())


def _dismiss(walk: Walk, gone: Points) -> None:
    """Points that go are pinned to bounds that shrink to 0."""
    road = walk.road
    for m in gone[road.side[gone] == MARGIN] if road.count[K] else ():
        withdraw(road, int(np.flatnonzero(road.members == m)[0]))
    idle = gone[road.alpha[gone] <= 0.0]
    road.side[gone], road.side[idle] = PINNED, ABSENT
    road.bound[gone], road.final[gone] = road.alpha[gone], 0.0
    road.rate[gone] = -road.bound[gone]


def _aim(walk: Walk, slots: Points, final: Floats) -> None:
    """Say where the bounds of points that stay are to end."""
    road = walk.road
    road.final[slots] = final
    at_once = slots[(road.side[slots] == INSIDE) | (road.side[slots] == MARGIN)]
    wider = at_once[(road.side[at_once] == INSIDE) | (road.final[at_once] >= road.bound[at_once])]
    road.bound[wider] = road.final[wider]
    road.rate[slots] = road.final[slots] - road.bound[slots]


def _welcome(walk: Walk, new: Points, bounds: Floats) -> None:
    """Points with g ≥ 0 are inside; the others are outside a bound that grows from 0."""
    road = walk.road
    road.alpha[new], road.bound[new], road.final[new] = 0.0, 0.0, bounds
    road.g[new] = slopes(walk.store, road, new)
    inside = new[road.g[new] >= 0.0]
    road.side[new], road.side[inside] = OUTSIDE, INSIDE
    road.bound[inside] = road.final[inside]
    road.rate[new] = road.final[new] - road.bound[new]


def _two_classes(y: Floats) -> bool:
    return bool(len(y) and y.min() < y.max())


def _checked(
    X: ArrayLike, y: ArrayLike, bounds: ArrayLike, width: int
) -> tuple[Floats, Floats, Floats]:
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != width:
        raise ValueError(f"Rows of {width} columns were expected, but X has shape {X.shape}.")
    if y.shape != (len(X),) or not (np.abs(y) == 1.0).all():
        raise ValueError("y must have one label for each row, -1 or 1.")
    if not np.isfinite(X).all():
        raise ValueError("X contains NaN or infinity.")
    return X + 0.0, y, _bounds(bounds, len(X))  # + 0.0: there is one zero


def _bounds(bounds: ArrayLike, n: int) -> Floats:
    bounds = np.broadcast_to(np.asarray(bounds, dtype=np.float64), (n,))
    if not ((bounds > 0.0) & np.isfinite(bounds)).all():
        raise ValueError("Bounds must be positive and finite: leave out points of weight 0.")
    return bounds


def _places(places: ArrayLike, n: int) -> Points:
    out = np.asarray(places, dtype=np.intp).ravel()
    ordered = np.sort(out)
    if out.size and (ordered[0] < 0 or ordered[-1] >= n or (np.diff(ordered) == 0).any()):
        raise ValueError(f"`remove` must be different places, 0 to {n - 1}.")
    return out


def _nothing(width: int) -> tuple[Floats, Floats, Floats]:
    return np.zeros((0, width)), np.zeros(0), np.zeros(0)
