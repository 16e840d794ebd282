"""The time to forget some rows, and to fit the others again."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from traceless.arithmetic.integers import Floats
from traceless.displays.canvas import BLUE, GREY, axes_for, quieten

_SETTLE = 0.02  # seconds between two measurements, until BLAS threads have stopped spinning


@dataclass
class UpdateCostDisplay:
    """Seconds of an update and of a fit from scratch, over the number of rows that change.

    Made by `from_estimator`.

    Attributes
    ----------
    sizes : ndarray of shape (n_sizes,)
        How many rows were forgotten at a time.
    update, refit : ndarray of shape (n_sizes,)
        Median seconds until the new model has predicted one row.
    n_samples : int
        Rows held before.
    """

    sizes: NDArray[np.int64]
    update: Floats
    refit: Floats
    n_samples: int

    @property
    def ratio(self) -> Floats:
        """How many times longer the fit from scratch takes."""
        return self.refit / self.update

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sizes: Sequence[int] = (1, 10, 100),
        rounds: int = 5,
        ax: Any = None,
    ) -> Self:
        """Measure both in turns, and draw the medians.

        Parameters
        ----------
        estimator : LSSVC, LSSVR or PathSVC
            A clone of it learns all rows; each update starts from a copy of that.
        X, y : array-like
            The rows. The first ones are forgotten.
        sizes : sequence of int, default=(1, 10, 100)
            How many rows are forgotten at a time, each fewer than there are.
        rounds : int, default=5
            How often each is measured, after one round that does not count.
        ax : matplotlib axes, optional

        Returns
        -------
        UpdateCostDisplay

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from traceless import LSSVC
        >>> from traceless.displays import UpdateCostDisplay
        >>> X, y = load_iris(return_X_y=True)
        >>> display = UpdateCostDisplay.from_estimator(LSSVC(), X, y, sizes=[1, 30], rounds=1)
        >>> display.sizes.tolist(), display.ratio.shape
        ([1, 30], (2,))
        """
        n_samples, sizes = len(X), sorted(set(sizes))
        if not sizes or not 0 < sizes[0] <= sizes[-1] < n_samples:
            raise ValueError(
                f"sizes must be numbers of rows between 1 and {n_samples - 1}, got {sizes}."
            )
        if rounds < 1:
            raise ValueError(f"rounds must be 1 or more, got {rounds}.")
        model = clone(estimator).fit(X, y)
        model.predict(X[:1])
        seconds = np.empty((rounds + 1, len(sizes), 2))
        for turn, k in np.ndindex(rounds + 1, len(sizes)):  # taking turns: machines are shared
            gone, held, one = slice(sizes[k]), slice(sizes[k], None), copy.deepcopy(model)
            for which, learn in enumerate((one.forget, clone(estimator).fit)):
                rows = held if which else gone
                time.sleep(_SETTLE)
                start = time.perf_counter()
                learn(X[rows], y[rows]).predict(X[:1])
                seconds[turn, k, which] = time.perf_counter() - start
        update, refit = np.median(seconds[1:], axis=0).T
        return cls(np.array(sizes), update, refit, n_samples).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw both, with the ratio at each size.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.

        Returns
        -------
        self
            With ``ax_``, ``figure_`` and ``lines_``.
        """
        ax = axes_for(self, ax)
        self.lines_ = []
        for seconds, colour, label in (
            (self.refit, GREY, "fit the others again"),
            (self.update, BLUE, "forget"),
        ):
            self.lines_ += ax.plot(self.sizes, 1e3 * seconds, "o-", color=colour, label=label)
        for size, seconds, ratio in zip(self.sizes, self.update, self.ratio, strict=True):
            said, look = f"{float(f'{ratio:.2g}'):g} ×", {"textcoords": "offset points"}
            ax.annotate(said, (size, 1e3 * seconds), (6, -13), color=BLUE, **look)
        ax.set(xscale="log", yscale="log", ylabel="milliseconds (median)")
        ax.set_xlabel(f"rows that go, of {self.n_samples:,}")
        ax.set_xticks(self.sizes, [f"{size:,}" for size in self.sizes])
        ax.minorticks_off()
        ax.margins(x=0.12, y=0.2)
        ax.legend(frameon=False)
        quieten(ax)
        return self
