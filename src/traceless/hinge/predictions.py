"""What a solved hinge-loss classifier offers: its attributes, decision values and classes."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge import multiclass
from traceless.hinge.rows import is_plain
from traceless.hinge.settings import Settings
from traceless.transaction import Changeable, snapshot

if TYPE_CHECKING:  # compiled code is imported when something is learned, not before
    from traceless.hinge.model import HingeModel


class HingePredictions(Changeable, ClassifierMixin, BaseEstimator):
    """The part of `traceless.PathSVC` that reads its model.

    Every answer comes from one `HingeModel`, read once: it stays what it is while others change
    the estimator.
    """

    kernel: Any
    decision_function_shape: str
    break_ties: bool
    tol: float
    _model: HingeModel

    def _settings(self) -> Settings:
        raise NotImplementedError

    def refresh(self) -> Self:
        """Go to the parameters as they are set now."""
        raise NotImplementedError

    def digest(self) -> str:
        """SHA-256 of the kernel, the rows in sorted order, their bounds, and the solution.

        Equal for equal rows whatever the history, unless ``ambiguous_``.
        """
        check_is_fitted(self)
        return self._current().digest()

    # --- what is known ---------------------------------------------------------------------

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the rows held now, in order."""
        return self._held().rows.classes.copy()

    @property
    def ids_(self) -> Integers:
        """Ids of the rows held now, in the order in which they came."""
        return self._held().rows.ids.copy()

    @property
    def n_samples_(self) -> int:
        """Number of rows held now."""
        return len(self._held().rows)

    @property
    def gamma_(self) -> float:
        """The gamma in use."""
        return self._now()._held().kernel.gamma

    @property
    def intercept_(self) -> Floats:
        """The constants of the decision functions."""
        model = self._current()
        found = np.array([problem.canonical().intercept for problem in model.problems.values()])
        return model.oriented(found) if len(found) else np.ones(1)

    @property
    def coef_(self) -> Floats:
        """Weights of the columns, one row for each problem; with kernel="linear" only."""
        model = self._current()
        if model.kernel.name != "linear":
            raise AttributeError(f"coef_ is only there with kernel='linear', not {self.kernel!r}.")
        found = [problem.canonical().weights for problem in model.problems.values()]
        none = np.zeros((1, model.rows.X.shape[1]))
        return model.oriented(np.array(found)) if found else none

    @property
    def support_(self) -> NDArray[np.int32]:
        """Places of the support vectors among ``ids_``, grouped by class."""
        return self._current().support()[0].astype(np.int32)

    @property
    def support_vectors_(self) -> Floats:
        """The rows that are support vectors; none with a precomputed kernel."""
        model = self._current()
        if model.kernel.name == "precomputed":
            return np.zeros((0, 0))
        return model.rows.X[model.support()[0]]

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors of each class."""
        model = self._current()
        rows, support = model.rows, model.support()[0]
        return np.array([(rows.y[support] == label).sum() for label in rows.classes], np.int32)

    @property
    def dual_coef_(self) -> Floats:
        """Coefficients of the support vectors, in scikit-learn's layout."""
        return self._current().dual_coef()

    @property
    def kkt_residual_(self) -> float:
        """The largest violation of a KKT condition by what is published, measured now."""
        return self._current().residual()

    @property
    def n_breakpoints_(self) -> int:
        """Events on the paths of the last change, of all problems together."""
        return self._now()._held().n_breakpoints

    @property
    def ambiguous_(self) -> bool:
        """Whether another history might end in other last bits."""
        problems = self._current().problems.values()
        return not all(problem.canonical().certain for problem in problems)

    def decisive_ids(self) -> Integers:
        """Ids of the rows without any one of which the model would be another."""
        return self._current().decisive_ids()

    # --- answers ---------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Signed values: positive for the second of two classes, or one column per class or pair.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Or kernel values with the points held, of shape (n_samples, ``n_samples_``).

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
        """
        model, values = self._values(X)
        n = len(model.rows.classes)
        if n <= 2:
            return values[:, 0]
        if model.settings.strategy == "ovr" or self.decision_function_shape == "ovo":
            return values
        return multiclass.class_values(values, n)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Or kernel values with the points held, of shape (n_samples, ``n_samples_``).

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        model, values = self._values(X)
        n = len(model.rows.classes)
        if n <= 2:  # at 0 the second, as LIBSVM
            best = (values[:, 0] >= 0).astype(np.intp) * (n - 1)
        elif model.settings.strategy == "ovr":
            best = values.argmax(axis=1)
        elif self.break_ties:
            best = multiclass.class_values(values, n).argmax(axis=1)
        else:
            best = multiclass.votes(values, n).argmax(axis=1)
        return np.asarray(model.rows.classes[best])

    # --- inside ----------------------------------------------------------------------------

    def _held(self) -> HingeModel:
        """The model, or AttributeError: what is not learned has no attributes."""
        model: HingeModel | None = self.__dict__.get("_model")
        if model is None:
            raise AttributeError(f"This {type(self).__name__} has not learned anything yet.")
        return model

    def _current(self) -> HingeModel:
        """The model for the parameters as they are set now, to use what it publishes."""
        now = self._now()
        if residual := now._model.excess(now.tol, asked=True):
            now._warn_of(residual)
        return now._model

    def _warn_of(self, residual: float) -> None:
        """Warn of a KKT residual that is too large."""
        warnings.warn(
            f"The solution has a KKT residual of {residual:.2g}, above tol={self.tol:g}: its "
            "predictions may be wrong. Columns that are not scaled, or a very large C, make "
            "problems this hard: scale the columns, for example with "
            "sklearn.preprocessing.StandardScaler.",
            ConvergenceWarning,
            stacklevel=_calls_of_ours(),
        )

    def _now(self) -> Self:
        """The estimator as it is now, with the model for its parameters."""
        now = snapshot(self)
        if now._held().settings != now._settings():
            self.refresh()
            now = snapshot(self)
        return now

    def _values(self, X: Any) -> tuple[HingeModel, Floats]:
        """The model as it is now, and the values of its binary problems."""
        check_is_fitted(self)
        now = self._now()
        model = now._current()
        shape, strategy = now.decision_function_shape, model.settings.strategy
        if shape not in ("ovr", "ovo"):
            raise ValueError(f"decision_function_shape must be 'ovr' or 'ovo', got {shape!r}.")
        if shape == "ovo" and (now.break_ties or strategy == "ovr"):
            what = "break_ties must be False" if now.break_ties else "strategy must be 'ovo'"
            raise ValueError(f"{what} when decision_function_shape is 'ovo'.")
        if not len(model.rows):
            raise NotFittedError(
                f"This {type(self).__name__} holds no rows: all were forgotten. Learn some first."
            )
        if not is_plain(now, X):
            X = validate_data(now, X, reset=False, dtype=np.float64, order="C")
        return model, model.values(X + 0.0)

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__


def _calls_of_ours() -> int:
    """How many calls lie between a warning and the code of the user."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals["__name__"].startswith("traceless"):
        frame, level = frame.f_back, level + 1
    return level
