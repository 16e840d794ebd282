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
from traceless.device.tensors import is_on_device, like, taken, to_array
from traceless.estimators.columns import ForgettableColumns
from traceless.estimators.errors import Explained, PredictionErrors
from traceless.estimators.exported_state import ExportedState
from traceless.estimators.inputs import check_classes, checked_tensor
from traceless.estimators.least_squares import ROWS, LeastSquares
from traceless.estimators.posterior import CONSTRAINTS, Posterior
from traceless.estimators.summary import Summary
from traceless.features.feature_map import FeatureMap
from traceless.features.grid import grid_step, report_coarse
from traceless.knowledge.responses import Task, label_array
from traceless.knowledge.sums import Knowledge
from traceless.parameters import BY_LABEL, FLAG, NOTHING, POSITIVE, Constraint, choice
from traceless.solvers.class_weights import SCOPES, shared_weights
from traceless.sources.answers import where_the_rows_are
from traceless.sources.source import as_source
from traceless.transaction import changing, snapshot

__all__ = ["LSSVC", "LSSVR"]

_NO_ERRORS = (
    "Scores are those of ±1 against the rest. Labels have no normal noise, so there are no errors."
)


class LSSVC(ClassifierMixin, ForgettableColumns, Posterior, Explained, ExportedState):
    """Least-squares support vector classifier that can be taken back.

    Binary and multi-class (one against the rest, ±1 coding, one matrix for all classes).
    Classes may appear at any time; a class whose last row is forgotten disappears.

    Multi-label where y is a matrix of 0 and 1 with a column for each label, two at least: as many
    binary problems with one matrix. The columns of y are fixed by the first rows, and a model
    stays for several labels, or for one, until it is fitted anew. Class weights are not for
    these: what is known of rows with and without each label is not kept apart.

    Parameters
    ----------
    feature_map : FeatureMap, optional
        One of `traceless.features`; default ``Linear()``.
    rho : float or "evidence", default=1.0
        Strength ρ > 0 of the regularisation, 1/C; scikit-learn's ``alpha``. It may be changed
        after training with ``set_params`` and takes effect at once, without the data. "evidence"
        chooses it from the sums at each solve (docs/uncertainty.md); ``rho_`` says which.
    free_intercept : bool, default=True
        Leave the intercept out of the penalty, so that targets and columns far from zero cost
        nothing. It is the constant feature's coefficient; with False it is penalised as the
        others are, as in the papers. Without a constant feature (``bias=False``) there is none.
    standardize : bool, optional
        Penalise each coefficient in units of its feature's standard deviation, taken from the
        sums when they are solved: the model of `StandardScaler` and `Ridge` with ``alpha=rho``,
        in the units of the columns, and without a scaler that remembers rows. By default this is
        done where features have the units of columns (`Linear`, `Polynomial`, maps of your own),
        and not where they are bounded numbers (`RandomFourier`, `RandomLayer`); never without
        a constant feature, whose sums have no means. It may be changed after training.
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
        class_weight is set when learning starts. Of more than two classes, `predict_proba`
        then gives each a covariance of its own, which is often better and takes longer.
    priors : array-like of shape (n_classes,), optional
        How common each class is where probabilities are asked for, in the order of ``classes_``;
        by default as common as among the rows held now, times class_weight.
    decision : {"scores", "posterior"}, default="scores"
        Whether `predict` takes the class of the largest score, or of the largest probability,
        which is more often right for more than two classes. Both may be changed after training.
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
        The slices taken in by `merge`, by name or digest, and versions of Delta tables.
    classes_ : ndarray of shape (n_classes,)
        The labels in order, in the type of the first labels learned where it can hold them all,
        as they are in `predict`. Multi-label: the numbers of the columns of y.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Correctly rounded coefficients of the columns: only with `Linear`.
    feature_coef_ : ndarray of shape (1, n_outputs) or (n_classes, n_outputs)
        The same of the features, of any map.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    rho_ : float
        The ρ that is used.
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

    constraints: ClassVar = (
        LeastSquares.constraints
        | {
            "class_weight": NOTHING
            | choice("balanced", "inverse", "golden")
            | BY_LABEL
            | Constraint("a callable of the counts", (callable,)),
            "weighting": choice(*SCOPES),
            "classwise": NOTHING | FLAG,
        }
        | CONSTRAINTS
    )
    _task: Task = "classification"  # "multilabel" where the first y was a matrix

    def __init__(
        self,
        feature_map: FeatureMap | None = None,
        rho: Any = 1.0,
        solver: str = "cholesky",
        class_weight: Any = None,
        weighting: str = "shared",
        classwise: bool | None = None,
        guard: bool = False,
        fingerprint: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
        *,
        free_intercept: bool = True,
        standardize: bool | None = None,
        priors: Any = None,
        decision: str = "scores",
    ) -> None:
        self.feature_map = feature_map
        self.rho = rho
        self.free_intercept = free_intercept
        self.standardize = standardize
        self.solver = solver
        self.class_weight = class_weight
        self.weighting = weighting
        self.classwise = classwise
        self.priors = priors
        self.decision = decision
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
        y : array-like of shape (n_samples,), or matrix of 0 and 1 of shape (n_samples, n_labels)
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
            check_classes(to_array(y), classes)
            return self.update(add=(X, y, sample_weight))
        with changing(self) as draft:
            before: Any = [] if draft._current() is None else draft.classes_
            draft._learn((X, y, sample_weight), None)
            check_classes(np.setdiff1d(draft.classes_, before), classes)
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the rows held now, in order; or the numbers of the columns of y."""
        now = self.__dict__  # of one state, whatever is published meanwhile
        responses = (now.get("_state") or self._held()).responses
        if now.get("_task") == "multilabel":
            return np.arange(len(responses) - 1)
        return label_array(responses, now.get("_label_type"))

    @where_the_rows_are
    def decision_function(self, X: Any) -> Any:
        """Signed scores: positive for the second of two classes, or one column per class.

        Each score is the float64 nearest to the exact sum of the row's features times the
        coefficients, so it does not depend on the batch the row comes in. With a free intercept
        features are counted from near their means, which loses no digits far from zero.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Multi-label: a column for each label, positive where a row has it.
        """
        scores = like(X, self._decision(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @where_the_rows_are
    def predict(self, X: Any) -> Any:
        """The class of each row, or which labels it has.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Multi-label: a dense matrix of 0 and 1, of shape (n_samples, n_labels), in the type of
            the first y that was learned.
        """
        now = snapshot(self)  # scores and classes of one state
        if now._task == "multilabel":
            if now.decision != "scores":
                raise ValueError(
                    f"decision={now.decision!r} needs probabilities, which are those of one label "
                    "per row, and this model has learned several. Use decision='scores'."
                )
            has = (to_array(now._decision(X)) > 0).astype(now.__dict__.get("_label_type", np.int64))
            return like(X, has)
        winners = now._winners(X)  # first: it checks the rows and the model
        classes = now.classes_
        found = np.asarray(classes[np.minimum(winners, len(classes) - 1)])
        return found if type(X) is np.ndarray else like(X, found)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows whose label is right, or all of whose labels are.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        from sklearn.metrics import accuracy_score

        y, found, weight = (to_array(taken(v)) for v in (y, self.predict(X), sample_weight))
        return float(accuracy_score(y, found, sample_weight=weight))

    def summary(self) -> Summary:
        """The coefficients of each class by name, as a table.

        Scores of classes have no noise that an error could be the error of, so there are none.

        Returns
        -------
        Summary
            It prints well; ``to_frame()`` is a pandas DataFrame.
        """
        now = snapshot(self)
        classes, names = now.classes_.tolist(), now._column_names()
        rows = np.column_stack([now.intercept_, now.feature_coef_])
        names = ["intercept", *names]
        scored = classes if len(rows) > 1 else classes[-1:]
        taken = {"name": "class name", "target": "class target"}  # the table's own headings
        headings = [taken.get(str(label), str(label)) for label in scored]
        table = {heading: row.tolist() for heading, row in zip(headings, rows, strict=True)}
        facts = now._facts() | {"classes": ", ".join(map(str, classes))}
        title = f"{type(self).__name__}: coefficients of the score of each class"
        return Summary(title, facts, {"name": names, **table}, _NO_ERRORS)

    def _winners(self, X: Any) -> NDArray[np.intp]:
        """The number of each row's class, by its score or its probability; of one class 0 or 1."""
        if self.decision != "scores":
            return np.asarray(self._probabilities(X, log=True).argmax(axis=1))
        if type(X) is not np.ndarray and is_on_device(taken(X)) and len(self.classes_) > 2:
            from traceless.device.products import winners

            rows = checked_tensor(self, taken(X), reset=False)
            return np.asarray(to_array(winners(*self._weights(), rows)))
        scores = self._decision(X)
        best = scores.argmax(axis=1) if scores.shape[1] > 1 else scores[:, 0] > 0
        return np.asarray(best if type(best) is np.ndarray else to_array(best), dtype=np.intp)

    def _worst_losses(self) -> Floats:
        weights, known = shared_weights(self._problem()[3]), self.knowledge_
        sums = known.gram.diagonal()[known.n_outputs :]
        totals = np.array([float(n) for n in sums]) * 2.0**-known.weight_bits
        totals *= 1.0 if weights is None else np.array(weights)
        n = totals[-1] if self._task == "multilabel" else totals.sum()
        t = self._code(totals[None])[0]
        if not self._bind().has_bias:
            return np.full(len(t), n)
        return np.asarray((n - t) * (n + t) / n)

    def _code(self, V: Any) -> Any:
        """±1 coding: a class against the rest; with two classes the second against the first.

        Of several labels: rows with each against those without, Σφy - Σφ(1 - y) = 2 Σφy - Σφ.
        """
        if self._task == "multilabel":
            return 2 * V[:, :-1] - V[:, -1:]
        if V.shape[1] == 2:
            return V[:, 1:] - V[:, :1]
        return 2 * V - V.sum(axis=1, keepdims=True)

    def _check_unweighted(self) -> None:
        """Raise if classes of several labels are to be weighted."""
        if self._task == "multilabel" and (self.class_weight is not None or self.classwise):
            raise ValueError(
                "class_weight and classwise are for one label per row. To balance several labels, "
                "what is known of the rows with and without each would have to be kept apart, and "
                "it is not: set class_weight=None and classwise=None and give sample_weight, or "
                "learn one LSSVC for each label."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = self.class_weight is None and not self.classwise
        return tags


class LSSVR(MultiOutputMixin, RegressorMixin, ForgettableColumns, PredictionErrors, ExportedState):
    """Least-squares support vector regressor that can be taken back.

    Parameters
    ----------
    feature_map : FeatureMap, optional
        One of `traceless.features`; default ``Linear()``.
    rho : float or "evidence", default=1.0
        Strength ρ > 0 of the regularisation; scikit-learn's ``alpha``. It may be changed after
        training with ``set_params`` and takes effect at once, without the data. "evidence" chooses
        it from the sums at each solve (docs/uncertainty.md); ``rho_`` says which.
    target_resolution : float, default=2**-14
        The grid that targets are rounded to, a power of two.
    free_intercept : bool, default=True
        Leave the intercept out of the penalty, so that targets and columns far from zero cost
        nothing. It is the constant feature's coefficient; with False it is penalised as the
        others are, as in the papers. Without a constant feature (``bias=False``) there is none.
    standardize : bool, optional
        Penalise each coefficient in units of its feature's standard deviation, taken from the
        sums when they are solved: the model of `StandardScaler` and `Ridge` with ``alpha=rho``,
        in the units of the columns, and without a scaler that remembers rows. By default this is
        done where features have the units of columns (`Linear`, `Polynomial`, maps of your own),
        and not where they are bounded numbers (`RandomFourier`, `RandomLayer`); never without
        a constant feature, whose sums have no means. It may be changed after training.
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
        The slices taken in by `merge`, by name or digest, and versions of Delta tables.
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Correctly rounded coefficients of the columns: only with `Linear`.
    feature_coef_ : ndarray of shape (n_outputs,) or (n_targets, n_outputs)
        The same of the features, of any map.
    intercept_ : float or ndarray of shape (n_targets,)
    coef_std_, intercept_std_ : float or ndarray
        Standard errors of these, of their shapes: the first only with `Linear`.
    noise_std_ : float or ndarray of shape (n_targets,)
        The standard deviation of the noise.
    rho_ : float
        The ρ that is used.
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
        rho: Any = 1.0,
        target_resolution: float = 2**-14,
        solver: str = "cholesky",
        guard: bool = False,
        fingerprint: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
        *,
        free_intercept: bool = True,
        standardize: bool | None = None,
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
        coef = self._coefficients() * self.target_resolution + 0.0
        return coef[0] if len(coef) == 1 else coef

    @property
    def intercept_(self) -> Any:
        """Coefficient of the constant feature; 0 if the feature map has none."""
        intercept = self._intercepts() * self.target_resolution + 0.0
        return intercept[0] if len(intercept) == 1 else intercept

    @where_the_rows_are
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The predicted target of each row: the float64 nearest to the exact sum.

        It does not depend on the batch the row comes in, and neither does its error.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        return_std : bool, default=False
            Also return the standard deviation of what the row will show, noise included
            (`traceless.solvers.errors`).

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape
            Only if asked for.
        """
        if return_std:
            mean, std = snapshot(self)._with_std(X)
            return like(X, mean), like(X, std)
        values = like(X, self._decision(X) * self.target_resolution)
        return values[:, 0] if values.shape[1] == 1 else values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        float
        """
        from sklearn.metrics import r2_score

        y, found, weight = (to_array(taken(v)) for v in (y, self.predict(X), sample_weight))
        return float(r2_score(y, found, sample_weight=weight))

    def _target_resolution(self) -> float:
        return grid_step(self.target_resolution, "target_resolution")

    def _check_first(self, part: Knowledge, X: Any, y: NDArray[Any]) -> None:
        super()._check_first(part, X, y)
        targets = y[:ROWS].reshape(min(len(y), ROWS), -1)
        steps = np.full(targets.shape[1], self._target_resolution())
        report_coarse(targets, steps, "Target", "target_resolution")

    def _code(self, V: Any) -> Any:
        return V
