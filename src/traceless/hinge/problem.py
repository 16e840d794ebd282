"""One binary hinge SVM that points join and leave (Karasuyama & Takeuchi 2009).

    min ½ αᵀQα - Σ y_i t_i α_i,    0 ≤ α_i ≤ u_i,    Σ y_i α_i = τ,     Q_ij = y_i y_j k(x_i, x_j)

has an f = Σ y α k + b with g = y (f - t) ≥ 0 where α = 0, g ≤ 0 where α = u, and g = 0 between. The
t_i are levels of f: ±1 for a classifier, the sides of a tube, or 0 (`traceless.hinge.machines`).

The solution is piecewise linear in the bounds u. Points added and removed, and bounds that change,
are one path: the bounds of what is removed shrink to 0, those of what is added grow from 0, all at
once (``src/core/path.h``). `HingeProblem.changed_to` makes another problem; nothing of a problem is
ever written to again.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge.core import core
from traceless.hinge.gram import Place
from traceless.hinge.published import Published, at_end_of_path, published
from traceless.hinge.target import Target
from traceless.knowledge.training_rows import TrainingRows

_NOTHING = Target(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0))


class HingeProblem:
    """One binary problem, solved at all times.

    Attributes
    ----------
    ids : ids of the points, in the order they came
    y : labels, -1.0 and 1.0
    levels, total : the t and τ above
    bounds : the largest that each α may be
    scale, offset : f stands for scale · f + offset
    copies : points for each row
    alpha, slopes, intercept : as the path left them
        The g of each point; the b of f(x) = Σ y α k + b.
    residual : float
        The largest violation of a KKT condition at the end of the path.
    n_breakpoints, n_restarts, n_repairs : int
        Of all paths so far.
    published : Published
        What is said of it.
    """

    ids: Integers
    y: Floats
    bounds: Floats
    levels: Floats
    total: float
    scale: float
    offset: float
    copies: int
    published: Published
    seed = 0  # of the random shifts that break ties

    def __init__(self) -> None:
        self._become(_NOTHING, core.Solution())

    def _become(self, target: Target, end: Any) -> None:
        """Take the numbers of a solution, which are those of the target's points."""
        self.__dict__ |= target._asdict()
        self._target, self._end = target, end
        self.alpha, self.slopes, self.intercept = end.alpha, end.slopes, end.b
        self.residual, self.n_breakpoints = end.residual, end.breakpoints
        self.n_restarts, self.n_repairs = end.restarts, end.repairs

    def __len__(self) -> int:
        return len(self.ids)

    # --- changes -----------------------------------------------------------------------------

    def changed_to(
        self,
        target: Target,
        rows: TrainingRows,
        before: Place,
        after: Place,
        to_look: bool = False,
    ) -> Self:
        """The problem of the target's points, at the end of a path from this one, which stays.

        The kernel matrix has our rows where they were `before`, and those of the target. What is
        only made `to_look` at it may publish the end of the path as it is.
        """
        kept, at = _found_among(self.ids, target.ids)
        if kept.all() and len(at) == len(target.ids) and self._is_problem_of(target, at):
            return self
        new = np.ones(len(target.ids), dtype=bool)
        new[at] = False
        order = np.concatenate([at, np.flatnonzero(new)])
        ids, y, bounds, levels = (values[order] for values in target[:4])
        end = self._in_units_of(target)
        old = before.of(self.ids // self.copies)
        numbers = after.of(ids // target.copies), y, levels, bounds, target.total, self.seed
        with np.errstate(all="ignore"):  # what is not finite shows in the KKT residual
            end = core.change(after.gram.lines, end, old, np.flatnonzero(~kept), *numbers)
        points = target._replace(ids=ids, y=y, bounds=bounds, levels=levels)
        solution = at_end_of_path(points, end) if to_look else None
        if solution is None:
            solution = published(after, rows, points, end)
        return self._at(points, end, solution)

    def _at(self, points: Target, end: Any, solution: Published) -> Self:
        other = copy.copy(self)
        other._become(points, end)
        other.published = solution
        return other

    def _is_problem_of(self, target: Target, at: NDArray[np.intp]) -> bool:
        """Whether what it says of our points, at these places of it, is what we have."""
        return (
            np.array_equal(self.bounds, target.bounds[at])
            and np.array_equal(self.levels, target.levels[at])
            and (self.total, self.scale, self.offset) == target[4:7]
        )

    def _in_units_of(self, target: Target) -> Any:
        """Our solution with the scale and the offset of another problem."""
        ratio, lift = self.scale / target.scale, (self.offset - target.offset) / target.scale
        return self._end if (ratio, lift) == (1.0, 0.0) else self._end.rescaled(ratio, lift)

    def restored(
        self, target: Target, rows: TrainingRows, place: Place, alpha: Floats, b: float
    ) -> Self:
        """The problem of the target's points with a solution from another process.

        The next change starts from any α and b, so it would also mend what is not a solution.
        """
        slots = place.of(target.ids // target.copies)
        numbers = slots, target.y, target.levels, target.bounds, alpha, b, target.total, 0.0
        end = core.restored(*numbers)
        return self._at(target, end, published(place, rows, target, end))


def _found_among(ids: Integers, others: Integers) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Which of some ids are among others in ascending order, and their places there."""
    at = np.searchsorted(others, ids)
    found = at < len(others)
    found[found] = others[at[found]] == ids[found]
    return found, at[found]
