"""Rows by their numbers: without a copy where they are neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]


class UncopiedRows(np.ndarray):
    """Rows of which neighbouring ones are selected without a copy, to be read."""

    @classmethod
    def of(cls, X: Any) -> Any:
        """An array of rows; anything else is returned as it is."""
        return X.view(cls) if type(X) is np.ndarray and X.ndim == 2 else X

    def __getitem__(self, key: Any) -> Any:
        """Rows by their numbers, as scikit-learn's splits have them, or by any other key."""
        rows = self.view(np.ndarray)
        first, *rest = key if isinstance(key, tuple) else (key,)
        if rest not in ([], [...]) or not isinstance(first, np.ndarray) or first.dtype.kind != "i":
            return rows[key]
        some = rows[as_slice(first)] if first.ndim == 1 else rows[first]
        some.setflags(write=False)
        return some


def as_slice(index: Indices) -> Any:
    """Neighbouring rows as a slice, which is a view where an array of indices would copy."""
    if len(index) and index[-1] - index[0] == len(index) - 1 and (np.diff(index) == 1).all():
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def subset(X: Any, index: Indices) -> Any:
    """Some rows of what the user gave, in its own kind."""
    if hasattr(X, "iloc"):
        return X.iloc[index]
    return X[as_slice(index)] if hasattr(X, "shape") else [X[i] for i in index]
