"""Rows, checked before an estimator learns or forgets them.

Rows in memory are checked as scikit-learn does. Of rows in files or on a cluster
(`traceless.sources`) the number and the names of the columns are checked.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import column_or_1d, validate_data

from traceless.arithmetic.integers import Floats
from traceless.device.tensors import check_rows, is_on_device, kind_of, taken_rows, to_array
from traceless.exceptions import MismatchError
from traceless.features.grid import check_finite
from traceless.features.table import table_of
from traceless.knowledge.training_rows import Batch, is_whole, plain_labels, plain_values
from traceless.knowledge.values import check_features, check_numbers, labels
from traceless.sources.source import Source, as_source

if TYPE_CHECKING:
    from traceless.knowledge.responses import Task
    from traceless.knowledge.sums import Rows

_IN_MEMORY = {np.ndarray, list, int, float, type(None)}  # types that are surely no source
# Types that labels come back in, besides those that Python's own labels become in NumPy.
_KINDS = ("?", "i1", "i2", "i4", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "O")
LABEL_TYPES = frozenset(np.dtype(kind).name for kind in _KINDS)
Labels = Literal["classes", "numbers", "none"]  # what the labels of rows are


def checked(estimator: Any, rows: Rows | Source, reset: bool) -> Rows | Source:
    """Rows in memory or elsewhere, with columns that the estimator knows (or learns: `reset`)."""
    if not isinstance(rows, Source):
        if not isinstance(rows, tuple) or len(rows) not in (2, 3):
            raise ValueError(
                "Rows must come as a tuple (X, y) or (X, y, sample_weight), or as a source, got "
                f"{type(rows).__name__}."
            )
        plain, (X, y, weight) = _IN_MEMORY.issuperset(map(type, rows)), (*rows, None)[:3]
        source = None if plain else as_source(X, y, weight, table_of(estimator))
        if source is None:
            if reset and getattr(y, "ndim", 2) != 1:
                estimator._begin(task_of(rows))
            return checked_arrays(estimator, rows, estimator._task, reset)
        rows = source
    if reset:
        estimator._begin(task_of(rows))
    _check_columns(estimator, rows, reset)
    return rows


def read_rows(estimator: Any, X: Any) -> Any:
    """Rows of a frame as an array, where an estimator has a table; anything else as it is."""
    table = table_of(estimator)
    return X if table is None else table.rows(X)


def known_rows(estimator: Any, X: Any) -> Any:
    """Rows to be asked for, as an array with the columns that a fitted estimator knows."""
    if getattr(estimator.feature_map, "table", None) is None and are_plain(estimator, X):
        return X
    if table := table_of(estimator):
        return check_array(table.rows(X), ensure_all_finite=False)  # there is one at least
    options = {"reset": False, "accept_sparse": "csr", "ensure_all_finite": False}
    return validate_data(estimator, X, **options)


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


def task_of(rows: Any) -> Task:
    """What labels are for: a matrix of two columns or more has several for each row."""
    X = rows[0] if isinstance(rows, tuple) and rows else rows
    if isinstance(X, Source):
        return "multilabel" if (X.n_targets or 1) > 1 else "classification"
    y = rows[1] if isinstance(rows, tuple) and len(rows) > 1 else None
    first: Any = y[0] if isinstance(y, list | tuple) and y else None
    shape = getattr(y, "shape", None) or (1, *np.shape(first))
    return "multilabel" if len(shape) == 2 and shape[1] > 1 else "classification"


def _check_kind(rows: Rows, task: Task) -> None:
    """Raise if there is one label for each row where there are to be several, or the reverse."""
    if task == "regression" or task == task_of(rows):
        return
    if task == "multilabel":
        raise MismatchError(
            "This model has learned several labels for each row, and got one for each. Give y as "
            "the matrix of 0 and 1 that it was learned with; fit starts anew."
        )
    raise MismatchError(
        "There is one label for each row here, and y is a matrix with several columns. Models "
        "take one kind from their first rows on, so fit a new one to several labels; "
        "traceless.model_selection takes single labels only, scikit-learn's functions both."
    )


def checked_arrays(estimator: Any, rows: Rows, task: Task, reset: bool) -> Rows:
    """Rows in memory as (X, y, weight); NaN and infinities in X are found when coded."""
    regression = task == "regression"
    if _are_plain(estimator, rows, task, reset):
        X, y = rows[:2]
        if reset:
            estimator.n_features_in_ = X.shape[1]
            vars(estimator).pop("feature_names_in_", None)
    else:
        rows = taken_rows(rows)
        _check_kind(rows, task)
        X, y = _validated(estimator, rows, task, reset)
    y = y.toarray() if issparse(y) else y
    if reset and not regression:
        there = type(y) is not np.ndarray and is_on_device(y)
        dtype = np.dtype(kind_of(y)) if there else y.dtype
        take_label_type(estimator, dtype, task, rows[1])
    weight = rows[2] if len(rows) == 3 else None
    if weight is not None and not isinstance(weight, Real):
        check_numbers(weight, "sample_weight")
        weight = check_array(weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    return X, y, weight


def _validated(estimator: Any, rows: Rows, task: Task, reset: bool) -> tuple[Any, Any]:
    """Rows and labels that have passed scikit-learn's checks."""
    kinds = {"multi_output": task != "classification", "y_numeric": task == "regression"}
    if is_on_device(rows[0]):
        X, y = checked_tensor(estimator, rows[0], reset), rows[1]
        if not is_on_device(y) or task != "classification":
            y = to_array(y) if task == "regression" else labels(to_array(y))
            y = validate_data(estimator, X="no_validation", y=y, **kinds)
        return X, y
    if task == "regression":
        check_numbers(rows[1], "y")
    y = rows[1] if task == "regression" else labels(rows[1])
    if table := table_of(estimator):
        X, y = check_X_y(table.rows(rows[0]), y, ensure_all_finite=False, **kinds)
        if reset:
            know_columns(estimator, table)
        return X, y
    check_features(rows[0])
    options = {"reset": reset, "accept_sparse": "csr", "ensure_all_finite": False}
    X, y = validate_data(estimator, rows[0], y, **options, **kinds)
    return X, y


