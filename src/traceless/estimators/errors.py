"""Errors of predictions and coefficients, for regressors (`traceless.solvers.errors`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from traceless.arithmetic.integers import Floats
from traceless.estimators.explained import Explained
from traceless.estimators.least_squares import ROWS
from traceless.estimators.summary import Summary
from traceless.solvers.errors import Errors, errors
from traceless.transaction import snapshot

_BIAS = "No standard error covers the bias of a rho that is too large."


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
        self._check_columns("coef_std_", "error")
        return self.feature_coef_std_

    @property
    def feature_coef_std_(self) -> Floats:
        """Standard errors of `feature_coef_`."""
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
        return mean - half, mean + half

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
        n_targets, half = len(coef), found.quantile(level)[:, None] * each
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
            "degrees of freedom": _listed(found.degrees_of_freedom),
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
            lambda known: errors(known, self._moments_by_rho(), phi, self._weights()[0]),
        )
        return found

    def _with_std(self, X: Any) -> tuple[Floats, Floats]:
        """Predictions, and the errors of what rows will show."""
        (solution, phi), found = self._weights(), self._errors()
        X = validate_data(self, X, reset=False, accept_sparse="csr", ensure_all_finite=False)
        mean, std = (np.empty((X.shape[0], solution.Z.shape[1])) for _ in range(2))
        for start in range(0, X.shape[0], ROWS):
            rows = slice(start, start + ROWS)
            codes = phi.codes(X, rows)
            mean[rows] = solution.times(codes.copy())
            std[rows] = found.of_codes(codes)
        mean *= self._target_resolution()
        return (mean[:, 0], std[:, 0]) if mean.shape[1] == 1 else (mean, std)

    def _worst_losses(self) -> Floats:
        return self._errors().total_squares


def _one(values: Floats) -> Any:
    return values[0] if len(values) == 1 else values


def _listed(values: Floats) -> str:
    """One number for each target, or one where all are the same."""
    return ", ".join(dict.fromkeys(f"{value:.6g}" for value in values))


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(
            f"level must be a probability between 0 and 1, such as 0.95, got {level!r}."
        )
