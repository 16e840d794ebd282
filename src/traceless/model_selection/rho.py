"""Choosing ρ: the scores of many values from one pass over the rows.

ρ is chosen when knowledge is solved, so the knowledge of the folds serves every ρ:

- folds of fewer rows than features, and leave-one-out: one factor of the whole per ρ, from which
  rows are held out in closed form
- larger folds: the fold's training part is solved for each ρ

``rho="evidence"`` of an estimator holds no rows out (`traceless.solvers.evidence`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring

from traceless.arithmetic.integers import Floats
from traceless.estimators.least_squares import LeastSquares
from traceless.model_selection.least_squares_folds import LeastSquaresFolds
from traceless.model_selection.splits import subset
from traceless.parameters import positive
from traceless.progress import progress


@dataclass(frozen=True, eq=False, repr=False)
class RhoSelection:
    """The scores of some ρ, and the best of them. Made by `select_rho`.

    Attributes
    ----------
    rhos : ndarray of shape (n_rhos,)
    scores : ndarray of shape (n_rhos, n_splits)
    mean, std : ndarray of shape (n_rhos,)
        Over the splits.
    best : float
        The ρ with the highest mean, the largest if there are several.
    """

    rhos: Floats
    scores: Floats

    @property
    def mean(self) -> Floats:
        """The mean score of each ρ."""
        return np.asarray(self.scores.mean(axis=1))

    @property
    def std(self) -> Floats:
        """The standard deviation of the scores of each ρ."""
        return np.asarray(self.scores.std(axis=1))

    @property
    def best(self) -> float:
        """The ρ to take."""
        return float(self.rhos[self.mean == np.nanmax(self.mean)].max())

    def __repr__(self) -> str:
        lines = [f"<RhoSelection over {self.scores.shape[1]} splits"]
        for rho, mean, std in zip(self.rhos, self.mean, self.std, strict=True):
            mark = "  best" if rho == self.best else ""
            lines.append(f"  {rho:<10.4g} {mean:10.5f} ± {std:.5f}{mark}")
        return "\n".join(lines) + ">"


def select_rho(
    estimator: LeastSquares,
    X: Any,
    y: Any,
    rhos: Any,
    cv: Any = 5,
    scoring: Any = None,
    *,
    sample_weight: Any = None,
    groups: Any = None,
) -> RhoSelection:
    """Compare many ρ, with one pass over the rows.

    Each ρ costs a factorisation (J³/3 for J features), or one for each fold of J rows or more, and
    J² for each row that is held out in closed form.

    Parameters
    ----------
    estimator : LSSVC or LSSVR
        It is not changed; its own ``rho`` plays no part.
    X, y
        The rows, as for ``fit``.
    rhos : array-like of positive numbers
    cv : int, splitter or iterable of (train, test), default=5
    scoring : str or callable, optional
        One scorer, as in scikit-learn.
    sample_weight : array-like of shape (n_samples,), optional
        For training, not for scoring.
    groups : array-like of shape (n_samples,), optional
        For the splitter.

    Returns
    -------
    RhoSelection
        Use it with ``estimator.set_params(rho=result.best)``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from traceless import LSSVR
    >>> from traceless.model_selection import select_rho
    >>> X, y = load_diabetes(return_X_y=True)
    >>> select_rho(LSSVR(), X, y, [0.01, 0.1, 1.0])
    <RhoSelection over 5 splits
      0.01          0.48229 ± 0.04925
      0.1           0.48230 ± 0.04919  best
      1             0.48217 ± 0.04885>
    """
    if isinstance(scoring, list | tuple | set | dict):
        raise ValueError(f"select_rho compares one score, got several: {scoring!r}.")
    values = np.array([positive("rhos", float(rho)) for rho in np.ravel(np.asarray(rhos))])
    if not values.size:
        raise ValueError("rhos is empty: give at least one value to choose from.")
    if hasattr(estimator, "rho"):  # its own plays no part
        estimator = clone(estimator).set_params(rho=float(values[0]))
    scorer = check_scoring(estimator, scoring=scoring)
    folds = LeastSquaresFolds(estimator, (X, y, groups), cv, sample_weight)
    return RhoSelection(values, _cross_validate(folds, values, scorer))


def _cross_validate(folds: LeastSquaresFolds, rhos: Floats, scorer: Any) -> Floats:
    """Scores of each ρ (rows) for each split (columns)."""
    verbose = bool(folds.data.probe.verbose)
    tests = [split.test for split in folds.splits]
    out = np.empty((len(rhos), len(tests)))

    def score(model: Any, k: int) -> float:
        return float(scorer(model, subset(folds.X, tests[k]), subset(folds.y, tests[k])))

    for j, rho in enumerate(rhos if folds.closed else []):
        folds.known_scores = folds.held_out(rho, verbose)
        for k in folds.closed:
            out[j, k] = score(folds.model(k, float(rho)), k)
    others = [k for k in range(len(tests)) if k not in folds.closed]
    for k in progress(others, "choosing rho", verbose):
        model = folds.model(k)
        for j, rho in enumerate(rhos.tolist()):
            out[j, k] = score(model.set_params(rho=rho), k)
    return out
