"""A window that slides over a stream: the newest rows come in as the oldest go out.

    window = SlidingWindow(PathSVC(), size=500)
    for X, y in stream:
        if window.n_samples_:
            print(window.predict(X))
        window.partial_fit(X, y)

Both happen in one update of the wrapped estimator, whose model is at all times that of a fit
from scratch on the rows in the window.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import check_array, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from traceless import saving
from traceless.exact import Floats
from traceless.hinge.held_rows import plain_labels
from traceless.intake import check_classes
from traceless.transaction import Changeable, changing

__all__ = ["SlidingWindow"]

Rows = tuple[Any, Any, Floats]  # values, labels or targets, and weights


def _offers(name: str) -> Callable[[Any], bool]:
    """Whether the wrapped estimator has a method."""

    def check(self: SlidingWindow) -> bool:
        getattr(self.__dict__.get("estimator_", self.estimator), name)  # or AttributeError
        return True

    return check


class SlidingWindow(Changeable, saving.Savable, MetaEstimatorMixin, BaseEstimator):
    """Keep an estimator trained on the newest rows of a stream, and on no others.

    It **keeps the rows** in the window, since they must be known to be forgotten.

    Parameters
    ----------
    estimator : LSSVC, LSSVR, PathSVC or any other with ``update(add=, forget=)``
        It is cloned, and stays as it is.
    size : int, default=1000
        How many rows the window holds. Rows of weight 0 are no rows.

    Attributes
    ----------
    estimator_ : estimator
        The one that is trained.
    n_samples_ : int
        Number of rows in the window now; 0 before anything came.
    classes_ : ndarray of shape (n_classes,)
        Of classifiers: the labels in the window.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if the rows had string column names.

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
    """

    n_features_in_: int
    estimator_: Any

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
            new = draft._newest(draft._checked(X, y, sample_weight, reset=True))
            if not len(new[2]):
                raise ValueError(
                    "There is nothing to learn: no rows, or all of them with sample_weight zero."
                )
            draft.estimator_ = draft._fresh().fit(*_given(new))
            draft._rows = new
        return self

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, classes: Any = None
    ) -> Self:
        """Take new rows in, and as many of the oldest out as no longer fit, in one update.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            In the order of time. Of more rows than the window holds, the last ones count.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        classes : array-like, optional
            If given, labels outside of it are refused. Not needed: classes may come and go.

        Returns
        -------
        self
        """
        check_classes(y, classes)
        if "_rows" not in self.__dict__:
            return self.fit(X, y, sample_weight)
        with changing(self) as draft:
            new = draft._newest(draft._checked(X, y, sample_weight, reset=False))
            n_out = max(0, draft.n_samples_ + len(new[2]) - draft.size)
            old, kept = _cut(draft._rows, n_out)
            rows = _joined(kept, new)  # before the update: what can fail should fail first
            if len(new[2]):
                draft.estimator_.update(add=_given(new), forget=_given(old) if n_out else None)
            draft._rows = rows
        return self

    # --- what is known ---------------------------------------------------------------------

    @property
    def n_samples_(self) -> int:
        """Number of rows in the window now."""
        return len(self._rows[2]) if "_rows" in self.__dict__ else 0

    @property
    def classes_(self) -> Any:
        """The labels in the window, in order."""
        check_is_fitted(self)
        return self.estimator_.classes_

    @available_if(_offers("digest"))  # type: ignore[untyped-decorator]
    def digest(self) -> str:
        """The digest of the estimator: that of a fit from scratch on the rows in the window."""
        check_is_fitted(self)
        return str(self.estimator_.digest())

    @available_if(_offers("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """What the estimator says of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        X = self._asked(X)
        return self.estimator_.predict(X)

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
        X = self._asked(X)
        return self.estimator_.decision_function(X)

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
        X = self._asked(X)
        return float(self.estimator_.score(X, y, sample_weight))

    # --- inside ----------------------------------------------------------------------------

    def _pieces(self) -> saving.Pieces:
        facts: dict[str, Any] = {"parameters": saving.parameters(self)}
        tensors: dict[str, Any] = {}
        if "_rows" in self.__dict__:
            facts["columns"] = {"n": self.n_features_in_, "names": saving.names(self)}
            facts["state"], tensors = _row_pieces(self._rows, hasattr(self, "classes_"))
            inner, theirs = self.estimator_._pieces()
            facts["state"]["estimator"] = inner
            tensors |= {f"estimator.{name}": tensor for name, tensor in theirs.items()}
        return facts, tensors

    def _fresh(self) -> Any:
        """An estimator that has learned nothing, and can forget."""
        if not hasattr(self.estimator, "update"):
            raise TypeError(
                "A window needs an estimator that can forget, with update(add=, forget=), such as "
                f"LSSVC, LSSVR or PathSVC; got {type(self.estimator).__name__}."
            )
        return clone(self.estimator)

    def _checked(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> Rows:
        """Rows as arrays, without those of weight 0."""
        tags = get_tags(self.estimator)
        X, y = validate_data(
            self,
            X,
            y,
            reset=reset,
            accept_sparse="csr" if tags.input_tags.sparse else False,
            multi_output=tags.target_tags.multi_output,
            y_numeric=tags.estimator_type == "regressor",
        )
        weight = np.ones(X.shape[0])
        if sample_weight is not None:
            weight = weight * check_array(
                sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
            )
        kept = weight != 0.0  # what is wrong with the others is for the estimator to say
        return X[kept], y[kept], weight[kept]

    def _newest(self, rows: Rows) -> Rows:
        size: Any = self.size
        if not isinstance(size, int | np.integer) or size is True or size < 1:
            raise ValueError(f"size must be a whole number, 1 or more, got {size!r}.")
        return _cut(rows, max(0, len(rows[2]) - int(size)))[1]

    def _asked(self, X: Any) -> Any:
        check_is_fitted(self)
        sparse_too = get_tags(self.estimator).input_tags.sparse
        return validate_data(self, X, reset=False, accept_sparse="csr" if sparse_too else False)

    def __sklearn_is_fitted__(self) -> bool:
        return "_rows" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        theirs = copy.deepcopy(get_tags(self.estimator))
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags"):
            setattr(tags, name, getattr(theirs, name))
        tags.input_tags.sparse = theirs.input_tags.sparse
        return tags


def _row_pieces(rows: Rows, labelled: bool) -> saving.Pieces:
    """Rows as facts and tensors: values dense or by place, labels by number."""
    X, y, weight = rows
    facts: dict[str, Any] = {"classes": None}
    tensors: dict[str, Any] = {"weights": weight}
    if sparse.issparse(X):
        X.sum_duplicates()  # and in order
        tensors |= {"places": X.indices.astype(np.int64), "ends": X.indptr[1:].astype(np.int64)}
        X = X.data
    if labelled:
        classes, y = np.unique(plain_labels(y), return_inverse=True)
        facts["classes"] = saving.labels(classes.tolist())
    kind = np.int64 if labelled else np.float64
    return facts, tensors | {"rows": X.astype(np.float64), "responses": y.astype(kind)}


def _given(rows: Rows) -> tuple[Any, ...]:
    """Rows as an estimator takes them."""
    X, y, weight = rows
    return (X, y) if (weight == 1.0).all() else (X, y, weight)


def _cut(rows: Rows, n: int) -> tuple[Rows, Rows]:
    """The first n rows, and the others."""
    X, y, weight = rows
    return (X[:n], y[:n], weight[:n]), (X[n:], y[n:], weight[n:])


def _joined(a: Rows, b: Rows) -> Rows:
    if sparse.issparse(a[0]) or sparse.issparse(b[0]):
        X = sparse.csr_matrix(sparse.vstack([a[0], b[0]]))
    else:
        X = np.concatenate([a[0], b[0]])
    return X, np.concatenate([a[1], b[1]]), np.concatenate([a[2], b[2]])