def know_columns(estimator: Any, table: Any) -> None:
    """Let an estimator know the columns of its table, by name."""
    estimator.n_features_in_ = len(table.names)
    estimator.feature_names_in_ = np.array(table.names, dtype=object)


def _are_plain(estimator: Any, rows: Rows, task: Task, reset: bool) -> bool:
    """Whether rows are surely what scikit-learn's checks would return, which take 0.1 ms."""
    X, y = rows[:2]
    return (
        type(X) is type(y) is np.ndarray
        and getattr(estimator.feature_map, "table", None) is None  # one would read the rows
        and (len(rows) == 2 or rows[2] is None)
        and task != "multilabel"
        and y.ndim == 1
        and y.shape[0] == X.shape[0]
        and (y.dtype.kind in "biu" or (y.dtype == np.float64 and bool(np.isfinite(y).all())))
        and are_plain(estimator, X, reset)
    )


def checked_tensor(estimator: Any, X: Any, reset: bool) -> Any:
    """Rows on a device, with columns that the estimator knows (or learns: `reset`)."""
    check_rows(X)
    if not len(X):
        raise ValueError(
            f"Found array with 0 sample(s) (shape={tuple(X.shape)}) while a minimum of 1 is "
            f"required by {type(estimator).__name__}."
        )
    return validate_data(estimator, X, reset=reset, skip_check_array=True)


def _check_columns(estimator: Any, source: Source, reset: bool) -> None:
    """Check the number of columns and their names, as scikit-learn does for arrays."""
    table = table_of(estimator)
    ours, theirs = (None if one is None else one.specification() for one in (table, source.table))
    if ours != theirs and (theirs is not None or source.feature_names is not None):
        raise MismatchError(
            "The rows of this source were not read by the table of the model. Make the source with "
            "columns=table, and the model with the same table as its feature map, or as that of it."
        )
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


def take_label_type(estimator: Any, dtype: np.dtype[Any], task: Task, given: Any) -> None:
    """Remember the type of the first labels, where it is not the one that labels have anyway.

    Like the names of columns it is that of the first rows. It is no part of the knowledge: the
    labels themselves, and with them all digests, are the same whatever type they came in.
    """
    vars(estimator).pop("_label_type", None)
    came = str(getattr(given, "dtypes", getattr(given, "dtype", dtype))).lower()
    if dtype.kind == "f" and "float" not in came:
        return  # scikit-learn makes floats of pandas' nullable integers
    if dtype.name in LABEL_TYPES and (dtype.kind != "b" or task == "multilabel"):
        estimator._label_type = dtype.name


