"""One binary hinge SVM of points that are given, and change, as arrays.

`traceless.hinge` moves a problem to a `Target` of the rows that a model holds; here, and in the
tests of the engine, the points are rows of one problem alone, known by their places.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from traceless.arithmetic.integers import Floats
from traceless.hinge.gram import Held, changing
from traceless.hinge.kernels import Kernel
from traceless.hinge.problem import HingeProblem
from traceless.hinge.published import kernel_sums, linear_values
from traceless.hinge.target import Target
from traceless.knowledge.training_rows import TrainingRows

Points = tuple[ArrayLike, ArrayLike, ArrayLike]  # rows, labels and bounds


class PointProblem(HingeProblem):
    """A problem whose points are added, removed and bounded by hand.

    `seed` is that of the random shifts that break ties. Breakpoints are counted in
    `n_breakpoints`, over all paths so far.

    Examples
    --------
    >>> import numpy as np
    >>> from papers.karasuyama2009.points import PointProblem
    >>> from traceless.hinge.kernels import Kernel
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0], [0.9]])
    >>> y = np.array([-1.0, -1.0, 1.0, 1.0, -1.0])
    >>> problem = PointProblem(Kernel("linear"), width=1).fit(X, y, 10.0)
    >>> problem.update(remove=[4]).decision_function([[0.5]])
    array([0.5])
    >>> problem.update(add=([[0.0]], [1.0], 10.0)).decision_function([[0.5]])
    array([2.])
    """

    def __init__(self, kernel: Kernel, width: int, memory: int = 1 << 30, seed: int = 0) -> None:
        super().__init__()
        self.rows = TrainingRows.of((np.zeros((0, width)), np.zeros(0), np.zeros(0)))
        self.kernel, self.width, self.memory = kernel, width, memory
        self.seed, self.held = seed, Held()

    def __deepcopy__(self, _: object) -> Self:
        other = copy.copy(self)
        other.held = Held()
        return other

    def fit(self, X: ArrayLike, y: ArrayLike, bounds: ArrayLike) -> Self:
        """Forget everything and learn these points."""
        fresh = type(self)(self.kernel, self.width, self.memory, self.seed)
        return self._replace(fresh.changed((X, y, bounds)))

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
        bounds : float, or array of len(self), of the points there are now, optional
        """
        return self._replace(self.changed(add, remove, bounds))

    def _replace(self, other: Self) -> Self:
        other.held.take_over()
        self.__dict__ |= other.__dict__
        return self

    def changed(
        self, add: Points | None = None, remove: ArrayLike = (), bounds: ArrayLike | None = None
    ) -> Self:
        """The problem after an `update`; this one stays as it is."""
        added, labels, limits = add or (np.zeros((0, self.width)), [], [])
        new = np.asarray(added, dtype=np.float64) + 0.0  # there is one zero
        gone = np.asarray(remove, dtype=np.intp)
        final = self.bounds if bounds is None else _bounds(bounds, len(self))
        y, u = np.concatenate([self.y, labels]), np.concatenate([final, _bounds(limits, len(new))])
        before = self.rows
        ids = np.arange(before.next_id, before.next_id + len(new))
        X, ids = np.concatenate([before.X, new]), np.concatenate([before.ids, ids])
        X, y, u, ids = (np.delete(values, gone, axis=0) for values in (X, y, u, ids))
        after = TrainingRows(X, y, u, ids, before.next_id + len(new))
        with changing(self.held, before, after, self.kernel, self.memory) as (old, place, held):
            other = self.changed_to(Target(ids, y, u, y), after, old, place)
        other.rows, other.held = after, held
        return other

    @property
    def X(self) -> Floats:  # noqa: N802
        """The points, in the order they came."""
        return self.rows.values(np.searchsorted(self.rows.ids, self.ids))

    def decision_function(self, X: ArrayLike) -> Floats:
        """The f of other points."""
        A = np.asarray(X, dtype=np.float64) + 0.0
        if self.published.weights is not None:
            return linear_values(self.kernel, A, [self.published])[0]
        ids, c, b = self.published.terms()
        at = np.searchsorted(self.rows.ids, ids)
        return kernel_sums(self.kernel, A, self.rows, [(at, c, b)])[0]


def _bounds(bounds: ArrayLike, n: int) -> Floats:
    return np.broadcast_to(np.asarray(bounds, dtype=np.float64), (n,))
