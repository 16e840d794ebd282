"""What a least-squares model says of its columns: coefficients by name, and what each is worth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.estimators.least_squares import LeastSquares
from traceless.estimators.summary import Summary
from traceless.solvers.class_weights import shared_weights
from traceless.solvers.drop_costs import drop_costs
from traceless.solvers.moments import Moments
from traceless.transaction import snapshot


class Explained(LeastSquares):
    """Estimators that say what each column is worth."""

    def drop_costs(self) -> Floats:
        """What forgetting each column would cost, all at once, from the sums.

        Without column j the penalised loss Σω(y - ŷ)² + ρ‖w‖² of a new fit is larger. The cost is
        that rise as a share of the loss of predicting the mean (0 for a map without a constant
        feature): about what R² of the rows held would fall by. It is averaged over targets, or
        over classes, each ±1 against the rest.

        Costs are of one column each: two columns that say the same may cost nothing one by one,
        and much together.

        Returns
        -------
        ndarray of shape (n_features_in_,)

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from traceless import LSSVR
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> costs = LSSVR().fit(X, y).drop_costs()
        >>> [X.columns[j] for j in costs.argsort()[::-1][:3]]
        ['bmi', 'bp', 's5']
        """
        now = snapshot(self)
        columns = now._map().columns_of(now.n_features_in_)
        if columns is None:
            raise ValueError(
                f"The features of {type(now._map()).__name__} mix all columns, so that a column "
                "cannot be left out of the sums: learn the rows without it instead. Linear and "
                "Polynomial know what each column costs."
            )
        of_column: list[list[int]] = [[] for _ in range(now.n_features_in_)]
        for feature, several in enumerate(columns):
            for j in set(several):
                of_column[j].append(feature)
        blocks = [np.array(features, dtype=np.intp) for features in of_column]
        W, worst = np.atleast_2d(now.feature_coef_), now._worst_losses()[:, None]
        rises = np.empty((len(W), len(blocks)))
        for moments, own in now._moments_by_rho():
            rises[own] = drop_costs(moments.P, W[own], blocks)
        return np.asarray(
            np.divide(rises, worst, out=np.zeros_like(rises), where=worst > 0).mean(0)
        )

    def summary(self) -> Summary:
        """The coefficients by name, as a table.

        Returns
        -------
        Summary
            It prints well; ``to_frame()`` is a pandas DataFrame.
        """
        raise NotImplementedError

    def _worst_losses(self) -> Floats:
        """Σω(y - ȳ)² of each problem; Σωy² for a map without a constant feature."""
        raise NotImplementedError

    def _moments_by_rho(self) -> list[tuple[Moments, NDArray[np.intp]]]:
        """Moments with each ρ, and the targets or classes that have it."""
        state, phi, penalty, weights = self._problem()
        n = self._weights()[0].Z.shape[1]
        each = np.array(penalty.rho if isinstance(penalty.rho, tuple) else [penalty.rho] * n)
        return [
            (
                state.moments(penalty._replace(rho=rho), phi, shared_weights(weights)),
                np.flatnonzero(each == rho),
            )
            for rho in dict.fromkeys(each.tolist())
        ]

    def _column_names(self) -> list[str]:
        """Names of the features: those of the columns where they have any."""
        names = getattr(self, "feature_names_in_", None)
        columns = [f"column {j}" for j in range(self.n_features_in_)] if names is None else names
        return self._map().feature_names([str(name) for name in columns])

    def _facts(self) -> dict[str, Any]:
        """What a summary says of every model."""
        chosen = ", chosen by the evidence" if isinstance(self.rho, str) else ""
        _, free_intercept, standardize = self._problem()[2]
        penalty = "coefficients in standard deviations" if standardize else "coefficients"
        whole = "" if free_intercept else " and intercept"
        rhos = ", ".join(f"{rho:.6g}" for rho in np.ravel(self.rho_))
        return {
            "rows": self.n_samples_,
            "rho": f"{rhos}{chosen}; penalises {penalty}{whole}",
        }
