"""The one-class support vector machine that learns and forgets many rows at once."""

from __future__ import annotations

from typing import Any, ClassVar

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
    kernel, gamma, degree, coef0, tol, cache_size, verbose, table
        As for `PathSVC`.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_SV)
        Coefficients of the support vectors, between 0 and 1 (or their weight), with a sum of
        nu times the number of rows.
    intercept_, offset_ : ndarray of shape (1,)
        ``offset_`` is ``-intercept_``. With nu=1 every offset that has all rows beyond it is
        right: it is the smallest.
    kkt_residual_ : float
        The largest violation of a KKT condition by what is published, as a part of what one row
        adds to its own decision value, measured on all rows.

    Notes
    -----
    There are also all attributes of `PathSVC` but ``classes_``, and what its notes say holds: of
    parameters that are changed after training, nu is reached along a path.

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
        table: Any = None,
    ) -> None:
        self.nu = nu
        super().__init__(kernel, gamma, degree, coef0, tol, cache_size, verbose, table)

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
