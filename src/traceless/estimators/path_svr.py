"""Support vector regression (ε-insensitive loss) that learns and forgets many rows at once."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin

from traceless.arithmetic.integers import Floats
from traceless.estimators.path_machine import PathMachine
from traceless.hinge.machines import Regressor
from traceless.parameters import NOT_NEGATIVE, POSITIVE

__all__ = ["PathSVR"]


class PathSVR(RegressorMixin, PathMachine):
    """Support vector regressor whose rows can be added and taken back.

    It gives the answers of scikit-learn's `SVR`, to a KKT residual near 1e-9 of the targets' size,
    and goes from one set of rows to another without refitting. It **keeps its rows**; what is
    forgotten is erased. In the path each row is two points, above and below the tube, so kernel
    matrices take four times the memory of those of a `PathSVC`.

    Parameters
    ----------
    C : float, default=1.0
        The bound of each dual variable; large values fit the rows more closely.
    epsilon : float, default=0.1
        Half the width of the tube in which residuals cost nothing.
    kernel : {"rbf", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        As for `PathSVC`.
    gamma : {"steady", "scale", "auto"} or float, default="steady"
        As for `PathSVC`.
    degree : int, default=3
        Of the kernel "poly".
    coef0 : float, default=0.0
        Of the kernels "poly" and "sigmoid".
    tol : float, default=1e-9
        A larger KKT residual, in units of the targets, is reported by a `ConvergenceWarning`,
        unless it is below 1e-6 and rounding explains it. Where warnings are errors, nothing is
        changed then.
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
        Coefficients of the support vectors, between -C and C.
    coef_ : ndarray of shape (1, n_features)
        Weights of the columns; with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (1,)
    kkt_residual_ : float
        The largest violation of a KKT condition by what is published, as a part of the size of
        the targets (the largest power of two within it), measured when asked for on all rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if the rows had string column names.

    Notes
    -----
    Parameters may be changed after training with ``set_params``. C and epsilon are then reached
    along a path, others by solving anew from the rows held.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from traceless import PathSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> svr = PathSVR(C=100.0, epsilon=20.0, gamma=10.0).fit(X[:300], y[:300])
    >>> svr.update(add=(X[300:], y[300:]), forget=(X[:40], y[:40])).n_samples_
    402
    >>> fresh = PathSVR(C=100.0, epsilon=20.0, gamma=10.0).fit(X[40:], y[40:])
    >>> svr.digest() == fresh.digest()
    True
    """

    constraints: ClassVar = PathMachine.constraints | {"C": POSITIVE, "epsilon": NOT_NEGATIVE}
    _labels = "numbers"

    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.1,
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
        self.C = C
        self.epsilon = epsilon
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
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        return self.update(add=(X, y, sample_weight))

    def predict(self, X: Any) -> Floats:
        """The target of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Or kernel values with the points held, of shape (n_samples, ``n_samples_``).

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._values(X)[1][:, 0])

    def _machine(self) -> Regressor:
        return Regressor(self.C, self.epsilon)
