"""The one-class support vector machine that learns and forgets many rows at once."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin

from traceless.arithmetic.integers import Floats
from traceless.estimators.path_machine import PathMachine
from traceless.hinge.machines import OneClass
from traceless.parameters import Constraint

__all__ = ["PathOneClass"]


class PathOneClass(OutlierMixin, PathMachine):
    """One-class support vector machine whose rows can be added and taken back.

    It gives the answers of scikit-learn's `OneClassSVM`, to a KKT residual near 1e-9, and goes
    from one set of rows to another without refitting: in a `SlidingWindow` it says exactly which
    rows of a stream are unlike the newest ones. It **keeps its rows**; what is forgotten is
    erased. Labels are not needed, and ignored if they are given.

    Parameters
    ----------
    nu : float, default=0.5
        Between 0 and 1: at most this part of the rows is beyond the boundary, and at least this
        part are support vectors.
    kernel : {"rbf", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        As for `PathSVC`.
    gamma : {"steady", "scale", "auto"} or float, default="steady"
        As for `PathSVC`.
    degree : int, default=3
        Of the kernel "poly".
    coef0 : float, default=0.0
        Of the kernels "poly" and "sigmoid".
    tol : float, default=1e-9
        A larger KKT residual is reported by a `ConvergenceWarning`, unless it is below 1e-6 and
        rounding explains it. Where warnings are errors, nothing is changed then.
    cache_size : float, default=1000
        Megabytes that kernel matrices may take. What does not fit is computed when needed.
    verbose : bool, default=False
        Show progress on standard error when learning takes longer than two seconds.
    shrinking : bool, default=True
        Without effect: a path has no set of variables to shrink.
    max_iter : int, default=-1
        Without effect: a path ends at the solution, not earlier.

    Attributes
    ----------
    ids_, last_ids_, n_samples_, gamma_, n_breakpoints_, ambiguous_
        As of `PathSVC`.
    support_ : ndarray of shape (n_SV,)
        Places of the support vectors among ``ids_``.
    support_vectors_ : ndarray of shape (n_SV, n_features)
    n_support_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, n_SV)
        Coefficients of the support vectors, between 0 and 1 (or their weight), with a sum of
        nu times the number of rows.
    coef_ : ndarray of shape (1, n_features)
        Weights of the columns; with ``kernel="linear"`` only.
    intercept_, offset_ : ndarray of shape (1,)
        ``offset_`` is ``-intercept_``. With nu=1 every offset that has all rows beyond it is
        right: it is the smallest.
    kkt_residual_ : float
        The largest violation of a KKT condition by what is published, as a part of what one row
        adds to its own decision value, measured when asked for on all rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if the rows had string column names.

    Notes
    -----
    Parameters may be changed after training with ``set_params``. nu is then reached along a
    path, others by solving anew from the rows held.

    Examples
    --------
    >>> import numpy as np
    >>> from traceless import PathOneClass, SlidingWindow
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> window = SlidingWindow(PathOneClass(nu=0.1, gamma=0.5), size=100)
    >>> for start in range(0, 300, 20):
    ...     window = window.partial_fit(X[start : start + 20])
    >>> window.predict([[0.0, 0.0], [9.0, 9.0]]).tolist()
    [1, -1]
    >>> window.digest() == PathOneClass(nu=0.1, gamma=0.5).fit(X[-100:]).digest()
    True
    """

    constraints: ClassVar = PathMachine.constraints | {
        "nu": Constraint("a number above 0 and up to 1", (lambda v: 0.0 < v <= 1.0,)),
    }
    _labels = "none"

    def __init__(
        self,
        nu: float = 0.5,
        kernel: Any = "rbf",
        gamma: Any = "steady",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-9,
        cache_size: float = 1000.0,
        verbose: bool = False,
        shrinking: bool = True,
        max_iter: int = -1,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.shrinking = shrinking
        self.max_iter = max_iter

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn further rows. Their ids are then in ``last_ids_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        return self.update(add=(X, y, sample_weight))

    @property
    def offset_(self) -> Floats:
        """What is subtracted from the scores of rows: decision values are positive inside."""
        return 0.0 - self.intercept_

    def decision_function(self, X: Any) -> Floats:
        """Signed values: positive for rows like those learned, negative for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Or kernel values with the points held, of shape (n_samples, ``n_samples_``).

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._values(X)[1][:, 0])

    def score_samples(self, X: Any) -> Floats:
        """Decision values plus ``offset_``: sums of kernel values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        model, values = self._values(X)
        return np.asarray(values[:, 0] - model.intercepts())

    def predict(self, X: Any) -> NDArray[np.intp]:
        """1 for rows like those learned (decision values from 0 on), -1 for outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1).astype(np.intp)

    def _machine(self) -> OneClass:
        return OneClass(self.nu)
