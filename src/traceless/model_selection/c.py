"""Choosing C: the scores of many values, all of them along paths.

One model of all rows is fitted, with the smallest C. From there one path leads to the next C, and
from the solution of each C one path to that of each fold's training rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import LeaveOneOut

from traceless.arithmetic.integers import Floats
from traceless.estimators.path_machine import PathMachine
from traceless.model_selection.dataset import subset
from traceless.model_selection.path_folds import PathFolds, left_one_out
from traceless.model_selection.selection import Selection, checked_values
from traceless.transaction import apart


@dataclass(frozen=True, eq=False, repr=False)
class CSelection(Selection):
    """The scores of some C, and the best of them. Made by `select_C`.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
    scores : ndarray of shape (n_Cs, n_splits)
        With ``cv="loo"`` one column.
    mean, std : ndarray of shape (n_Cs,)
        Over the splits.
    best : float
        The C with the highest mean, the smallest if there are several.
    """

    Cs: Floats
    scores: Floats

    @property
    def best(self) -> float:
        """The C to take."""
        return float(self._best(self.Cs).min())

    def __repr__(self) -> str:
        return self._shown(f"over {self.scores.shape[1]} splits", self.Cs, self.best, True)


def select_C(  # noqa: N802
    estimator: PathMachine,
    X: Any,
    y: Any,
    Cs: Any,
    cv: Any = 5,
    scoring: Any = None,
    *,
    sample_weight: Any = None,
    groups: Any = None,
) -> CSelection:
    """Compare many C: one fit, and a path to each C and each fold.

    Parameters
    ----------
    estimator : PathSVC or PathSVR
        It is not changed; its own ``C`` plays no part.
    X, y
        The rows, as for ``fit``.
    Cs : array-like of positive numbers
    cv : int, splitter, iterable of (train, test), or "loo", default=5
        "loo" leaves out one row at a time and gives one score to all held-out answers together.
        Only support vectors take a path.
    scoring : str or callable, optional
        One scorer, as in scikit-learn.
    sample_weight : array-like of shape (n_samples,), optional
        For training, not for scoring.
    groups : array-like of shape (n_samples,), optional
        For the splitter.

    Returns
    -------
    CSelection
        Use it with ``estimator.set_params(C=result.best)``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from traceless import PathSVC
    >>> from traceless.model_selection import select_C
    >>> X, y = load_iris(return_X_y=True)
    >>> select_C(PathSVC(gamma=0.3), X, y, [0.1, 1.0, 10.0])
    <CSelection over 5 splits
      0.1           0.96000 ± 0.02494
      1             0.98000 ± 0.01633  best
      10            0.97333 ± 0.02494>
    """
    if "C" not in getattr(estimator, "constraints", ()) or not isinstance(estimator, PathMachine):
        raise TypeError(
            f"select_C takes a PathSVC or a PathSVR, got {type(estimator).__name__}. LSSVC and "
            "LSSVR have select_rho."
        )
    if isinstance(scoring, list | tuple | set | dict):
        raise ValueError(f"select_C compares one score, got several: {scoring!r}.")
    values = checked_values("Cs", Cs)
    pooled = isinstance(cv, str) and cv == "loo"
    first = clone(estimator).set_params(C=float(values.min()))
    folds = PathFolds(first, (X, y, groups), LeaveOneOut() if pooled else cv, sample_weight)
    scorer = check_scoring(first, scoring=scoring)
    scores = np.empty((len(values), 1 if pooled else len(folds.splits)))
    for j in np.argsort(values, kind="stable"):
        folds.move_to(float(values[j]))
        scores[j] = _pooled(folds, scorer) if pooled else _of_each(folds, scorer)
    return CSelection(values, scores)


def _of_each(folds: PathFolds, scorer: Any) -> list[float]:
    tests = enumerate(split.test for split in folds.splits)
    return [
        float(scorer(folds.model(k), subset(folds.X, test), subset(folds.y, test)))
        for k, test in tests
    ]


def _pooled(folds: PathFolds, scorer: Any) -> float:
    """The score of all answers together, each by the model without the row."""
    model: Any = apart(folds.model_of_all())
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, method):  # a scorer asks for the answers to all rows

            def answer(_: Any, method: str = method) -> Any:
                return left_one_out(folds, method)

            answer.__name__ = method
            setattr(model, method, answer)
    return float(scorer(model, folds.X, folds.y))
