"""Folds of PathSVC, which keeps its rows: fit all of them once, then remove each fold in turn.

Karasuyama & Takeuchi 2009, section 4: the path that removes many points at once is also the
way to cross-validate. A fold without support vectors changes nothing.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import LeaveOneOut
from sklearn.utils import indexable

from traceless.arithmetic.integers import Floats
from traceless.estimators.path_svc import PathSVC
from traceless.model_selection.dataset import subset
from traceless.model_selection.folds import Folds, Path, sample_weight_of
from traceless.model_selection.splits import Split, split_rows
from traceless.progress import progress


@dataclass(frozen=True, eq=False)
class PathFolds(Folds):
    """The splits of some rows, and the model of all of them.

    Where rows are repeated, where training is the smaller part, and where gamma depends on the
    training rows, models are fitted to them instead.
    """

    X: Any
    y: Any
    splits: list[Split]
    shared_time: float
    estimator: PathSVC
    whole: PathSVC | None
    weight: NDArray[Any] | None
    apart: bool

    @classmethod
    def of(
        cls,
        estimator: PathSVC,
        rows: tuple[Any, Any, Any],
        cv: Any,
        params: Mapping[str, Any] | None,
        path: Path,
        verbose: int,  # noqa: ARG003
        needs_models: bool = False,
        keep_train: bool = False,
    ) -> PathFolds:
        """Fit all rows, and split them."""
        start = time.perf_counter()
        _check(estimator, path)
        X, y, groups = indexable(*rows)
        weight = sample_weight_of(params)
        if weight is not None:
            weight = np.broadcast_to(np.asarray(weight, dtype=np.float64), len(y))
        splits = split_rows(estimator, cv, X, y, groups, keep_train)
        whole = None if _kernel_depends_on_rows(estimator) else clone(estimator).fit(X, y, weight)
        took = time.perf_counter() - start
        return cls(X, y, splits, took, estimator, whole, weight, needs_models)

    @property
    def labels(self) -> NDArray[Any]:
        """The classes of all rows."""
        return np.unique(np.asarray(self.y))

    def model(self, k: int) -> Any:
        """The model of a fold."""
        split = self.splits[k]
        if self.whole is None or split.is_short:
            return self._fitted(split)
        gone = self.whole.last_ids_[split.left_out]
        gone = gone[gone >= 0]  # rows of weight 0 have no id
        if self.apart:
            return copy.deepcopy(self.whole).forget(ids=gone)
        return self.whole.without(gone)

    def _fitted(self, split: Split) -> PathSVC:
        train = split.train
        if train is None:
            train = np.setdiff1d(np.arange(len(self.y)), split.left_out)
        weight = None if self.weight is None else self.weight[train]
        model: PathSVC = clone(self.estimator)
        return model.fit(subset(self.X, train), subset(self.y, train), weight)


def leave_one_out_by_path(estimator: PathSVC, X: Any, y: Any, sample_weight: Any) -> Floats:
    """Decision values of each row by the model of all others."""
    params = None if sample_weight is None else {"sample_weight": sample_weight}
    folds = PathFolds.of(estimator, (X, y, None), LeaveOneOut(), params, "auto", 0)
    if folds.whole is None:
        touched, values = np.arange(len(folds.y)), []
    else:
        touched = np.flatnonzero(np.isin(folds.whole.last_ids_, folds.whole.decisive_ids()))
        values = list(folds.whole.decision_function(folds.X))
    verbose = bool(estimator.verbose)
    for k in progress(touched.tolist(), "leaving one out", verbose):
        value = folds.answers(k, "decision_function")[0]
        values[k : k + 1] = [value]
    return np.array(values)


def _check(estimator: PathSVC, path: Path) -> None:
    if path not in ("auto", "subtract"):
        raise ValueError(
            f"path must be 'auto' or 'subtract' with {type(estimator).__name__}, which has no "
            f"closed form, got {path!r}."
        )
    if isinstance(estimator.kernel, str) and estimator.kernel == "precomputed":
        raise ValueError(
            "With kernel='precomputed' folds are parts of rows and of columns: use the function "
            "of the same name in sklearn.model_selection."
        )


def _kernel_depends_on_rows(estimator: PathSVC) -> bool:
    """Whether gamma="scale" gives each fold another kernel."""
    settings = estimator._settings()
    return settings.name in ("rbf", "poly") and settings.gamma == "scale"
