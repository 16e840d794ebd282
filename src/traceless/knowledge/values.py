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

_TEXT = str, bytes
_TIME = datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64


def check_numbers(values: Any, what: str) -> None:
    """Raise TypeError if an array, or a column of a dataframe, does not hold numbers."""
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    if kind in "biufc":
        return
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
        mend = "Encode it, or leave it out"
        if timely:
            mend = "Say what is counted, such as days since a fixed date"
        raise TypeError(f"{what} is of type {found}, and must be numbers. {mend}.")


def check_features(X: Any) -> None:
    """Raise TypeError if a column of an array or a dataframe does not hold numbers."""
    dtype = getattr(X, "dtype", None)
    if dtype is not None:
        if dtype.kind not in "biufc":
            check_numbers(X, "X")
    elif hasattr(X, "columns"):
        for name, kind in zip(X.columns, X.dtypes, strict=True):
            if getattr(kind, "kind", "O") not in "biufc":
                check_numbers(X[name], f"Column {name!r} of X")


def labels(y: Any) -> Any:
    """Labels as they came; truth values and integers of pandas' own types as those of NumPy.

    scikit-learn would make floats of them, which do not tell large integers apart.
    """
    if isinstance(y, np.ndarray) or not hasattr(y, "isna"):
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


def has_missing(values: NDArray[Any]) -> bool:
    """Whether an array of objects has None, NaN, or what pandas has for them."""
    kinds = {*map(type, values.ravel().tolist())}
    if not {"NoneType", "NAType", "NaTType"}.isdisjoint(kind.__name__ for kind in kinds):
        return True
    return float in kinds and any(v != v for v in values.flat)


def missing() -> ValueError:
    """The error for labels or targets that are not there."""
    return ValueError("Labels are missing, and every row needs one. Drop these rows first.")
