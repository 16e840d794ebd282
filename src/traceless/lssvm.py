"""Least-squares support vector machines: the estimators.

±1 coding of the classes turns the LS-SVM of Lee et al. 2019 into the least squares of
`traceless.least_squares`, with one matrix shared by all classes; the regressor is the
same with real targets.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin

from traceless.exact import Floats
from traceless.features import FeatureMap
from traceless.features.grid import grid_steps, report_coarse
from traceless.knowledge import Knowledge
from traceless.least_squares import ROWS, LeastSquares

__all__ = ["LSSVC", "LSSVR"]


class LSSVC(ClassifierMixin, LeastSquares):
    """Least-squares support vector classifier that can be taken back.

    Binary and multi-class (one against the rest, ±1 coding, one matrix for all classes).
    Classes may appear at any time; a class whose last row is forgotten disappears.

    Parameters
    ----------
    feature_map : FeatureMap, optional
        One of `traceless.features`; default ``Linear()``.
    rho : float, default=1.0
        Strength ρ > 0 of the regularisation, 1/C. It may be changed after training with
        ``set_params`` and takes effect at once, without the data.
    solver : {"cholesky", "woodbury"}, default="cholesky"
        "cholesky" solves the knowledge when coefficients are asked for, to the last bit.
        "woodbury" keeps them ready in float64 after each small change (Lee et al. 2019)
        without a factorisation; `seal` gives the exact ones at any time.
    verbose : bool, default=False
        Show progress on standard error when learning takes longer than two seconds.

    Attributes
    ----------
    knowledge_ : Knowledge
        All that is kept of the rows.
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_outputs) or (n_classes, n_outputs)
        Correctly rounded coefficients of the features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_samples_ : int
        Number of rows held now.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if the rows had string column names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from traceless import LSSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LSSVC(rho=0.1).fit(X, y)
    >>> clf.forget(X[:30], y[:30]).n_samples_
    120
    >>> clf.digest() == LSSVC().fit(X[30:], y[30:]).digest()
    True
    """

    _task = "classification"

    def __init__(
        self,
        feature_map: FeatureMap | None = None,
        rho: float = 1.0,
        solver: str = "cholesky",
        verbose: bool = False,
    ) -> None:
        self.feature_map = feature_map
        self.rho = rho
        self.solver = solver
        self.verbose = verbose

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn further rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            If given, labels outside of it are refused. Not needed: new classes may come
            at any time.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        if classes is not None:
            unknown = np.setdiff1d(np.asarray(y), np.asarray(classes))
            if unknown.size:
                raise ValueError(
                    f"y contains classes {unknown.tolist()} that are not in classes="
                    f"{np.asarray(classes).tolist()}. Leave classes out to allow new ones."
                )
        return self.update(add=(X, y, sample_weight))

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the rows held now, in order."""
        return np.array(self._held().responses)

    @property
    def coef_(self) -> Floats:
        """Coefficients of the features, without the constant one."""
        return self._coefficients()[0]

    @property
    def intercept_(self) -> Floats:
        """Coefficients of the constant feature; 0 if the feature map has none."""
        return self._coefficients()[1]

    def decision_function(self, X: Any) -> Floats:
        """Signed scores: positive for the second of two classes, or one column per class.

        The score of a row does not depend on the batch it comes in.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        scores = self._decision(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self._decision(X)
        if len(self.classes_) == 2:
            return np.asarray(self.classes_[(scores[:, 0] > 0).astype(np.intp)])
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def _code(self, V: Any) -> Any:
        """±1 coding: a class against the rest; with two classes the second against the first."""
        if V.shape[1] == 2:
            return V[:, 1:] - V[:, :1]
        return 2 * V - V.sum(axis=1, keepdims=True)


class LSSVR(MultiOutputMixin, RegressorMixin, LeastSquares):
    """Least-squares support vector regressor that can be taken back.

    Parameters
    ----------
    feature_map : FeatureMap, optional
        One of `traceless.features`; default ``Linear()``.
    rho : float, default=1.0
        Strength ρ > 0 of the regularisation. It may be changed after training with
        ``set_params`` and takes effect at once, without the data.
    target_resolution : float, default=2**-14
        The grid that targets are rounded to, a power of two.
    solver : {"cholesky", "woodbury"}, default="cholesky"
        "cholesky" solves the knowledge when coefficients are asked for, to the last bit.
        "woodbury" keeps them ready in float64 after each small change (Lee et al. 2019)
        without a factorisation; `seal` gives the exact ones at any time.
    verbose : bool, default=False
        Show progress on standard error when learning takes longer than two seconds.

    Attributes
    ----------
    knowledge_ : Knowledge
        All that is kept of the rows.
    coef_ : ndarray of shape (n_outputs,) or (n_targets, n_outputs)
        Correctly rounded coefficients of the features.
    intercept_ : float or ndarray of shape (n_targets,)
    n_samples_ : int
        Number of rows held now.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if the rows had string column names.

    Examples
    --------
    >>> import numpy as np
    >>> from traceless import LSSVR
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> reg = LSSVR(rho=2**-20).fit(X, 3 * X[:, 0] + 1)
    >>> reg.partial_fit([[9.0]], [-100.0]).forget([[9.0]], [-100.0]).predict([[10.0]]).round(3)
    array([31.])
    """

    _task = "regression"

    def __init__(
        self,
        feature_map: FeatureMap | None = None,
        rho: float = 1.0,
        target_resolution: float = 2**-14,
        solver: str = "cholesky",
        verbose: bool = False,
    ) -> None:
        self.feature_map = feature_map
        self.rho = rho
        self.solver = solver
        self.target_resolution = target_resolution
        self.verbose = verbose

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn further rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        return self.update(add=(X, y, sample_weight))

    @property
    def coef_(self) -> Floats:
        """Coefficients of the features, without the constant one."""
        coef = self._coefficients()[0] * self.target_resolution
        return coef[0] if len(coef) == 1 else coef

    @property
    def intercept_(self) -> Any:
        """Coefficient of the constant feature; 0 if the feature map has none."""
        intercept = self._coefficients()[1] * self.target_resolution
        return intercept[0] if len(intercept) == 1 else intercept

    def predict(self, X: Any) -> Floats:
        """The predicted target of each row, independent of the batch it comes in.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        values = self._decision(X) * self.target_resolution
        return values[:, 0] if values.shape[1] == 1 else values

    def _target_resolution(self) -> float:
        return float(grid_steps(self.target_resolution, 1, "target_resolution")[0])

    def _check_first(self, part: Knowledge, X: Any, y: NDArray[Any]) -> None:
        super()._check_first(part, X, y)
        targets = y[:ROWS].reshape(min(len(y), ROWS), -1)
        steps = np.full(targets.shape[1], self._target_resolution())
        report_coarse(targets, steps, "Target", "target_resolution")

    def _code(self, V: Any) -> Any:
        return V
