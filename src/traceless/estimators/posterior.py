"""Probabilities of the classes, for classifiers that are least squares.

`traceless.solvers.probabilities` says what they are: a function of the sums, so they are merged
and forgotten with the rows, and no row is needed to make them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from traceless.arithmetic.integers import Floats
from traceless.device.tensors import like, to_array
from traceless.estimators.least_squares import LeastSquares
from traceless.exceptions import UninformativeWarning
from traceless.knowledge.sums import Knowledge
from traceless.parameters import ARRAY, NOTHING, Constraint, check_parameters, choice
from traceless.solvers.class_weights import shared_weights
from traceless.solvers.probabilities import Discriminant, discriminant
from traceless.sources.answers import where_the_rows_are
from traceless.transaction import snapshot

CONSTRAINTS: dict[str, Constraint] = {
    "priors": NOTHING | ARRAY,
    "decision": choice("scores", "posterior"),
}


def _has_one_covariance(self: Any) -> bool:
    """Whether all classes share a matrix; AttributeError if not, as scikit-learn wants it."""
    if self._task == "multilabel":
        raise AttributeError(
            "Probabilities are those of one label per row, and this model has learned several. "
            "Learn one LSSVC for each label (sklearn.multioutput.MultiOutputClassifier)."
        )
    rule = self.class_weight
    if self.weighting == "one_vs_rest" and rule is not None and not isinstance(rule, Mapping):
        raise AttributeError(
            "weighting='one_vs_rest' gives each class a matrix of its own, so the scores have no "
            "common covariance to make probabilities of. Use weighting='shared'."
        )
    return True


class Posterior(LeastSquares):
    """Classifiers with probabilities."""

    priors: Any
    decision: str

    @available_if(_has_one_covariance)  # type: ignore[untyped-decorator]
    @where_the_rows_are
    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, in the order of ``classes_``.

        Normal discriminant analysis of the scores, with the tails of Student's distribution; its
        means and covariances come from the sums, corrected for what the model has seen. Of two
        classes, the probability of the second rises with the score, and need not be one half where
        `predict` changes its mind. Of more, the class that `predict` names has the largest, unless
        `priors` are given for another population: with ``decision="scores"``, a class that would
        be above it is brought down to it. With class weights, classes are taken to be as common as
        the weights make them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return like(X, snapshot(self)._probabilities(X, log=False))

    @available_if(_has_one_covariance)  # type: ignore[untyped-decorator]
    @where_the_rows_are
    def predict_log_proba(self, X: Any) -> Any:
        """The logarithms of the probabilities of the classes; see `predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return like(X, snapshot(self)._probabilities(X, log=True))

    def _probabilities(self, X: Any, log: bool) -> Floats:
        check_parameters(self, "decision", "priors")
        scores = to_array(self._decision(X))
        found = self._discriminant()
        priors = self._checked_priors(len(found.means))
        agree = self.decision == "scores" and priors is None
        return found.probabilities(scores, priors, agree=agree, log=log)

    def _discriminant(self) -> Discriminant:
        """Where the scores of each class are expected, from the sums; asking again is free."""
        state, phi, penalty, weights = self._problem()
        shared = shared_weights(weights)

        def make(known: Knowledge) -> Discriminant:
            Z = self._weights()[0].Z
            return discriminant(known, self._moments(), phi, Z, self._code, shared)

        found: Discriminant = state.answer("probabilities", (penalty, shared), make)
        if not found.is_informative and len(found.means) > 1:
            warnings.warn(
                "The model has as many degrees of freedom as rows, so its scores say nothing about "
                "new rows, and the probabilities are the priors. Increase rho, or use fewer "
                "features.",
                UninformativeWarning,
                stacklevel=6,
            )
        return found

    def _checked_priors(self, n_classes: int) -> Floats | None:
        """The priors as they were given, adding up to 1; None for the shares of the rows."""
        if self.priors is None:
            return None
        priors = np.asarray(self.priors, dtype=np.float64)
        total = priors.sum()
        if priors.shape != (n_classes,) or not (priors >= 0.0).all() or not abs(total - 1.0) < 1e-5:
            raise ValueError(
                f"priors must be {n_classes} numbers ≥ 0 that add up to 1, one for each class in "
                f"the order of classes_, got {self.priors!r}. Classes come and go with their rows; "
                "None takes the share of each."
            )
        return np.asarray(priors / total)
