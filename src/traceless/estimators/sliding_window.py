"""A window over a stream: its rows, and the model of these rows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_X_y, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from traceless.arithmetic.integers import Integers
from traceless.estimators.inputs import (
    as_triple,
    check_classes,
    checked_weight,
    know_columns,
    n_rows,
    sides,
    task_of,
)
from traceless.exceptions import MismatchError
from traceless.features.grid import check_finite
from traceless.features.table import table_of
from traceless.files import saving
from traceless.knowledge.file_format import row_pieces
from traceless.knowledge.responses import indicators
from traceless.knowledge.training_rows import (
    Batch,
    TrainingRows,
    not_held,
    plain_labels,
    plain_values,
)
from traceless.knowledge.values import check_features
from traceless.parameters import Constraint, check_parameters, whole
from traceless.transaction import Changeable, apart, changing, snapshot, unchangeable

_KEPT = (
    "This is the model of a SlidingWindow, whose rows must stay those in the window: call the "
    "window's own partial_fit, forget, update or seal, or change a copy (copy.copy)."
)


def _offers(name: str) -> Callable[[Any], bool]:
    """Whether the wrapped estimator has a method."""

    def check(self: SlidingWindow) -> bool:
        getattr(self.__dict__.get("_model", self.estimator), name)  # or AttributeError
        return True

    return check


class SlidingWindow(Changeable, saving.Savable, MetaEstimatorMixin, BaseEstimator):
    """Keep an estimator trained on the newest rows of a stream, and on no others.

    It **keeps the rows** in the window, since they must be known to be forgotten.

    Parameters
    ----------
    estimator : LSSVC, LSSVR, one of the path family or any other with ``update(add=, forget=)``
        It is cloned, and stays as it is.
    size : int, default=1000
        How many rows the window holds. Rows of weight 0 are no rows. A smaller size that is set
        later is reached with the next call of `partial_fit`, `forget` or `update`.

    Attributes
    ----------
    estimator_ : estimator
        The model as it is now, to be read. Rows cannot be learned or forgotten in it behind
        the window's back; ``copy.copy(window.estimator_)`` is a model of its own.
    n_samples_ : int
        Number of rows in the window now; 0 before anything came.
    classes_ : ndarray of shape (n_classes,)
        Of classifiers: the labels in the window.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if the rows had string column names.

    Notes
    -----
    A window around a classifier is one for scikit-learn (``sklearn.base.is_classifier``), but no
    ``ClassifierMixin``: it may hold either kind, as `Pipeline` and `GridSearchCV` do.

    The estimators of this library change without touching what they were before, so a window
    updates a copy that costs nothing. Of any other estimator each update is made to a deep copy,
    and nothing keeps you from changing ``estimator_``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from traceless import LSSVC, SlidingWindow
    >>> X, y = load_iris(return_X_y=True)
    >>> window = SlidingWindow(LSSVC(), size=60)
    >>> for start in range(0, 150, 25):
    ...     window = window.partial_fit(X[start : start + 25], y[start : start + 25])
    >>> window.n_samples_, window.classes_.tolist()
    (60, [1, 2])
    >>> window.digest() == LSSVC().fit(X[-60:], y[-60:]).digest()
    True
    >>> window.forget(X[100:110], y[100:110]).n_samples_
    50
    """

    constraints: ClassVar = {
        "estimator": Constraint(
            "one that can forget, with update(add=, forget=), such as LSSVC, LSSVR or PathSVC",
            (lambda v: hasattr(v, "update") and not isinstance(v, SlidingWindow),),
            error=TypeError,
        ),
        "size": whole("a whole number, 1 or more", 1),
    }
    n_features_in_: int

    def __init__(self, estimator: Any, size: int = 1000) -> None:
        self.estimator = estimator
        self.size = size

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Start anew with the newest of these rows, the last ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        with changing(self) as draft:
            draft._start((X, y, sample_weight))
        return self

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Take new rows in, and as many of the oldest out as no longer fit, in one update.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            In the order of time. Of more rows than the window holds, the last ones count.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        classes : array-like, optional
            If given, labels outside of it are refused. Not needed: classes may come and go.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        if classes is not None and not is_classifier(self):
            raise ValueError(
                "classes is for classifiers. If weights were meant, give them by name: "
                "partial_fit(X, y, sample_weight=weights)."
            )
        check_classes(y, classes)
        return self.update(add=(X, y, sample_weight))

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take rows out of the window and of the model, as if they had never come.

        Parameters
        ----------
        X, y, sample_weight
            The rows as they were learned; of equal ones the oldest go.

        Returns
        -------
        self

        Raises
        ------
        NotLearnedError
            If one of them is not in the window (any more). Nothing is changed.
        """
        return self.update(forget=(X, y, sample_weight))

    def update(self, add: Any = None, forget: Any = None) -> Self:
        """Take rows in and others out, all or nothing; the oldest go where there is no room.

        Parameters
        ----------
        add, forget : tuple (X, y) or (X, y, sample_weight), optional
            Rows to be forgotten are in the window now. A side with no rows changes nothing.

        Returns
        -------
        self
        """
        add, forget = sides(add, forget)
        with changing(self) as draft:
            if "_rows" in draft.__dict__:
                draft._go_on(add, forget)
            elif add is not None and not n_rows(forget):
                draft._start(add)
            else:
                raise NotFittedError("This SlidingWindow has not learned anything to forget.")
        return self

    # --- what is known ---------------------------------------------------------------------

    @property
    def estimator_(self) -> Any:
        """The model as it is now, to be read."""
        model = self.__dict__.get("_model")
        if model is None:
            raise AttributeError("This SlidingWindow has not learned anything yet.")
        return unchangeable(model, _KEPT) if isinstance(model, Changeable) else model

    @property
    def n_samples_(self) -> int:
        """Number of rows in the window now."""
        return len(self._rows) if "_rows" in self.__dict__ else 0

    @property
    def classes_(self) -> Any:
        """The labels in the window, in order."""
        return self.estimator_.classes_

    @property
    def offset_(self) -> Any:
        """What an outlier detector subtracts from the scores of rows."""
        return self.estimator_.offset_

    @available_if(_offers("digest"))  # type: ignore[untyped-decorator]
    def digest(self) -> str:
        """The digest of the estimator: that of a fit from scratch on the rows in the window."""
        check_is_fitted(self)
        return str(self._model.digest())

    @available_if(_offers("seal"))  # type: ignore[untyped-decorator]
    def seal(self) -> Self:
        """Make the model that of a fit from scratch, to the last bit, until the next change."""
        check_is_fitted(self)
        with changing(self) as draft:
            draft._model = _own(draft._model).seal()
        return self

    @available_if(_offers("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any, **options: Any) -> Any:
        """The predictions of the estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        **options
            Of the estimator's own, such as ``return_std=True``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        return self._asked("predict", X, **options)

    @available_if(_offers("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """The decision values of the estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray
        """
        return self._asked("decision_function", X)

    @available_if(_offers("score_samples"))  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> Any:
        """How much rows are like those in the window, of an estimator that says so.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._asked("score_samples", X)

    @available_if(_offers("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """The probabilities of the classes, of an estimator that has them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._asked("predict_proba", X)

    @available_if(_offers("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """The logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._asked("predict_log_proba", X)

    @available_if(_offers("score"))  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of the estimator: accuracy of classes, R² of targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        return float(self._asked("score", X, y, sample_weight))

    # --- inside ----------------------------------------------------------------------------

    def _pieces(self) -> saving.Pieces:
        held = snapshot(self)
        facts: dict[str, Any] = {"parameters": saving.parameters(held)}
        tensors: dict[str, Any] = {}
        if "_rows" in held.__dict__:
            facts["columns"] = {"n": held.n_features_in_, "names": saving.names(held)}
            facts["state"], tensors = row_pieces(
                held._rows.batch(slice(None)), hasattr(held, "classes_")
            )
            facts["state"]["estimator"], theirs = held._model._pieces()
            tensors |= {f"estimator.{name}": tensor for name, tensor in theirs.items()}
        return facts, tensors

    def _start(self, rows: Any) -> None:
        check_parameters(self)
        new = self._newest(rows, reset=True)
        if not len(new[2]):
            raise ValueError(
                "There is nothing to learn: no rows, or all of them with sample_weight zero."
            )
        self._model = clone(self.estimator).fit(*_given(new))
        self._rows = TrainingRows.of(new)

    def _go_on(self, add: Any, forget: Any) -> None:
        check_parameters(self)
        held = self._rows
        out = np.zeros(len(held), dtype=bool)
        if n_rows(forget):
            out[self._found(forget)] = True
        new = self._newest(add, reset=False) if n_rows(add) else held.batch(slice(0))
        staying = np.flatnonzero(~out)
        out[staying[: max(0, len(staying) + len(new[2]) - self.size)]] = True
        rows = held.changed(held.ids[out], new)  # before the update: what can fail fails first
        both = {"add": new, "forget": held.batch(out)}.items()
        changes = {side: _given(some) for side, some in both if len(some[2])}
        if changes:
            model = _own(self._model)
            model.update(**changes)
            self._model, self._rows = model, rows

    def _found(self, rows: Any) -> Integers:
        """Positions of rows in the window; raises if one of them is not there."""
        wanted, numbers = self._checked(rows, reset=False)
        at = self._rows.places(wanted)
        if (at < 0).any():
            raise not_held(numbers[at < 0], len(at), "in the window")
        return at

    def _checked(self, rows: Any, reset: bool) -> tuple[Batch, Integers]:
        """Rows of positive weight as arrays of our own, and their numbers among all rows."""
        tags = get_tags(self.estimator)
        alone = tags.estimator_type == "outlier_detector"  # rows have no labels, or none that count
        X, y, weight = as_triple(rows, alone)
        table = table_of(self.estimator)
        several = bool(tags.classifier_tags) and tags.classifier_tags.multi_label
        several = several and task_of(rows) == "multilabel"
        options: dict[str, Any] = {"reset": reset, "dtype": np.float64}
        options["accept_sparse"] = "csr" if tags.input_tags.sparse else False
        kinds = {
            "multi_output": tags.target_tags.multi_output or several,
            "y_numeric": tags.estimator_type == "regressor",
        }
        if table is not None:
            X = table.rows(X)
            y = np.zeros(X.shape[0]) if alone else y
            X, y = check_X_y(X, y, ensure_all_finite=False, **kinds)
            if reset:
                know_columns(self, table)
        else:
            check_features(X)
            options["ensure_all_finite"] = False  # for `check_finite`, which says how to mend it
            if alone:
                X = validate_data(self, X, **options)
                y = np.zeros(X.shape[0])
            else:
                X, y = validate_data(self, X, y, **kinds, **options)
            check_finite(X)
        if several:
            y = indicators(y).astype(np.int64)
        elif tags.estimator_type == "classifier":
            y = plain_labels(y)
        elif tags.estimator_type == "regressor":
            y = y.astype(np.float64) + 0.0  # one zero, here and in X
        if not reset and y.shape[1:] != self._rows.y.shape[1:]:
            raise MismatchError(
                f"y has shape {y.shape}, and that of the rows in the window is "
                f"{self._rows.y.shape}: give as many labels or targets for each row."
            )
        weight = checked_weight(weight, X.shape[0])
        kept = np.flatnonzero(weight)  # the estimator refuses negative weights
        return (plain_values(X[kept]), y[kept], weight[kept]), kept

    def _newest(self, rows: Any, reset: bool) -> Batch:
        """The last rows of positive weight that fit the window, in arrays that hold no others."""
        (X, y, weight), numbers = self._checked(rows, reset)
        last = np.arange(len(numbers))[-self.size :]
        return X[last], y[last], weight[last]

    def _asked(self, method: str, X: Any, *more: Any, **options: Any) -> Any:
        """What the model as it is now answers, of rows with the columns that it knows."""
        check_is_fitted(self)
        held = snapshot(self)
        if table_of(held.estimator) is None:
            sparse_too = get_tags(held.estimator).input_tags.sparse
            X = validate_data(held, X, reset=False, accept_sparse="csr" if sparse_too else False)
        return getattr(held._model, method)(X, *more, **options)

    def __copy__(self) -> Self:
        """A window with a model of its own; rows are never written to, so both may have them."""
        other = apart(self)
        if "_model" in other.__dict__:
            other._model = _own(other._model)
        return other

    def __sklearn_is_fitted__(self) -> bool:
        return "_rows" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        theirs = copy.deepcopy(get_tags(self.estimator))
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags"):
            setattr(tags, name, getattr(theirs, name))
        tags.input_tags.sparse = theirs.input_tags.sparse
        return tags


def _given(rows: Batch) -> tuple[Any, ...]:
    """Rows as an estimator takes them."""
    X, y, weight = rows
    return (X, y) if (weight == 1.0).all() else (X, y, weight)


def _own(model: Any) -> Any:
    """A copy to be changed, while the model stays what it is."""
    return apart(model) if isinstance(model, Changeable) else copy.deepcopy(model)
