"""Sums by group as an aggregate of a query: DuckDB or polars add, and no row leaves them.

    Σ c_i c_j     over the rows of a group (and class),     c = round(x / step)

The codes of the linear map are one expression for each column. No sum of products, and no part of
one, is larger than Σ c², so 64 bits hold all of them where that is at most 2^61. Where it is not,
or where a value is missing or not finite, the rows are read in batches, which learns them or says
what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from traceless.arithmetic import integers
from traceless.features.linear import Linear
from traceless.knowledge.groups import GroupRecipe, KnowledgeTable, numbered
from traceless.sources.arrow import check_once, choose
from traceless.sources.batches import Source
from traceless.sources.streams import from_batches

MOST_FEATURES = 32  # there is an expression for each pair of them
_LARGEST = 2.0**61  # half of what 64 bits hold: the float64 Σ c² is rounded
_WHOLE = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)} | {"bool"}
_NUMBERS = _WHOLE | {"float", "double"}  # types of Arrow that are one float64 everywhere
_NAMES = _WHOLE | {"string", "large_string", "string_view"}

Codes = Sequence[tuple[str, float]]  # columns, and steps per unit
Factors = Sequence[int | None]  # what is multiplied in pairs: codes by their numbers, or 1
Add = Callable[[Any, list[str], Codes, Factors], Any]  # rows, by what, and the sums of which


def from_query(rows: Any, key: str | tuple[str, ...], target: Any, columns: Any = None) -> Source:
    """Rows and their groups: a query of DuckDB or polars, or what `from_batches` takes.

    The groups stand where weights otherwise do.
    """
    lazy: Any = rows
    add: Add | None = None
    if type(rows).__name__ == "DuckDBPyRelation":
        empty, add = rows.limit(0), _by_duckdb
    elif type(rows).__module__.startswith("polars.") and hasattr(rows, "lazy"):
        import polars as pl

        lazy, add = rows.lazy(), _by_polars
        empty = pl.DataFrame(schema=lazy.collect_schema())
    if add is not None:
        import pyarrow as pa

        schema = pa.table(empty).schema
        check_once(schema.names, "the query")
        kinds = {field.name: str(field.type) for field in schema}
        features, target = choose(schema.names, columns, target, key, "the query")
        named = all(kinds[name] in _NAMES for name in ([key] if isinstance(key, str) else key))
        if named and all(kinds[name] in _NUMBERS for name in features):
            return QuerySource(lazy, add, kinds, key, target, list(features))
    by: Any = key
    return from_batches(rows, target, columns=columns, sample_weight=by)


class QuerySource(Source):
    """The rows of a query, added up by its engine where that is exact."""

    def __init__(
        self,
        rows: Any,
        add: Add,
        kinds: dict[str, str],
        key: str | tuple[str, ...],
        target: str | tuple[str, ...],
        features: list[str],
    ) -> None:
        self._rows, self._add, self._kinds = rows, add, kinds
        self._key, self._target, self._features = key, target, features
        self.feature_names, self.n_features = features, len(features)

    def knowledge(self, recipe: Any, n_jobs: int | None = None) -> Any:
        """The table of all groups."""
        found = self._added(recipe)
        n_keys = 0 if isinstance(self._key, str) else len(self._key)
        table: Any = None if found is None else _table(found, recipe, n_keys)
        if table is not None:
            return table
        chosen: Any = {"columns": self._features, "sample_weight": self._key}
        table = from_batches(self._rows, self._target, **chosen).knowledge(recipe, n_jobs)
        if found is not None and table.counts.sum() != sum(found.column("n").to_pylist()):
            raise ValueError(
                "The query gave other rows when it was read again, in batches, as some values are "
                "too large to be added by it: it must give the same rows each time. Nothing was "
                "changed."
            )
        return table

    def _added(self, recipe: GroupRecipe) -> Any:
        """The sums of each group, or of each class of it; None where they cannot be had."""
        targets = [self._target] if isinstance(self._target, str) else list(self._target)
        keys = [self._key] if isinstance(self._key, str) else list(self._key)
        regression = recipe.task == "regression"
        allowed = _NUMBERS if regression else _NAMES
        if (
            recipe.phi.kind is not Linear
            or recipe.weight is not None
            or self.n_features > MOST_FEATURES
            or any(self._kinds[name] not in allowed for name in targets)
            or (len(targets) > 1 and not regression)
        ):
            return None
        d, scales = self.n_features, (1 / recipe.phi.steps).tolist()
        codes = list(zip(self._features, scales, strict=False))  # the constant has none
        factors: list[int | None] = [*range(d), *[None] * recipe.phi.has_bias]
        if not regression:
            return self._add(self._rows, [*keys, *targets], codes, [*factors, None])
        codes += [(name, 1 / float(recipe.target_resolution)) for name in targets]
        return self._add(self._rows, keys, codes, [*factors, *range(d, d + len(targets))])


def _table(found: Any, recipe: GroupRecipe, n_keys: int) -> KnowledgeTable | None:
    """The table of groups from the sums of each, or of each class; None if they are not exact.

    Groups are named by one key (0), or by tuples of `n_keys`.
    """
    if not found.num_rows or any(column.null_count for column in found.columns):
        return None
    arrays = {name: found.column(name).to_numpy() for name in found.column_names}
    several = [arrays[f"by{k}"] for k in range(n_keys)]
    keys, group = numbered(np.rec.fromarrays(several) if several else arrays["by0"])
    if not (np.bincount(group, weights=arrays["energy"]) <= _LARGEST).all():
        return None
    triangles = np.stack([a for name, a in arrays.items() if name[0] == "s"], axis=1)
    width = int(np.sqrt(2 * triangles.shape[1]))
    pieces = integers.unpacked(triangles.astype(np.int64), width)
    n, J = arrays["n"].astype(np.int64), len(recipe.phi.steps)
    if recipe.task == "regression":
        order, names = np.argsort(group), tuple(range(width - J))
        counts = n[order][:, None]
        return KnowledgeTable(recipe.of_one_group, keys, names, counts, pieces[order])
    labels, place = numbered(arrays[f"by{max(n_keys, 1)}"])
    counts = np.zeros((len(keys), len(labels)), dtype=np.int64)
    counts[group, place] = n
    sums = np.zeros((len(keys), J + len(labels), J + len(labels)), dtype=np.int64)
    np.add.at(sums[:, :J, :J], group, pieces[:, :J, :J])
    sums[group, :J, J + place] = sums[group, J + place, :J] = pieces[:, J, :J]
    sums[group, J + place, J + place] = n
    return KnowledgeTable(recipe.of_one_group, keys, labels, counts, sums)


def _by_duckdb(relation: Any, by: list[str], codes: Codes, factors: Factors) -> Any:
    """The sums as an Arrow table, computed by DuckDB; None if it cannot."""
    import duckdb
    import pyarrow as pa

    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    groups, each = [f"by{k}" for k in range(len(by))], range(len(codes))
    scaled = [
        f"CAST({quoted(name)} AS DOUBLE) * CAST('{scale!r}' AS DOUBLE) AS v{k}"
        for k, (name, scale) in enumerate(codes)
    ]
    # to the nearest, ties to even; what is missing becomes NaN, and shows in Σ c²
    rounded = [
        f"coalesce(CASE WHEN v{k} - floor(v{k}) = 0.5 THEN 2 * round(v{k} / 2) ELSE round(v{k}) "
        f"END, CAST('NaN' AS DOUBLE)) AS v{k}"
        for k in each
    ]
    squares = " + ".join([f"v{k} * v{k}" for k in each])
    whole = [f"CASE WHEN abs(v{k}) <= {2**31} THEN CAST(v{k} AS BIGINT) END AS c{k}" for k in each]
    factor = ["CAST(1 AS BIGINT)" if k is None else f"c{k}" for k in factors]
    sums = [
        f"TRY_CAST(sum({factor[i]} * {factor[j]}) AS BIGINT) AS s{i}_{j}"
        for i, j in _lower(len(factors))
    ]
    rows = relation
    try:
        for columns in (
            [*(f"{quoted(name)} AS by{k}" for k, name in enumerate(by)), *scaled],
            [*groups, *rounded],
            [*groups, f"{squares} AS energy", *whole],
        ):
            rows = rows.project(", ".join(columns))
        added = [*groups, "count(*) AS n", "sum(energy) AS energy", *sums]
        return pa.table(rows.aggregate(", ".join(added), ", ".join(groups)))
    except duckdb.Error:  # what is wrong is said when the rows are read
        return None


def _by_polars(frame: Any, by: list[str], codes: Codes, factors: Factors) -> Any:
    """The sums as an Arrow table, computed by polars."""
    import polars as pl
    import pyarrow as pa

    values = {}
    for k, (name, scale) in enumerate(codes):
        v = pl.col(name).cast(pl.Float64) * scale
        even = pl.when(v - v.floor() == 0.5).then((v / 2).round() * 2).otherwise(v.round())
        values[f"v{k}"] = even.fill_null(np.nan)
    whole = {f"c{name[1:]}": pl.col(name).cast(pl.Int64, strict=False) for name in values}
    factor = [pl.lit(1, pl.Int64) if k is None else pl.col(f"c{k}") for k in factors]
    sums = {
        f"s{i}_{j}": pl.len() if factors[i] is factors[j] is None else (factor[i] * factor[j]).sum()
        for i, j in _lower(len(factors))
    }
    energy = pl.sum_horizontal([pl.col(name) ** 2 for name in values]).sum()
    groups = {f"by{k}": pl.col(name) for k, name in enumerate(by)}
    rows = frame.select(**groups, **values).with_columns(**whole)
    return pa.table(
        rows.group_by(list(groups))
        .agg(n=pl.len(), energy=energy, **sums)
        .collect(engine="streaming")
    )


def _lower(width: int) -> list[tuple[int, int]]:
    """The places of a lower triangle, row by row."""
    return [(i, j) for i in range(width) for j in range(i + 1)]
