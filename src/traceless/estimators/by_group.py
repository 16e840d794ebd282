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

from traceless.arithmetic.integers import Floats, Integers, as_array
from traceless.estimators.least_squares import LeastSquares
from traceless.features.feature_map import BoundMap
from traceless.knowledge.groups import GroupRecipe, KnowledgeTable
from traceless.knowledge.responses import label_array
from traceless.knowledge.values import check_features
from traceless.parameters import check_parameters
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
        sums, recipe = as_array(self.table.sums), self.table.recipe
        regression = recipe.task == "regression"
        steps = np.append(
            phi.steps, np.full(sums.shape[1] - J, recipe.target_resolution if regression else 1.0)
        )
        penalty, unit = self.estimator._penalty(float(rho), phi), -self.table.weight_bits

        def floats(sums: Any) -> Floats:
            """In the units of features and targets, the columns of classes ±1 against the rest."""
            S: Floats = np.ldexp(sums.astype(np.float64), unit) * np.multiply.outer(steps, steps)
            if not regression:
                S[..., J:] = 2.0 * S[..., J:] - S[..., J:].sum(axis=2, keepdims=True)
            return S

        if not phi.has_bias:
            return _each(floats(sums), np.full((len(sums), J), penalty.rho))
        m = _whole_means(sums, J)
        S, far = floats(_shifted(sums, m, J - 1)), (m * steps)[:, : J - 1]
        n = np.where(S[:, J - 1, J - 1] > 0, S[:, J - 1, J - 1], 1.0)[:, None]  # or the weights
        d = S[:, J - 1] / n  # what whole numbers leave of the means
        ridge = np.full((len(S), J), penalty.rho)
        if penalty.standardize:
            ridge[:, :-1] *= (S.diagonal(axis1=1, axis2=2) / n - d * d)[:, : J - 1]
        if not penalty.free_intercept:
            return _each(floats(sums), ridge)
        C = S[:, : J - 1] - n[:, :, None] * d[:, : J - 1, None] * d[:, None]
        w = _each(np.delete(C, J - 1, axis=2), ridge[:, :-1])
        own = d[:, None, J:] - np.einsum("gj,gjk->gk", d[:, : J - 1] + far, w)[:, None]
        return np.concatenate([w, own], axis=1)


def _whole_means(sums: Integers, J: int) -> Integers:
    """Whole numbers near the means of the features but the last, which is 1; else 0."""
    s = sums[:, J - 1].astype(np.float64)
    m = np.rint(s / np.maximum(s[:, J - 1, None], 1.0))
    m[:, J - 1 :], m[np.abs(m) > 2.0**51] = 0.0, 0.0
    return np.asarray(m.astype(np.int64))


def _shifted(S: Integers, m: Integers, b: int) -> Integers:
    """Σ (z - m)(z - m)ᵀ from Σ z zᵀ with z_b = 1: modulo 2^64, which holds what is left."""
    s = S[:, b]
    half = m[:, :, None] * (s - S[:, b, b, None] * m)[:, None]
    return np.asarray(S - half - s[:, :, None] * m[:, None])


def _each(S: Floats, ridge: Floats) -> Floats:
    """Solutions of (A + diag(ridge)) w = V, S = [A, V]; a feature that is constant has weight 0."""
    J = ridge.shape[1]
    A, diagonal = S[:, :J, :J].copy(), np.arange(J)
    A[:, diagonal, diagonal] += ridge
    A[:, diagonal, diagonal] += A[:, diagonal, diagonal] <= 1e-300
    return np.asarray(np.linalg.solve(A, S[:, :J, J:])) if J else S[:, :0, J:]


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
