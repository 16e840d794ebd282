"""A solved binary problem that stays what it is: a change makes another one.

    min ½ αᵀQα - 1ᵀα,    0 ≤ α_i ≤ u_i,    Σ y_i α_i = 0,     Q_ij = y_i y_j k(x_i, x_j)

Points added and removed, and bounds that change, are one path: the bounds of what is removed
shrink to 0, those of what is added grow from 0, all at once (`traceless.path.follow`).

The numbers of a state are its own and never written to again. The kernel matrix is not: it
belongs to the newest state that was made from it (`traceless.path.store`), so that nothing of
size n² is copied for a change. A state that has lost it, because another was made from it, asks
its caller for its rows where it needs them, and computes kernel values again. So an old state
stays good, whether the change that came after it was kept, dropped, or never finished.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.path.canonical import Canonical, canonical
from traceless.path.certificate import slopes
from traceless.path.events import withdraw
from traceless.path.grouped import CEILING, PROMISE, allowed
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
    N,
    Road,
    Y,
    at_rest,
    blank,
    moved,
)
from traceless.path.seed import seed
from traceless.path.store import Slots, Store
from traceless.path.walk import Walk

_ENOUGH = 200  # points from which on a new fit can be faster than an update
# A path and a new fit take equally long where the part of the points that changes is this over the
# size of the margin, on which each step depends (measured: 1 at 715, 0.5 at 1124), or the second
# number where kernel values are computed on the way (0.08 at 1761)
_BREAK_EVEN, _BREAK_EVEN_LINES = 600, 100
_LOOK = 32  # updates after which all of g is computed from scratch

Watch = Callable[[float, Floats], None]  # θ, and α of all points: those held, then the new ones
Content = Callable[[], Floats]  # the rows of a state, in the order they came


class Held(NamedTuple):
    """Where a state has its points: a store, and what is where in it."""

    store: Store
    token: object  # by which the store knows the state
    road: Road
    slots: Slots  # of the rows, in the order they came
    lent: bool = False  # whether the state is a copy: it may read, and is to write elsewhere


class State:
    """One binary problem, solved.

    Parameters
    ----------
    kernel, width, memory, seed : as in `traceless.path.HingeProblem`

    Attributes
    ----------
    residual : float
        The largest violation of a KKT condition at the end of the path, as last certified.
    n_breakpoints, n_restarts, n_repairs : int
        What the paths have taken, all together.
    watch : callable(θ, α), optional
        Told of the start, the breakpoints and the end of each path that starts here.
    """

    def __init__(self, kernel: Kernel, width: int, memory: int, seed: int = 0) -> None:
        self.kernel, self.width, self.memory, self.seed = kernel, width, memory, seed
        store = Store(kernel, width, memory)
        store.owner = object()
        self.held = Held(store, store.owner, blank(0), np.zeros(0, dtype=np.intp))
        self.watch: Watch | None = None
        self.residual = 0.0
        self.n_breakpoints = self.n_restarts = self.n_repairs = 0
        self._looks = 0  # changes since g was last computed from scratch
        self._factored = True  # whether the path can start from a factor of the margin
        self._canonical: Canonical | None = None
        self._waits = False  # for `take_over`
        self.is_reported = False  # whether somebody was told how good it is

    def restored(
        self, y: Floats, bounds: Floats, alpha: Floats, slopes: Floats, intercept: float
    ) -> State:
        """A solution as another process left it.

        What only changes need, the kernel matrix and the factor of the margin, is left to the
        next change; that starts from any α and b, so it would also mend what is not a solution.
        """
        n, road = len(y), blank(len(y))
        road.x[Y], road.bound[:], road.final[:] = y, bounds, bounds
        road.alpha[:], road.g[:], road.value[INTERCEPT] = alpha, slopes, intercept
        road.side[:] = np.where(alpha <= 0.0, INSIDE, MARGIN)
        road.side[alpha >= bounds] = OUTSIDE
        road.count[N] = n
        slots = np.arange(n, dtype=np.intp)
        elsewhere = Store(self.kernel, self.width, self.memory)
        return self._with(
            held=Held(elsewhere, object(), at_rest(road, slots), slots), _factored=False
        )

    def lent(self) -> State:
        """The same, for a copy that leaves the kernel matrix to us, and copies it to change."""
        held, told = self.held._replace(lent=True), self.is_reported
        return self._with(held=held, _canonical=self._canonical, is_reported=told)

    def __deepcopy__(self, _: Any) -> State:
        return self.lent()

    def with_kernel(self, kernel: Kernel) -> State:
        """The same with a kernel that has the same values for the points there are."""
        found = self._canonical and replace(self._canonical, kernel=kernel)
        told = self.is_reported
        return self._with(kernel=kernel, _canonical=found, _waits=self._waits, is_reported=told)

    def _with(self, **values: Any) -> Self:
        other = copy.copy(self)
        fresh = {"watch": None, "_canonical": None, "_waits": False, "is_reported": False}
        other.__dict__ |= fresh | values
        return other

    # --- what is there ---------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.held.slots)

    @property
    def y(self) -> Floats:
        """Labels, -1.0 and 1.0."""
        return self.held.road.y[self.held.slots]

    @property
    def bounds(self) -> Floats:
        """The largest that each α may be."""
        return self.held.road.bound[self.held.slots]

    @property
    def alpha(self) -> Floats:
        """Dual variables, as the path left them."""
        return self.held.road.alpha[self.held.slots]

    @property
    def intercept(self) -> float:
        """The b of f(x) = Σ y α k + b, as the path left it."""
        return float(self.held.road.value[INTERCEPT])

    @property
    def slopes(self) -> Floats:
        """The g = y f - 1 of each point, as the path left it."""
        return self.held.road.g[self.held.slots]

    @property
    def sides(self) -> NDArray[np.int64]:
        """INSIDE (0), MARGIN (1) or OUTSIDE (2)."""
        return self.held.road.side[self.held.slots]

    def certified(self, tol: float) -> bool:
        """Whether the end of the path is so good that what is published need not be reported.

        That is no worse than what `allowed` says, or is the end of the path itself.
        """
        road, slots = self.held.road, self.held.slots
        size = float(np.abs(road.diagonal[slots]).max(initial=0.0))
        noise = 10 * float(np.finfo(np.float64).eps) * float(road.alpha[slots].sum()) * size
        return tol >= PROMISE and self.residual <= allowed(noise) and 0.1 * noise <= CEILING

    def canonical(self, content: Content) -> Canonical:
        """The solution that is published: a function of the data alone, or flagged.

        It is computed when it is first asked for, with the kernel matrix as long as that is ours.
        """
        found = self._canonical
        if found is None:
            held = self.held
            with held.store.lock:
                if held.store.serves(held.token):
                    found = self._published(held.store, held)
            if found is None:
                store = Store(self.kernel, self.width, 0)
                slots = store.place(content(), self.y, held.slots[:0], None)
                found = self._published(store, held._replace(road=_moved(held), slots=slots))
            self._canonical = found
        return found

    def _published(self, store: Store, held: Held) -> Canonical:
        road, slots = held.road, held.slots
        b = float(road.value[INTERCEPT])
        return canonical(store, slots, road.alpha[slots], road.bound[slots], b, road.g[slots])

    # --- changes ---------------------------------------------------------------------------

    def changed(
        self,
        content: Content,
        add: tuple[Floats, Floats, Floats],
        gone: NDArray[np.intp],
        bounds: Floats | None = None,
        kernel: Kernel | None = None,
        memory: int | None = None,
    ) -> State:
        """The state with more points, less some, and with other bounds; this one stays as it is.

        What is left keeps its order, what is new comes last. The state returned does not own
        the kernel matrix before it is told to `take_over`.

        Parameters
        ----------
        content : callable
            Gives our own rows.
        add : rows, labels and bounds of new points
        gone : places of the points that go
        bounds : of all points there are now, optional
        kernel : Kernel, optional
            To go on with; it must have the values of ours for the points there are.
        memory : int, optional
            To go on with.
        """
        X, y, u = add
        kernel, memory = kernel or self.kernel, memory or self.memory
        final = np.delete(self.bounds if bounds is None else bounds, gone)
        with self._at_work(content, kernel, memory) as held:
            store, token, new = held.store, held.token, held.slots[:0]
            if len(X):
                token = object()
                new = store.place(X, y, held.slots, token)
            slots = np.concatenate([np.delete(held.slots, gone), new])
            with np.errstate(all="ignore"):  # what is not finite is found by the certificate
                if self._better_refitted(store, slots, len(new) + len(gone)):
                    walk = self._learned(store, slots, np.concatenate([final, u]))
                else:
                    aim = None if bounds is None else final
                    walk = self._followed(held, slots, aim, gone, u)
            road = at_rest(walk.road, slots)
        return self._with(
            kernel=kernel,
            memory=memory,
            held=Held(store, token, road, slots, lent=token is held.token),
            residual=walk.residual,
            n_breakpoints=int(road.count[STEPS]),
            n_restarts=self.n_restarts + walk.restarts,
            n_repairs=self.n_repairs + walk.repairs,
            _looks=0 if walk.thorough else self._looks + 1,
            _factored=walk.factored,
            _waits=True,
        )

    def take_over(self) -> None:
        """Own the kernel matrix from now on; what it holds of points that are not ours is erased.

        Where another state has taken it meanwhile, the next change makes one of its own.
        """
        store, token, _, slots, _ = self.held
        with store.lock:
            if not self._waits or not store.serves(token):
                return
            self._waits = False
            if len(slots) + _ENOUGH < store.n // 2:  # most slots are empty
                store = store.moved(slots, self.memory)
                self.held = Held(store, object(), _moved(self.held), np.arange(len(slots)))
            else:
                self.held = self.held._replace(token=object(), lent=False)
            store.kernel = self.kernel
            store.hand_over(self.held.token, self.held.slots)

    @contextmanager
    def _at_work(self, content: Content, kernel: Kernel, memory: int) -> Iterator[Held]:
        """Our points in a store that others may not touch meanwhile."""
        while True:
            held, store = self.held, None
            with held.store.lock:
                if held.store.serves(held.token):
                    if not held.lent and held.store.suits(memory):
                        held.store.kernel, held.store.memory = kernel, memory
                        yield held
                        return
                    store, slots = held.store.moved(held.slots, memory), np.arange(len(self))
            token = object()
            if store is None:
                store = Store(kernel, self.width, memory)
                slots = store.place(content(), self.y, held.slots[:0], token)
            store.hand_over(token, slots)
            self.held = Held(store, token, _moved(held), slots)

    def _followed(
        self, held: Held, slots: Slots, final: Floats | None, gone: NDArray[np.intp], u: Floats
    ) -> Walk:
        """The end of the path to these slots, the new ones last with bounds u."""
        new = slots[len(slots) - len(u) :]
        walk = Walk(held.store, held.road, self.seed, trusting=self._looks < _LOOK)
        if not self._factored:  # make a factor, so that the path is that of any other state
            walk.start_anywhere(0.0)
            walk.settle()
        if self.watch is not None:
            walk.watch = partial(_tell, self.watch, np.concatenate([held.slots, new]))
        _dismiss(walk, held.slots[gone])
        if final is not None:
            _aim(walk, slots[: len(final)], final)
        _welcome(walk, new, u)
        walk.start() if walk.factored else walk.start_anywhere(0.0)
        walk.settle()
        return walk

    def _learned(self, store: Store, slots: Slots, bounds: Floats) -> Walk:
        """Solve for these slots from scratch."""
        walk = Walk(store, blank(0), self.seed)
        road = walk.road
        road.bound[slots] = road.final[slots] = bounds
        road.side[slots] = INSIDE
        labels = road.y[slots]
        if not _two_classes(labels):  # α = 0, and f is the class there is
            road.value[INTERCEPT] = labels[0] if len(labels) else 0.0
            walk.residual = 0.0
        else:
            road.alpha[slots], road.value[INTERCEPT] = seed(store, slots, bounds)
            cold = not road.alpha.any()
            walk.start_anywhere(1e-2 if cold else 0.0)
            walk.settle()
        walk.road.count[STEPS] += self.n_breakpoints
        return walk

    def _better_refitted(self, store: Store, slots: Slots, n_changed: int) -> bool:
        """Whether there is no path to follow, or it would take longer than a new fit."""
        n = len(self)
        if not (_two_classes(self.y) and _two_classes(store.y[slots])):
            return True
        margin = max(1, int((self.sides == MARGIN).sum()))
        even = _BREAK_EVEN if store.whole else _BREAK_EVEN_LINES
        return self.watch is None and n >= _ENOUGH and n_changed > n * min(1.0, even / margin)


def _moved(held: Held) -> Road:
    return moved(held.road, held.slots)


def _tell(watch: Watch, points: Slots, road: Road) -> None:
    watch(float(road.value[THETA]), road.alpha[points].copy())


def _dismiss(walk: Walk, gone: Slots) -> None:
    """Points that go are pinned to bounds that shrink to 0."""
    road = walk.road
    for m in gone[road.side[gone] == MARGIN] if road.count[K] else ():
        withdraw(road, int(np.flatnonzero(road.members == m)[0]))
    idle = gone[road.alpha[gone] <= 0.0]
    road.side[gone], road.side[idle] = PINNED, ABSENT
    road.bound[gone], road.final[gone] = road.alpha[gone], 0.0
    road.rate[gone] = -road.bound[gone]


def _aim(walk: Walk, slots: Slots, final: Floats) -> None:
    """Say where the bounds of points that stay are to end."""
    road = walk.road
    road.final[slots] = final
    at_once = slots[(road.side[slots] == INSIDE) | (road.side[slots] == MARGIN)]
    wider = at_once[(road.side[at_once] == INSIDE) | (road.final[at_once] >= road.bound[at_once])]
    road.bound[wider] = road.final[wider]
    road.rate[slots] = road.final[slots] - road.bound[slots]


def _welcome(walk: Walk, new: Slots, bounds: Floats) -> None:
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
