"""The path of a change of a `PathSVC`, `PathSVR` or `PathOneClass`."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from traceless.arithmetic.integers import Floats
from traceless.displays.canvas import BLUE, ORANGE, axes_for, legend_beside
from traceless.estimators.path_machine import PathMachine

_COLOURS = {"stays": "0.6", "comes": BLUE, "goes": ORANGE}


@dataclass
class PathDisplay:
    """The path of a change: dual coefficients over θ, with the breakpoints marked.

    Made by `from_estimator`; between breakpoints coefficients are straight lines.

    Attributes
    ----------
    theta : ndarray of shape (n_points_on_path,)
        From 0, before the change, to 1, after it.
    alpha : ndarray of shape (n_points_on_path, n_rows)
        Dual coefficients of all rows of the binary problem at these θ. A `PathSVR` has two of
        each row, below and above the tube.
    role : ndarray of shape (n_rows,)
        "stays", "comes" or "goes".
    classes : tuple
        The two classes of the problem; None for all others.
    C : ndarray of shape (n_points_on_path,) or None
        C at these θ, where the path is one to another C.
    """

    theta: Floats
    alpha: Floats
    role: NDArray[Any]
    classes: tuple[Any, Any]
    C: Floats | None = None

    @property
    def breakpoints(self) -> Floats:
        """θ where the path bends."""
        return self.theta[1:-1]

    @classmethod
    def from_estimator(
        cls,
        estimator: PathMachine,
        *,
        add: Any = None,
        forget: Any = None,
        ids: Any = None,
        C: float | None = None,
        classes: tuple[Any, Any] | None = None,
        ax: Any = None,
    ) -> Self:
        """Follow a change on a copy of the estimator, and draw its path.

        Parameters
        ----------
        estimator : PathSVC, PathSVR or PathOneClass
            Fitted; it is not changed.
        add, forget : tuple (X, y) or (X, y, sample_weight), optional
            Rows that come and go, as for ``update``.
        ids : array-like of int, optional
            Rows that go, by their ids, in place of `forget`.
        C : float, optional
            In place of rows: the path to this C. It is the solution for every C between the one
            that is set and this one.
        classes : tuple of two labels, optional
            Which binary problem, where there are several; by default the first that the
            change touches.
        ax : matplotlib axes, optional

        Returns
        -------
        PathDisplay

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from traceless import PathSVC
        >>> from traceless.displays import PathDisplay
        >>> X, y = load_iris(return_X_y=True)
        >>> svc = PathSVC(C=10.0, gamma=0.3).fit(X[50:140], y[50:140])
        >>> display = PathDisplay.from_estimator(svc, add=(X[140:], y[140:]))
        >>> display.alpha.shape[1]
        100
        """
        check_is_fitted(estimator)
        if not isinstance(estimator, PathMachine):
            raise TypeError(f"A PathSVC follows paths, got {type(estimator).__name__}.")
        other = copy.deepcopy(estimator).refresh()
        problems = dict(other._model.problems)
        asked = list(problems) if classes is None else [tuple(classes)]
        if not problems or asked[0] not in problems:
            raise ValueError(
                f"There is no binary problem of {classes!r}: a path needs two classes that are "
                f"there before the change. There is {', '.join(map(str, problems)) or 'none'}."
            )
        before = {pair: problems[pair].ids for pair in asked}
        recorded: dict[Any, list[tuple[float, Floats]]] = {pair: [] for pair in asked}
        for pair, points in recorded.items():
            problems[pair].watch = lambda *point, points=points: points.append(point)
        if C is None:
            other.update(add=add, forget=forget if ids is None else np.asarray(ids))
        elif add is not None or forget is not None or ids is not None:
            raise ValueError("A path is drawn to other rows or to another C, not to both.")
        else:
            other.set_params(C=C).refresh()
        touched = [pair for pair in asked if recorded[pair]]
        if not touched:
            raise ValueError(
                "The change follows no path: it does not touch the binary problem of "
                f"{' or '.join(map(str, asked))}, or ends with one class."
            )
        pair = touched[0]
        held = before[pair]
        theta, alpha = _path(recorded[pair])
        stays = np.isin(held, other._model.problems[pair].ids)
        role = np.where(stays, "stays", "goes").tolist() + ["comes"] * (alpha.shape[1] - len(held))
        alpha = alpha * other._model.problems[pair].scale
        levels = None if C is None else (1.0 - theta) * estimator.C + theta * C
        return cls(theta, alpha, np.array(role), pair, levels).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.

        Returns
        -------
        self
            With ``ax_``, ``figure_`` and ``lines_``.
        """
        ax = axes_for(self, ax, figsize=(7.0, 4.0))
        x = self.theta if self.C is None else self.C
        moves = np.ptp(self.alpha, axis=0) > 0.0
        self.lines_ = []
        for role, colour in _COLOURS.items():
            which = moves & (self.role == role)
            width = 0.8 if role == "stays" else 1.6
            self.lines_ += ax.plot(x, self.alpha[:, which], color=colour, lw=width)
            ax.plot([], [], color=colour, label=role)
        marks = ax.get_xaxis_transform()
        ax.vlines(x[1:-1], -0.06, -0.01, transform=marks, color="k", lw=0.6, clip_on=False)
        ax.set(xlim=(x.min(), x.max()), xlabel="θ" if self.C is None else "C", ylabel="α")
        ax.tick_params(axis="x", pad=14)
        legend_beside(ax)
        ax.set_title(f"{len(self.breakpoints)} breakpoints", loc="right", fontsize="medium")
        return self


def _path(recorded: list[tuple[float, Floats]]) -> tuple[Floats, Floats]:
    """θ and coefficients from the last start on, each θ once."""
    theta = np.array([theta for theta, _ in recorded])
    starts = np.flatnonzero(np.diff(theta, prepend=np.inf) < 0.0)
    start = int(starts[-1]) if starts.size else 0
    last = np.append(np.diff(theta[start:]) > 0.0, True)
    alpha = np.array([alpha for _, alpha in recorded[start:]])
    return theta[start:][last], alpha[last]
