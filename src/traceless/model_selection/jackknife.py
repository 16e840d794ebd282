"""Leave-one-out in closed form, and what it says of each row.

A row's influence is the change of the model's answer to it if it were forgotten,

    f₋ᵢ(xᵢ) - f(xᵢ) = -kω r / (1 - ωk)     (`traceless.model_selection.held_out`)

and its held-out margin is how clearly all others agree with its label. Rows whose margin is
lowest are those that the rest of the data contradicts: mislabelled rows come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import LeaveOneOut

from traceless.arithmetic.integers import Floats
from traceless.estimators.least_squares import LeastSquares
from traceless.estimators.path_machine import PathMachine
from traceless.model_selection.dataset import Dataset
from traceless.model_selection.held_out import leave_one_out_scores
from traceless.model_selection.path_folds import PathFolds
from traceless.progress import progress


@dataclass(frozen=True, eq=False)
class Influence:
    """What each row does to the model's answer to itself. Made by `influence`.

    Attributes
    ----------
    held_out : ndarray of shape (n_samples,) or (n_samples, n_classes or n_targets)
        Decision values, or predictions, of each row by a model that has not seen it.
    change : ndarray of the same shape
        `held_out` less the same with the row in: what forgetting the row would change.
    margin : ndarray of shape (n_samples,)
        For classes, the held-out decision value of the row's own class, less that of the best
        other one if there are more than two: negative where all other rows contradict the
        label. For targets, minus the size of the held-out residual.
    """

    held_out: Floats
    change: Floats
    margin: Floats

    def suspicious(self, n: int) -> NDArray[np.intp]:
        """The `n` rows with the lowest held-out margin, the lowest first.

        Parameters
        ----------
        n : int

        Returns
        -------
        ndarray of shape (n,)
        """
        if not 0 <= n <= len(self.margin):
            raise ValueError(f"n must be between 0 and the {len(self.margin)} rows, got {n}.")
        return np.argsort(self.margin, kind="stable")[:n]

    def __repr__(self) -> str:
        return (
            f"<Influence of {len(self.margin)} rows: largest change "
            f"{np.abs(self.change).max():.3g}, held-out margins {self.margin.min():.3g} to "
            f"{self.margin.max():.3g}>"
        )


def leave_one_out(
    estimator: LeastSquares | PathMachine, X: Any, y: Any = None, sample_weight: Any = None
) -> Floats:
    """Decision values (or predictions) of each row by a model of all other rows.

    In closed form, at about the cost of two fits, or of five with standardised features. Classes
    are those of all rows: for the only row of its class, the model left has that class as one that
    never occurs. Of `PathSVC` each row that is a support vector is forgotten in turn, along a path;
    others change nothing.

    Parameters
    ----------
    estimator : LSSVC, LSSVR, or one of the path family
        It is not changed.
    X, y, sample_weight
        The rows, as for ``fit``.

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_classes or n_targets)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from traceless import LSSVR
    >>> from traceless.model_selection import leave_one_out
    >>> X, y = load_diabetes(return_X_y=True)
    >>> held_out = leave_one_out(LSSVR(rho=0.1), X, y)
    >>> exact = LSSVR(rho=0.1).fit(X[1:], y[1:]).predict(X[:1])
    >>> bool(abs(held_out[0] - exact[0]) < 1e-9)
    True
    """
    if isinstance(estimator, PathMachine):
        return _answers_by_path(estimator, X, y, sample_weight)[0]
    data = Dataset.for_closed_form("leave_one_out", estimator, X, y, sample_weight)
    total = data.total()
    return data.in_units(leave_one_out_scores(data, total)[1], total)


def influence(
    estimator: LeastSquares | PathMachine, X: Any, y: Any, sample_weight: Any = None
) -> Influence:
    """How each row changes the model's answer to itself, and how the others judge its label.

    Parameters
    ----------
    estimator : LSSVC, LSSVR, PathSVC or PathSVR
        It is not changed. A `PathSVC` of several classes must have decision values of each
        (``decision_function_shape="ovr"``, as by default).
    X, y, sample_weight
        The rows, as for ``fit``.

    Returns
    -------
    Influence
        With ``held_out``, ``change``, ``margin`` and ``suspicious(n)``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from traceless import LSSVC
    >>> from traceless.features import RandomFourier
    >>> from traceless.model_selection import influence
    >>> X, y = load_iris(return_X_y=True)
    >>> y[[3, 77]] = 2, 0  # two wrong labels
    >>> found = influence(LSSVC(RandomFourier(100, gamma=0.2), rho=10.0), X, y)
    >>> sorted(found.suspicious(2).tolist())
    [3, 77]
    """
    by_path = isinstance(estimator, PathMachine)
    answers = _influence_by_path if by_path else _answers_in_closed_form
    held_out, fitted, targets = answers(estimator, X, y, sample_weight)
    return Influence(held_out, held_out - fitted, _margin(held_out, targets))


def _margin(held_out: Floats, targets: NDArray[Any]) -> Floats:
    """Of targets, or of classes as a column for each that is true for the rows it holds."""
    if targets.dtype != bool:
        residual = (targets - held_out).reshape(len(targets), -1)
        return np.asarray(-np.sqrt((residual**2).sum(axis=1)))
    if held_out.ndim == 1:
        return np.where(targets[:, -1], held_out, -held_out)
    best_other = np.where(targets, -np.inf, held_out).max(axis=1)
    return np.asarray(np.where(targets, held_out, -np.inf).max(axis=1) - best_other)


def _answers_in_closed_form(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Floats, Floats, NDArray[Any]]:
    """Held-out answers, those of the model of all rows, and the targets."""
    data = Dataset.for_closed_form("influence", estimator, X, y, sample_weight)
    total = data.total()
    fitted, held_out = (data.in_units(s, total) for s in leave_one_out_scores(data, total))
    if total.task == "classification":
        return held_out, fitted, data.y[:, None] == np.array(total.responses)
    return held_out, fitted, data.in_units(data.targets(np.arange(len(data)), total), total)


def _influence_by_path(
    estimator: PathMachine, X: Any, y: Any, sample_weight: Any
) -> tuple[Floats, Floats, NDArray[Any]]:
    """Held-out answers, those of the model of all rows, and the targets."""
    if not is_classifier(estimator) and not is_regressor(estimator):
        raise TypeError(
            f"influence compares answers with labels, and {type(estimator).__name__} has none: "
            "leave_one_out has the decision values that rows get from all others."
        )
    held_out, fitted, model = _answers_by_path(estimator, X, y, sample_weight)
    if is_regressor(model):
        return held_out, fitted, np.asarray(y, dtype=np.float64)
    own = np.asarray(y)[:, None] == model.classes_
    if own.shape[1] > 2 and own.shape != held_out.shape:
        raise ValueError(
            "influence needs a decision value of each class, and with "
            "decision_function_shape='ovo' there is one of each pair: set it to 'ovr'."
        )
    return held_out, fitted, own


def _answers_by_path(
    estimator: PathMachine, X: Any, y: Any, sample_weight: Any
) -> tuple[Floats, Floats, PathMachine]:
    """Answers to each row by the model of all others, those of the model of all, and that model.

    Only decisive rows take a path.
    """
    method = "predict" if is_regressor(estimator) else "decision_function"
    folds = PathFolds(estimator, (X, y, None), LeaveOneOut(), sample_weight)
    whole = folds.whole or clone(estimator).fit(folds.X, folds.y, sample_weight)
    fitted = getattr(whole, method)(folds.X)
    touched, values = np.arange(len(folds.y)), list(fitted)
    if folds.whole is not None:
        touched = np.flatnonzero(np.isin(whole.last_ids_, whole._decisive_ids()))
    for k in progress(touched.tolist(), "leaving one out", bool(folds.estimator.verbose)):
        values[k : k + 1] = [folds.answers(k, method)[0]]
    return np.array(values), fitted, whole
