"""One binary hinge SVM of points that are given, and change, as arrays.

`traceless.hinge` moves a problem to a `Target` of the rows that a model holds; here, and in the
tests of the engine, the points are rows of one problem alone, known by their places.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from traceless.arithmetic.integers import Floats
from traceless.hinge.kernels import Kernel
from traceless.hinge.problem import HingeProblem
from traceless.hinge.target import Target
from traceless.knowledge.training_rows import TrainingRows

Points = tuple[ArrayLike, ArrayLike, ArrayLike]  # rows, labels and bounds


class PointProblem(HingeProblem):
    """A problem whose points are added, removed and bounded by hand.

    `seed` is that of the random shifts that break ties.

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
        super().__init__(kernel, width, memory)
        self.seed = seed

    def fit(self, X: ArrayLike, y: ArrayLike, bounds: ArrayLike) -> Self:
        """Forget everything and learn these points."""
        fresh = type(self)(self.kernel, self.width, self.memory, self.seed)
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
        bounds : float, or array of len(self), of the points there are now, optional
        """
        return self._become(self.changed(add, remove, bounds))

    def _become(self, other: Self) -> Self:
        other.take_over()
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
        X = np.concatenate([np.delete(self.X, gone, axis=0), new])
        ids, y = np.arange(len(X)), np.concatenate([np.delete(self.y, gone), labels])
        u = np.concatenate([np.delete(final, gone), _bounds(limits, len(new))])
        rows = TrainingRows(X, y, u, ids, len(ids))
        return self._moved(rows, new, gone, Target(ids, y, u, y), self.kernel, self.memory)


def _bounds(bounds: ArrayLike, n: int) -> Floats:
    return np.broadcast_to(np.asarray(bounds, dtype=np.float64), (n,))
