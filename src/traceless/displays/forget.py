"""The decision boundary before and after some rows are forgotten."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from traceless.displays.canvas import new_axes


@dataclass
class ForgetDisplay:
    """The decision boundary before and after a forget, in the plane of two columns.

    Made by `from_estimator`.

    Attributes
    ----------
    xx0, xx1 : ndarray of shape (n_grid, n_grid)
        Values of the two columns, as from ``numpy.meshgrid``.
    before, after : ndarray of shape (n_grid, n_grid)
        The labels that the model predicts there.
    classes : ndarray of shape (n_classes,)
        The labels known before.
    points : ndarray of shape (n_rows, 2)
        The rows held before, in the two columns.
    labels : ndarray of shape (n_rows,)
    forgotten : ndarray of bool of shape (n_rows,)
    column_names : pair of str
    """

    xx0: NDArray[Any]
    xx1: NDArray[Any]
    before: NDArray[Any]
    after: NDArray[Any]
    classes: NDArray[Any]
    points: NDArray[Any]
    labels: NDArray[Any]
    forgotten: NDArray[np.bool_]
    column_names: tuple[str, str]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        forget: Any,
        *,
        columns: tuple[int, int] = (0, 1),
        grid_resolution: int = 300,
        ax: Any = None,
    ) -> Self:
        """Forget rows on a copy of the estimator, and draw both boundaries.

        Parameters
        ----------
        estimator : LSSVC or PathSVC
            Fitted to these rows; it is not changed.
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
        forget : array-like of int or bool
            Which of the rows go.
        columns : pair of int, default=(0, 1)
            The columns to draw. The others are held at the median of the rows.
        grid_resolution : int, default=300
            Points along each axis at which the model predicts.
        ax : matplotlib axes, optional

        Returns
        -------
        ForgetDisplay

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from traceless import LSSVC
        >>> from traceless.displays import ForgetDisplay
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = LSSVC().fit(X, y)
        >>> display = ForgetDisplay.from_estimator(clf, X, y, range(50, 90), columns=(2, 3))
        >>> int(display.forgotten.sum()), clf.n_samples_
        (40, 150)
        """
        classes = np.array(estimator.classes_)
        names = getattr(X, "columns", [f"column {j}" for j in range(np.shape(X)[1])])
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
        forgotten = np.zeros(len(X), dtype=bool)
        forgotten[np.asarray(forget)] = True
        model = copy.deepcopy(estimator)
        vars(model).pop("feature_names_in_", None)  # it predicts for arrays
        points = X[:, list(columns)]
        margin = 0.05 * np.ptp(points, axis=0)
        sides = points.min(axis=0) - margin, points.max(axis=0) + margin
        xx0, xx1 = np.meshgrid(*np.linspace(*sides, grid_resolution).T)
        grid = np.tile(np.median(X, axis=0), (xx0.size, 1))
        grid[:, columns[0]], grid[:, columns[1]] = xx0.ravel(), xx1.ravel()
        before = model.predict(grid).reshape(xx0.shape)
        model.forget(X[forgotten], y[forgotten])
        after = model.predict(grid).reshape(xx0.shape)
        drawn = str(names[columns[0]]), str(names[columns[1]])
        return cls(xx0, xx1, before, after, classes, points, y, forgotten, drawn).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the areas of the classes after the forget, both boundaries, and the rows.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.

        Returns
        -------
        self
            With ``ax_`` and ``figure_``.
        """
        ax = self.ax_ = new_axes(figsize=(6.8, 4.4)) if ax is None else ax
        self.figure_ = ax.figure
        grid = self.xx0, self.xx1
        for k, label in enumerate(self.classes):
            own = self.labels == label
            stays, goes = self.points[own & ~self.forgotten], self.points[own & self.forgotten]
            ax.contourf(*grid, self.after == label, [0.5, 1.5], colors=f"C{k}", alpha=0.12)
            ax.contour(*grid, self.before == label, [0.5], colors="grey")
            ax.contour(*grid, self.after == label, [0.5], colors="black")
            ax.scatter(*stays.T, s=12, color=f"C{k}", label=str(label))
            ax.scatter(*goes.T, s=26, marker="x", color=f"C{k}")
        ax.set(xlabel=self.column_names[0], ylabel=self.column_names[1])
        ax.set_title("boundary before (grey) and after (black), × forgotten", fontsize="medium")
        ax.legend()
        return self
