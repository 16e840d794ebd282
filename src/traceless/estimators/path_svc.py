"""The hinge-loss support vector classifier that learns and forgets many rows at once."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from traceless.arithmetic.integers import Floats
from traceless.estimators.inputs import check_classes
from traceless.estimators.path_machine import PathMachine
from traceless.hinge import multiclass
from traceless.hinge.machines import Classifier
from traceless.knowledge.responses import label_array
from traceless.parameters import BY_LABEL, FLAG, NOTHING, POSITIVE, choice

if TYPE_CHECKING:
    from traceless.hinge.model import HingeModel

__all__ = ["PathSVC"]


class PathSVC(ClassifierMixin, PathMachine):
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
    kernel : {"rbf", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        A callable takes two arrays of rows and returns their kernel values. They should be those
        of a positive semidefinite kernel: of any other the conditions hold at several
        solutions, and which is found depends on the history. "sigmoid", which is
        tanh(gamma x·z + coef0), is one for few rows only, and "poly" if coef0 is not negative.
        Where two rows show that a kernel is none, it is refused (ValueError); where all rows
        together do, ``ambiguous_`` says so. For "precomputed",
        `fit` takes a square kernel matrix; further points come as their kernel values with the
        points held, in the order of ``ids_``, and with each other; `predict` takes kernel
        values with the points held; points are forgotten by their ids.
    gamma : {"steady", "scale", "auto"} or float, default="steady"
        Coefficient of "rbf", "poly" and "sigmoid". "scale" is 1 / (n_features · variance of the
        rows) and "auto" 1 / n_features, as in scikit-learn, but a row of weight 2 counts as two.
        "steady" is the power of two nearest to "scale". Both are always those of the rows held
        now, so that models of equal rows are equal whatever their history. "scale" changes with
        every row, and all rows are then solved anew: it is the slow choice. "steady" rarely
        changes, so that updates follow a path. ``gamma_`` shows the value.
    degree : int, default=3
        Of the kernel "poly".
    coef0 : float, default=0.0
        Of the kernels "poly" and "sigmoid".
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
    table : Table, optional
        What the columns of a frame mean (`traceless.features.Table`); the kernel is that of its
        features, without the constant one, which need not be rounded.

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
        (``dual_coef_``, ``intercept_``, decision values), measured on all rows held, at each
        change and when a file is read.
    n_breakpoints_ : int
        Events on the paths of the last change, of all problems together.
    ambiguous_ : bool
        Whether some row is so close to changing sides (between margin, inside and outside)
        that another history might end in other last bits, or rows so near to each other that
        only the end of the path itself satisfies the conditions, and is published, or whether
        the kernel is not seen to be positive semidefinite. If not,
        `digest` is that of a fit from scratch.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only if the rows had string column names.

    Notes
    -----
    Parameters may be changed after training with ``set_params``. C and class_weight are then
    reached along a path, others by solving anew from the rows held; this happens when the model
    is next used.

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
    >>> clf.set_params(C=1.0).n_support_.tolist()
    [3, 19, 18]
    """

    constraints: ClassVar = PathMachine.constraints | {
        "C": POSITIVE,
        "class_weight": NOTHING | choice("balanced") | BY_LABEL,
        "decision_function_shape": choice("ovr", "ovo"),
        "break_ties": FLAG,
        "strategy": choice("ovo", "ovr"),
    }
    _labels = "classes"

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
        table: Any = None,
    ) -> None:
        self.C = C
        super().__init__(kernel, gamma, degree, coef0, tol, cache_size, verbose, table)
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.strategy = strategy

    def partial_fit(  # type: ignore[override]
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

    # --- what is known ---------------------------------------------------------------------

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels of the rows held now, in order, in the type in which the first came."""
        return self._names(self._held().rows.classes)

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors of each class."""
        model = self._current()
        rows, support = model.rows, model.support()[0]
        return np.array([(rows.y[support] == label).sum() for label in rows.classes], np.int32)

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
        if self.strategy == "ovr" or self.decision_function_shape == "ovo":
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
        elif self.strategy == "ovr":
            best = values.argmax(axis=1)
        elif self.break_ties:
            best = multiclass.class_values(values, n).argmax(axis=1)
        else:
            best = multiclass.votes(values, n).argmax(axis=1)
        return self._names(model.rows.classes)[best]

    def _values(self, X: Any) -> tuple[HingeModel, Floats]:
        if self.decision_function_shape == "ovo" and (self.break_ties or self.strategy == "ovr"):
            what = "break_ties must be False" if self.break_ties else "strategy must be 'ovo'"
            raise ValueError(f"{what} when decision_function_shape is 'ovo'.")
        return super()._values(X)

    def _names(self, classes: NDArray[Any]) -> NDArray[Any]:
        kind = self.__dict__.get("_label_type")
        return classes.copy() if kind is None else label_array(tuple(classes.tolist()), kind)

    def _machine(self) -> Classifier:
        return Classifier(self.C, copy.deepcopy(self.class_weight), self.strategy)
