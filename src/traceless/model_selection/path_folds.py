"""Folds of machines that keep their rows: fit all of them once, then remove each fold in turn.

Karasuyama & Takeuchi 2009, section 4: the path that removes many points at once is also the
way to cross-validate. A fold without support vectors changes nothing.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from traceless.estimators.inputs import n_rows
from traceless.estimators.path_machine import PathMachine
from traceless.hinge.settings import WITH_GAMMA
from traceless.model_selection.folds import Folds, Path
from traceless.model_selection.splits import Split, subset


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
