"""Support vector regression (ε-insensitive loss) that learns and forgets many rows at once."""

from __future__ import annotations

from typing import Any, ClassVar

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
    forgotten is erased.

    Parameters
    ----------
    C : float, default=1.0
        The bound of each dual variable; large values fit the rows more closely.
    epsilon : float, default=0.1
        Half the width of the tube in which residuals cost nothing.
    kernel, gamma, degree, coef0, cache_size, verbose, table
        As for `PathSVC`.
    tol : float, default=1e-9
        As for `PathSVC`, in units of the targets.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_SV)
        Coefficients of the support vectors, between -C and C.
    kkt_residual_ : float
        The largest violation of a KKT condition by what is published, as a part of the size of
        the targets (the largest power of two within it), measured on all rows.

    Notes
    -----
    There are also all attributes of `PathSVC` but ``classes_``, and what its notes say holds: of
    parameters that are changed after training, C and epsilon are reached along a path.

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
        table: Any = None,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        super().__init__(kernel, gamma, degree, coef0, tol, cache_size, verbose, table)

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
