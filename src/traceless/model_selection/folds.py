"""The models of the folds: by subtraction, or with held-out scores in closed form."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.utils import indexable

from traceless.arithmetic.integers import Floats
from traceless.estimators.least_squares import LeastSquares
from traceless.model_selection.dataset import Dataset, subset
from traceless.model_selection.held_out import FullModel
from traceless.model_selection.precomputed import PrecomputedModels
from traceless.model_selection.splits import Split, TrainingKnowledge, split_rows

Path = Literal["auto", "subtract", "hat"]


class Folds(ABC):
    """The rows, their splits, and the model of each training part."""

    X: Any
    y: Any
    splits: list[Split]
    shared_time: float

    @property
    @abstractmethod
    def labels(self) -> NDArray[Any]:
        """The classes of all rows."""

    @abstractmethod
    def model(self, k: int) -> Any:
        """The model of a fold, to be asked about its test rows."""

    def as_estimator(self, estimator: Any, numbers: Iterator[int]) -> Any:
        """An estimator whose next clone becomes the next fold's model when it is fitted.

        scikit-learn clones, fits and scores one estimator for each split, in order; so its
        own functions do everything that is done with a fold's model, failures included.
        """

        def next_clone() -> Any:
            model: Any = clone(estimator)
            k = next(numbers)

            def fit(X: Any, y: Any) -> None:  # noqa: ARG001
                made = self.model(k)
                model.__class__, model.__dict__, model._lock = type(made), vars(made), made._lock

            model.fit = fit
            return model

        source: Any = clone(estimator)
        source.__sklearn_clone__ = next_clone
        return source

    def answers(self, k: int, method: str) -> NDArray[Any]:
        """The answers of a fold's model to its test rows."""
        model = self.model(k)
        answers = np.asarray(getattr(model, method)(subset(self.X, self.splits[k].test)))
        return answers if method == "predict" else self._in_columns(answers, model.classes_)

    def _in_columns(self, scores: Floats, classes: NDArray[Any]) -> Floats:
        """A column for each class of all rows, as scikit-learn has it."""
        labels = self.labels
        if len(labels) == len(classes):
            return scores
        advice = "Use splits that keep every class in every training part (StratifiedKFold)."
        if len(classes) <= 2:
            raise ValueError(
                f"A training part has {len(classes)} of {len(labels)} classes, too few for "
                f"decision values of each. {advice}"
            )
        warnings.warn(
            f"A training part has {len(classes)} of {len(labels)} classes: the others get the "
            f"smallest number there is as their score. {advice}",
            RuntimeWarning,
            stacklevel=4,
        )
        spread = np.full((len(scores), len(labels)), np.finfo(np.float64).min)
        spread[:, np.searchsorted(labels, classes)] = scores
        return spread


