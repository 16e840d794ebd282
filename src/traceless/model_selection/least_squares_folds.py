"""Folds of LSSVC and LSSVR: by subtraction, or with held-out scores in closed form.

    knowledge of the training part = knowledge of all rows - knowledge of the rows left out

to the bit, because knowledge is integers (`traceless.knowledge.sums`). A training part is summed
directly only if it is smaller than the part it leaves out, or if it repeats rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.estimators.inputs import known_rows
from traceless.estimators.least_squares import LeastSquares
from traceless.knowledge.sums import Knowledge
from traceless.model_selection.dataset import Dataset
from traceless.model_selection.folds import Folds, Path
from traceless.model_selection.held_out import FullModel
from traceless.model_selection.splits import Split, as_slice, is_partition

_MEMORY = 2**28  # bytes of fold knowledge kept at a time; beyond, folds are summed again


class LeastSquaresFolds(Folds):
    """Folds of LSSVC and LSSVR, with held-out scores where these need no model."""

    def _learn(self, sample_weight: Any, path: Path) -> None:
        if path not in ("auto", "subtract", "hat"):
            raise ValueError(f"path must be 'auto', 'subtract' or 'hat', got {path!r}.")
        self.data = Dataset.check(self.estimator, self.X, self.y, sample_weight)
        if path == "hat" and self.needs_models:
            raise ValueError(
                "path='hat' makes no models, but return_train_score or return_estimator asks for "
                "them. Use path='auto' or 'subtract'."
            )
        if path == "hat":
            self.data.check_closed_form("path='hat'")
        self.closed: set[int] = set()  # the folds whose held-out scores are computed in closed form
        if path != "subtract" and not self.needs_models and self.data.has_closed_form:
            largest = np.inf if path == "hat" else self.data.n_outputs
            for k, split in enumerate(self.splits):
                if split.test_in_left_out is not None and len(split.left_out) < largest:
                    self.closed.add(k)
        self.known_scores: dict[int, Floats] = {}  # held-out scores of the test rows of folds
        self._rests: dict[int, Knowledge] = self._disjoint_rests()

    @cached_property
    def total(self) -> Knowledge:
        """The knowledge of all rows: the sum of the folds, where these are all rows."""
        return self.data.total()

    def training(self, k: int) -> Knowledge:
        """The knowledge of the training part of a split."""
        split = self.splits[k]
        if k in self._rests:
            return self._rests[k]
        if split.is_short:
            assert split.train is not None
            return self.data.knowledge(split.train)
        if not len(split.left_out):
            return self.total
        return self.total - self.data.knowledge(split.left_out)

    def _disjoint_rests(self) -> dict[int, Knowledge]:
        """The training parts, if those left out are all rows, once each: each is summed once."""
        exact = {k: s.left_out for k, s in enumerate(self.splits) if k not in self.closed}
        size = 8 * len(exact) * self.data.n_outputs**2
        if not exact or any(self.splits[k].is_short for k in exact) or size > _MEMORY:
            return {}
        if not is_partition(list(exact.values()), len(self.data)):
            return {}
        parts = {k: self.data.knowledge(fold) for k, fold in exact.items()}
        self.total = self.data.total(parts.values())
        return {k: self.total - part for k, part in parts.items()}

    @cached_property
    def _precomputed(self) -> Any:
        """The class of models whose held-out scores are known before they are made."""
        mixin = _PrecomputedClassifier if self.total.task == "classification" else _Precomputed
        kind = type(self.data.probe)
        return type(f"Precomputed{kind.__name__}", (mixin, kind), {})

    def model(self, k: int, rho: float | None = None) -> Any:
        """The model of a fold (at another ρ): solved, or one that knows its held-out scores."""

        def make() -> LeastSquares:
            model = self.data.model(self.training(k), own_map=self.needs_models)
            return model if rho is None else model.set_params(rho=rho)

        if k in self.known_scores:
            known = self._precomputed.__new__(self._precomputed)
            known.__dict__ |= vars(self.data.probe) | {
                "_labels": np.array(self.total.responses),
                "_test_rows": self.data.X[as_slice(self.splits[k].test)],
                "_scores": self.known_scores[k],
                "_make": make,
            }
            return known
        model = make()
        model._weights()  # what cannot be solved fails here, as it would in fit
        return model

    def held_out(self, rho: float | None = None, verbose: bool = False) -> dict[int, Floats]:
        """Held-out scores of the test rows, for each split that float64 is enough for."""
        if not self.closed:
            return {}
        full = FullModel(self.data, self.total, rho)
        possible = [k for k in sorted(self.closed) if self._keeps_classes(self.splits[k])]
        scores = full.folds([self.splits[k].left_out for k in possible], verbose)
        return {
            k: found[self.splits[k].test_in_left_out]
            for k, found in zip(possible, scores, strict=True)
            if found is not None
        }

    def _keeps_classes(self, split: Split) -> bool:
        """Whether training still has all classes: else their coding changes."""
        if self.total.task == "regression":
            return len(split.left_out) < len(self.data)
        counts = np.array(self.total.counts)
        gone = np.bincount(self._class_numbers[split.left_out], minlength=len(counts) + 1)[:-1]
        return bool((gone < counts).all())

    @cached_property
    def _class_numbers(self) -> NDArray[np.intp]:
        """The number of each row's class; rows without weight have a number of their own."""
        responses = self.total.responses
        numbers = np.searchsorted(np.array(responses), self.data.y)
        if self.data.sample_weight is not None:
            numbers[self.data.sample_weight <= 0] = len(responses)
        return numbers


class _Precomputed(LeastSquares):
    _test_rows: Any
    _scores: Floats
    _make: Callable[[], LeastSquares] | None

    def _decision(self, X: Any) -> Any:
        rows, known = X, self._test_rows
        if type(X) is not np.ndarray or X.dtype != known.dtype:
            rows = known_rows(self, X)
        # numbers of two types could agree after conversion only
        same_kind = rows.shape == known.shape and rows.dtype == known.dtype
        absent = self._map().table is not None  # NaN differs from NaN, and may stand in a table
        if same_kind and (
            np.array_equal(rows, known, equal_nan=True) if absent else not (rows != known).sum()
        ):
            return self._scores
        return super()._decision(X)

    def _held(self) -> Any:
        if self._make is not None:
            self.__dict__.update(vars(self._make()), _make=None)
        return super()._held()

    def __sklearn_is_fitted__(self) -> bool:
        return True


class _PrecomputedClassifier(_Precomputed):
    _labels: NDArray[Any]

    @property
    def classes_(self) -> NDArray[Any]:
        return self._labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy, without scikit-learn's checks of the labels: all rows have passed them.

        Of a single row the checks take ten times as long as everything else.
        """
        right = self.predict(X) == np.ravel(y)
        return float(np.average(right, weights=sample_weight))
