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
from sklearn.utils import indexable

from traceless.arithmetic.integers import Floats
from traceless.estimators.least_squares import LeastSquares
from traceless.estimators.path_machine import PathMachine
from traceless.knowledge.sums import Knowledge
from traceless.model_selection.dataset import Dataset, Indices, margin_of_own
from traceless.model_selection.held_out import FullModel, blocks
from traceless.model_selection.path_folds import influence_by_path, leave_one_out_by_path
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

    In closed form, at about the cost of two fits. Classes are those of all rows: for the only
    row of its class, the model left has that class as one that never occurs. Of `PathSVC` each
    row that is a support vector is forgotten in turn, along a path; others change nothing.

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
        return leave_one_out_by_path(estimator, X, y, sample_weight)
    data = checked_dataset("leave_one_out", estimator, X, y, sample_weight)
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
    if isinstance(estimator, PathMachine):
        return Influence(*influence_by_path(estimator, X, y, sample_weight))
    data = checked_dataset("influence", estimator, X, y, sample_weight)
    total = data.total()
    fitted, held_out = leave_one_out_scores(data, total)
    margin = _margin(held_out, data.targets(np.arange(len(data)), total), total)
    change = data.in_units(held_out - fitted, total)
    return Influence(data.in_units(held_out, total), change, margin)


def checked_dataset(what: str, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Dataset:
    """The rows, checked; raises where rows cannot be held out in closed form."""
    X, y = indexable(X, y)
    data = Dataset.check(estimator, X, y, sample_weight)
    data.check_closed_form(what)
    return data


def leave_one_out_scores(
    data: Dataset, total: Knowledge, rho: float | None = None
) -> tuple[Floats, Floats]:
    """Scores with each row in, and with it held out; exact where float64 cannot be trusted."""
    full = FullModel(data, total, rho)
    verbose = bool(data.probe.verbose)
    if full.usable:
        watched = progress(blocks(len(data)), "leaving one out", verbose)
        parts = [full.singles(index) for index in watched]
        fitted, held_out, trusted = (np.concatenate(part) for part in zip(*parts, strict=True))
    else:
        shape = len(data), data.right_sides(total, total.responses).shape[1]
        fitted, held_out, trusted = np.empty(shape), np.empty(shape), np.zeros(len(data), bool)
    rest = np.flatnonzero(~trusted)
    if rest.size:
        fitted[rest] = _exact_scores(data, total, total, rest, rho)
    for i in progress(rest.tolist(), "leaving one out, exactly", verbose):
        row = np.array([i])
        held_out[row] = _exact_scores(data, total, total - data.knowledge(row), row, rho)
    return fitted, held_out


def _exact_scores(
    data: Dataset, total: Knowledge, known: Knowledge, index: Indices, rho: float | None
) -> Floats:
    """Scores of some rows by the model of `known`, in the classes of `total`."""
    return data.system(known, total.responses, rho).solution().times(data.codes(index))


def _margin(held_out: Floats, targets: Floats, total: Knowledge) -> Floats:
    if total.task == "regression":
        step = float(total.specification["target_resolution"])
        return np.asarray(-np.sqrt(((targets - held_out) ** 2).sum(axis=1)) * step)
    if targets.shape[1] == 1:
        return np.asarray((targets * held_out)[:, 0])
    return margin_of_own(held_out, targets > 0)
