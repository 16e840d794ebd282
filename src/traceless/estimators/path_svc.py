"""The hinge-loss support vector machine that learns and forgets many rows at once: the estimator.

Karasuyama & Takeuchi 2009: rows that come, rows that go and bounds that change are one path of
the solution. `traceless.hinge` has the solver; it is compiled by numba, and imported when something
is learned, not before.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from traceless.arithmetic.integers import Floats, Integers
from traceless.estimators.inputs import check_classes, sides
from traceless.files.saving import Pieces, Savable, names, parameters
from traceless.hinge import multiclass
from traceless.hinge.file_format import pieces
from traceless.hinge.rows import checked, is_plain
from traceless.hinge.settings import GAMMAS, KERNELS, Settings
from traceless.parameters import (
    BY_LABEL,
    FINITE,
    FLAG,
    NOT_NEGATIVE,
    NOTHING,
    POSITIVE,
    Constraint,
    check_parameters,
    choice,
    whole,
)
from traceless.transaction import Changeable, changing, snapshot

if TYPE_CHECKING:
    from traceless.hinge.model import HingeModel

__all__ = ["PathSVC"]


class PathSVC(Savable, Changeable, ClassifierMixin, BaseEstimator):
    """Support vector classifier (hinge loss) whose rows can be added and taken back.

    It gives the answers of scikit-learn's `SVC`, to a KKT residual near 1e-9, and goes from
    one set of rows to another without refitting. It **keeps its rows**, because a hinge-loss
    SVM needs them; what is forgotten is erased.

    Classes may appear at any time; a class whose last row is forgotten disappears. With one
    class left it predicts that class, and grows back when others come.

    Parameters
    ----------
    C : float, default=1.0
        The bound of each dual variable; large values fit the rows more closely.
    kernel : {"rbf", "linear", "poly", "precomputed"} or callable, default="rbf"
        A callable takes two arrays of rows and returns their kernel values. They must be those
        of a positive semidefinite kernel: of any other the conditions hold at several
        solutions, and which is found depends on the history. For "precomputed",
        `fit` takes a square kernel matrix; further points come as their kernel values with the
        points held, in the order of ``ids_``, and with each other; `predict` takes kernel
        values with the points held; points are forgotten by their ids.
    gamma : {"steady", "scale", "auto"} or float, default="steady"
        Coefficient of "rbf" and "poly". "scale" is 1 / (n_features · variance of the rows) and
        "auto" 1 / n_features, as in scikit-learn, but a row of weight 2 counts as two. "steady"
        is the power of two nearest to "scale". Both are always those of the rows held now, so
        that models of equal rows are equal whatever their history. "scale" changes with every
        row, and all rows are then solved anew: it is the slow choice. "steady" rarely changes,
        so that updates follow a path. ``gamma_`` shows the value.
    degree : int, default=3
        Of the kernel "poly".
    coef0 : float, default=0.0
        Of the kernel "poly".
    class_weight : None, "balanced" or dict, default=None
        Multiplies C for the rows of a class. "balanced" is n / (K n_c), from the counts of
        rows as they are now, one of weight 2 counted as two (which SVC does not do): the
        bounds of all rows move with the counts.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With more than two classes and ``strategy="ovo"``: one value for each class, or for
        each pair of classes.
    break_ties : bool, default=False
        With ``strategy="ovo"`` and more than two classes: predict the class with the largest
        decision value, not the first of those with most votes.
    strategy : {"ovo", "ovr"}, default="ovo"
        More than two classes are one problem for each pair, as in scikit-learn's `SVC`, or one
        for each class against the rest.
    tol : float, default=1e-9
        A larger KKT residual is reported by a `ConvergenceWarning`, unless it is below 1e-6
        and rounding explains it. Where warnings are errors, nothing is changed then.
    cache_size : float, default=1000
        Megabytes that kernel matrices may take. What does not fit is computed when needed.
        Another value takes effect at the next change.
    verbose : bool, default=False
        Show progress on standard error when learning takes longer than two seconds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    ids_ : ndarray of shape (n_samples,)
        Ids of the rows held now, in the order in which they came.
    last_ids_ : ndarray
        Ids of the rows that were learned last, by `fit`, `partial_fit` or `update`; -1 for
        those of weight 0, which are no rows.
    n_samples_ : int
        Number of rows held now.
    support_ : ndarray of shape (n_SV,)
        Places of the support vectors among ``ids_``, grouped by class.
    support_vectors_ : ndarray of shape (n_SV, n_features)
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV)
        In scikit-learn's layout; (n_classes, n_SV) with ``strategy="ovr"`` and more than two
        classes. Where rows on the margin depend on each other (columns of zeros and ones with
        a linear kernel) several of them give the same model; which one is here may depend on
        the history, and nothing else does.
    coef_ : ndarray of shape (n_problems, n_features)
        Weights of the columns; with ``kernel="linear"`` only.
    intercept_ : ndarray of shape (n_problems,)
    gamma_ : float
        The gamma in use.
    kkt_residual_ : float
        The largest violation of a KKT condition in any of the problems, by what is published
        (``dual_coef_``, ``intercept_``, decision values), measured when asked for, on all rows
        held.
    n_breakpoints_ : int
        Events on the paths of the last change, of all problems together.
    ambiguous_ : bool
        Whether some row is so close to changing sides (between margin, inside and outside)
        that another history might end in other last bits, or rows so near to each other that
        only the end of the path itself satisfies the conditions, and is published. If not,
        `digest` is that of a fit from scratch.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if the rows had string column names.

    Notes
    -----
    Parameters may be changed after training with ``set_params``. C and class_weight are then
    reached along a path, others by solving anew from the rows held; this happens when the model
    is next used, or at once with `refresh`.

    Threads may share an estimator: changes wait for each other, and an answer is that of the
    model before a change or of the one after it. Copies and pickles hold rows and solutions but
    no kernel matrix (other than one that was given); ``copy.copy`` costs nothing, and of an
    estimator and its copy the one that changes first keeps the kernel matrix.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from traceless import PathSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = PathSVC(C=10.0, gamma=0.3).fit(X[:100], y[:100])
    >>> clf.update(add=(X[100:], y[100:]), forget=(X[:20], y[:20])).n_samples_
    130
    >>> clf.digest() == PathSVC(C=10.0, gamma=0.3).fit(X[20:], y[20:]).digest()
    True
    >>> clf.set_params(C=1.0).refresh().n_support_.tolist()
    [3, 19, 18]
    """

    constraints: ClassVar = {
        "C": POSITIVE,
        "kernel": choice(*KERNELS) | Constraint("a callable", (callable,)),
        "gamma": choice(*GAMMAS) | NOT_NEGATIVE,
        "degree": whole("an integer", 0, 1024),
        "coef0": FINITE,
        "class_weight": NOTHING | choice("balanced") | BY_LABEL,
        "decision_function_shape": choice("ovr", "ovo"),
        "break_ties": FLAG,
        "strategy": choice("ovo", "ovr"),
        "tol": NOT_NEGATIVE,
        "cache_size": POSITIVE,
        "verbose": FLAG,
    }
    n_features_in_: int
    last_ids_: Integers
    _model: HingeModel  # never changed in place: an answer that has read it once is of one model

    def __init__(
        self,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: Any = "steady",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        strategy: str = "ovo",
        tol: float = 1e-9,
        cache_size: float = 1000.0,
        verbose: bool = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.strategy = strategy
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose

    # --- learning and forgetting ----------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from scratch: whatever was known before is dropped.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows, or a kernel matrix of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights ≥ 0 that multiply C. A row of weight 0 is no row.

        Returns
        -------
        self
        """
        with changing(self) as draft:
            draft._learn((X, y, sample_weight), reset=True)
        return self

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn further rows. Their ids are then in ``last_ids_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
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
            check_classes(y, classes)
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

    def forget_columns(self, columns: Any) -> Self:  # noqa: ARG002
        """Refused: columns are forgotten by a new fit.

        Parameters
        ----------
        columns
            As for `LSSVC.forget_columns`.

        Raises
        ------
        TypeError
            Always. The model is unchanged.
        """
        raise TypeError(
            "A PathSVC cannot forget columns: its kernel mixes all of them, so every value that it "
            "keeps would change, and no path leads to the new ones. Fit a new model to rows "
            "without these columns. Nothing was changed."
        )

    def refresh(self) -> Self:
        """Follow the path to the parameters as they are set now, without refitting.

        Only C and class_weight can be reached so; where the kernel or the strategy has
        changed, the rows held are solved anew. Models refresh themselves when they are used.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        with changing(self) as draft:
            if draft._model.settings != draft._settings():  # else another thread was here before
                draft._learn(None)
        return self

    def without(self, ids: Any) -> Self:
        """What the model would be without some rows: for predictions only, and much cheaper.

        Its values are within the KKT residual of the path, not to the bit, and stay what they
        are when this model changes. Use ``copy.copy`` and `forget` for a model of its own.

        Parameters
        ----------
        ids : array-like of int
            Ids of rows, as in ``ids_``.

        Returns
        -------
        PathSVC
        """
        check_is_fitted(self)
        now = self._now()
        other = copy.copy(now)
        other._model = now._model.without(now._model.rows.check_ids(ids))
        return other

    # --- what is known ---------------------------------------------------------------------

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the rows held now, in order."""
        return self._held().rows.classes.copy()

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
        """The constants of the decision functions."""
        model = self._current()
        found = np.array([problem.canonical().intercept for problem in model.problems.values()])
        return model.oriented(found) if len(found) else np.ones(1)

    @property
    def coef_(self) -> Floats:
        """Weights of the columns, one row for each problem; with kernel="linear" only."""
        model = self._current()
        if model.kernel.name != "linear":
            raise AttributeError(f"coef_ is only there with kernel='linear', not {self.kernel!r}.")
        found = [problem.canonical().weights for problem in model.problems.values()]
        none = np.zeros((1, model.rows.X.shape[1]))
        return model.oriented(np.array(found)) if found else none

    @property
    def support_(self) -> NDArray[np.int32]:
        """Places of the support vectors among ``ids_``, grouped by class."""
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
        """Number of support vectors of each class."""
        model = self._current()
        rows, support = model.rows, model.support()[0]
        return np.array([(rows.y[support] == label).sum() for label in rows.classes], np.int32)

    @property
    def dual_coef_(self) -> Floats:
        """Coefficients of the support vectors, in scikit-learn's layout."""
        return self._current().dual_coef()

    @property
    def kkt_residual_(self) -> float:
        """The largest violation of a KKT condition by what is published, measured now."""
        problems = self._current().problems.values()
        return max((problem.kkt_residual() for problem in problems), default=0.0)

    @property
    def n_breakpoints_(self) -> int:
        """Events on the paths of the last change, of all problems together."""
        return self._now()._held().n_breakpoints

    @property
    def ambiguous_(self) -> bool:
        """Whether another history might end in other last bits."""
        problems = self._current().problems.values()
        return not all(problem.canonical().certain for problem in problems)

    def decisive_ids(self) -> Integers:
        """Ids of the rows whose removal, each by itself, would change the model."""
        return self._current().decisive_ids()

    # --- answers ---------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """Signed values: positive for the second of two classes, or one column per class or pair.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Or kernel values with the points held, of shape (n_samples, ``n_samples_``).

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
        """
        model, values = self._values(X)
        n = len(model.rows.classes)
        if n <= 2:
            return values[:, 0]
        if model.settings.strategy == "ovr" or self.decision_function_shape == "ovo":
            return values
        return multiclass.class_values(values, n)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Or kernel values with the points held, of shape (n_samples, ``n_samples_``).

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        model, values = self._values(X)
        n = len(model.rows.classes)
        if n <= 2:  # at 0 the second, as LIBSVM
            best = (values[:, 0] >= 0).astype(np.intp) * (n - 1)
        elif model.settings.strategy == "ovr":
            best = values.argmax(axis=1)
        elif self.break_ties:
            best = multiclass.class_values(values, n).argmax(axis=1)
        else:
            best = multiclass.votes(values, n).argmax(axis=1)
        return np.asarray(model.rows.classes[best])

    def digest(self) -> str:
        """SHA-256 of the kernel, the rows in sorted order, their bounds, and the solution.

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
            tensors["last_ids"] = now.last_ids_
        return facts, tensors

    def _learn(self, add: Any, forget: Any = None, reset: bool = False) -> None:
        """Learn some rows, forget others, and remember the ids of the new ones."""
        from traceless.hinge.model import HingeModel

        new = None if add is None else checked(self, add, reset)
        if new is not None and reset:
            model = HingeModel.learned(new, self._settings())
        else:
            model, gone = self._model, np.zeros(0, dtype=np.int64)
            if isinstance(forget, tuple):
                gone = model.find(checked(self, forget, reset))
            elif forget is not None:
                gone = model.rows.check_ids(forget)
            model = model.updated(new, gone, self._settings())
        if residual := model.excess(self.tol, asked=False):
            self._warn_of(residual)  # first: it raises, where warnings are errors
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
            self.C,
            copy.deepcopy(self.class_weight),
            self.kernel,
            self.gamma,
            self.degree,
            self.coef0,
            self.strategy,
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
        """The model for the parameters as they are set now, to use what it publishes."""
        return self._now(asked=True)._model

    def _warn_of(self, residual: float) -> None:
        """Warn of a KKT residual that is too large, at the line of the user that led here."""
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

    def _now(self, asked: bool = False) -> Self:
        """The estimator as it is now, with the model for its parameters.

        If its solution is `asked` for, a KKT residual that is too large is warned of.
        """
        now = snapshot(self)
        if now._held().settings != now._settings():
            self.refresh()
            now = snapshot(self)
        if asked and (residual := now._model.excess(now.tol, asked)):
            now._warn_of(residual)
        return now

    def _values(self, X: Any) -> tuple[HingeModel, Floats]:
        """The model as it is now, and the values of its binary problems."""
        check_is_fitted(self)
        now = self._now(asked=True)
        model = now._model
        shape, strategy = now.decision_function_shape, model.settings.strategy
        if shape == "ovo" and (now.break_ties or strategy == "ovr"):
            what = "break_ties must be False" if now.break_ties else "strategy must be 'ovo'"
            raise ValueError(f"{what} when decision_function_shape is 'ovo'.")
        if not len(model.rows):
            raise NotFittedError(
                f"This {type(self).__name__} holds no rows: all were forgotten. Learn some first."
            )
        if not is_plain(now, X):
            X = validate_data(now, X, reset=False, dtype=np.float64, order="C")
        return model, model.values(X + 0.0)

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags
