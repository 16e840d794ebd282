"""The binary hinge SVM as a problem that points join and leave (Karasuyama & Takeuchi 2009).

It has the rows of its points, and a `traceless.path.state.State` of them: each change puts
another one in its place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traceless.arithmetic.integers import Floats
from traceless.path.canonical import Canonical
from traceless.path.kernels import Kernel
from traceless.path.state import State, Watch

Points = tuple[ArrayLike, ArrayLike, ArrayLike]  # rows, labels and bounds


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
        self.state = State(kernel, width, memory, seed)
        self.watch: Watch | None = None
        self._X = np.zeros((0, width))

    # --- what is there ---------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.state)

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.state.kernel

    @property
    def X(self) -> Floats:  # noqa: N802
        """Rows, in the order they came."""
        return self._X.copy()

    @property
    def y(self) -> Floats:
        """Labels, -1.0 and 1.0."""
        return self.state.y

    @property
    def bounds(self) -> Floats:
        """The largest that each α may be."""
        return self.state.bounds

    @property
    def alpha(self) -> Floats:
        """Dual variables, as the path left them."""
        return self.state.alpha

    @property
    def intercept(self) -> float:
        """The b of f(x) = Σ y α k + b, as the path left it."""
        return self.state.intercept

    @property
    def slopes(self) -> Floats:
        """The g = y f - 1 of each point, as the path left it."""
        return self.state.slopes

    @property
    def sides(self) -> NDArray[np.int64]:
        """INSIDE (0), MARGIN (1) or OUTSIDE (2)."""
        return self.state.sides

    @property
    def residual(self) -> float:
        """The largest violation of a KKT condition at the end of the path, as last certified."""
        return self.state.residual

    @property
    def n_breakpoints(self) -> int:
        """Events on all paths so far."""
        return self.state.n_breakpoints

    @property
    def n_restarts(self) -> int:
        """How often paths had to start again with random shifts."""
        return self.state.n_restarts

    @property
    def n_repairs(self) -> int:
        """How often the end of a path had to be mended."""
        return self.state.n_repairs

    def canonical(self) -> Canonical:
        """The solution that is published: a function of the data alone, or flagged."""
        return self.state.canonical(lambda: self._X)

    def decision_function(self, X: ArrayLike) -> Floats:
        """F at other rows, from the canonical solution."""
        return self.canonical().decision_function(np.asarray(X, dtype=np.float64) + 0.0)

    def kkt_residual(self) -> float:
        """The largest violation of a KKT condition by what is published, from scratch."""
        return self.canonical().violation(self._X, self.y, self.bounds)

    # --- changes ---------------------------------------------------------------------------

    def fit(self, X: ArrayLike, y: ArrayLike, bounds: ArrayLike) -> HingeProblem:
        """Forget everything and learn these points."""
        state = self.state
        fresh = HingeProblem(state.kernel, state.width, state.memory, state.seed)
        return self._become(fresh.changed((X, y, bounds)))

    def update(
        self, add: Points | None = None, remove: ArrayLike = (), bounds: ArrayLike | None = None
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
        return self._become(self.changed(add, remove, bounds))

    def set_bounds(self, bounds: ArrayLike) -> HingeProblem:
        """Follow the path to other bounds: another C, other weights."""
        return self.update(bounds=np.broadcast_to(np.asarray(bounds, np.float64), len(self)))

    def changed(
        self, add: Points | None = None, remove: ArrayLike = (), bounds: ArrayLike | None = None
    ) -> HingeProblem:
        """What an `update` would make of this problem, which stays as it is."""
        width = self.state.width
        X, y, u = _checked(*add, width) if add is not None else _nothing(width)
        gone = _places(remove, len(self))
        self.state.watch = self.watch
        final = None if bounds is None else _bounds(bounds, len(self))
        other = HingeProblem.__new__(HingeProblem)
        other.state = self.state.changed(lambda: self._X, (X, y, u), gone, final)
        other.watch, other._X = self.watch, np.concatenate([np.delete(self._X, gone, axis=0), X])
        return other

    def restore(self, points: Points, alpha: Floats, slopes: Floats, intercept: float) -> None:
        """Take a solution over as another process left it: X, y and bounds of all points first."""
        X, y, bounds = _checked(*points, self.state.width)
        self.state, self._X = self.state.restored(y, bounds, alpha, slopes, intercept), X

    def _become(self, other: HingeProblem) -> HingeProblem:
        other.state.take_over()
        self.__dict__ |= other.__dict__ | {"watch": self.watch}
        return self


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


def _places(places: ArrayLike, n: int) -> NDArray[np.intp]:
    out = np.asarray(places, dtype=np.intp).ravel()
    ordered = np.sort(out)
    if out.size and (ordered[0] < 0 or ordered[-1] >= n or (np.diff(ordered) == 0).any()):
        raise ValueError(f"`remove` must be different places, 0 to {n - 1}.")
    return out


def _nothing(width: int) -> tuple[Floats, Floats, Floats]:
    return np.zeros((0, width)), np.zeros(0), np.zeros(0)
