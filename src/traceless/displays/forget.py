"""The decision boundary before and after some rows are forgotten."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from traceless.arithmetic.integers import Floats
from traceless.displays.canvas import GREY, axes_for, legend_beside

_COLOURS = ("#1b6ca8", "#d95f0e", "#2e8b57", "#8856a7", "#b8860b", "#7f7f7f")


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

    xx0: Floats
    xx1: Floats
    before: NDArray[Any]
    after: NDArray[Any]
    classes: NDArray[Any]
    points: Floats
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
        check_is_fitted(estimator)
        if not is_classifier(estimator):
            raise TypeError(
                f"Only classifiers have a decision boundary, got {type(estimator).__name__}."
            )
        names = getattr(X, "columns", [f"column {j}" for j in range(np.shape(X)[1])])
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
        forgotten = np.zeros(len(X), dtype=bool)
        forgotten[np.asarray(forget)] = True
        model = copy.deepcopy(estimator)
        vars(model).pop("feature_names_in_", None)  # it predicts for arrays
        points = X[:, list(columns)]
        low, high = points.min(axis=0), points.max(axis=0)
        margin = 0.05 * (high - low)
        sides = np.linspace(low - margin, high + margin, grid_resolution)
        xx0, xx1 = np.meshgrid(sides[:, 0], sides[:, 1])
        grid = np.tile(np.median(X, axis=0), (xx0.size, 1))
        grid[:, columns[0]], grid[:, columns[1]] = xx0.ravel(), xx1.ravel()
        classes = np.array(model.classes_)
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
        ax = axes_for(self, ax, figsize=(6.8, 4.4))
        colours = [_COLOURS[k % len(_COLOURS)] for k in range(len(self.classes))]
        for label, colour in zip(self.classes, colours, strict=True):
            there = self.after == label
            ax.contourf(self.xx0, self.xx1, there, [0.5, 1.5], colors=colour, alpha=0.12)
            stays = (self.labels == label) & ~self.forgotten
            ax.scatter(*self.points[stays].T, s=12, color=colour, label=str(label))
        self._boundary(ax, self.before, GREY, "boundary before")
        self._boundary(ax, self.after, "black", "boundary after")
        goes = self.points[self.forgotten].T
        rows = [colours[k] for k in np.searchsorted(self.classes, self.labels[self.forgotten])]
        ax.scatter(*goes, s=26, marker="x", c=rows, lw=1.3)
        ax.scatter([], [], s=26, marker="x", c="black", lw=1.3, label="forgotten")
        ax.set(xlabel=self.column_names[0], ylabel=self.column_names[1])
        legend_beside(ax)
        return self

    def _boundary(self, ax: Any, predicted: NDArray[Any], colour: str, label: str) -> None:
        """Draw a line around the area of each class but the first."""
        for one in np.unique(predicted)[1:]:
            ax.contour(self.xx0, self.xx1, predicted == one, [0.5], colors=colour, linewidths=1.6)
        ax.plot([], [], color=colour, lw=1.6, label=label)
