"""Choosing ρ: the scores of many values from one pass over the rows.

ρ is chosen when knowledge is solved, so the knowledge of the folds serves every ρ:

- folds of fewer rows than features: one factor of the whole per ρ, folds held out of it
- larger folds: one factor of the fold's training part per ρ
- leave-one-out: one eigendecomposition S = VΛVᵀ for all ρ (in real units, where the ridge is
  ρI), so that kᵢ(ρ) = Σⱼ (φᵢ·vⱼ)² / (λⱼ + ρ)

A factor takes a tenth of the time of an eigendecomposition, and loses no digits where columns
are of unequal scale (eigenvalues do: up to 1e-6 of a prediction at a condition of 1e12, where
the factor is right to 1e-15). So the eigenvalues serve only where the number of rows makes up
for it, and where they are accurate enough; else a factor takes over, and exact arithmetic where
that is not enough.

`method="evidence"` holds no rows out: it asks under which ρ the rows are most probable
(`traceless.solvers.evidence`), from their sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dgemm
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.utils import indexable

from traceless.arithmetic.integers import Floats
from traceless.estimators.least_squares import LeastSquares
from traceless.knowledge.sums import Knowledge
from traceless.model_selection.dataset import Dataset, subset
from traceless.model_selection.folds import LeastSquaresFolds
from traceless.model_selection.held_out import CholeskyFactor, blocks
from traceless.model_selection.jackknife import checked_dataset, leave_one_out_scores
from traceless.model_selection.precomputed import PrecomputedModels
from traceless.model_selection.selection import Selection, checked_values
from traceless.progress import progress
from traceless.solvers.class_weights import shared_weights
from traceless.solvers.evidence import evidence_rho, log_evidence

Method = Literal["cross-validation", "evidence"]

_TRUST = 1e-9  # of pivot / condition number: where this held, gains were right to 1e-13


@dataclass(frozen=True, eq=False, repr=False)
class RhoSelection(Selection):
    """The scores of some ρ, and the best of them. Made by `select_rho`.

    Attributes
    ----------
    rhos : ndarray of shape (n_rhos,)
    scores : ndarray of shape (n_rhos, n_splits)
        With ``method="evidence"`` one column, the logarithm of the evidence up to a constant.
    mean, std : ndarray of shape (n_rhos,)
        Over the splits.
    method : {"cross-validation", "evidence"}
    best : float
        The ρ with the highest mean, the largest if there are several; or what the evidence
        chooses, the largest that is nearly as probable as the best.
    """

    rhos: Floats
    scores: Floats
    method: Method = "cross-validation"
    chosen: float | None = None

    @property
    def best(self) -> float:
        """The ρ to take."""
        return float(self._best(self.rhos).max()) if self.chosen is None else self.chosen

    def __repr__(self) -> str:
        by_evidence = self.method == "evidence"
        by = "by evidence" if by_evidence else f"over {self.scores.shape[1]} splits"
        return self._shown(by, self.rhos, self.best, not by_evidence)


def select_rho(
    estimator: LeastSquares,
    X: Any,
    y: Any,
    rhos: Any = None,
    cv: Any = 5,
    scoring: Any = None,
    *,
    method: Method = "cross-validation",
    sample_weight: Any = None,
    groups: Any = None,
) -> RhoSelection:
    """Compare many ρ at little more than the cost of one.

    Parameters
    ----------
    estimator : LSSVC or LSSVR
        It is not changed; its own ``rho`` plays no part.
    X, y
        The rows, as for ``fit``.
    rhos : array-like of positive numbers
        May be left out with ``method="evidence"``: then powers of two, those of
        ``rho="evidence"``.
    cv : int, splitter, iterable of (train, test), or "loo", default=5
        "loo" leaves out one row at a time and gives one score to all held-out values
        together, which suits scores that a single row has none of.
    scoring : str or callable, optional
        One scorer, as in scikit-learn.
    method : {"cross-validation", "evidence"}, default="cross-validation"
        "evidence" holds no rows out, so it has neither `cv`, `scoring` nor `groups`: it compares
        how probable the rows are. It is faster and steadier with few rows; cross-validation is
        right for a score of your own, and where the model is known to be wrong.
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
    if method not in ("cross-validation", "evidence"):
        raise ValueError(f"method must be 'cross-validation' or 'evidence', got {method!r}.")
    if isinstance(scoring, list | tuple | set | dict):
        raise ValueError(f"select_rho compares one score, got several: {scoring!r}.")
    if method == "evidence":
        if scoring is not None or groups is not None:
            raise ValueError(
                "method='evidence' holds no rows out, so scoring and groups have no meaning. Leave "
                "them out, or use method='cross-validation'."
            )
        given = None if rhos is None else checked_values("rhos", rhos)
        return _by_evidence(estimator, X, y, given, sample_weight)
    values = checked_values("rhos", rhos)
    if isinstance(getattr(estimator, "rho", 1.0), str | list | tuple | np.ndarray):
        estimator = clone(estimator).set_params(rho=1.0)  # it plays no part
    scorer = check_scoring(estimator, scoring=scoring)
    if isinstance(cv, str) and cv == "loo":
        data = checked_dataset("cv='loo'", estimator, X, y, sample_weight)
        return RhoSelection(values, _leave_one_out(data, X, y, values, scorer))
    folds = LeastSquaresFolds(estimator, (X, y, groups), cv, sample_weight)
    return RhoSelection(values, _cross_validate(folds, values, scorer))


