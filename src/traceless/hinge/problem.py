"""One binary hinge SVM, solved, that points join and leave (Karasuyama & Takeuchi 2009).

    min ½ αᵀQα - Σ y_i t_i α_i,    0 ≤ α_i ≤ u_i,    Σ y_i α_i = τ,     Q_ij = y_i y_j k(x_i, x_j)

has an f = Σ y α k + b with g = y (f - t) ≥ 0 where α = 0, g ≤ 0 where α = u, and g = 0 between. The
t_i are levels of f: ±1 for a classifier, the sides of a tube, or 0 (`traceless.hinge.machines`).

The solution is piecewise linear in the bounds u. Points added and removed, and bounds that change,
are one path: the bounds of what is removed shrink to 0, those of what is added grow from 0, all at
once (`traceless.hinge.solver`).

`HingeProblem.changed` makes another problem. The numbers of a problem are its own and are never
written to again. The kernel matrix is not: it belongs to the newest problem that was made from it
(`traceless.hinge.kernel_cache`), so that nothing of size n² is copied for a change. A problem that
has lost it, because another was made from it, computes kernel values again where it needs them. So
an old problem stays good, whether the change that came after it was kept, dropped, or never
finished.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge.active_set import is_one_sided
from traceless.hinge.canonical import Canonical, canonical
from traceless.hinge.follow import INSIDE, MARGIN, OUTSIDE
from traceless.hinge.groups import CEILING, MEASURED_AGAIN, PROMISE
from traceless.hinge.kernel_cache import KernelCache, Slots, gather
from traceless.hinge.kernels import Kernel
from traceless.hinge.rows import Target, TrainingRows
from traceless.hinge.solver import Factor, PathEnd, PathSolver

_ENOUGH = 200  # points from which on SMO can be faster than a path
# SMO from the solution before, and a path of a few steps behind it, are faster than a path where
# this part of all points is on the margin, and this part as many change as are there (measured: C
# is small then, which is when SMO needs few pairs)
_LARGE, _BREAK_EVEN = 1 / 8, 0.6
_LOOK = 32  # updates after which all of g is computed from scratch

Points = tuple[ArrayLike, ArrayLike, ArrayLike]  # rows, labels and bounds
Terms = tuple[Integers, Floats, float]  # ids of points, c and b of f = Σ c k + b
Watch = Callable[[float, Floats], None]  # θ, and α of all points: those held, then the new ones


class OwnRows(NamedTuple):
    """Rows of one problem alone."""

    X: Floats
    ids: Integers


Rows = TrainingRows | OwnRows  # with ids in ascending order; those of a problem are among them
_NONE = np.zeros(0, dtype=np.int64)
_ZEROS, _NO_FACTOR = np.zeros(0), Factor(np.zeros((0, 0)), _NONE, 0.0)
_NOTHING = PathEnd(_ZEROS, _ZEROS, _ZEROS, _NONE, 0.0, _NO_FACTOR)


class _Held(NamedTuple):
    """The slots of a kernel cache that hold the points of a problem."""

    cache: KernelCache
    token: object  # by which the cache knows the problem
    slots: Slots  # of the rows, in the order they came
    lent: bool = False  # whether another problem needs these slots: they are only read then


class HingeProblem:
    """One binary problem, solved at all times.

    Parameters
    ----------
    kernel : Kernel
    width : int
        Columns of a row.
    memory : int
        Bytes the kernel matrix may take; beyond, only lines of the margin set are kept.
    seed : int
        Of the random shifts that break ties.

    Attributes
    ----------
    ids : ids of the points among ``rows``, in the order they came
    y : labels, -1.0 and 1.0
    levels, total : the t and τ above
    bounds : the largest that each α may be
    scale, offset : f stands for scale · f + offset
    copies : points for each row
    alpha, slopes, sides, intercept : as the path left them
        The g of each point; INSIDE (0), MARGIN (1) or OUTSIDE (2); the b of
        f(x) = Σ y α k + b.
    residual : float
        The largest violation of a KKT condition at the end of the path.
    n_breakpoints, n_restarts, n_repairs : int
        Of all paths so far.
    watch : callable(θ, α), optional
        Called at the start, the breakpoints and the end of each path that starts here.
    is_ahead : bool
        Whether the problem is only to be looked at: its decision values are those of the path.

    Examples
    --------
    >>> import numpy as np
    >>> from traceless.hinge.kernels import Kernel
    >>> from traceless.hinge.problem import HingeProblem
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0], [0.9]])
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0, -1.0])
    >>> problem = HingeProblem(Kernel("linear"), width=1).fit(X, y, 10.0)
    >>> problem.update(remove=[4]).decision_function([[0.5]])
    array([0.5])
    >>> problem.update(add=([[0.0]], [1.0], 10.0)).decision_function([[0.5]])
    array([2.])
    """

    rows: Rows
    alpha: Floats
    bounds: Floats
    slopes: Floats
    sides: Integers
    intercept: float

    def __init__(self, kernel: Kernel, width: int, memory: int = 1 << 30, seed: int = 0) -> None:
        self.kernel, self.width, self.memory, self.seed = kernel, width, memory, seed
        cache = KernelCache(kernel, width, memory)
        cache.owner = object()
        self._held = _Held(cache, cache.owner, _NONE)
        self.rows, self.ids, self.y = OwnRows(np.zeros((0, width)), _NONE), _NONE, np.zeros(0)
        self.levels, self.total, self.scale, self.offset, self.copies = self.y, 0.0, 1.0, 0.0, 1
        self._end = _NOTHING
        self.__dict__ |= _NOTHING._asdict()
        self.watch: Watch | None = None
        self.residual = 0.0
        self.n_breakpoints = self.n_restarts = self.n_repairs = 0
        self.is_ahead = False
        self.is_reported = False  # whether a caller was told of the KKT residual
        self._largest = 0.0  # k(x, x) of a point
        self._looks = 0  # changes since g was last computed from scratch
        self._canonical: Canonical | None = None
        self._waits = False  # for `take_over`

    def _with(self, **values: Any) -> Self:
        """A copy with some values, and nothing that only holds for the original."""
        other = copy.copy(self)
        other.watch = other._canonical = None
        other._waits = other.is_reported = other.is_ahead = False
        other.__dict__ |= values
        return other

    def __deepcopy__(self, _: Any) -> Self:
        """A copy that leaves the kernel matrix to this problem: to change, it makes its own."""
        held, told = self._held._replace(lent=True), self.is_reported
        return self._with(_held=held, _canonical=self._canonical, is_reported=told)

    def with_kernel(self, kernel: Kernel) -> Self:
        """The same with a kernel that has the same values for the points there are."""
        found = self._canonical and replace(self._canonical, kernel=kernel)
        told = self.is_reported
        return self._with(kernel=kernel, _canonical=found, _waits=self._waits, is_reported=told)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def X(self) -> Floats:  # noqa: N802
        """Rows of the points, in the order they came."""
        return self._rows_of(self.rows, self.ids)

    def _rows_of(self, rows: Rows, ids: Integers) -> Floats:
        return rows.X[np.searchsorted(rows.ids, ids // self.copies)]

    # --- what is published -------------------------------------------------------------------

    def canonical(self) -> Canonical:
        """The solution that is published: a function of the data alone, or flagged.

        It is computed when it is first asked for, with the kernel matrix as long as that is ours.
        """
        found, (cache, token, slots, _) = self._canonical, self._held
        if found is None:
            end = self._end._replace(alpha=self._net(self.alpha)), self.levels, self.total
            with cache.lock:
                if cache.serves(token):
                    found = canonical(cache, slots, *end)
            if found is None:
                cache = KernelCache(self.kernel, self.width, 0)
                found = canonical(cache, cache.place(self.X, self.y, _NONE, None), *end)
            self._canonical = found
        return found

    def _net(self, alpha: Floats) -> Floats:
        """The same f by smaller α: what the two copies of a row have in common cancels.

        With ε = 0 both may be as large as their bound, and f would be the difference of large
        numbers.
        """
        if self.copies == 1:
            return alpha
        common = alpha.reshape(-1, self.copies).min(axis=1)
        return alpha - np.repeat(common, self.copies)

    def decision_function(self, X: ArrayLike) -> Floats:
        """The f of other rows: of the canonical solution, or of the path if `is_ahead`.

        The path's are within its KKT residual, not to the bit.
        """
        X = np.asarray(X, dtype=np.float64) + 0.0
        if not self.is_ahead:
            return self.canonical().decision_function(X)
        ids, c, b = self.terms(as_path=True)
        V = self.kernel.values(self._rows_of(self.rows, ids), np.ascontiguousarray(X.T))
        return np.asarray(c @ V + b)

    def terms(self, as_path: bool) -> Terms:
        """The c and the b of f = Σ c k + b, as published or of the path, and ids of the points.

        The order is that in which the terms are to be added.
        """
        if as_path:
            used, b = np.flatnonzero(self.alpha), self.intercept
            c = self.y[used] * self.alpha[used]
        else:
            solution = self.canonical()
            used, b = solution.first[np.flatnonzero(solution.shares)], solution.constant
            c = solution.coefficients
        return self.ids[used], c, b

    @property
    def is_published(self) -> bool:
        """Whether the canonical solution was computed already."""
        return self._canonical is not None

    @property
    def tells_b(self) -> bool:
        """Whether a row is between its bounds, so that there is one b.

        Else any b of an interval will do: its middle is published, and paths end anywhere in it.
        """
        middle = 0.5 * self.bounds
        return bool((np.abs(self.alpha - middle) < (1.0 - 2e-9) * middle).any())

    def doubt(self, X: Floats) -> float:
        """How small an f at the end of the path may be so that its published sign is in doubt.

        The primal objective is strongly convex: where no condition is violated by more than r, the
        solution is no further away than  ½ ‖Δf‖² ≤ r Σα,  so  |Δf(x)| ≤ √(2 r Σα k(x, x))  without
        b, and b follows from f on the margin, if that has rows. Twice that for each of the two
        solutions: r is the most that either may violate.
        """
        if not self.tells_b:
            return math.inf
        size = max(self._largest, float(np.abs(self.kernel.diagonal(X)).max(initial=0.0)))
        return 4.0 * math.sqrt(2.0 * self._limit() * float(self.alpha.sum()) * size)

    def _noise(self) -> float:
        """How much of g rounding may explain: ten times what it typically leaves."""
        return 10 * float(np.finfo(np.float64).eps) * float(self.alpha.sum()) * self._largest

    def _limit(self) -> float:
        """What `canonical` may violate before the end of the path is published in its place."""
        return MEASURED_AGAIN * max(PROMISE, min(self._noise(), CEILING))

    def kkt_residual(self) -> float:
        """The largest violation of a KKT condition by what is published, from scratch."""
        points = self.X, self.y, self.bounds, self.levels, self.total
        return self.canonical().violation(*points)

    def certified(self, tol: float) -> bool:
        """Whether the end of the path is so good that what is published need not be reported.

        What is published is no worse than this limit, or is the end of the path itself.
        """
        exact = self.residual <= self._limit() and 0.1 * self._noise() <= CEILING
        return tol >= PROMISE and exact

    def excess(self, tol: float, asked: bool) -> float:
        """The KKT residual, if it is to be reported and has not been yet, or 0.

        What the path certifies needs no report before the solution is `asked` for: then it is
        computed, and measured on all rows, so that nothing wrong is published without a word.
        """
        if self.is_reported or not (asked or self.is_published or not self.certified(tol)):
            return 0.0
        found = self.canonical().excess(tol)
        self.is_reported = True
        return found

    def spares(self) -> bool:
        """Whether rows with α = 0 can go without a change of the solution."""
        solution = self.canonical()
        margin = (solution.alpha > 0.0) & (solution.alpha < solution.bounds)
        return bool(solution.certain and margin.any())

    # --- changes -----------------------------------------------------------------------------

    def fit(self, X: ArrayLike, y: ArrayLike, bounds: ArrayLike) -> Self:
        """Forget everything and learn these points."""
        fresh = HingeProblem(self.kernel, self.width, self.memory, self.seed)
        return self._become(fresh.changed((X, y, bounds)))

    def update(
        self, add: Points | None = None, remove: ArrayLike = (), bounds: ArrayLike | None = None
    ) -> Self:
        """Add points, remove points (by their place) and change bounds, on one path.

        What is left keeps its order, what is new comes last. All or nothing: after an
        exception the problem is what it was.

        Parameters
        ----------
        add : (X, y, bounds)
        remove : places of points
        bounds : array of len(self), of the points there are now, optional
        """
        return self._become(self.changed(add, remove, bounds))

    def set_bounds(self, bounds: ArrayLike) -> Self:
        """Follow the path to other bounds: another C, other weights."""
        return self.update(bounds=np.broadcast_to(np.asarray(bounds, np.float64), len(self)))

    def _become(self, other: HingeProblem) -> Self:
        other.take_over()
        self.__dict__ |= other.__dict__ | {"watch": self.watch}
        return self

    def changed(
        self, add: Points | None = None, remove: ArrayLike = (), bounds: ArrayLike | None = None
    ) -> Self:
        """The problem after an `update`; this one stays as it is."""
        new = _checked(add or (np.zeros((0, self.width)), [], []), self.width)
        gone = _places(remove, len(self))
        final = None if bounds is None else _bounds(bounds, len(self))
        X = np.concatenate([np.delete(self.X, gone, axis=0), new[0]])
        ids, y = np.arange(len(X)), np.concatenate([np.delete(self.y, gone), new[1]])
        u = np.concatenate([np.delete(self.bounds if final is None else final, gone), new[2]])
        goal = Target(ids, y, u, y)
        return self._moved(OwnRows(X, ids), new[0], gone, goal, self.kernel, self.memory)

    def changed_to(
        self,
        target: Target,
        rows: Rows,
        kernel: Kernel,
        memory: int,
        gram: Floats | None = None,
    ) -> Self:
        """The problem of the target's points, at the end of a path from this one, which stays.

        A kernel other than ours must have the same values for the points there are. The problem
        returned does not own the kernel matrix before it is told to `take_over`. A `gram` of all
        rows spares the first points the computation of theirs.
        """
        before = self._in_units_of(target)
        kept, at = _found_among(self.ids, target.ids)
        if kept.all() and len(at) == len(target.ids) and before.is_problem_of(target, at):
            same = copy.copy(before)
            same.rows = rows
            return same
        new = np.ones(len(target.ids), dtype=bool)
        new[at] = False
        order = np.concatenate([at, np.flatnonzero(new)])
        X = before._rows_of(rows, target.ids[new])
        ids, y, bounds, levels = (values[order] for values in target[:4])
        goal = target._replace(ids=ids, y=y, bounds=bounds, levels=levels)
        if gram is not None and not len(self):
            at = np.searchsorted(rows.ids, ids // target.copies)
            gram = gather(gram, at, at, np.empty((len(at), len(at))))
        return before._moved(rows, X, np.flatnonzero(~kept), goal, kernel, memory, gram)

    def is_problem_of(self, target: Target, at: NDArray[np.intp], kept: Any = ...) -> bool:
        """Whether what it says of the points kept, at these places of it, is what we have."""
        return (
            np.array_equal(self.bounds[kept], target.bounds[at])
            and np.array_equal(self.levels[kept], target.levels[at])
            and (self.total, self.scale, self.offset) == target[4:7]
        )

    def _in_units_of(self, target: Target) -> Self:
        """The same problem with the scale, the offset and the copies of another."""
        ours, theirs = (self.scale, self.offset, self.copies), target[5:]
        if ours == theirs:
            return self
        r, lift = self.scale / target.scale, (self.offset - target.offset) / target.scale
        alpha, bounds, slopes, sides, b, factor = self._end
        end = PathEnd(alpha * r, bounds * r, slopes * r, sides, b * r + lift, factor)
        values: dict[str, Any] = {"levels": self.levels * r + lift, "total": self.total * r}
        values["watch"] = self.watch
        values |= dict(zip(("scale", "offset", "copies"), theirs, strict=True))
        return self._with(_end=end, **values, **end._asdict())

    def is_spared(self, target: Target) -> bool:
        """Whether the target only lacks points without which the solution is the same."""
        kept, at = _found_among(self.ids, target.ids)
        if len(at) < len(target.ids):
            return False
        solution = self.canonical()
        return bool(
            (solution.alpha[solution.group[~kept]] <= 0.0).all()
            and self.is_problem_of(target, at, kept)
            and self.spares()
        )

    def restored(
        self, rows: Rows, target: Target, alpha: Floats, slopes: Floats, b: float, residual: float
    ) -> Self:
        """The problem of the target's points with a solution from another process.

        What only changes need, the kernel matrix and the factor of the margin set, is left to the
        next change; that starts from any α and b, so it would also mend what is not a solution.
        """
        sides = np.where(alpha <= 0.0, INSIDE, np.where(alpha >= target.bounds, OUTSIDE, MARGIN))
        end = PathEnd(alpha.copy(), target.bounds, slopes.copy(), sides, b, None)
        cache = KernelCache(self.kernel, self.width, self.memory)
        held = _Held(cache, object(), _NONE)  # a token that the cache does not know
        values = target._asdict() | {"rows": rows, "residual": residual}
        return self._with(_held=held, _end=end, **values | end._asdict())

    def _moved(
        self,
        rows: Rows,
        X: Floats,
        gone: Slots,
        goal: Target,
        kernel: Kernel,
        memory: int,
        gram: Floats | None = None,
    ) -> Self:
        """The problem less some points and with new ones X, of these rows.

        The goal has the points that are kept first, in our order, and then the new ones.
        """
        kept = len(goal.y) - len(X)
        levels = np.delete(self.levels, gone)
        jumps = not np.array_equal(levels, goal.levels[:kept])
        with self._at_work(kernel, memory) as (cache, token, old, _):
            new, lent = old[:0], True
            if len(X):
                token, lent = object(), False
                new = cache.place(X, goal.y[kept:], old, token, gram)
            slots = np.concatenate([np.delete(old, gone), new])
            margin = int((self.sides == MARGIN).sum())
            solver = PathSolver(cache, self.seed, self.n_breakpoints, margin)
            with np.errstate(all="ignore"):  # what is not finite shows in the KKT residual
                if self._better_refitted(goal, len(new) + len(gone), margin):
                    solver.set_levels(slots, goal.levels, goal.total)
                    solver.active.alpha[slots[:kept]] = np.delete(self.alpha, gone)
                    solver.fit(slots, goal.bounds)
                else:
                    solver.trusting = self._looks < _LOOK
                    solver.set_levels(old, self.levels, self.total)
                    solver.resume(old, self._end)
                    solver.set_levels(slots, goal.levels, goal.total)
                    if (tell := self.watch) is not None:
                        both = np.concatenate([old, new])
                        solver.active.strict = not len(new) + len(gone)  # bounds alone change
                        solver.watch = lambda a: tell(float(a.now["theta"]), a.alpha[both])
                    solver.remove(old[gone])
                    if not np.array_equal(np.delete(self.bounds, gone), goal.bounds[:kept]):
                        solver.move_bounds(slots[:kept], goal.bounds[:kept])
                    solver.add(new, goal.bounds[kept:])
                    if jumps or not solver.factored:
                        solver.start_anywhere(0.0)
                    else:
                        solver.start()
                    solver.solve()
            end = solver.end(slots)
            largest = float(np.abs(cache.diagonal[slots]).max(initial=0.0))
        return self._with(
            kernel=kernel,
            memory=memory,
            rows=rows,
            residual=solver.violation.residual,
            n_breakpoints=int(solver.active.now["steps"]),
            n_restarts=self.n_restarts + solver.restarts,
            n_repairs=self.n_repairs + solver.repairs,
            _held=_Held(cache, token, slots, lent),
            _end=end,
            _largest=largest,
            _looks=0 if solver.thorough else self._looks + 1,
            _waits=True,
            **goal._asdict() | end._asdict(),
        )

    def _better_refitted(self, goal: Target, n_changed: int, margin: int) -> bool:
        """Whether there is no path to follow, or it would take longer than a new fit."""
        n = len(self.y)
        if not n or is_one_sided(self.y, self.total) or is_one_sided(goal.y, goal.total):
            return True
        limit = min(n, _BREAK_EVEN * margin) if margin > _LARGE * n else n
        return self.watch is None and n >= _ENOUGH and n_changed > limit

    # --- the kernel matrix -------------------------------------------------------------------

    @contextmanager
    def _at_work(self, kernel: Kernel, memory: int) -> Iterator[_Held]:
        """Lock a cache that holds our points and may be written to."""
        while True:
            (cache, token, slots, lent), moved = self._held, None
            with cache.lock:
                if cache.serves(token):
                    fits = 8 * cache.capacity * cache.capacity <= memory
                    if not lent and fits == cache.whole:
                        cache.kernel, cache.memory = kernel, memory
                        yield self._held
                        return
                    moved = cache.moved(slots, memory)
            if moved is None:
                moved = KernelCache(kernel, self.width, memory)
                moved.place(self.X, self.y, _NONE, None)
            self._held = _Held(moved, object(), np.arange(len(self.y)))
            moved.hand_over(self._held.token, self._held.slots)

    def take_over(self) -> None:
        """Own the kernel matrix from now on; what it holds of points that are not ours is erased.

        Where another problem has taken it meanwhile, the next change makes one of its own.
        """
        cache, token, slots, _ = self._held
        with cache.lock:
            if not self._waits or not cache.serves(token):
                return
            self._waits = False
            if len(slots) + _ENOUGH < cache.n // 2:  # most slots are empty
                cache, slots = cache.moved(slots, self.memory), np.arange(len(slots))
            self._held = _Held(cache, object(), slots)
            cache.kernel = self.kernel
            cache.hand_over(self._held.token, slots)


def _found_among(ids: Integers, others: Integers) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Which of some ids are among others in ascending order, and their places there."""
    at = np.searchsorted(others, ids)
    found = at < len(others)
    found[found] = others[at[found]] == ids[found]
    return found, at[found]


