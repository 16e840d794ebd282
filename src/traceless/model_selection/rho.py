"""Choosing ρ: the scores of many values from one gathering.

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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dgemm
from sklearn.metrics import check_scoring
from sklearn.utils import indexable

from traceless.arithmetic.integers import Floats
from traceless.estimators.least_squares import LeastSquares
from traceless.knowledge.sums import Knowledge
from traceless.model_selection.each_row import left_out_scores
from traceless.model_selection.folds import held_out_scores
from traceless.model_selection.held_out import Factor, Whole, blocks, used_features
from traceless.model_selection.rows import Rows, subset
from traceless.model_selection.splits import Split, Training, split_rows
from traceless.model_selection.stand_in import StandIns
from traceless.parameters import positive
from traceless.progress import progress
from traceless.solvers.rounded import correctly_rounded_solve

_TRUST = 1e-9  # of pivot / condition number: where this held, gains were right to 1e-13


@dataclass(frozen=True, eq=False)
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
        """The ρ with the highest mean score, the largest if there are several."""
        return float(self.rhos[self.mean == np.nanmax(self.mean)].max())

    def __repr__(self) -> str:
        lines = [
            f"  {rho:<10.4g} {mean:10.5f} ± {std:.5f}{'  best' if rho == self.best else ''}"
            for rho, mean, std in zip(self.rhos, self.mean, self.std, strict=True)
        ]
        return "\n".join([f"<RhoSelection over {self.scores.shape[1]} splits", *lines]) + ">"


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
    """Cross-validate many ρ at little more than the cost of one.

    Parameters
    ----------
    estimator : LSSVC or LSSVR
        It is not changed; its own ``rho`` plays no part.
    X, y
        The rows, as for ``fit``.
    rhos : array-like of positive numbers
    cv : int, splitter, iterable of (train, test), or "loo", default=5
        "loo" leaves out one row at a time and gives one score to all held-out values
        together, which suits scores that a single row has none of.
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
      0.01          0.48142 ± 0.04850  best
      0.1           0.47986 ± 0.04725
      1             0.41009 ± 0.04434>
    """
    if isinstance(scoring, list | tuple | set | dict):
        raise ValueError(f"select_rho compares one score, got several: {scoring!r}.")
    values = np.array([positive("rhos", float(rho)) for rho in np.ravel(np.asarray(rhos))])
    if not values.size:
        raise ValueError("rhos is empty: give at least one value to choose from.")
    scorer = check_scoring(estimator, scoring=scoring)
    X, y, groups = indexable(X, y, groups)
    rows = Rows.check(estimator, X, y, sample_weight)
    if isinstance(cv, str) and cv == "loo":
        rows.check_unweighted("cv='loo'")
        return RhoSelection(values, _scores_left_out(rows, X, y, values, scorer))
    splits = split_rows(estimator, cv, X, y, groups, keep_train=False)
    return RhoSelection(values, _Search(rows, X, y, splits, scorer).scores(values))


class _Search:
    """Scores of any ρ over the same splits."""

    def __init__(self, rows: Rows, X: Any, y: Any, splits: list[Split], scorer: Any) -> None:
        self.rows, self.X, self.y, self.splits, self.scorer = rows, X, y, splits, scorer
        self.small = {
            k for k, s in enumerate(splits) if s.is_closed(rows.n_outputs) and not rows.weighted
        }
        self.large = [k for k in range(len(splits)) if k not in self.small]
        self.training = Training(rows, splits, self.large)
        self.stand_ins = StandIns(rows.probe, self.training.total)

    def scores(self, rhos: Floats) -> Floats:
        """One row for each ρ, one column for each split."""
        verbose = bool(self.rows.probe.verbose)
        out = np.empty((len(rhos), len(self.splits)))
        for j, rho in enumerate(rhos if self.small else []):
            whole = Whole(self.rows, self.training.total, rho)
            found = held_out_scores(whole, self.splits, self.small, verbose)
            for k in self.small:
                out[j, k] = self._score(k, rho, found.get(k))
        for k in progress(self.large, "choosing rho", verbose):
            for j, held_out in enumerate(self._large_fold(k, rhos)):
                out[j, k] = self._score(k, rhos[j], held_out)
        return out

    def _large_fold(self, k: int, rhos: Floats) -> list[Floats | None]:
        """Scores of the test rows for each ρ, None where exact arithmetic is needed."""
        known = self.training.of(k)
        same = known.responses == self.training.total.responses
        if not same or not known.n_samples or self.rows.weighted:
            return [None] * len(rhos)  # another coding, or other weights
        Q = self.rows.right_sides(known, known.responses).astype(np.float64)
        factors = [Factor(known.feature_gram, self.rows.ridge(known, rho)) for rho in rhos]
        W = np.hstack([f.solve(Q) if f.trusted() else np.zeros(Q.shape) for f in factors])
        test = self.splits[k].test
        parts = [self.rows.codes(test[block]) for block in blocks(len(test))]
        scores = np.vstack([dgemm(1.0, W.T, codes.T, trans_a=False).T for codes in parts])
        columns = np.split(scores, len(rhos), axis=1)
        return [c if f.trusted() else None for c, f in zip(columns, factors, strict=True)]

    def _score(self, k: int, rho: float, held_out: Floats | None) -> float:
        X_test, y_test = subset(self.X, self.splits[k].test), subset(self.y, self.splits[k].test)

        def make() -> LeastSquares:
            model: LeastSquares = self.rows.model(self.training.of(k)).set_params(rho=float(rho))
            return model

        model = make() if held_out is None else self.stand_ins(X_test, held_out, make)
        return float(self.scorer(model, X_test, y_test))


# --- leave-one-out ---------------------------------------------------------------------------


def _scores_left_out(rows: Rows, X: Any, y: Any, rhos: Floats, scorer: Any) -> Floats:
    total = rows.all_knowledge()
    rows.check_first(total)
    stand_ins = StandIns(rows.probe, total)
    decomposed = _Decomposed(rows, total).left_out(rhos)
    out = []
    for rho, held_out in zip(rhos, decomposed, strict=True):
        if held_out is None:
            held_out = left_out_scores(rows, total, rho)[1]
        out.append(float(scorer(stand_ins(X, held_out, _no_model), X, y)))
    return np.array(out)[:, None]


def _no_model() -> LeastSquares:
    raise AttributeError(
        "With cv='loo' the held-out values come from as many models as there are rows, so that a "
        "scorer can ask for these values only."
    )


class _Decomposed:
    """S = VΛVᵀ in real units, for the held-out scores of single rows at many ρ."""

    def __init__(self, rows: Rows, total: Knowledge) -> None:
        self.rows, self.total = rows, total
        self._used = used_features(total.feature_gram)
        self._steps = rows.probe._bind().steps[self._used]
        unit = np.ldexp(1.0, -total.weight_bits)
        S = total.feature_gram[self._used][:, self._used].astype(np.float64)
        S *= self._steps * unit
        S *= self._steps[:, None]
        eigenvalues, self._V = eigh(S, driver="evd", overwrite_a=True, check_finite=False)
        self._eigenvalues = np.maximum(eigenvalues, 0.0)
        weights = rows.weights(total)
        self._weights = np.ones(len(rows)) if weights is None else weights * unit

    def left_out(self, rhos: Floats) -> list[Floats | None]:
        """Held-out scores of all rows for each ρ; None where they are not accurate enough."""
        inverse = 1.0 / (self._eigenvalues[:, None] + rhos)  # J × R
        conditions = inverse.max(axis=0) / inverse.min(axis=0)
        possible = np.flatnonzero(1.0 / conditions > _TRUST)
        if not possible.size:
            return [None] * len(rhos)
        found = dict(zip(possible.tolist(), self._held_out(rhos[possible]), strict=True))
        return [found.get(j) for j in range(len(rhos))]

    def _held_out(self, rhos: Floats) -> list[Floats | None]:
        inverse = 1.0 / (self._eigenvalues[:, None] + rhos)
        smallest = _TRUST * inverse.max(axis=0) / inverse.min(axis=0)  # pivot
        W = np.hstack([self._coefficients(rho) for rho in rhos])
        parts, verbose = [], bool(self.rows.probe.verbose)
        for index in progress(blocks(len(self.rows)), "leaving one out", verbose):
            codes = self.rows.codes(index)
            fitted = dgemm(1.0, W.T, codes.T).T.reshape(len(index), len(rhos), -1)
            y = self.rows.targets(index, self.total)[:, None]
            T = dgemm(1.0, self._V, (codes[:, self._used] * self._steps).T, trans_a=True)
            k = self._weights[index, None] * dgemm(1.0, T * T, inverse, trans_a=True)
            gain = np.where(1.0 - k > smallest, k / (1.0 - k), np.nan)
            parts.append(fitted - gain[:, :, None] * (y - fitted))
        held_out = np.moveaxis(np.concatenate(parts), 1, 0)
        return [None if np.isnan(scores).any() else scores for scores in held_out]

    def _coefficients(self, rho: float) -> Floats:
        total = self.total
        Q = self.rows.right_sides(total, total.responses)
        return correctly_rounded_solve(total.feature_gram, self.rows.ridge(total, rho), Q)
