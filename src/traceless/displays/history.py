"""The score of a model, and the number of rows it holds, along its history."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring

from traceless.arithmetic.integers import Floats
from traceless.displays.canvas import BLUE, GREY, ORANGE, axes_for, legend_beside, quieten

Step = tuple[str, str, tuple[Any, ...]]  # what it is called, the method, its arguments

_MANY = 30  # with more steps, names and marks would overlap
_MARKS = {
    "fit": ("^", BLUE),
    "partial_fit": ("^", BLUE),
    "forget": ("v", ORANGE),
    "merge": ("D", BLUE),
}
_OTHER = ("o", GREY)


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
    scores: Floats
    n_samples: NDArray[np.int64]
    score_name: str = "score"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        steps: Iterable[Step],
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
            As in scikit-learn; accuracy, or R², by default.
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
        usual = "accuracy" if is_classifier(model) else "R²"
        score_name = usual if scoring is None else getattr(scoring, "__name__", str(scoring))
        display = cls(names, methods, np.array(scores), np.array(n_samples), score_name)
        return display.plot(ax)

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
        look = {"figsize": (7.0, 4.8), "sharex": True, "height_ratios": [2, 1]}
        above, below = axes_for(self, ax, 2, **look)
        place = np.arange(1, len(self.names) + 1)
        (self.line_,) = above.plot(place, self.scores, color=GREY, lw=1.2, zorder=1)
        below.stairs(self.n_samples, np.arange(len(place) + 1) + 0.5, fill=True, color="0.8")
        if len(place) <= _MANY:
            self._mark(above, place)
            below.set_xticks(place, self.names, rotation=30, ha="right", rotation_mode="anchor")
        else:
            below.set_xlabel("step")
        above.set_ylabel(self.score_name)
        above.margins(y=0.12)
        below.set_ylabel("rows held")
        for axis in (above, below):
            quieten(axis, "y")
        return self

    def _mark(self, ax: Any, place: NDArray[np.int64]) -> None:
        """Mark each step by its method."""
        for method in dict.fromkeys(self.methods):
            marker, colour = _MARKS.get(method, _OTHER)
            which = np.array(self.methods) == method
            look = {"color": colour, "ms": 8, "ls": "", "label": method}
            ax.plot(place[which], self.scores[which], marker, **look)
        legend_beside(ax)