def _checked(points: Points, width: int) -> tuple[Floats, Floats, Floats]:
    X, y = np.asarray(points[0], dtype=np.float64), np.asarray(points[1], dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != width:
        raise ValueError(f"Rows of {width} columns were expected, but X has shape {X.shape}.")
    if y.shape != (len(X),) or not (np.abs(y) == 1.0).all():
        raise ValueError("y must have one label for each row, -1 or 1.")
    if not np.isfinite(X).all():
        raise ValueError("X contains NaN or infinity.")
    return X + 0.0, y, _bounds(points[2], len(X))  # + 0.0: there is one zero


def _bounds(bounds: ArrayLike, n: int) -> Floats:
    bounds = np.broadcast_to(np.asarray(bounds, dtype=np.float64), (n,))
    if not ((bounds > 0.0) & np.isfinite(bounds)).all():
        raise ValueError("Bounds must be positive and finite: leave out points of weight 0.")
    return bounds


def _places(places: ArrayLike, n: int) -> NDArray[np.intp]:
    out = np.asarray(places, dtype=np.intp).ravel()
    ordered = np.sort(out)
    if out.size and (ordered[0] < 0 or ordered[-1] >= n or (np.diff(ordered) == 0).any()):
        raise ValueError(f"`remove` must be different places, 0 to {n - 1}.")
    return out
