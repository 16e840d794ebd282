"""What least-squares estimators share: learn, forget, merge, solve.

    minimise  ρ ‖w‖² + Σ_n ω_n (w·φ(x_n) - y_n)²,     (ρI + Σωφφᵀ) w = Σωyφ

the LS-SVM of Lee et al. 2019 (eq. 1 and 2), the proximal SVM that Zhu et al. 2018 build
on, and ridge regression on φ: one computation. The estimators keep the knowledge of
their rows (`traceless.knowledge`), never the rows, and solve it when coefficients are
asked for. Coefficients, digest and predictions are functions of the rows held now.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from traceless import exact
from traceless.exact import Floats, Integers
from traceless.exceptions import MismatchError, RangeError, ResolutionWarning
from traceless.features import BoundMap, FeatureMap, Linear
from traceless.features.parameters import positive
from traceless.gather import dense_rows
from traceless.knowledge import Knowledge, Task, check_same_specification
from traceless.solve import correctly_rounded_solve

ROWS = 4096  # rows predicted at a time
_COARSE = 8  # a column that varies by fewer steps than this is reported
Rows = tuple[Any, ...]  # (X, y) or (X, y, sample_weight)


class _Solution:
    """The coefficients of some knowledge, solved when first asked for and then kept.

    An estimator gets a new one with each change, so asking never changes an estimator.
    """

    def __init__(self) -> None:
        self._rho: float | None = None
        self._Z: Floats | None = None

    def get(self, rho: float, solve: Callable[[float], Floats]) -> Floats:
        if self._Z is None or self._rho != rho:
            self._Z, self._rho = solve(rho), rho
        return self._Z


class LeastSquares(BaseEstimator):
    """What the classifier and the regressor share."""

    feature_map: FeatureMap | None
    rho: float
    verbose: bool
    n_features_in_: int
    knowledge_: Knowledge
    _task: Task

    # --- learning and forgetting ----------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch: whatever was known before is dropped.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows. Every value must be finite.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Class labels, or targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights ≥ 0; rounded to multiples of 2^-16 unless all are whole numbers. A row
            of weight 0 is no row.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            self._learn(None, (X, y, sample_weight), None)
            self._weights()
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Unlearn rows: afterwards the model is as if it had never seen them.

        Parameters
        ----------
        X, y, sample_weight
            The rows as they were learned.

        Returns
        -------
        self

        Raises
        ------
        NotLearnedError
            If the model cannot have learned these rows. It is then unchanged.
        """
        return self.update(forget=(X, y, sample_weight))

    def update(self, add: Rows | None = None, forget: Rows | None = None) -> Self:
        """Learn some rows and forget others, all or nothing.

        Parameters
        ----------
        add, forget : tuple (X, y) or (X, y, sample_weight), optional

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            self._learn(self.__dict__.get("knowledge_"), add, forget)
        return self

    def merge(self, other: Any) -> Self:
        """Take in what another model, or a piece of knowledge, has learned.

        Parameters
        ----------
        other : fitted estimator of the same kind, or Knowledge
            ``merge(-knowledge)`` takes it out again.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            if isinstance(other, LeastSquares):
                check_is_fitted(other)
                self._take_names(other)
                other = other.knowledge_
            if not isinstance(other, Knowledge):
                raise TypeError(
                    f"merge takes a fitted {type(self).__name__} or a Knowledge, got "
                    f"{type(other).__name__}."
                )
            known = self.__dict__.get("knowledge_")
            if known is None:
                self.n_features_in_ = int(other.specification["n_features"])
            self._check_ours(other)
            self._set((other if known is None else known + other).check_possible())
        return self

    def digest(self) -> str:
        """SHA-256 of the feature map's specification and the knowledge.

        Equal digests mean equal knowledge, hence equal coefficients and predictions at
        equal ``rho``, whatever the history.
        """
        check_is_fitted(self)
        return self.knowledge_.digest()

    # --- what is known ---------------------------------------------------------------------

    @property
    def n_samples_(self) -> int:
        """Number of rows the model holds now."""
        return self._known().n_samples

    # --- inside ------------------------------------------------------------------------------

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Undo every change to the estimator if anything at all is raised."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _learn(self, known: Knowledge | None, add: Rows | None, forget: Rows | None) -> None:
        if add is None and forget is None:
            raise ValueError("update needs rows to add, rows to forget, or both; got neither.")
        if add is not None:
            rows = self._checked(add, reset=known is None)
            part = self._knowledge_of(rows)
            if known is None:
                self._check_first(part, *rows[:2])
            known = part if known is None else known + part
        if known is None:
            raise NotFittedError(f"This {type(self).__name__} has not learned anything to forget.")
        if forget is not None:
            known = known - self._knowledge_of(self._checked(forget, reset=False))
            known.check_possible()
        self._set(known)

    def _checked(self, rows: Rows, reset: bool) -> Rows:
        """Rows checked as scikit-learn does; NaN and infinities in X are found when coded."""
        if not isinstance(rows, tuple) or len(rows) not in (2, 3):
            raise ValueError(
                "Rows must come as a tuple (X, y) or (X, y, sample_weight), got "
                f"{type(rows).__name__} of length {len(rows)}."
            )
        regression = self._task == "regression"
        X, y = validate_data(
            self,
            *rows[:2],
            reset=reset,
            accept_sparse="csr",
            ensure_all_finite=False,
            multi_output=regression,
            y_numeric=regression,
        )
        weight = rows[2] if len(rows) == 3 else None
        if weight is not None and not isinstance(weight, Real):
            weight = check_array(
                weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
            )
        return X, y, weight

    def _check_first(self, part: Knowledge, X: Any, y: NDArray[Any]) -> None:  # noqa: ARG002
        """What is checked once: there are rows, and their grid is not too coarse."""
        if not part.n_samples:
            raise ValueError("All rows have sample_weight zero: there is nothing to learn.")
        steps = self._map().input_steps(self.n_features_in_)
        report_coarse(dense_rows(X, slice(0, ROWS)), steps, "Column", "resolution")

    def _knowledge_of(self, rows: Rows) -> Knowledge:
        return Knowledge.of(self._bind(), *rows, task=self._task, verbose=bool(self.verbose))

    def _set(self, knowledge: Knowledge) -> None:
        self.knowledge_ = knowledge
        self._solution = _Solution()

    def _take_names(self, other: LeastSquares) -> None:
        """Column names must agree where both have them."""
        theirs = getattr(other, "feature_names_in_", None)
        ours = getattr(self, "feature_names_in_", None)
        if "knowledge_" not in self.__dict__ and theirs is not None:
            self.feature_names_in_ = theirs
        elif ours is not None and theirs is not None and list(ours) != list(theirs):
            raise MismatchError(
                f"The models were learned from different columns: {list(ours)} here, "
                f"{list(theirs)} there."
            )

    def _map(self) -> FeatureMap:
        feature_map = Linear() if self.feature_map is None else self.feature_map
        if not isinstance(feature_map, FeatureMap):
            raise TypeError(
                "feature_map must be a FeatureMap such as traceless.features.Linear(), got "
                f"{feature_map!r}."
            )
        return feature_map

    def _bind(self) -> BoundMap:
        """The feature map for our columns, made anew only if it has changed."""
        feature_map = self._map()
        bound: BoundMap | None = self.__dict__.get("_bound_map")
        if (
            bound is None
            or bound.n_features != self.n_features_in_
            or bound.specification != feature_map.specification()
        ):
            bound = self._bound_map = feature_map.bind(self.n_features_in_)
        return bound

    def _check_ours(self, knowledge: Knowledge) -> BoundMap:
        """Our feature map, as it is set now; raises if it is not the knowledge's."""
        phi = self._bind()
        ours = phi.describe() | self._target_specification()
        check_same_specification(ours, knowledge.specification)
        if knowledge.task != self._task:
            raise MismatchError(
                f"{type(self).__name__} cannot use the knowledge of a {knowledge.task}."
            )
        return phi

    def _target_specification(self) -> dict[str, Any]:
        return {}

    def _known(self) -> Knowledge:
        """The knowledge, or AttributeError: what is not learned has no attributes."""
        if "knowledge_" not in self.__dict__:
            raise AttributeError(f"This {type(self).__name__} has not learned anything yet.")
        return self.knowledge_

    def _right_sides(self) -> Integers:
        raise NotImplementedError

    def _weights(self) -> tuple[Floats, BoundMap]:
        """The solution in steps of the grids, so that predictions are codes(x) @ weights."""
        known = self._known()
        if not known.n_samples:
            raise NotFittedError(
                f"This {type(self).__name__} holds no rows: all were forgotten. Learn some first."
            )
        phi = self._check_ours(known)

        def solve(rho: float) -> Floats:
            with np.errstate(over="ignore"):
                ridge = np.ldexp(rho, known.weight_bits) / (phi.steps * phi.steps)
            if not np.all((ridge > 0) & (ridge < np.inf)):
                raise RangeError(f"rho={rho!r} is too small or too large for the features' grid.")
            return correctly_rounded_solve(known.feature_gram, ridge, self._right_sides())

        return self._solution.get(positive("rho", self.rho), solve), phi

    def _coefficients(self) -> tuple[Floats, Floats]:
        """Weights of the features' values, one row per class or target, and intercepts."""
        Z, phi = self._weights()
        w = (Z / phi.steps[:, None]).T
        if phi.has_bias:
            return np.ascontiguousarray(w[:, :-1]), w[:, -1].copy()
        return np.ascontiguousarray(w), np.zeros(len(w))

    def _decision(self, X: Any) -> Floats:
        check_is_fitted(self)
        Z, phi = self._weights()
        X = validate_data(self, X, reset=False, accept_sparse="csr", ensure_all_finite=False)
        out = np.empty((X.shape[0], Z.shape[1]))
        for start in range(0, X.shape[0], ROWS):
            rows = slice(start, start + ROWS)
            out[rows] = exact.row_products(phi.codes(dense_rows(X, rows)), Z)
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def report_coarse(values: Floats, steps: Floats, what: str, parameter: str) -> None:
    """Warn of columns that vary by a few steps of their grid only, and lie off it."""
    spread = values.max(axis=0) - values.min(axis=0)
    coarse = np.flatnonzero((spread > 0) & (spread < _COARSE * steps))
    codes = values[:, coarse] / steps[coarse]
    coarse = coarse[(codes != np.rint(codes)).any(axis=0)]
    if coarse.size:
        bits = max(int(np.frexp(spread[coarse].min())[1]) - 12, -190)
        named = ", ".join(map(str, coarse[:5])) + (", ..." if coarse.size > 5 else "")
        warnings.warn(
            f"{what} {named} varies by less than {_COARSE} steps of its grid, so that most of it "
            f"is rounded away. Scale it, or use {parameter}=2**{bits}.",
            ResolutionWarning,
            stacklevel=_stack_level(),
        )


def _stack_level() -> int:
    """How far up the caller is, so that a warning points at the user's own line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("traceless."):
        level, frame = level + 1, frame.f_back
    return level
