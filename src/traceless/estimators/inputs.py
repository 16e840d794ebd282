"""Rows, checked before an estimator learns or forgets them.

Rows in memory are checked as scikit-learn does. Of rows in files or on a cluster
(`traceless.sources`) the number and the names of the columns are checked.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from traceless.exceptions import MismatchError
from traceless.sources.source import Source, as_source

if TYPE_CHECKING:
    from traceless.knowledge.responses import Task
    from traceless.knowledge.sums import Rows

_IN_MEMORY = {np.ndarray, list, int, float, type(None)}  # types that are surely no source


def checked(estimator: Any, rows: Rows | Source, task: Task, reset: bool) -> Rows | Source:
    """Rows in memory or elsewhere, with columns that the estimator knows (or learns: `reset`)."""
    if not isinstance(rows, Source):
        if not isinstance(rows, tuple) or len(rows) not in (2, 3):
            raise ValueError(
                "Rows must come as a tuple (X, y) or (X, y, sample_weight), or as a source, got "
                f"{type(rows).__name__}."
            )
        source = None if _IN_MEMORY.issuperset(map(type, rows)) else as_source(*rows)
        if source is None:
            return checked_arrays(estimator, rows, task, reset)
        rows = source
    _check_columns(estimator, rows, reset)
    return rows


def sides(add: Any, forget: Any) -> tuple[Any, Any]:
    """Both sides of an update, None in place of one without rows.

    Where only one side is given, scikit-learn's checks say that there are no rows.
    """
    if add is None and forget is None:
        raise ValueError("update needs rows to add, rows to forget, or both; got neither.")
    if add is None or forget is None:
        return add, forget
    return add if n_rows(add) else None, forget if n_rows(forget) else None


def n_rows(rows: Any) -> int:
    """Number of rows on one side of an update; anything but rows counts as one, and is refused."""
    if not isinstance(rows, tuple) or not rows:
        return int(rows is not None)
    X = rows[0]
    return X.shape[0] if getattr(X, "shape", ()) else len(X) if hasattr(X, "__len__") else 1


def checked_arrays(estimator: Any, rows: Rows, task: Task, reset: bool) -> Rows:
    """Rows in memory as (X, y, weight); NaN and infinities in X are found when coded."""
    regression = task == "regression"
    X, y = validate_data(
        estimator,
        *rows[:2],
        reset=reset,
        accept_sparse="csr",
        ensure_all_finite=False,
        multi_output=regression,
        y_numeric=regression,
    )
    weight = rows[2] if len(rows) == 3 else None
    if weight is not None and not isinstance(weight, Real):
        weight = check_array(weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    return X, y, weight


def _check_columns(estimator: Any, source: Source, reset: bool) -> None:
    """Check the number of columns and their names, as scikit-learn does for arrays."""
    if reset:
        estimator.n_features_in_ = source.n_features
        vars(estimator).pop("feature_names_in_", None)
    elif source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {source.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    names = source.feature_names
    take_names(estimator, None if names is None else np.array(names, dtype=object))


def take_names(estimator: Any, theirs: NDArray[Any] | None) -> None:
    """Check that column names agree; an estimator that has learned nothing takes them over."""
    ours = getattr(estimator, "feature_names_in_", None)
    if "_state" not in vars(estimator) and theirs is not None:
        estimator.feature_names_in_ = theirs
    elif ours is not None and theirs is not None and list(ours) != list(theirs):
        raise MismatchError(
            f"The columns differ: {list(ours)} here, {list(theirs)} there. Give the same columns "
            "in the same order."
        )


def check_classes(y: Any, classes: Any) -> None:
    """Raise if there are labels that `classes`, where it is given, does not list."""
    if classes is None:
        return
    unknown = sorted(set(np.unique(y).tolist()) - set(np.asarray(classes).tolist()))
    if unknown:
        raise ValueError(
            f"y contains classes {unknown} that are not in classes="
            f"{np.asarray(classes).tolist()}. Leave classes out to allow new ones."
        )
