"""Predictions with their error band, and coefficients with theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from traceless.arithmetic.integers import Floats
from traceless.displays.canvas import BLUE, GREY, ORANGE, axes_for, legend_beside, quieten


@dataclass
class IntervalDisplay:
    """Predictions, the interval that targets are promised to be in, and the targets.

    Made by `from_estimator`.

    Attributes
    ----------
    x : ndarray of shape (n_points,)
        Values of a column, or predictions in order.
    mean, low, high : ndarray of shape (n_points,)
        The prediction at each of them, and the ends of the interval.
    points, targets : ndarray of shape (n_rows,)
        Where the rows are on the axis of x, and their targets.
    covered : float
        The share of the targets that are inside their own row's interval.
    level : float
        The share that was promised.
    column_name : str or None
        None if x are predictions.
    """

    x: Floats
    mean: Floats
    low: Floats
    high: Floats
    points: Floats
    targets: Floats
    covered: float
    level: float
    column_name: str | None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        column: int | None = None,
        level: float = 0.95,
        grid_resolution: int = 200,
        ax: Any = None,
    ) -> Self:
        """Draw the intervals of an estimator, and the targets of some rows.

        Parameters
        ----------
        estimator : LSSVR, or a SlidingWindow around one
            Fitted, with one target.
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Rows that the model has not seen show whether the intervals hold what they promise.
        column : int, optional
            Draw against the values of this column, the others held at the median of the rows. By
            default targets are drawn against predictions.
        level : float, default=0.95
            The share of targets that is to be inside.
        grid_resolution : int, default=200
            Points along a column at which the model is asked.
        ax : matplotlib axes, optional

        Returns
        -------
        IntervalDisplay

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from traceless import LSSVR
        >>> from traceless.displays import IntervalDisplay
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = LSSVR(rho="evidence").fit(X[:300], y[:300])
        >>> display = IntervalDisplay.from_estimator(model, X[300:], y[300:], level=0.9)
        >>> round(display.covered, 2)
        0.91
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "predict_interval"):
            raise TypeError(f"Only regressors have intervals, got {type(estimator).__name__}.")
        y = np.asarray(y, dtype=np.float64)
        if y.ndim != 1:
            raise ValueError(f"One target can be drawn at a time, got y of shape {y.shape}.")
        low, high = estimator.predict_interval(X, level)
        covered = float(np.mean((low <= y) & (y <= high)))
        if column is None:
            mean = estimator.predict(X)
            order = np.argsort(mean)
            x, low, high = mean[order], low[order], high[order]
            return cls(x, x, low, high, mean, y, covered, level, None).plot(ax)
        values = np.asarray(X, dtype=np.float64)
        x = np.linspace(values[:, column].min(), values[:, column].max(), grid_resolution)
        rows: Any = np.tile(np.median(values, axis=0), (grid_resolution, 1))
        rows[:, column] = x
        names = getattr(X, "columns", None)
        if names is not None:
            rows = type(X)(rows, columns=names)
        mean, (low, high) = estimator.predict(rows), estimator.predict_interval(rows, level)
        name = f"column {column}" if names is None else str(names[column])
        points = values[:, column]
        return cls(x, mean, low, high, points, y, covered, level, name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the band, the predictions and the targets.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.

        Returns
        -------
        self
            With ``ax_``, ``figure_``, ``line_``, ``band_`` and ``dots_``.
        """
        ax = axes_for(self, ax)
        promised = f"{100 * self.level:g} % interval"
        self.band_ = ax.fill_between(
            self.x, self.low, self.high, color=BLUE, alpha=0.15, lw=0, label=promised
        )
        (self.line_,) = ax.plot(self.x, self.mean, color=BLUE, label="prediction")
        self.dots_ = ax.scatter(self.points, self.targets, s=8, color=ORANGE, label="target")
        ax.set(xlabel=self.column_name or "prediction", ylabel="target")
        ax.set_title(f"{self.covered:.0%} inside", loc="right", fontsize="medium")
        legend_beside(ax)
        quieten(ax)
        return self


@dataclass
class CoefficientDisplay:
    """Coefficients with their intervals, the largest above.

    Made by `from_estimator`.

    Attributes
    ----------
    names : list of str
    coefficients, low, high : ndarray of shape (n_names,)
    level : float
    scaled : bool
        Whether they are for one standard deviation of each feature.
    """

    names: list[str]
    coefficients: Floats
    low: Floats
    high: Floats
    level: float
    scaled: bool

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        level: float = 0.95,
        scaled: bool = True,
        n_largest: int = 30,
        ax: Any = None,
    ) -> Self:
        """Draw the coefficients of a regressor.

        Parameters
        ----------
        estimator : LSSVR
            Fitted, with one target.
        level : float, default=0.95
            Of the intervals, as in ``summary``.
        scaled : bool, default=True
            Multiply each by the standard deviation of its feature, so that they can be compared.
        n_largest : int, default=30
            How many are drawn, the largest ones.
        ax : matplotlib axes, optional

        Returns
        -------
        CoefficientDisplay

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from traceless import LSSVR
        >>> from traceless.displays import CoefficientDisplay
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> CoefficientDisplay.from_estimator(LSSVR().fit(X, y)).names[:2]
        ['s5', 's1']
        """
        check_is_fitted(estimator)
        coef = getattr(estimator, "feature_coef_", np.zeros((1, 1)))
        if not hasattr(estimator, "predict_interval") or coef.ndim > 1:
            raise TypeError(
                "Coefficients are drawn with the errors of an LSSVR with one target, got "
                f"{type(estimator).__name__} with coefficients of shape {coef.shape}."
            )
        errors, moments = estimator._errors(), estimator._moments()
        half = errors.of_coefficients()[0][0] * errors.quantile(level)
        spread = np.sqrt(moments.C.diagonal()[: len(coef)] / moments.weight)
        scale = spread if scaled else np.ones(len(coef))
        first = np.argsort(-np.abs(coef * scale), kind="stable")[:n_largest]
        names = estimator._column_names()
        value, low, high = ((v * scale)[first] for v in (coef, coef - half, coef + half))
        return cls([names[j] for j in first], value, low, high, level, scaled).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw a dot and a bar for each coefficient.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.

        Returns
        -------
        self
            With ``ax_``, ``figure_``, ``dots_`` and ``bars_``.
        """
        n = len(self.names)
        ax = axes_for(self, ax, figsize=(6.4, 1.2 + 0.22 * n))
        place = np.arange(n)[::-1]
        ax.axvline(0.0, color=GREY, lw=0.8)
        self.bars_ = ax.hlines(place, self.low, self.high, color=BLUE, lw=1.6)
        (self.dots_,) = ax.plot(self.coefficients, place, "o", color=BLUE, ms=5)
        ax.set_yticks(place, self.names)
        what = "coefficient of one standard deviation" if self.scaled else "coefficient"
        ax.set_xlabel(f"{what}, with its {100 * self.level:g} % interval")
        quieten(ax, "x")
        return self
