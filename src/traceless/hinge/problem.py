"""One binary hinge SVM that points join and leave (Karasuyama & Takeuchi 2009).

    min ½ αᵀQα - Σ y_i t_i α_i,    0 ≤ α_i ≤ u_i,    Σ y_i α_i = τ,     Q_ij = y_i y_j k(x_i, x_j)

has an f = Σ y α k + b with g = y (f - t) ≥ 0 where α = 0, g ≤ 0 where α = u, and g = 0 between. The
t_i are levels of f: ±1 for a classifier, the sides of a tube, or 0 (`traceless.hinge.machines`).

The solution is piecewise linear in the bounds u. Points added and removed, and bounds that change,
are one path: the bounds of what is removed shrink to 0, those of what is added grow from 0, all at
once (`traceless.hinge.solver`).

`HingeProblem.changed_to` makes another problem. The numbers of a problem are its own and are never
written to again. The kernel matrix is not: it belongs to the newest problem that was made from it
(`traceless.hinge.kernel_cache`), so that nothing of size n² is copied for a change. A problem that
has lost it, because another was made from it, computes kernel values again where it needs them. So
an old problem stays good, whether the change that came after it was kept, dropped, or never
finished.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge.active_set import is_one_sided
from traceless.hinge.follow import INSIDE, MARGIN, OUTSIDE
from traceless.hinge.kernel_cache import KernelCache, Slots
from traceless.hinge.kernels import Kernel
from traceless.hinge.margin import gather
from traceless.hinge.published import Held, SolvedProblem
from traceless.hinge.solver import Factor, PathEnd, PathSolver
from traceless.hinge.target import Target
from traceless.knowledge.training_rows import TrainingRows

_ENOUGH = 200  # points from which on SMO can be faster than a path
# SMO from the solution before, and a path of a few steps behind it, are faster than a path where
# this part of all points is on the margin, and this part as many change as are there, if C is
# small: SMO needs few pairs then (at C = 1; at C = 100 it took more than twice as long as a path)
_LARGE, _BREAK_EVEN, _EASY = 1 / 8, 0.6, 10.0
_LOOK = 32  # updates after which all of g is computed from scratch

_NONE = np.zeros(0, dtype=np.int64)
_ZEROS, _NO_FACTOR = np.zeros(0), Factor(np.zeros((0, 0)), _NONE, 0.0)
_NOTHING = PathEnd(_ZEROS, _ZEROS, _ZEROS, _NONE, 0.0, _NO_FACTOR)


class HingeProblem(SolvedProblem):
    """One binary problem, solved at all times.

    Parameters
    ----------
    kernel : Kernel
    width : int
        Columns of a row.
    memory : int
        Bytes the kernel matrix may take; beyond, only lines of the margin set are kept.

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
    is_ahead : bool
        Whether the problem is only to be looked at: its decision values are those of the path.
    """

    seed = 0  # of the random shifts that break ties

    def __init__(self, kernel: Kernel, width: int, memory: int = 1 << 30) -> None:
        self.kernel, self.width, self.memory = kernel, width, memory
        cache = KernelCache(kernel, width, memory)
        cache.owner = object()
        self._held = Held(cache, cache.owner, _NONE)
        self.rows = TrainingRows.of((np.zeros((0, width)), _ZEROS, _ZEROS))
        self.ids, self.y = _NONE, _ZEROS
        self.levels, self.total, self.scale, self.offset, self.copies = self.y, 0.0, 1.0, 0.0, 1
        self._end = _NOTHING
        self.__dict__ |= _NOTHING._asdict()
        self.residual = 0.0
        self.n_breakpoints = self.n_restarts = self.n_repairs = 0
        self.is_ahead = False
        self.is_reported = False
        self._largest = 0.0
        self._looks = 0  # changes since g was last computed from scratch
        self._canonical = None
        self._waits = False  # for `take_over`

    def _with(self, **values: Any) -> Self:
        """A copy with some values, and nothing that only holds for the original."""
        other = copy.copy(self)
        other._canonical = None
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

    # --- changes -----------------------------------------------------------------------------

    def changed_to(
        self,
        target: Target,
        rows: TrainingRows,
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
            same.rows, same.is_ahead = rows, False
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

    def is_problem_of(self, target: Target, at: NDArray[np.intp]) -> bool:
        """Whether what it says of our points, at these places of it, is what we have."""
        return (
            np.array_equal(self.bounds, target.bounds[at])
            and np.array_equal(self.levels, target.levels[at])
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
        values |= dict(zip(("scale", "offset", "copies"), theirs, strict=True))
        return self._with(_end=end, **values, **end._asdict())

    def restored(
        self,
        rows: TrainingRows,
        target: Target,
        alpha: Floats,
        slopes: Floats,
        b: float,
        residual: float,
    ) -> Self:
        """The problem of the target's points with a solution from another process.

        What only changes need, the kernel matrix and the factor of the margin set, is left to the
        next change; that starts from any α and b, so it would also mend what is not a solution.
        """
        sides = np.where(alpha <= 0.0, INSIDE, np.where(alpha >= target.bounds, OUTSIDE, MARGIN))
        end = PathEnd(alpha.copy(), target.bounds, slopes.copy(), sides, b, None)
        cache = KernelCache(self.kernel, self.width, self.memory)
        held = Held(cache, object(), _NONE)  # a token that the cache does not know
        values = target._asdict() | {"rows": rows, "residual": residual}
        return self._with(_held=held, _end=end, **values | end._asdict())

    def _moved(
        self,
        rows: TrainingRows,
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
            _held=Held(cache, token, slots, lent),
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
        eased = float(self.bounds.max()) * self._largest <= _EASY
        limit = min(n, _BREAK_EVEN * margin) if eased and margin > _LARGE * n else n
        return n >= _ENOUGH and n_changed > limit

    # --- the kernel matrix -------------------------------------------------------------------

    @contextmanager
    def _at_work(self, kernel: Kernel, memory: int) -> Iterator[Held]:
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
            self._held = Held(moved, object(), np.arange(len(self.y)))
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
            self._held = Held(cache, object(), slots)
            cache.kernel = self.kernel
            cache.hand_over(self._held.token, slots)


def _found_among(ids: Integers, others: Integers) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Which of some ids are among others in ascending order, and their places there."""
    at = np.searchsorted(others, ids)
    found = at < len(others)
    found[found] = others[at[found]] == ids[found]
    return found, at[found]
