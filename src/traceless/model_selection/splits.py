"""Splits, and the knowledge of their training parts by subtraction.

    training = total - left out

to the bit, because knowledge is integers (`traceless.knowledge.sums`). A training part is summed
directly only if it is smaller than what it leaves out, or if it repeats rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import LeaveOneOut, check_cv

from traceless.knowledge.sums import Knowledge
from traceless.model_selection.dataset import Dataset, Indices

_MEMORY = 2**28  # bytes of fold knowledge kept at a time; beyond, folds are summed again


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
        """Where the test rows are among those left out, or None if they are not all there."""
        if self.repeats or not len(self.left_out):
            return None
        at = np.searchsorted(self.left_out, self.test)
        found = self.left_out[np.minimum(at, len(self.left_out) - 1)] == self.test
        return at if found.all() else None

    def has_closed_form(self, J: int | None) -> bool:
        """Whether the closed form applies, and the fold has fewer than `J` rows."""
        return self.test_in_left_out is not None and (J is None or len(self.left_out) < J)


def split_rows(
    estimator: Any, cv: Any, X: Any, y: Any, groups: Any, keep_train: bool
) -> list[Split]:
    """The splits of a scikit-learn splitter; training indices are kept only where needed."""
    cv = check_cv(cv, y, classifier=is_classifier(estimator))
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if isinstance(cv, LeaveOneOut) and n > 1 and not keep_train:
        return [Split(row, row) for row in np.arange(n)[:, None]]  # its own way takes n² steps
    return [Split.of(train, test, n, keep_train) for train, test in cv.split(X, y, groups)]


class TrainingKnowledge:
    """The knowledge of all rows, and of the training part of any split."""

    def __init__(self, data: Dataset, splits: Sequence[Split], exact: Sequence[int]) -> None:
        """`exact` are the splits whose models will be made."""
        self._data, self._splits = data, splits
        self._parts = dict(self._disjoint_parts(exact))

    @cached_property
    def total(self) -> Knowledge:
        """The knowledge of all rows: the sum of the folds, where they are all there is."""
        return self._data.total(self._parts.values())

    def of(self, k: int) -> Knowledge:
        """The knowledge of the training part of split `k`."""
        split = self._splits[k]
        if split.is_short:
            assert split.train is not None
            return self._data.knowledge(split.train)
        if not len(split.left_out):
            return self.total
        return self.total - (self._parts.get(k) or self._data.knowledge(split.left_out))

    def _disjoint_parts(self, exact: Sequence[int]) -> Iterator[tuple[int, Knowledge]]:
        """The parts left out, each summed once, if together they are all rows, once each."""
        if not exact or any(self._splits[k].is_short for k in exact):
            return
        parts = [self._splits[k].left_out for k in exact]
        if 8 * len(parts) * self._data.n_outputs**2 > _MEMORY:
            return
        if np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(self._data))):
            yield from ((k, self._data.knowledge(p)) for k, p in zip(exact, parts, strict=True))
