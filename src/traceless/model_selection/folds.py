"""The rows of a cross-validation, their splits, and how scikit-learn asks the model of each."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import indexable

from traceless.arithmetic.integers import Floats
from traceless.device.tensors import to_array
from traceless.estimators.inputs import read_rows
from traceless.model_selection.splits import split_rows, subset
from traceless.transaction import apart

Path = Literal["auto", "subtract", "hat"]


class Folds(ABC):
    """The rows, their splits, and the model of each training part."""

    def __init__(
        self,
        estimator: Any,
        rows: tuple[Any, Any, Any],
        cv: Any,
        sample_weight: Any,
        path: Path = "auto",
        *,
        needs_models: bool = False,
        keep_train: bool = False,
    ) -> None:
        self.estimator, self.needs_models = estimator, needs_models
        X, y, groups = map(to_array, rows)
        self.X, self.y, groups = indexable(read_rows(estimator, X), y, groups)
        self.splits = split_rows(estimator, cv, self.X, self.y, groups, keep_train)
        self._learn(sample_weight, path)

    @abstractmethod
    def _learn(self, sample_weight: Any, path: Path) -> None:
        """Check the rows, and do what is done once for all folds."""

    @abstractmethod
    def model(self, k: int) -> Any:
        """The model of a fold, to be asked about its test rows."""

    def as_estimator(self, numbers: Iterator[int]) -> Any:
        """An estimator whose next clone becomes the next fold's model when it is fitted.

        scikit-learn clones, fits and scores one estimator for each split, in order; so its
        own functions do everything that is done with a fold's model, failures included.
        """
        unfitted, source = clone(self.estimator), clone(self.estimator)

        def next_clone() -> Any:
            model = apart(unfitted)  # scikit-learn's clone takes longer than a held-out score
            k = next(numbers)

            def fit(X: Any, y: Any) -> None:  # noqa: ARG001
                del model.fit  # should this one fail, the estimator has its own again
                made = self.model(k)
                model.__class__, model.__dict__, model._lock = type(made), vars(made), made._lock

            model.fit = fit
            return model

        source.__sklearn_clone__ = next_clone
        return source

    def answers(self, k: int, method: str) -> NDArray[Any]:
        """The answers of a fold's model to its test rows."""
        model = self.model(k)
        answers = np.asarray(getattr(model, method)(subset(self.X, self.splits[k].test)))
        if method == "predict" or not is_classifier(self.estimator):
            return answers
        return self._in_columns(answers, model.classes_, method)

    def _in_columns(self, scores: Floats, classes: NDArray[Any], method: str) -> Floats:
        """A column for each class of all rows, as scikit-learn has it."""
        labels = np.unique(np.asarray(self.y))
        if len(labels) == len(classes):
            return scores
        advice = "Use splits that keep every class in every training part (StratifiedKFold)."
        if method == "decision_function" and len(classes) <= 2:
            raise ValueError(
                f"A training part has {len(classes)} of {len(labels)} classes, too few for "
                f"decision values of each. {advice}"
            )
        least = 0.0 if method == "predict_proba" else np.finfo(np.float64).min
        warnings.warn(
            f"A training part has {len(classes)} of {len(labels)} classes: the others get "
            f"{least:.3g}, the smallest number there is for {method}. {advice}",
            RuntimeWarning,
            stacklevel=4,
        )
        spread = np.full((len(scores), len(labels)), least)
        spread[:, np.searchsorted(labels, classes)] = scores
        return spread
