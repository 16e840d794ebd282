"""Folds of machines that keep their rows: fit all of them once, then remove each fold in turn.

Karasuyama & Takeuchi 2009, section 4: the path that removes many points at once is also the
way to cross-validate. A fold without support vectors changes nothing.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import LeaveOneOut

from traceless.arithmetic.integers import Floats
from traceless.estimators.inputs import n_rows
from traceless.estimators.path_machine import PathMachine
from traceless.hinge.settings import WITH_GAMMA
from traceless.model_selection.dataset import margin_of_own, subset
from traceless.model_selection.folds import Folds, Path
from traceless.model_selection.splits import Split
from traceless.progress import progress


class PathFolds(Folds):
    """The splits of some rows, and the model of all of them.

    Where rows are repeated, where training is the smaller part, and where gamma depends on the
    training rows, models are fitted to them instead.
    """

    def _learn(self, sample_weight: Any, path: Path) -> None:
        estimator: PathMachine = self.estimator
        if path not in ("auto", "subtract"):
            raise ValueError(
                f"path must be 'auto' or 'subtract' with {type(estimator).__name__}, which has no "
                f"closed form, got {path!r}."
            )
        if isinstance(estimator.kernel, str) and estimator.kernel == "precomputed":
            raise ValueError(
                "With kernel='precomputed' folds are parts of rows and of columns: use the "
                "function of the same name in sklearn.model_selection."
            )
        if self.y is None:  # one class
            self.y = np.zeros(n_rows((self.X,)))
        self.weight = sample_weight
        if sample_weight is not None:
            self.weight = np.broadcast_to(np.asarray(sample_weight, np.float64), len(self.y))
        settings = estimator._settings()
        gamma_depends_on_rows = settings.name in WITH_GAMMA and settings.gamma == "scale"
        self.whole: PathMachine | None = None
        if not gamma_depends_on_rows:  # else each fold has another kernel
            self.whole = clone(estimator).fit(self.X, self.y, self.weight)

    def model(self, k: int) -> Any:
        """The model of a fold."""
        split = self.splits[k]
        if self.whole is None or split.is_short:
            return self._fitted(split)
        gone = self.whole.last_ids_[split.left_out]
        gone = gone[gone >= 0]  # rows of weight 0 have no id
        if self.needs_models:
            return copy.deepcopy(self.whole).forget(ids=gone)
        return self.whole._without(gone)

    def _fitted(self, split: Split) -> PathMachine:
        train = split.train
        if train is None:
            train = np.setdiff1d(np.arange(len(self.y)), split.left_out)
        weight = None if self.weight is None else self.weight[train]
        model: PathMachine = clone(self.estimator)
        return model.fit(subset(self.X, train), subset(self.y, train), weight)


def leave_one_out_by_path(estimator: PathMachine, X: Any, y: Any, sample_weight: Any) -> Floats:
    """Decision values (or predictions) of each row by the model of all others."""
    method = "predict" if is_regressor(estimator) else "decision_function"
    return left_one_out(PathFolds(estimator, (X, y, None), LeaveOneOut(), sample_weight), method)


def left_one_out(folds: PathFolds, method: str) -> NDArray[Any]:
    """The answers to each row by the model of all others; only decisive rows take a path."""
    if folds.whole is None:
        touched, values = np.arange(len(folds.y)), []
    else:
        touched = np.flatnonzero(np.isin(folds.whole.last_ids_, folds.whole._decisive_ids()))
        values = list(getattr(folds.whole, method)(folds.X))
    for k in progress(touched.tolist(), "leaving one out", bool(folds.estimator.verbose)):
        values[k : k + 1] = [folds.answers(k, method)[0]]
    return np.array(values)


def influence_by_path(
    estimator: PathMachine, X: Any, y: Any, sample_weight: Any
) -> tuple[Floats, Floats, Floats]:
    """What `Influence` is made of: held-out values, their change, and margins."""
    model = clone(estimator).fit(X, y, sample_weight)
    held_out = leave_one_out_by_path(estimator, X, y, sample_weight)
    if is_regressor(model):
        return held_out, held_out - model.predict(X), -np.abs(np.asarray(y) - held_out)
    if not is_classifier(model):
        raise TypeError(
            f"influence compares answers with labels, and {type(model).__name__} has none: "
            "leave_one_out has the decision values that rows get from all others."
        )
    change = held_out - model.decision_function(X)
    own = np.asarray(y)[:, None] == model.classes_
    if own.shape[1] > 2 and own.shape != held_out.shape:
        raise ValueError(
            "influence needs a decision value of each class, and with "
            "decision_function_shape='ovo' there is one of each pair: set it to 'ovr'."
        )
    if held_out.ndim == 1:
        return held_out, change, np.where(own[:, -1], held_out, -held_out)
    return held_out, change, margin_of_own(held_out, own)
