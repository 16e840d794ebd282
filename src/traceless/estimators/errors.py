"""What a least-squares model says of itself: the worth of its columns, and errors of regressors."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from traceless.arithmetic.integers import Floats
from traceless.device.tensors import like, taken, to_array
from traceless.estimators.inputs import known_rows
from traceless.estimators.least_squares import LeastSquares
from traceless.estimators.scoring import scores
from traceless.estimators.summary import Summary
from traceless.solvers.drop_costs import drop_costs
from traceless.solvers.errors import Errors, errors
from traceless.transaction import snapshot

_ROWS = 2048  # at a time: fewer are not worth waking the threads of BLAS
_BIAS = "No standard error covers the bias of a rho that is too large."


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
        ndarray of shape (n_features,)

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
        now._held()
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
        rises = drop_costs(now._moments().P, W, blocks)
        return np.asarray(
            np.divide(rises, worst, out=np.zeros_like(rises), where=worst > 0).mean(0)
        )

    def _worst_losses(self) -> Floats:
        """Σω(y - ȳ)² of each problem; Σωy² for a map without a constant feature."""
        raise NotImplementedError

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
        return {
            "rows": self.n_samples_,
            "rho": f"{self.rho_:.6g}{chosen}; penalises {penalty}{whole}",
        }


class PredictionErrors(Explained):
    """Regressors that say how far off they may be."""

    @property
    def noise_std_(self) -> Any:
        """The standard deviation of the noise, that of a row of weight 1; one for each target."""
        return _one(self._errors().noise)

    @property
    def coef_std_(self) -> Floats:
        """Standard errors of `coef_`; AttributeError where that is none.

        0 for a column that never varied, whose coefficient is 0 by definition.
        """
        self._check_columns("coef_std_", "error", "summary() has those of the features")
        each = self._errors().of_coefficients()[0]
        return each[0] if len(each) == 1 else each

    @property
    def intercept_std_(self) -> Any:
        """Standard error of `intercept_`; 0 if the feature map has no constant feature."""
        return _one(self._errors().of_coefficients()[1])

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Floats, Floats]:
        """Where the target of each row will be, with a probability of `level`.

        The prediction and the `return_std` of ``predict`` to both sides, times the quantile of
        Student's t with n - d degrees of freedom (n rows, d the degrees of freedom of the fit): the
        noise is itself an estimate. It is exact for normal noise as ρ → 0, and does not cover the
        bias of a ρ that is too large.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        level : float, default=0.95
            Between 0 and 1.

        Returns
        -------
        low, high : ndarray of shape (n_samples,) or (n_samples, n_targets)

        Examples
        --------
        >>> import numpy as np
        >>> from traceless import LSSVR
        >>> x = np.linspace(0, 1, 50)[:, None]
        >>> noise = np.random.default_rng(0).normal(size=50)
        >>> model = LSSVR(rho=2**-10).fit(x, 10000 + 5 * x[:, 0] + noise)
        >>> low, high = model.predict_interval([[0.5]], level=0.9)
        >>> low.round(1), high.round(1)
        (array([10001.2]), array([10004.1]))
        """
        _check_level(level)
        now = snapshot(self)
        mean, std = now._with_std(X)
        half = std * now._errors().quantile(level)
        return like(X, mean - half), like(X, mean + half)

    def summary(self, level: float = 0.95) -> Summary:
        """Coefficients, their errors and intervals, as a table.

        Parameters
        ----------
        level : float, default=0.95
            Of the intervals (Student's t, as for `predict_interval`).

        Returns
        -------
        Summary
            It prints well; ``to_frame()`` is a pandas DataFrame. There are no p-values: they mean
            nothing for coefficients that are penalised, or were selected.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from traceless import LSSVR
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> print(LSSVR(rho="evidence").fit(X[["age", "bmi", "bp"]], y).summary())
        LSSVR of 4 coefficients
        rows                442
        rho                 8, chosen by the evidence; penalises coefficients in standard deviations
        degrees of freedom  3.93617
        noise               60.1095
        R²                  0.396114
        ────────────────────────────────────────────────────
         name       coefficient    error  95 % from  95 % to
        ────────────────────────────────────────────────────
         intercept      152.133  2.85912    146.514  157.752
         age            28.8737  63.2167    -95.372  153.119
         bmi            775.252  64.7708    647.951  902.552
         bp             391.411  67.4579     258.83  523.993
        ────────────────────────────────────────────────────
        No standard error covers the bias of a rho that is too large.
        """
        _check_level(level)
        now = snapshot(self)
        found = now._errors()
        coef, intercept = np.atleast_2d(now.feature_coef_), np.atleast_1d(now.intercept_)
        each, own = found.of_coefficients()
        names = now._column_names()
        if now._bind().has_bias:
            names = ["intercept", *names]
            coef, each = np.column_stack([intercept, coef]), np.column_stack([own, each])
        n_targets, half = len(coef), found.quantile(level) * each
        table: dict[str, Any] = {}
        if n_targets > 1:
            table["target"] = np.repeat(np.arange(n_targets), len(names)).tolist()
        table["name"] = names * n_targets
        percent = f"{100 * level:g} %"
        for name, values in {
            "coefficient": coef,
            "error": each,
            f"{percent} from": coef - half,
            f"{percent} to": coef + half,
        }.items():
            table[name] = values.ravel().tolist()
        facts = now._facts() | {
            "degrees of freedom": f"{found.moments.degrees_of_freedom:.6g}",
            "noise": _listed(found.noise),
            "R²": _listed(found.determination),
        }
        return Summary(f"{type(self).__name__} of {len(names)} coefficients", facts, table, _BIAS)

    def _errors(self) -> Errors:
        """The errors of the model as it is now."""
        state, phi, penalty, _ = self._problem()
        found: Errors = state.answer(
            "errors",
            penalty,
            lambda known: errors(known, self._moments(), phi, self._weights()[0]),
        )
        return found

    def _with_std(self, X: Any) -> tuple[Floats, Floats]:
        """Predictions, and the errors of what rows will show."""
        (solution, phi), found = self._weights(), self._errors()
        X = to_array(taken(X))
        X = known_rows(self, X)
        mean = scores(solution, phi, X) * self._target_resolution()
        std, memory = np.empty_like(mean), np.empty((min(_ROWS, len(mean)), len(phi.steps)))
        for start in range(0, X.shape[0], _ROWS):
            rows = slice(start, start + _ROWS)
            std[rows] = found.of_codes(phi.codes(X, rows, memory))
        return (mean[:, 0], std[:, 0]) if mean.shape[1] == 1 else (mean, std)

    def _worst_losses(self) -> Floats:
        return self._errors().total_squares


def _one(values: Floats) -> Any:
    return values[0] if len(values) == 1 else values


def _listed(values: Floats) -> str:
    """One number for each target, or one where all are the same."""
    return ", ".join(dict.fromkeys(f"{value:.6g}" for value in values))


def _check_level(level: Any) -> None:
    if not (isinstance(level, Real) and 0.0 < float(level) < 1.0):
        raise ValueError(
            f"level must be a probability between 0 and 1, such as 0.95, got {level!r}."
        )
