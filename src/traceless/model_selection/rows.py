"""Rows by their numbers: without a copy where they are neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]


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
