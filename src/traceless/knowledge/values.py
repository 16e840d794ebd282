"""What values may be, wherever they come from.

Features, targets of a regression and weights are numbers: integers, floats, decimals, truth values.
Text is no number, even if it looks like one, and nor are dates, times and durations: what is to
be counted, and from when, is for the user to say. The same rows then mean the same in NumPy,
pandas, polars, files, Dask and Spark, some of which would turn a date into days, others into
nanoseconds.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.exceptions import MismatchError

_TEXT = str, bytes
_TIME = datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64


def check_numbers(values: Any, what: str) -> None:
    """Raise TypeError if an array, or a column of a dataframe, does not hold numbers."""
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    if kind in "biufc":
        return
    _check_no_struct(values, what)
    array = np.asarray(values)
    if array.dtype.kind == "O":
        kinds = {*map(type, array.ravel().tolist())}
        wrong = next((k for k in kinds if issubclass(k, _TEXT + _TIME)), None)
        found = None if wrong is None else wrong.__name__
        timely = wrong is not None and issubclass(wrong, _TIME)
    else:
        found = array.dtype.name if array.dtype.kind in "USmMT" else None
        timely = array.dtype.kind in "mM"
    if found is not None:
        mend = "Declare what it means"
        if timely:
            mend = "Declare what is counted, such as days since a fixed date"
        how = "traceless.features.Table.suggest(X) proposes a table, which models take as their map"
        raise TypeError(f"{what} is of type {found}, and must be numbers. {mend}: {how}.")


def check_features(X: Any) -> None:
    """Raise TypeError if a column of an array or a dataframe does not hold numbers."""
    dtype = getattr(X, "dtype", None)
    if dtype is not None:
        check_numbers(X, "X")
    elif hasattr(X, "column_names"):  # of Arrow, whose columns are the values themselves
        for name, column in zip(X.column_names, X.columns, strict=True):
            check_numbers(column, f"Column {name!r} of X")
    elif hasattr(X, "columns"):
        for name, kind in zip(X.columns, X.dtypes, strict=True):
            if getattr(kind, "kind", "O") not in "biufc":
                check_numbers(X[name], f"Column {name!r} of X")


def labels(y: Any) -> Any:
    """Labels as they came; truth values and integers of pandas' own types as those of NumPy.

    scikit-learn would make floats of them, which do not tell large integers apart.
    """
    if isinstance(y, np.ndarray):
        return y
    _check_no_struct(y, "y")
    if not hasattr(y, "isna"):
        _check_apart(y)
        return y
    if y.isna().any(axis=None):
        raise missing()
    kind = getattr(y, "dtype", None)
    kind = getattr(getattr(kind, "categories", None), "dtype", kind)  # that of the categories
    if getattr(kind, "kind", None) == "b":
        return np.asarray(y).astype(bool)
    whole = getattr(kind, "numpy_dtype", np.dtype("O"))
    if whole.kind not in "iu":
        return y
    return y.to_numpy(dtype=np.uint64 if whole == np.uint64 else np.int64)


def _check_no_struct(values: Any, what: str) -> None:
    """Raise if values are structs of polars, which become a column for each field."""
    kind = str(getattr(values, "dtype", ""))
    if kind.startswith("Struct"):
        raise TypeError(
            f"{what} is of type {kind}: each value has several fields. Select one of them first."
        )


def _check_apart(y: Any) -> None:
    """Raise if NumPy would make one label of several: of 1 and "1", or of "a" and "a" with NUL."""
    if str(getattr(y, "dtype", "")) == "String":  # of polars
        y = y.to_list()
    kinds = {*map(type, y)} if isinstance(y, list | tuple) else set()
    mixed = bool in kinds and not kinds.isdisjoint((int, float))
    if mixed or (not kinds.isdisjoint(_TEXT) and np.asarray(y).tolist() != [*y]):
        raise MismatchError(
            "Class labels must be of one type, and none may end with NUL, which NumPy drops: it "
            f"would make one label of several in {[*dict.fromkeys(map(repr, y))][:5]}. Rename them."
        )


def has_missing(values: NDArray[Any]) -> bool:
    """Whether an array of objects has None, NaN, or what pandas has for them."""
    kinds = {*map(type, values.ravel().tolist())}
    if not {"NoneType", "NAType", "NaTType"}.isdisjoint(kind.__name__ for kind in kinds):
        return True
    return float in kinds and any(v != v for v in values.flat)


def missing() -> ValueError:
    """The error for labels or targets that are not there."""
    return ValueError("Labels are missing, and every row needs one. Drop these rows first.")