def check_classes(y: Any, classes: Any) -> None:
    """Raise if there are labels that `classes`, where it is given, does not list."""
    if classes is None:
        return
    several = task_of((None, y)) == "multilabel"  # whose labels are the numbers of the columns
    found = range(y.shape[1] if hasattr(y, "shape") else len(y[0])) if several else np.unique(y)
    unknown = sorted({*np.asarray(found).tolist()} - set(np.asarray(classes).tolist()))
    if unknown:
        raise ValueError(
            f"y contains classes {unknown} that are not in classes="
            f"{np.asarray(classes).tolist()}. Leave classes out to allow new ones."
        )


# --- rows that are kept ------------------------------------------------------------------------


def as_triple(rows: Any, alone: bool = False) -> tuple[Any, Any, Any]:
    """Rows as the user gave them, with None for the weights that are missing.

    `alone`: whether there need be no labels.
    """
    if alone and isinstance(rows, tuple) and len(rows) == 1:
        return rows[0], None, None
    if not isinstance(rows, tuple) or len(rows) not in (2, 3):
        raise ValueError(
            f"Rows must come as a tuple (X, y) or (X, y, sample_weight), got {type(rows).__name__}."
        )
    return rows if len(rows) == 3 else (*rows, None)


def checked_weight(weight: Any, n: int) -> Floats:
    """Weights as an array of our own, one for each row."""
    if weight is None:
        return np.ones(n)
    given = np.full(n, float(weight)) if isinstance(weight, Real) else weight
    out = check_array(given, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if out.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {out.shape}.")
    return np.array(out)


def checked_to_keep(estimator: Any, rows: Any, reset: bool) -> Batch:
    """Rows of one of the path family, checked: arrays of our own."""
    kind: Labels = estimator._labels
    X, y, weight = as_triple(rows, alone=kind == "none")
    y = labels(y) if kind == "classes" else y
    options = {"dtype": np.float64, "order": "C", "accept_sparse": "csr"}
    options |= {"ensure_all_finite": False}  # for `check_finite`, which says how to mend it
    if table := table_of(estimator):
        X = features_of(estimator, X)
        y = np.zeros(len(X)) if kind == "none" else y
        X, y = check_X_y(X, y, y_numeric=kind == "numbers")
        if reset:
            know_columns(estimator, table)
        return _kept(X, y, weight, kind)
    check_features(X)
    if not reset and estimator._model.kernel.name == "precomputed":
        X = check_array(X, input_name="X", **options)  # as wide as the points held, and new ones
        y = np.zeros(X.shape[0]) if kind == "none" else column_or_1d(y)
    elif kind == "none":
        X = validate_data(estimator, X, reset=reset, **options)
        y = np.zeros(X.shape[0])
    elif reset or not is_plain(estimator, X, y):
        numeric = kind == "numbers"
        X, y = validate_data(estimator, X, y, reset=reset, y_numeric=numeric, **options)
    check_finite(X)
    return _kept(X, y, weight, kind)


def _kept(X: Any, y: Any, weight: Any, kind: Labels) -> Batch:
    """Arrays of our own."""
    X = plain_values(dense(X))
    n = len(X)
    if len(y) != n:
        raise ValueError(f"X has {n} rows, but y has {len(y)}: one is needed per row.")
    weight = checked_weight(weight, n)
    if not (weight >= 0.0).all():
        raise ValueError("sample_weight must not be negative.")
    y = plain_labels(y).copy() if kind == "classes" else np.asarray(y, dtype=np.float64) + 0.0
    return X, y, weight


def features_of(estimator: Any, X: Any) -> Any:
    """What the table of an estimator makes of rows, where it has one."""
    table = table_of(estimator)
    return X if table is None else table.values(table.rows(X))


def dense(X: Any) -> Floats:
    """Rows as an array: kernels read all columns of them."""
    return np.asarray(X.toarray() if issparse(X) else X)


def are_plain(estimator: Any, X: Any, reset: bool = False) -> bool:
    """Whether rows are surely what scikit-learn's checks would return, but for their numbers."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.size > 0
        and (
            reset
            or (
                X.shape[1] == estimator.n_features_in_
                and "feature_names_in_" not in vars(estimator)
            )
        )
    )


def is_plain(estimator: Any, X: Any, *labels: Any) -> bool:
    """Whether rows are what scikit-learn would make of them; its checks take long for one row."""
    plain = are_plain(estimator, X) and X.flags.c_contiguous and np.isfinite(X).all()
    return bool(plain) and all(
        type(y) is np.ndarray and y.shape == (len(X),) and is_whole(y) for y in labels
    )