def _by_evidence(
    estimator: LeastSquares, X: Any, y: Any, rhos: Floats | None, sample_weight: Any
) -> RhoSelection:
    X, y = indexable(X, y)
    data = Dataset.check(estimator, X, y, sample_weight)
    known = data.total()
    model = data.model(known).set_params(rho="evidence")
    _, phi, penalty, weights = model._problem()
    problem = known, penalty, phi, model._code, shared_weights(weights)
    values, found = log_evidence(*problem, None if rhos is None else rhos.tolist())
    chosen = model.rho_ if rhos is None else evidence_rho(*problem, rhos.tolist())
    return RhoSelection(values, found[:, None], "evidence", chosen)


def _cross_validate(folds: LeastSquaresFolds, rhos: Floats, scorer: Any) -> Floats:
    """Scores of each ρ (rows) for each split (columns)."""
    verbose = bool(folds.data.probe.verbose)
    out = np.empty((len(rhos), len(folds.splits)))

    def score(j: int, k: int) -> None:
        model, test = folds.model(k, float(rhos[j])), folds.splits[k].test
        out[j, k] = float(scorer(model, subset(folds.X, test), subset(folds.y, test)))

    for j, rho in enumerate(rhos if folds.closed else []):
        folds.known_scores = folds.held_out(rho, verbose)
        for k in folds.closed:
            score(j, k)
    others = [k for k in range(len(folds.splits)) if k not in folds.closed]
    for k in progress(others, "choosing rho", verbose):
        for j, held_out in enumerate(_large_fold(folds, k, rhos)):
            folds.known_scores = {} if held_out is None else {k: held_out}
            score(j, k)
    return out


def _large_fold(folds: LeastSquaresFolds, k: int, rhos: Floats) -> list[Floats | None]:
    """Held-out scores of the test rows for each ρ, None where exact arithmetic is needed."""
    data, known = folds.data, folds.training(k)
    same = known.responses == folds.total.responses
    if not same or not known.n_samples or not data.has_closed_form:
        return [None] * len(rhos)  # another coding, or other weights
    systems = [data.system(known, known.responses, rho) for rho in rhos]
    Q = systems[0].Q.astype(np.float64)
    factors = [CholeskyFactor(system) for system in systems]
    W = np.hstack([f.solve(Q) if f.trusted() else np.zeros(Q.shape) for f in factors])
    test = folds.splits[k].test
    parts = [systems[0].moved(data.codes(test[block])) for block in blocks(len(test))]
    scores = np.vstack([dgemm(1.0, W.T, codes.T, trans_a=False).T for codes in parts])
    columns = np.split(scores, len(rhos), axis=1)
    return [c if f.trusted() else None for c, f in zip(columns, factors, strict=True)]


# --- leave-one-out ---------------------------------------------------------------------------


def _leave_one_out(data: Dataset, X: Any, y: Any, rhos: Floats, scorer: Any) -> Floats:
    total = data.total()
    precomputed = PrecomputedModels(data, total)
    everything, out = np.arange(len(data)), []
    for rho, held_out in zip(rhos, _held_out(data, total, rhos), strict=True):
        if np.isnan(held_out).any():
            held_out = leave_one_out_scores(data, total, rho)[1]
        out.append(float(scorer(precomputed(everything, held_out, _no_model), X, y)))
    return np.array(out)[:, None]


def _no_model() -> LeastSquares:
    raise AttributeError(
        "With cv='loo' the held-out values come from as many models as there are rows, so that a "
        "scorer can ask for these values only."
    )


def _held_out(data: Dataset, total: Knowledge, rhos: Floats) -> Floats:
    """Held-out scores of all rows for each ρ by S = VΛVᵀ; NaN where they are not accurate."""
    systems = [data.system(total, total.responses, rho) for rho in rhos]
    system, used = systems[0], systems[0].used()
    out = np.full((len(rhos), len(data), system.Q.shape[1]), np.nan)
    if data.penalty(rhos[0]).standardize:
        return out  # the ridge of each row's model is another
    free = system.ridge.is_free
    used = used[:-1] if free else used
    steps = data.probe._bind().steps[used]
    unit = np.ldexp(1.0, -total.weight_bits)
    S = system.S[used][:, used].astype(np.float64)
    center = np.zeros(len(used))
    if free:  # the centred sums, and 1/n for the intercept
        s, n = system.S[used, -1].astype(np.float64), float(system.S[-1, -1])
        center = s / n
        S -= np.outer(s, center)
    S *= steps * unit
    S *= steps[:, None]
    eigenvalues, V = eigh(S, driver="evd", overwrite_a=True, check_finite=False)
    inverse = 1.0 / (np.maximum(eigenvalues, 0.0)[:, None] + rhos)  # J × R
    smallest = _TRUST * inverse.max(axis=0, initial=1.0) / inverse.min(axis=0, initial=1.0)
    possible = smallest < 1.0  # pivots above are trusted
    if not possible.any():
        return out
    chosen = [s.solution().Z for s, good in zip(systems, possible, strict=True) if good]
    W = np.hstack(chosen)
    weights = data.weights(total)
    weights = np.ones(len(data)) if weights is None else weights * unit
    own = 1.0 / (n * unit) if free else 0.0
    for index in progress(blocks(len(data)), "leaving one out", bool(data.probe.verbose)):
        codes = system.moved(data.codes(index))
        fitted = dgemm(1.0, W.T, codes.T).T.reshape(len(index), len(chosen), -1)
        y = data.targets(index, total)[:, None]
        T = dgemm(1.0, V, ((codes[:, used] - center) * steps).T, trans_a=True)
        k = weights[index, None] * (own + dgemm(1.0, T * T, inverse[:, possible], trans_a=True))
        gain = np.where(1.0 - k > smallest[possible], k / (1.0 - k), np.nan)
        scores = fitted - gain[:, :, None] * (y - fitted)
        out[np.ix_(possible, index)] = np.moveaxis(scores, 1, 0)
    return out
