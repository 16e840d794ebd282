"""Folds: each with its model, or a stand-in that knows its held-out scores, to be scored."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number
from traceback import format_exc
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import indexable

from traceless.arithmetic.integers import Floats
from traceless.estimators.least_squares import LeastSquares
from traceless.knowledge.sums import Knowledge
from traceless.model_selection.held_out import Whole
from traceless.model_selection.rows import Indices, Rows, subset
from traceless.model_selection.splits import Split, Training, split_rows
from traceless.model_selection.stand_in import StandIns

Path = Literal["auto", "subtract", "hat"]


@dataclass
class Trial:
    """What came of one fold."""

    model: Any = None
    test: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)
    fit_time: float = 0.0
    score_time: float = 0.0
    failure: str | None = None


class Trials:
    """What is done with the model of each fold, however it is made."""

    X: Any
    y: Any
    splits: list[Split]
    shared_time: float

    @property
    def labels(self) -> NDArray[Any]:
        """The classes of all rows."""
        raise NotImplementedError

    def model(self, k: int, X_test: Any) -> Any:
        """The model of a fold, to be asked about its test rows."""
        raise NotImplementedError

    def trial(self, k: int, scorer: Any, error_score: Any, with_train: bool) -> Trial:
        """Make and score the model of a fold."""
        trial, split, start = Trial(), self.splits[k], time.perf_counter()
        X_test = subset(self.X, split.test)
        try:
            trial.model = self.model(k, X_test)
        except Exception:
            if error_score == "raise":
                raise
            trial.failure = format_exc()
        trial.fit_time = time.perf_counter() - start
        if trial.failure is None:
            y_test = subset(self.y, split.test)
            trial.test = scores_of(scorer, trial.model, X_test, y_test, error_score)
            trial.score_time = time.perf_counter() - start - trial.fit_time
            if with_train and split.train is not None:
                data = subset(self.X, split.train), subset(self.y, split.train)
                trial.train = scores_of(scorer, trial.model, *data, error_score)
        return trial

    def answers(self, k: int, method: str) -> NDArray[Any]:
        """What the model of a fold says of its test rows."""
        X_test = subset(self.X, self.splits[k].test)
        model = self.model(k, X_test)
        answers = np.asarray(getattr(model, method)(X_test))
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


@dataclass(frozen=True)
class Folds(Trials):
    """The splits of some rows, with held-out scores where these can be had without a model."""

    X: Any
    y: Any
    rows: Rows
    splits: list[Split]
    training: Training
    held_out: dict[int, Floats]
    stand_ins: StandIns | None
    shared_time: float

    @classmethod
    def of(
        cls,
        estimator: Any,
        data: tuple[Any, Any, Any],
        cv: Any,
        params: Mapping[str, Any] | None,
        path: Path,
        verbose: int,
        needs_models: bool = False,
        keep_train: bool = False,
    ) -> Folds:
        """Check the rows, split them, and do what is done once for all folds."""
        start = time.perf_counter()
        X, y, groups = indexable(*data)
        rows = Rows.check(estimator, X, y, sample_weight_of(params))
        splits = split_rows(estimator, cv, X, y, groups, keep_train)
        small = _closed_form(rows, splits, path, needs_models)
        training = Training(rows, splits, [k for k in range(len(splits)) if k not in small])
        held_out = (
            held_out_scores(Whole(rows, training.total), splits, small, bool(verbose))
            if small
            else {}
        )
        stand_ins = StandIns(rows.probe, training.total) if held_out else None
        took = time.perf_counter() - start
        return cls(X, y, rows, splits, training, held_out, stand_ins, took)

    @property
    def labels(self) -> NDArray[Any]:
        """The classes of all rows."""
        return np.unique(self.rows.y)

    def model(self, k: int, X_test: Any) -> Any:
        """The model of a fold, solved; or a stand-in that knows its held-out scores."""
        if k in self.held_out:
            assert self.stand_ins is not None
            return self.stand_ins(X_test, self.held_out[k], lambda: self._learned(k))
        model = self._learned(k)
        model._weights()  # what cannot be solved fails here, as it would in fit
        return model

    def _learned(self, k: int) -> LeastSquares:
        return self.rows.model(self.training.of(k))


# --- which way ---------------------------------------------------------------------------


def sample_weight_of(params: Mapping[str, Any] | None) -> Any:
    """The weights among what is passed on to training; nothing else may be."""
    if get_config()["enable_metadata_routing"]:
        raise NotImplementedError(
            "Metadata routing is enabled, which these functions do not follow. Use "
            "sklearn.config_context(enable_metadata_routing=False), or scikit-learn's functions."
        )
    unknown = sorted(set(params or {}) - {"sample_weight"})
    if unknown:
        raise TypeError(f"params may hold sample_weight only, got {', '.join(unknown)}.")
    return (params or {}).get("sample_weight")


def _closed_form(rows: Rows, splits: list[Split], path: Path, needs_models: bool) -> set[int]:
    """The splits whose held-out scores are to be computed without a model."""
    if path not in ("auto", "subtract", "hat"):
        raise ValueError(f"path must be 'auto', 'subtract' or 'hat', got {path!r}.")
    if path == "hat" and needs_models:
        raise ValueError(
            "path='hat' makes no models, but return_train_score or return_estimator asks for "
            "them. Use path='auto' or 'subtract'."
        )
    if path == "hat":
        rows.check_unweighted("path='hat'")
    if path == "subtract" or needs_models or rows.weighted:
        return set()
    largest = None if path == "hat" else rows.n_outputs
    return {k for k, split in enumerate(splits) if split.is_closed(largest)}


def held_out_scores(
    whole: Whole, splits: Sequence[Split], asked: set[int], verbose: bool
) -> dict[int, Floats]:
    """Held-out scores of the test rows, for each split that float64 is enough for."""
    keeps_classes = _class_guard(whole.rows, whole.total)
    possible = {k: left for k in sorted(asked) if keeps_classes(left := splits[k].rows_left_out)}
    scores = zip(possible, whole.folds(list(possible.values()), verbose), strict=True)
    return {k: found[splits[k].test_in_left_out] for k, found in scores if found is not None}


def _class_guard(rows: Rows, total: Knowledge) -> Callable[[Indices], bool]:
    """Whether all classes are still there without some rows: else the coding changes."""
    if total.task == "regression":
        return lambda left_out: len(left_out) < len(rows)
    counts = np.array(total.counts)
    where = np.searchsorted(np.array(total.responses), rows.y)
    where[~rows.alive] = len(counts)  # rows of weight 0 are no rows

    def keeps(left_out: Indices) -> bool:
        gone = np.bincount(where[left_out], minlength=len(counts) + 1)[:-1]
        return bool((gone < counts).all())

    return keeps


# --- scores ------------------------------------------------------------------------------


def scores_of(scorer: Any, model: Any, X: Any, y: Any, error_score: Any) -> dict[str, Any]:
    """What a scorer gives, by name; what it fails to give is `error_score`."""
    try:
        found = scorer(model, X, y)
    except Exception:
        if error_score == "raise":
            raise
        found = format_exc()
    named = dict(found) if isinstance(found, dict) else {"score": found}
    return {name: _number(name, value, error_score) for name, value in named.items()}


def _number(name: str, value: Any, error_score: Any) -> Any:
    if isinstance(value, str):  # scikit-learn's scorers return a failure as its traceback
        warnings.warn(
            f"Scoring failed. The score on this train-test partition will be set to "
            f"{error_score}. Details: \n{value}",
            UserWarning,
            stacklevel=6,
        )
        value = error_score
    value = value.item() if getattr(value, "size", 0) == 1 else value
    if not isinstance(value, Number):
        raise ValueError(f"scoring must return a number, got {value!r} for {name!r}.")
    return value


def check_error_score(error_score: Any) -> None:
    """Raise unless it is "raise" or a number."""
    if not isinstance(error_score, Number) and error_score != "raise":
        raise ValueError(f"error_score must be 'raise' or a number, got {error_score!r}.")


def score_names(trials: Sequence[Trial]) -> list[str]:
    """The names of the scores, from the first fold that has any."""
    return list(next(trial.test for trial in trials if trial.failure is None))


def report_failures(trials: Sequence[Trial], error_score: Any) -> None:
    """Warn of folds whose model could not be made; raise if there is no other."""
    failures = Counter(trial.failure for trial in trials if trial.failure is not None)
    if not failures:
        return
    n = failures.total()
    details = "\n".join(f"{count} fits failed with:\n{text}" for text, count in failures.items())
    if n == len(trials):
        raise ValueError(f"All the {n} fits failed; error_score='raise' shows where.\n{details}")
    warnings.warn(
        f"{n} fits failed out of a total of {len(trials)}. Their scores will be set to "
        f"{error_score}.\n{details}",
        FitFailedWarning,
        stacklevel=3,
    )
