"""What the estimators of the path family share: rows that come and go, and what is published.

Karasuyama & Takeuchi 2009: rows that come, rows that go and bounds that change are one path of
the solution. `traceless.hinge` has the solver, which needs the compiled core and is imported when
something is learned, not before.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from traceless.arithmetic.integers import Floats, Integers
from traceless.estimators.inputs import (
    Labels,
    checked_to_keep,
    dense,
    features_of,
    is_plain,
    sides,
    take_label_type,
)
from traceless.features.feature_map import TABLE
from traceless.files.saving import Pieces, Savable, names, parameters
from traceless.hinge.file_format import pieces
from traceless.hinge.machines import Machine
from traceless.hinge.settings import GAMMAS, KERNELS, Settings
from traceless.knowledge.values import labels
from traceless.parameters import (
    FINITE,
    FLAG,
    NOT_NEGATIVE,
    POSITIVE,
    Constraint,
    check_parameters,
    choice,
    whole,
)
from traceless.transaction import Changeable, changing, snapshot

if TYPE_CHECKING:
    from traceless.hinge.model import HingeModel


class PathMachine(Savable, Changeable, BaseEstimator):
    """Base of `PathSVC`, `PathSVR` and `PathOneClass`."""

    constraints: ClassVar[dict[str, Constraint]] = {
        "kernel": choice(*KERNELS) | Constraint("a callable", (callable,)),
        "gamma": choice(*GAMMAS) | NOT_NEGATIVE,
        "degree": whole("an integer", 0, 1024),
        "coef0": FINITE,
        "tol": NOT_NEGATIVE,
        "cache_size": POSITIVE,
        "verbose": FLAG,
        "table": TABLE,
    }
    n_features_in_: int
    last_ids_: Integers
    _labels: ClassVar[Labels]  # what y is
    _label_type: str  # of the first labels, where it is not the usual one
    _model: HingeModel  # never changed in place: an answer that has read it once is of one model

    def _machine(self) -> Machine:
        """Which problems the rows make, with the parameters as they are set."""
        raise NotImplementedError

    def __init__(
        self,
        kernel: Any,
        gamma: Any,
        degree: int,
        coef0: float,
        tol: float,
        cache_size: float,
        verbose: bool,
        table: Any,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.table = table

    # --- learning and forgetting ----------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from scratch: whatever was known before is dropped.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows, or a kernel matrix of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,)
            Class labels, or the targets of a regressor; one class needs none.
        sample_weight : array-like of shape (n_samples,), optional
            Weights ≥ 0 that multiply the bounds of rows. A row of weight 0 is no row.

        Returns
        -------
        self
        """
        with changing(self) as draft:
            draft._learn((X, y, sample_weight), reset=True)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn further rows. Their ids are then in ``last_ids_``.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        self
        """
        return self.update(add=(X, y, sample_weight))

    def forget(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, ids: Any = None
    ) -> Self:
        """Unlearn rows: afterwards the model is as if it had never seen them.

        Parameters
        ----------
        X, y, sample_weight
            The rows as they were learned; of equal ones the oldest go.
        ids : array-like of int, optional
            Ids of rows, in place of the rows themselves.

        Returns
        -------
        self

        Raises
        ------
        NotLearnedError
            If the model does not hold one of them. It is then unchanged.
        """
        if (X is None) == (ids is None):
            raise ValueError("forget needs rows (X, y) or their ids, and not both.")
        return self.update(forget=(X, y, sample_weight) if ids is None else ids)

    def update(self, add: Any = None, forget: Any = None) -> Self:
        """Learn some rows and forget others on one path, all or nothing.

        Parameters
        ----------
        add : tuple (X, y) or (X, y, sample_weight), optional
        forget : tuple (X, y) or (X, y, sample_weight), or array-like of ids, optional
            Rows that are held now. Where both sides are given, one without rows changes nothing.

        Returns
        -------
        self
        """
        add, forget = sides(add, forget)
        if add is None and forget is None:
            check_is_fitted(self)
            return self
        with changing(self) as draft:
            fitted = "_model" in draft.__dict__
            if not fitted and forget is not None:
                raise NotFittedError(
                    f"This {type(self).__name__} has not learned anything to forget."
                )
            draft._learn(add, forget, reset=not fitted)
        return self

    # --- what is known ---------------------------------------------------------------------

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
        """The constant of each problem."""
        found = self._current().intercepts()
        return found if len(found) else np.ones(1)

    @property
    def coef_(self) -> Floats:
        """Weights of the columns, one row for each problem; with kernel="linear" only."""
        model = self._current()
        if model.kernel.name != "linear":
            raise AttributeError(f"coef_ is only there with kernel='linear', not {self.kernel!r}.")
        found = model.weights()
        found.flags.writeable = False  # as in SVC: to write to it would change no answer
        return found

    @property
    def support_(self) -> NDArray[np.int32]:
        """Places of the support vectors among ``ids_``; those of a classifier grouped by class."""
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
        """Number of support vectors, in an array as scikit-learn has it."""
        return np.array([len(self._current().support()[0])], np.int32)

    @property
    def dual_coef_(self) -> Floats:
        """Coefficients of the support vectors, in scikit-learn's layout."""
        return self._current().dual_coef()

    @property
    def kkt_residual_(self) -> float:
        """The largest violation of a KKT condition by what is published."""
        problems = self._current().problems.values()
        return max((problem.published.residual for problem in problems), default=0.0)

    @property
    def n_breakpoints_(self) -> int:
        """Events on the paths of the last change, of all problems together."""
        return self._now()._held().n_breakpoints

    @property
    def ambiguous_(self) -> bool:
        """Whether another history might end in other last bits."""
        problems = self._current().problems.values()
        return not all(problem.published.certain for problem in problems)

    def digest(self) -> str:
        """SHA-256 of the parameters, the rows in sorted order, their bounds, and the solution.

        Equal for equal rows whatever the history, unless ``ambiguous_``.
        """
        check_is_fitted(self)
        return self._current().digest()

    # --- inside ----------------------------------------------------------------------------

    def _pieces(self) -> Pieces:
        now = self._now() if "_model" in self.__dict__ else self
        facts: dict[str, Any] = {"parameters": parameters(now)}
        tensors: dict[str, Any] = {}
        if "_model" in now.__dict__:
            facts["columns"] = {"n": now.n_features_in_, "names": names(now)}
            facts["state"], tensors = pieces(now._model)
            if "_label_type" in now.__dict__:
                facts["labels"] = now._label_type
            tensors["last_ids"] = now.last_ids_
        return facts, tensors

    def _without(self, ids: Integers) -> Self:
        """The model less some rows, for predictions only, and much cheaper than `forget`.

        Its values are within the KKT residual of the path, not to the bit, and stay what they
        are when this model changes.
        """
        now = self._now()
        other = copy.copy(now)
        other._model = now._model.without(now._model.rows.check_ids(ids))
        return other

    def _decisive_ids(self) -> Integers:
        """Ids of the rows whose removal, each by itself, would change the model."""
        return self._current().decisive_ids()

    def _learn(self, add: Any, forget: Any = None, reset: bool = False) -> None:
        """Learn some rows, forget others, and remember the ids of the new ones."""
        from traceless.hinge.model import HingeModel

        new = None if add is None else checked_to_keep(self, add, reset)
        if new is not None and reset:
            model = HingeModel.learned(new, self._settings())
            if self._labels == "classes":
                dtype = np.asarray(labels(add[1])).dtype
                take_label_type(self, dtype, "classification", add[1])
        else:
            model, gone = self._model, np.zeros(0, dtype=np.int64)
            if isinstance(forget, tuple):
                gone = model.find(checked_to_keep(self, forget, reset))
            elif forget is not None:
                gone = model.rows.check_ids(forget)
            model = model.updated(new, gone, self._settings())
        self._tell(model)  # first: it raises, where warnings are errors
        ids = model.rows.ids
        if model.kernel.name == "precomputed":
            self.n_features_in_ = len(ids)
        if new is not None:
            kept = new[2] > 0.0
            self.last_ids_ = np.full(len(kept), -1)
            self.last_ids_[kept] = ids[len(ids) - int(kept.sum()) :]
        self._model = model
        model.take_over()

    def _settings(self) -> Settings:
        check_parameters(self)
        return Settings(
            self._machine(),
            self.kernel,
            self.gamma,
            self.degree,
            self.coef0,
            int(self.cache_size * 2**20),
            bool(self.verbose),
        )

    def _held(self) -> HingeModel:
        """The model; AttributeError before anything is learned."""
        model: HingeModel | None = self.__dict__.get("_model")
        if model is None:
            raise AttributeError(f"This {type(self).__name__} has not learned anything yet.")
        return model

    def _current(self) -> HingeModel:
        """The model for the parameters as they are set now."""
        return self._now()._model

    def _tell(self, model: HingeModel) -> None:
        """Warn of a KKT residual that is too large, at the line of the user that led here."""
        residual = model.excess(self.tol)
        if not residual:
            return
        frame, level = inspect.currentframe(), 1
        while frame is not None and frame.f_globals["__name__"].startswith("traceless"):
            frame, level = frame.f_back, level + 1
        warnings.warn(
            f"The solution has a KKT residual of {residual:.2g}, above tol={self.tol:g}: its "
            "predictions may be wrong. Columns that are not scaled, or a very large C, make "
            "problems this hard: scale the columns, for example with "
            "sklearn.preprocessing.StandardScaler.",
            ConvergenceWarning,
            stacklevel=level,
        )

    def _now(self) -> Self:
        """The estimator as it is now, with the model for its parameters."""
        now = snapshot(self)
        if now._held().settings != now._settings():
            with changing(self) as draft:
                if draft._model.settings != draft._settings():  # else another thread did it
                    draft._learn(None)
            now = snapshot(self)
        return now

    def _values(self, X: Any) -> tuple[HingeModel, Floats]:
        """The model as it is now, and the values of its problems."""
        check_is_fitted(self)
        now = self._now()
        model = now._model
        if not len(model.rows):
            raise NotFittedError(
                f"This {type(self).__name__} holds no rows: all were forgotten. Learn some first."
            )
        if now.table is not None:
            X = features_of(now, X)
        elif not is_plain(now, X):
            options: dict[str, Any] = {"dtype": np.float64, "order": "C", "accept_sparse": "csr"}
            X = dense(validate_data(now, X, reset=False, **options))
        return model, model.values(X + 0.0)

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.table is not None
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags
