"""Models by group: one small model for each shop, sensor or customer, in one pass over the rows.

    (C_g + ρ D_g) w_g = c_g        for all groups g at once, in float64

with the sums of each group (`traceless.knowledge.groups`), centred where the intercept is free.
The table adds, subtracts and has a digest, as single models do; `GroupedModels.model` makes the
exact model of one group, whose coefficients are correctly rounded and equal to those above but
for rounding errors.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_array

from traceless.arithmetic.integers import Floats, as_array
from traceless.estimators.least_squares import LeastSquares
from traceless.features.feature_map import BoundMap
from traceless.knowledge.groups import GroupRecipe, KnowledgeTable
from traceless.knowledge.responses import label_array
from traceless.knowledge.values import check_features
from traceless.parameters import check_parameters
from traceless.solvers.ridge import Penalty
from traceless.sources.arrow import check_once, check_present
from traceless.sources.scanning import scan
from traceless.sources.source import Source, as_source
from traceless.sources.spark import from_spark
from traceless.sources.streams import from_batches

_ROWS = 4096  # predicted at a time


def fit_by(
    estimator: LeastSquares,
    rows: Any,
    key: str | list[str],
    target: Any,
    *,
    columns: Any = None,
    sample_weight: str | None = None,
    n_jobs: int | None = None,
) -> GroupedModels:
    """Fit a model to the rows of each group, all in one pass, where the rows are.

    Parameters
    ----------
    estimator : LSSVC or LSSVR
        Its parameters are those of all models. Class weights, guards and fingerprints are for
        single models.
    rows : dataframe, path, or stream of batches
        A dataframe of pandas, polars, Dask or Spark, an Arrow table, a DuckDB relation, files as
        `scan` takes them, or batches with named columns as `from_batches` takes them.
    key : str or list of str
        The column that says which group a row is of: whole numbers or text, no nulls. Groups by
        several columns are named by tuples.
    target : str or list of str
        The column of labels or targets.
    columns : list of str, optional
        The features; all other columns by default.
    sample_weight : str, optional
        The column of weights.
    n_jobs : int, optional
        Processes that read files.

    Returns
    -------
    GroupedModels

    Examples
    --------
    >>> import pandas as pd
    >>> from traceless import LSSVR, fit_by
    >>> sales = pd.DataFrame({"shop": ["a", "a", "b", "b"], "x": [0., 1, 0, 1], "y": [1., 3, 5, 4]})
    >>> models = fit_by(LSSVR(rho=1e-6), sales, "shop", "y")
    >>> models.predict(["b", "a"], [[0.0], [1.0]]).round(3).tolist()
    [5.0, 3.0]
    >>> models.model("a").digest() == LSSVR().fit(sales[["x"]][:2], sales["y"][:2]).digest()
    True
    """
    check_parameters(estimator)
    if not isinstance(key, str | list | tuple) or not key:
        raise TypeError(f"key must be the name of a column, or a list of names, got {key!r}.")
    by = key if isinstance(key, str) else tuple(key)
    check_once([by] if isinstance(by, str) else list(by), "The list of keys")
    if estimator.class_weight is not None or estimator.guard or estimator.fingerprint:
        raise ValueError(
            "Models by group have no class weights, guards or fingerprints: set class_weight=None, "
            "guard=False and fingerprint=False."
        )
    if columns is not None and sample_weight is not None:
        columns = [*([columns] if isinstance(columns, str) else columns), sample_weight]
        check_once(columns, "The list of columns, the weights included,")
    source = _source(rows, by, target, columns)
    names, weight = source.feature_names, None
    if sample_weight is not None:
        if names is None or sample_weight not in names:
            raise ValueError(
                f"There is no column {sample_weight!r} of weights beside features that are columns "
                f"of numbers; there are {'lists' if names is None else names}."
            )
        weight = names.index(sample_weight)
        names = [name for name in names if name != sample_weight]
    plain = clone(estimator)
    plain.n_features_in_ = source.n_features - (weight is not None)
    of = plain._recipe()
    recipe: Any = GroupRecipe(of.phi, of.task, of.target_resolution, weight=weight)
    table: Any = source.knowledge(recipe, n_jobs)
    return GroupedModels(plain, table, None if names is None else tuple(names))


@dataclass(frozen=True)
class GroupedModels:
    """A model for each group of rows: an immutable value with ``+`` and ``-``.

    Attributes
    ----------
    estimator : LSSVC or LSSVR
        With the parameters of all models.
    table : KnowledgeTable
        The knowledge of each group.
    feature_names : tuple of str or None
    """

    estimator: LeastSquares
    table: KnowledgeTable
    feature_names: tuple[str, ...] | None = None

    @property
    def keys(self) -> tuple[Any, ...]:
        """The groups, in order."""
        return self.table.keys

    def __len__(self) -> int:
        return len(self.table)

    def __add__(self, other: Any) -> GroupedModels:
        """Both together: groups that both have are merged."""
        if not isinstance(other, GroupedModels):
            return NotImplemented
        return GroupedModels(self.estimator, self.table + other.table, self.feature_names)

    def __sub__(self, other: Any) -> GroupedModels:
        """Without the rows of the other; raises if these cannot have been learned."""
        if not isinstance(other, GroupedModels):
            return NotImplemented
        left = (self.table - other.table).check_possible(among=other.table.keys)
        return GroupedModels(self.estimator, left, self.feature_names)

    def digest(self) -> str:
        """SHA-256 of all groups and their digests."""
        return self.table.digest()

    def model(self, key: Any) -> Any:
        """The exact model of one group, as if it had been fitted to its rows alone."""
        found = clone(self.estimator)
        if self.feature_names is not None:
            found.feature_names_in_ = np.array(self.feature_names, dtype=object)
        return found.merge(self.table[key])

    def predict(self, keys: Any, X: Any) -> NDArray[Any]:
        """The label or target of each row, by the model of its group, in float64.

        Parameters
        ----------
        keys : array-like of shape (n_samples,), or dataframe or tuples where keys are several
            The group of each row, keys in the order of `fit_by`; KeyError if it has no model.
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        phi, places = self._phi, self.table.places(keys)
        names = getattr(X, "columns", None)
        if names is not None and self.feature_names not in (None, tuple(names)):
            raise ValueError(
                f"X has the columns {list(names)}, and the models were fitted with "
                f"{list(self.feature_names or ())}: the same are needed, in this order."
            )
        check_features(X)
        X = check_array(X, ensure_all_finite=False)
        if X.shape[1] != self.estimator.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} columns, and the models were fitted with "
                f"{self.estimator.n_features_in_}."
            )
        if len(X) != len(places):
            raise ValueError(
                f"There are {len(places)} keys and {len(X)} rows: one is needed for each."
            )
        scores = np.empty((len(X), self._solved.shape[2]))
        for start in range(0, len(X), _ROWS):
            part = slice(start, min(start + _ROWS, len(X)))
            values = phi.codes(X, part) * phi.steps
            scores[part] = np.einsum("ij,ijk->ik", values, self._solved[places[part]])
        if self.table.recipe.task == "regression":
            return scores[:, 0] if scores.shape[1] == 1 else scores
        scores[np.asarray(self.table.counts)[places] <= 0] = -np.inf
        return np.asarray(label_array(self.table.responses)[scores.argmax(axis=1)])

    @property
    def coef_(self) -> Floats:
        """Weights of the features without the constant one, G × targets (or classes) × J."""
        w = self._solved.transpose(0, 2, 1)
        return np.ascontiguousarray(w[:, :, :-1] if self._phi.has_bias else w)

    @property
    def intercept_(self) -> Floats:
        """Weights of the constant feature, G × targets (or classes); 0 where there is none."""
        return np.asarray(self._solved[:, -1] if self._phi.has_bias else self._solved[:, 0] * 0.0)

    @property
    def _phi(self) -> BoundMap:
        return self.table.recipe.phi

    @cached_property
    def _solved(self) -> Floats:
        """The coefficients of all groups, G × J × (targets or classes).

        A class's score is that of itself against the rest of its group.
        """
        phi, J, rho = self._phi, len(self._phi.steps), self.estimator.rho
        if isinstance(rho, str):
            raise ValueError(f"Models by group share one number rho, got {rho!r}.")
        steps, resolution = phi.steps, self.table.recipe.target_resolution
        sums = as_array(self.table.sums).astype(np.longdouble)
        sums = np.ldexp(sums, -self.table.weight_bits)
        S = sums[:, :J, :J] * np.outer(steps, steps)
        V = sums[:, :J, J:] * steps[:, None]
        if self.table.recipe.task == "regression":
            V = V * resolution
        else:
            V = 2 * V - V.sum(axis=2, keepdims=True)
        return _solve(S, V, self.estimator._penalty(float(rho), phi), phi.has_bias)


def _solve(S: Any, V: Any, penalty: Penalty, has_bias: bool) -> Floats:
    """Coefficients of all groups, from Σφφᵀ and Σφy of each in extended precision."""
    rho, diagonal = float(penalty.rho), np.arange(S.shape[1])
    n = np.where(S[:, -1, -1] > 0, S[:, -1, -1], 1)[:, None]  # or the weights, added up
    means = S[:, :, -1] / n
    if penalty.standardize:
        ridge = rho * (S[:, diagonal, diagonal] / n - means**2)
    else:
        ridge = np.full(S.shape[:2], rho, dtype=S.dtype)
    if not (has_bias and penalty.free_intercept):
        if penalty.standardize:
            ridge[:, -1] = rho
        return _each(S, V, ridge)
    C = S - n[:, :, None] * means[:, :, None] * means[:, None, :]
    c = V - means[:, :, None] * V[:, -1:, :]
    w = np.zeros(V.shape)
    w[:, :-1] = _each(C[:, :-1, :-1], c[:, :-1], ridge[:, :-1])
    w[:, -1] = V[:, -1] / n - np.einsum("gj,gjk->gk", means[:, :-1], w[:, :-1])
    return w


def _each(S: Any, V: Any, ridge: Any) -> Floats:
    """Solutions of (S + diag(ridge)) w = V; a feature that is constant in a group has weight 0."""
    S, V = S.astype(np.float64), V.astype(np.float64)
    diagonal = np.arange(S.shape[1])
    size = S[:, diagonal, diagonal]
    nothing = size + ridge.astype(np.float64) <= 1e-300
    S = S.copy()
    S[:, diagonal, diagonal] += np.where(nothing, 1.0, ridge.astype(np.float64))
    return np.asarray(np.linalg.solve(S, V)) if S.shape[1] else V


def _source(rows: Any, key: Any, target: Any, columns: Any) -> Source:
    """Rows whose groups stand where weights otherwise do."""
    module = type(rows).__module__
    paths = rows if isinstance(rows, list | tuple) and rows else [rows]
    if all(isinstance(one, str | os.PathLike) for one in paths):
        return scan(rows, target, sample_weight=key, columns=columns)
    if module.startswith("pyspark."):
        return from_spark(rows, target, sample_weight=key, columns=columns)
    if not module.startswith(("dask.", "dask_expr.")):
        return from_batches(rows, target, columns=columns, sample_weight=key)
    several = [target] if isinstance(target, str) else list(target)
    keys = [key] if isinstance(key, str) else list(key)
    check_present(list(rows.columns), [*keys, *several], "the Dask dataframe")
    if columns is None:
        columns = [name for name in rows.columns if name not in (*keys, *several)]
    y = rows[target] if isinstance(target, str) else rows[several]
    source = as_source(rows[columns], y, rows[key if isinstance(key, str) else keys])
    assert source is not None
    return source