class LeastSquaresFolds(Folds):
    """Folds of LSSVC and LSSVR, with held-out scores where these need no model."""

    def __init__(
        self, data: Dataset, X: Any, y: Any, splits: list[Split], largest: int | None, closed: bool
    ) -> None:
        """`closed`: use the closed form for folds of fewer rows than `largest`."""
        self.data, self.X, self.y, self.splits = data, X, y, splits
        numbers = range(len(splits))
        self.closed = {k for k in numbers if closed and splits[k].has_closed_form(largest)}
        self.training = TrainingKnowledge(
            data, splits, [k for k in numbers if k not in self.closed]
        )
        self.shared_time = 0.0
        self._held_out: dict[int, Floats] = {}

    @classmethod
    def of(
        cls,
        estimator: Any,
        rows: tuple[Any, Any, Any],
        cv: Any,
        params: Mapping[str, Any] | None,
        path: Path,
        verbose: int,
        needs_models: bool = False,
        keep_train: bool = False,
    ) -> LeastSquaresFolds:
        """Check the rows, split them, and do what is done once for all folds."""
        start = time.perf_counter()
        X, y, groups = indexable(*rows)
        data = Dataset.check(estimator, X, y, sample_weight_of(params))
        splits = split_rows(estimator, cv, X, y, groups, keep_train)
        _check_path(data, path, needs_models)
        closed = path != "subtract" and not needs_models and not data.weighted
        folds = cls(data, X, y, splits, None if path == "hat" else data.n_outputs, closed)
        folds._held_out = folds.held_out(verbose=bool(verbose))
        folds.shared_time = time.perf_counter() - start
        return folds

    @property
    def labels(self) -> NDArray[Any]:
        """The classes of all rows."""
        return np.unique(self.data.y)

    @cached_property
    def _precomputed(self) -> PrecomputedModels:
        return PrecomputedModels(self.data, self.training.total)

    def model(self, k: int) -> Any:
        """The model of a fold, solved, or one that knows its held-out scores."""
        held_out = self._held_out.get(k)
        model = self.model_with(k, held_out)
        if held_out is None:
            model._weights()  # what cannot be solved fails here, as it would in fit
        return model

    def model_with(self, k: int, held_out: Floats | None, rho: float | None = None) -> LeastSquares:
        """The model of a fold at any ρ; it knows its held-out scores, where they are given."""

        def make() -> LeastSquares:
            model = self.data.model(self.training.of(k))
            return model if rho is None else model.set_params(rho=rho)

        if held_out is None:
            return make()
        model: LeastSquares = self._precomputed(self.splits[k].test, held_out, make)
        return model

    def held_out(self, rho: float | None = None, verbose: bool = False) -> dict[int, Floats]:
        """Held-out scores of the test rows, for each split that float64 is enough for."""
        if not self.closed:
            return {}
        full = FullModel(self.data, self.training.total, rho)
        possible = [k for k in sorted(self.closed) if self._keeps_classes(self.splits[k])]
        scores = full.folds([self.splits[k].left_out for k in possible], verbose)
        return {
            k: found[self.splits[k].test_in_left_out]
            for k, found in zip(possible, scores, strict=True)
            if found is not None
        }

    def _keeps_classes(self, split: Split) -> bool:
        """Whether training still has all classes: else their coding changes."""
        if self.training.total.task == "regression":
            return len(split.left_out) < len(self.data)
        counts = np.array(self.training.total.counts)
        gone = np.bincount(self._class_numbers[split.left_out], minlength=len(counts) + 1)[:-1]
        return bool((gone < counts).all())

    @cached_property
    def _class_numbers(self) -> NDArray[np.intp]:
        """The number of each row's class; rows without weight have a number of their own."""
        responses = self.training.total.responses
        numbers = np.searchsorted(np.array(responses), self.data.y)
        if self.data.sample_weight is not None:
            numbers[self.data.sample_weight <= 0] = len(responses)
        return numbers


def sample_weight_of(params: Mapping[str, Any] | None) -> Any:
    """The weights among the parameters of ``fit``; others are refused."""
    if get_config()["enable_metadata_routing"]:
        raise NotImplementedError(
            "Metadata routing is enabled, which these functions do not follow. Use "
            "sklearn.config_context(enable_metadata_routing=False), or scikit-learn's functions."
        )
    unknown = sorted(set(params or {}) - {"sample_weight"})
    if unknown:
        raise TypeError(f"params may hold sample_weight only, got {', '.join(unknown)}.")
    return (params or {}).get("sample_weight")


def _check_path(data: Dataset, path: Path, needs_models: bool) -> None:
    if path not in ("auto", "subtract", "hat"):
        raise ValueError(f"path must be 'auto', 'subtract' or 'hat', got {path!r}.")
    if path == "hat" and needs_models:
        raise ValueError(
            "path='hat' makes no models, but return_train_score or return_estimator asks for "
            "them. Use path='auto' or 'subtract'."
        )
    if path == "hat":
        data.check_unweighted("path='hat'")
