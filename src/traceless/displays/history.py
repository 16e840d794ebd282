"""The score of a model, and the number of rows it holds, along its history."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring

from traceless.displays.canvas import new_axes


@dataclass
class HistoryDisplay:
    """Score and number of rows after each step of a history.

    Made by `from_estimator`, or from numbers that were noted on the way.

    Attributes
    ----------
    names : list of str
        What each step is called.
    methods : list of str
        "partial_fit", "forget", "merge", "update" or "fit".
    scores : ndarray of shape (n_steps,)
        After the step, on rows kept for it.
    n_samples : ndarray of shape (n_steps,)
        Rows held after the step.
    score_name : str
    """

    names: list[str]
    methods: list[str]
    scores: NDArray[Any]
    n_samples: NDArray[np.int64]
    score_name: str = "score"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        steps: Iterable[tuple[str, str, tuple[Any, ...]]],
        X: Any,
        y: Any,
        *,
        scoring: Any = None,
        ax: Any = None,
    ) -> Self:
        """Apply the steps to a copy of the estimator, and draw the scores.

        Parameters
        ----------
        estimator : LSSVC, LSSVR, PathSVC or SlidingWindow
            Fitted or not; it is not changed.
        steps : iterable of tuples (name, method, arguments)
            Such as ``("a bad batch", "partial_fit", (X, y))`` or
            ``("the north", "merge", (knowledge,))``.
        X, y
            The rows to score the model on after each step.
        scoring : str or callable, optional
            As in scikit-learn; the estimator's ``score`` by default.
        ax : pair of matplotlib axes, optional

        Returns
        -------
        HistoryDisplay

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from traceless import LSSVC
        >>> from traceless.displays import HistoryDisplay
        >>> X, y = load_iris(return_X_y=True)
        >>> display = HistoryDisplay.from_estimator(
        ...     LSSVC(),
        ...     [("all", "partial_fit", (X, y)), ("the first", "forget", (X[:50], y[:50]))],
        ...     X,
        ...     y,
        ... )
        >>> display.n_samples.tolist()
        [150, 100]
        """
        model = copy.deepcopy(estimator)
        scorer = check_scoring(model, scoring=scoring)
        taken = []
        for name, method, arguments in steps:
            getattr(model, method)(*arguments)
            taken.append((name, method, scorer(model, X, y), model.n_samples_))
        if not taken:
            raise ValueError("A history needs at least one step (name, method, arguments).")
        names, methods, scores, n_samples = map(list, zip(*taken, strict=True))
        what = "score" if scoring is None else getattr(scoring, "__name__", str(scoring))
        return cls(names, methods, np.array(scores), np.array(n_samples), what).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the scores, and below them the number of rows.

        Parameters
        ----------
        ax : pair of matplotlib axes, optional
            New ones by default.

        Returns
        -------
        self
            With ``ax_`` (both axes), ``figure_`` and ``line_``.
        """
        if ax is None:
            ax = new_axes(2, figsize=(7.0, 4.8), sharex=True, height_ratios=[2, 1])
        self.ax_ = above, below = tuple(ax)
        self.figure_ = above.figure
        place, goes = np.arange(1, len(self.names) + 1), np.array(self.methods) == "forget"
        (self.line_,) = above.plot(place, self.scores, "o-")
        above.plot(place[goes], self.scores[goes], "v", ms=9, label="forget")
        below.stairs(self.n_samples, np.arange(len(place) + 1) + 0.5, fill=True, color="0.8")
        if len(place) <= 30:  # names of more would overlap
            below.set_xticks(place, self.names, rotation=30, ha="right")
        above.set_ylabel(self.score_name)
        below.set(xlabel="step", ylabel="rows held")
        above.legend()
        return self
