"""Splits: the rows to test on, and the rows that training leaves out; and rows by their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import LeaveOneOut, check_cv

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Split:
    """One split: the rows to test on, and the rows that training leaves out.

    Training `is_short` where it is less work to sum it than the rows it leaves out, and where it
    `repeats` rows; `train` is kept there, and where it is asked for.
    """

    test: Indices
    left_out: Indices
    train: Indices | None = None
    is_short: bool = False
    repeats: bool = False

    @classmethod
    def of(cls, train: Any, test: Any, n: int, keep_train: bool) -> Split:
        """From what a splitter yields: indices, negative ones too, or masks."""
        everything = np.arange(n)
        train, test = everything[train], everything[test]
        times = np.bincount(train, minlength=n)
        left_out = np.flatnonzero(times == 0)
        repeats = bool(times.max(initial=0) > 1)
        short = repeats or len(train) < len(left_out)
        return cls(test, left_out, train if short or keep_train else None, short, repeats)

    @cached_property
    def test_in_left_out(self) -> Indices | None:
        """Positions of the test rows among those left out, or None if they are not all there."""
        if self.repeats or not len(self.left_out):
            return None
        at = np.searchsorted(self.left_out, self.test)
        found = self.left_out[np.minimum(at, len(self.left_out) - 1)] == self.test
        return at if found.all() else None


def split_rows(
    estimator: Any, cv: Any, X: Any, y: Any, groups: Any, keep_train: bool
) -> list[Split]:
    """The splits of a scikit-learn splitter; training indices are kept only where needed."""
    cv = check_cv(cv, y, classifier=is_classifier(estimator))
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if isinstance(cv, LeaveOneOut) and n > 1 and not keep_train:
        return [Split(row, row) for row in np.arange(n)[:, None]]  # its own way takes n² steps
    return [Split.of(train, test, n, keep_train) for train, test in cv.split(X, y, groups)]


def is_partition(parts: list[Indices], n: int) -> bool:
    """Whether each of n rows is in exactly one part."""
    return np.array_equal(np.sort(np.concatenate(parts)), np.arange(n))


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
