"""Least-squares support vector machines: the estimators.

±1 coding of the classes turns the LS-SVM of Lee et al. 2019 into the least squares of
`traceless.estimators.least_squares`, with one matrix shared by all classes; the regressor is the
same with real targets.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin

from traceless.arithmetic.integers import Floats
from traceless.estimators.exported_state import ExportedState
from traceless.estimators.inputs import check_classes
from traceless.estimators.least_squares import ROWS, LeastSquares
from traceless.features.feature_map import FeatureMap
from traceless.features.grid import grid_steps, report_coarse
from traceless.knowledge.responses import label_array
from traceless.knowledge.sums import Knowledge
from traceless.parameters import BY_LABEL, FLAG, NOTHING, POSITIVE, Constraint, choice
from traceless.solvers.class_weights import SCOPES
from traceless.sources.source import as_source
from traceless.transaction import changing, snapshot

__all__ = ["LSSVC", "LSSVR"]


class LSSVC(ClassifierMixin, ExportedState):
    """Least-squares support vector classifier that can be taken back.

    Binary and multi-class (one against the rest, ±1 coding, one matrix for all classes).
    Classes may appear at any time; a class whose last row is forgotten disappears.

    Parameters
    ----------
    feature_map : FeatureMap, optional
        One of `traceless.features`; default ``Linear()``.
    rho : float, default=1.0
        Strength ρ > 0 of the regularisation, 1/C; scikit-learn's ``alpha``. It may be changed
        after training with ``set_params`` and takes effect at once, without the data.
    free_intercept : bool, default=True
        Leave the intercept out of the penalty, so that targets and columns far from zero cost
        nothing. It is the constant feature's coefficient; with False it is penalised as the
        others are, as in the papers. Without a constant feature (``bias=False``) there is none.
    standardize : bool, default=True
        Penalise each coefficient in units of its feature's standard deviation, taken from the
        sums when they are solved: the model of `StandardScaler` and `Ridge` with ``alpha=rho``,
        in the units of the columns, and without a scaler that remembers rows. Not without a
        constant feature: the sums have no means then. It may be changed after training, like rho.
    solver : {"cholesky", "woodbury"}, default="cholesky"
        "cholesky" solves the knowledge when coefficients are asked for, to the last bit.
        "woodbury" keeps them ready in float64 after each small change (Lee et al. 2019)
        without a factorisation; `seal` gives the exact ones at any time.
    class_weight : None, {"balanced", "inverse", "golden"}, dict or callable, default=None
        How much the rows of a class weigh: n / (K n_c), 1 / n_c, or 1 / n_c and 0.618 / n_c
        for classes larger than the mean; numbers by label (1 for others); or a function of
        the array of counts (a row of weight 2 counts as two). Taken from the counts when
        solving, so balance follows the data as it comes and goes. It may be changed after
        training, see `classwise`.
    weighting : {"shared", "one_vs_rest"}, default="shared"
        "shared" gives each class one weight in all problems. "one_vs_rest" applies
        class_weight to the two counts (rest, class) of each problem, at the cost of one
        factorisation for each class.
    classwise : bool, optional
        Keep what is known of each class apart, K matrices instead of one, so that
        class_weight may be set or changed later without the data. By default this is done if
        class_weight is set when learning starts.
    guard : bool, default=False
        Keep a keyed digest of each row held, 16 bytes, so that a forget of any other row is
        refused: one that was never learned, that is forgotten twice, or that has another label,
        target or weight. Without it only what contradicts the sums is refused.
    fingerprint : bool, default=False
        Add up a hash of each row beside the sums (`traceless.knowledge.fingerprint`), so that equal
        digests mean equal rows, and not only equal sums: 2 kB, and 2 µs a row or more. Needs
        ``pip install 'traceless[store]'``. It is decided when learning starts.
    n_jobs : int, optional
        Processes that learn at the same time (-1: one for each core); results do not depend
        on it. None is one process whose matrix products have all cores.
    verbose : bool, default=False
        Show progress on standard error when learning takes longer than two seconds.

    Attributes
    ----------
    knowledge_ : Knowledge
        All that is kept of the rows.
    merged_ : dict
        The slices taken in by `merge`, by name or digest.
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Correctly rounded coefficients of the columns: only with `Linear`.
    feature_coef_ : ndarray of shape (1, n_outputs) or (n_classes, n_outputs)
        The same of the features, of any map.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_samples_ : int
        Number of rows held now.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
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

    constraints: ClassVar = LeastSquares.constraints | {
        "class_weight": NOTHING
        | choice("balanced", "inverse", "golden")
        | BY_LABEL
        | Constraint("a callable of the counts", (callable,)),
        "weighting": choice(*SCOPES),
        "classwise": NOTHING | FLAG,
    }
    _task = "classification"

    def __init__(
        self,
        feature_map: FeatureMap | None = None,
        rho: float = 1.0,
        free_intercept: bool = True,
        standardize: bool = True,
        solver: str = "cholesky",
        class_weight: Any = None,
        weighting: str = "shared",
        classwise: bool | None = None,
        guard: bool = False,
        fingerprint: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.feature_map = feature_map
        self.rho = rho
        self.free_intercept = free_intercept
        self.standardize = standardize
        self.solver = solver
        self.class_weight = class_weight
        self.weighting = weighting
        self.classwise = classwise
        self.guard = guard
        self.fingerprint = fingerprint
        self.n_jobs = n_jobs
        self.verbose = verbose

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn further rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or any other form that `fit` takes.
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            If given, labels outside of it are refused. Not needed: new classes may come
            at any time.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        source = as_source(X, y, sample_weight)
        if source is None:
            check_classes(y, classes)
            return self.update(add=(X, y, sample_weight))
        with changing(self) as draft:
            before: Any = [] if draft._current() is None else draft.classes_
            draft._learn(source, None)
            check_classes(np.setdiff1d(draft.classes_, before), classes)
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the rows held now, in order."""
        return label_array(self._held().responses)

    def decision_function(self, X: Any) -> Floats:
        """Signed scores: positive for the second of two classes, or one column per class.

        Each score is the float64 nearest to the exact sum of the row's features times the
        coefficients, so it does not depend on the batch the row comes in.

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
        now = snapshot(self)  # scores and classes of one state
        scores, classes = now._decision(X), now.classes_
        winner = scores[:, 0] > 0 if len(classes) == 2 else scores.argmax(axis=1)
        return np.asarray(classes[winner.astype(np.intp)])

    def _code(self, V: Any) -> Any:
        """±1 coding: a class against the rest; with two classes the second against the first."""
        if V.shape[1] == 2:
            return V[:, 1:] - V[:, :1]
        return 2 * V - V.sum(axis=1, keepdims=True)


class LSSVR(MultiOutputMixin, RegressorMixin, ExportedState):
    """Least-squares support vector regressor that can be taken back.

    Parameters
    ----------
    feature_map : FeatureMap, optional
        One of `traceless.features`; default ``Linear()``.
    rho : float, default=1.0
        Strength ρ > 0 of the regularisation; scikit-learn's ``alpha``. It may be changed after
        training with ``set_params`` and takes effect at once, without the data.
    target_resolution : float, default=2**-14
        The grid that targets are rounded to, a power of two.
    free_intercept : bool, default=True
        Leave the intercept out of the penalty, so that targets and columns far from zero cost
        nothing. It is the constant feature's coefficient; with False it is penalised as the
        others are, as in the papers. Without a constant feature (``bias=False``) there is none.
    standardize : bool, default=True
        Penalise each coefficient in units of its feature's standard deviation, taken from the
        sums when they are solved: the model of `StandardScaler` and `Ridge` with ``alpha=rho``,
        in the units of the columns, and without a scaler that remembers rows. Not without a
        constant feature: the sums have no means then. It may be changed after training, like rho.
    solver : {"cholesky", "woodbury"}, default="cholesky"
        "cholesky" solves the knowledge when coefficients are asked for, to the last bit.
        "woodbury" keeps them ready in float64 after each small change (Lee et al. 2019)
        without a factorisation; `seal` gives the exact ones at any time.
    guard : bool, default=False
        Keep a keyed digest of each row held, 16 bytes, so that a forget of any other row is
        refused: one that was never learned, that is forgotten twice, or that has another label,
        target or weight. Without it only what contradicts the sums is refused.
    fingerprint : bool, default=False
        Add up a hash of each row beside the sums (`traceless.knowledge.fingerprint`), so that equal
        digests mean equal rows, and not only equal sums: 2 kB, and 2 µs a row or more. Needs
        ``pip install 'traceless[store]'``. It is decided when learning starts.
    n_jobs : int, optional
        Processes that learn at the same time (-1: one for each core); results do not depend
        on it. None is one process whose matrix products have all cores.
    verbose : bool, default=False
        Show progress on standard error when learning takes longer than two seconds.

    Attributes
    ----------
    knowledge_ : Knowledge
        All that is kept of the rows.
    merged_ : dict
        The slices taken in by `merge`, by name or digest.
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Correctly rounded coefficients of the columns: only with `Linear`.
    feature_coef_ : ndarray of shape (n_outputs,) or (n_targets, n_outputs)
        The same of the features, of any map.
    intercept_ : float or ndarray of shape (n_targets,)
    n_samples_ : int
        Number of rows held now.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
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

    constraints: ClassVar = LeastSquares.constraints | {"target_resolution": POSITIVE}
    _task = "regression"

    def __init__(
        self,
        feature_map: FeatureMap | None = None,
        rho: float = 1.0,
        free_intercept: bool = True,
        standardize: bool = True,
        target_resolution: float = 2**-14,
        solver: str = "cholesky",
        guard: bool = False,
        fingerprint: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.feature_map = feature_map
        self.rho = rho
        self.free_intercept = free_intercept
        self.standardize = standardize
        self.solver = solver
        self.target_resolution = target_resolution
        self.guard = guard
        self.fingerprint = fingerprint
        self.n_jobs = n_jobs
        self.verbose = verbose

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
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
    def feature_coef_(self) -> Floats:
        """Coefficients of the features that the map makes, without the constant one."""
        coef = self._coefficients()[0] * self.target_resolution + 0.0
        return coef[0] if len(coef) == 1 else coef

    @property
    def intercept_(self) -> Any:
        """Coefficient of the constant feature; 0 if the feature map has none."""
        intercept = self._coefficients()[1] * self.target_resolution + 0.0
        return intercept[0] if len(intercept) == 1 else intercept

    def predict(self, X: Any) -> Floats:
        """The predicted target of each row: the float64 nearest to the exact sum.

        It does not depend on the batch the row comes in.

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
