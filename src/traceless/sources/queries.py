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
from traceless.knowledge.groups import GroupRecipe, KnowledgeTable
from traceless.knowledge.responses import union
from traceless.sources.arrow import check_once, choose
from traceless.sources.batches import Source
from traceless.sources.streams import from_batches

MOST_FEATURES = 32  # there is an expression for each pair of them
_LARGEST = 2.0**61  # half of what 64 bits hold: the float64 Σ c² is rounded

Codes = Sequence[tuple[str, float]]  # columns, and steps per unit
Factors = Sequence[int | None]  # what is multiplied in pairs: codes by their numbers, or 1


def from_query(rows: Any, key: str, target: Any, columns: Any = None) -> Source:
    """Rows and their groups: a query of DuckDB or polars, or what `from_batches` takes.

    The groups stand where weights otherwise do.
    """
    kind = type(rows).__name__
    if kind == "DuckDBPyRelation":
        import pyarrow as pa

        source = QuerySource(rows, _by_duckdb, pa.table(rows.limit(0)).schema, key, target, columns)
    elif kind in ("DataFrame", "LazyFrame") and hasattr(rows, "lazy"):
        import polars as pl
        import pyarrow as pa

        rows = rows.lazy()
        schema = pa.table(pl.DataFrame(schema=rows.collect_schema())).schema
        source = QuerySource(rows, _by_polars, schema, key, target, columns)
    else:
        return from_batches(rows, target, columns=columns, sample_weight=key)
    return source if source.is_plain else source.in_batches()


class QuerySource(Source):
    """The rows of a query, added up by its engine where that is exact."""

    def __init__(
        self, rows: Any, add: Callable[..., Any], schema: Any, key: str, target: Any, columns: Any
    ) -> None:
        check_once(schema.names, "the query")
        features, target = choose(schema.names, columns, target, key, "the query")
        self._rows, self._add, self._schema = rows, add, schema
        self._key, self._target = key, target
        self.feature_names, self.n_features = list(features), len(features)

    @property
    def is_plain(self) -> bool:
        """Whether features are numbers of up to 64 bits, and the key is a whole number or text."""
        return _all(self._schema, self.feature_names, _is_number) and _all(
            self._schema, [self._key], _is_name
        )

    def in_batches(self) -> Source:
        """The same rows, to be read."""
        chosen = {"columns": self.feature_names, "sample_weight": self._key}
        return from_batches(self._rows, self._target, **chosen)

    def knowledge(self, recipe: Any, n_jobs: int | None = None) -> Any:
        """The table of all groups."""
        n, table = self._added(recipe)
        if table is None:
            table = self.in_batches().knowledge(recipe, n_jobs)
            if n is not None and n != table.counts.sum():
                raise ValueError(
                    f"The query had {n} rows, and {table.counts.sum()} when it was read once more, "
                    "in batches: it must give the same rows each time. Nothing was changed."
                )
        return table

    def _added(self, recipe: GroupRecipe) -> tuple[int | None, KnowledgeTable | None]:
        """Number of rows, and their table; None where it is not known."""
        targets = [self._target] if isinstance(self._target, str) else list(self._target)
        regression = recipe.task == "regression"
        right = _is_number if regression else _is_name
        if (
            recipe.phi.kind is not Linear
            or recipe.weight is not None
            or self.n_features > MOST_FEATURES
            or not _all(self._schema, targets, right)
            or (len(targets) > 1 and not regression)
        ):
            return None, None
        codes = list(zip(self.feature_names, (1 / recipe.phi.steps).tolist(), strict=False))
        factors: list[int | None] = [*range(len(codes)), *[None] * recipe.phi.has_bias]
        by = [self._key]
        if regression:
            factors += range(len(codes), len(codes) + len(targets))
            codes += [(name, 1 / float(recipe.target_resolution)) for name in targets]
        else:
            factors, by = [*factors, None], [*by, *targets]
        found = self._add(self._rows, by, codes, factors)
        if found is None:
            return None, None
        return sum(found.column("n").to_pylist()), _table(found, recipe, len(factors))


def _table(found: Any, recipe: GroupRecipe, width: int) -> KnowledgeTable | None:
    """The table of groups from sums of each, or of each class of it; None if they are not exact."""
    if not found.num_rows or any(column.null_count for column in found.columns):
        return None
    keys = union(tuple(found.column("by0").to_pylist()))
    group = _places(keys, found.column("by0"))
    energy = np.bincount(group, weights=found.column("energy").to_numpy())
    if not (energy <= _LARGEST).all():
        return None
    n = found.column("n").to_numpy().astype(np.int64)
    triangles = [column.to_numpy() for column in found.select(_sums(width)).columns]
    pieces = integers.unpacked(np.stack(triangles, axis=1).astype(np.int64), width)
    J = len(recipe.phi.steps)
    if recipe.task == "regression":
        order = np.argsort(group)
        names: tuple[Any, ...] = tuple(range(width - J))
        return KnowledgeTable(
            recipe.of_one_group, keys, names, n[order, None].copy(), pieces[order]
        )
    names = union(tuple(found.column("by1").to_pylist()))
    place = _places(names, found.column("by1"))
    counts = np.zeros((len(keys), len(names)), dtype=np.int64)
    counts[group, place] = n
    sums = np.zeros((len(keys), J + len(names), J + len(names)), dtype=np.int64)
    np.add.at(sums[:, :J, :J], group, pieces[:, :J, :J])
    sums[group, :J, J + place] = sums[group, J + place, :J] = pieces[:, J, :J]
    sums[group, J + place, J + place] = n
    return KnowledgeTable(recipe.of_one_group, keys, names, counts, sums)


def _by_duckdb(relation: Any, by: list[str], codes: Codes, factors: Factors) -> Any:
    """The sums as an Arrow table, computed by DuckDB; None if it cannot."""
    import duckdb
    import pyarrow as pa

    names = [f"{_quoted(name)} AS by{k}" for k, name in enumerate(by)]
    groups = [f"by{k}" for k in range(len(by))]
    each = range(len(codes))
    scaled = [
        f"CAST({_quoted(name)} AS DOUBLE) * CAST('{scale!r}' AS DOUBLE) AS v{k}"
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
        f"TRY_CAST(sum({factor[i]} * {factor[j]}) AS BIGINT) AS {name}"
        for (i, j), name in zip(_pairs(len(factor)), _sums(len(factor)), strict=True)
    ]
    added = ["count(*) AS n", "sum(squares) AS energy", *sums]
    try:
        rows = relation.project(", ".join([*names, *scaled]))
        rows = rows.project(", ".join([*groups, *rounded]))
        rows = rows.project(", ".join([*groups, f"{squares} AS squares", *whole]))
        return pa.table(rows.aggregate(", ".join([*groups, *added]), ", ".join(groups)))
    except duckdb.Error:  # what is wrong is said when the rows are read
        return None


def _by_polars(frame: Any, by: list[str], codes: Codes, factors: Factors) -> Any:
    """The sums as an Arrow table, computed by polars."""
    import polars as pl
    import pyarrow as pa

    groups = [f"by{k}" for k in range(len(by))]
    values = []
    for name, scale in codes:
        v = pl.col(name).cast(pl.Float64) * scale
        tie = v - v.floor() == 0.5
        values.append(pl.when(tie).then((v / 2).round() * 2).otherwise(v.round()).fill_null(np.nan))
    code = [pl.col(f"v{k}").cast(pl.Int64, strict=False) for k in range(len(codes))]
    factor = [pl.lit(1, pl.Int64) if k is None else pl.col(f"c{k}") for k in factors]
    added = [
        (pl.len() if factors[i] is factors[j] is None else (factor[i] * factor[j]).sum()).alias(
            name
        )
        for (i, j), name in zip(_pairs(len(factor)), _sums(len(factor)), strict=True)
    ]
    rows = frame.select(
        *(pl.col(name).alias(group) for name, group in zip(by, groups, strict=True)),
        *(value.alias(f"v{k}") for k, value in enumerate(values)),
    )
    rows = rows.with_columns(*(value.alias(f"c{k}") for k, value in enumerate(code)))
    energy = pl.sum_horizontal([pl.col(f"v{k}") ** 2 for k in range(len(codes))]).sum()
    found = rows.group_by(groups).agg(pl.len().alias("n"), energy.alias("energy"), *added)
    return pa.table(found.collect(engine="streaming"))


def _pairs(width: int) -> list[tuple[int, int]]:
    """The places of a lower triangle, row by row."""
    return [(i, j) for i in range(width) for j in range(i + 1)]


def _sums(width: int) -> list[str]:
    return [f"s{k}" for k in range(width * (width + 1) // 2)]


def _places(names: tuple[Any, ...], column: Any) -> Any:
    """Where the values of a column are among names."""
    place = {name: k for k, name in enumerate(names)}
    return np.array([place[value] for value in column.to_pylist()], dtype=np.intp)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _all(schema: Any, names: Sequence[str], right: Callable[[Any], bool]) -> bool:
    return all(right(schema.field(name).type) for name in names)


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return any(f(kind) for f in (types.is_integer, types.is_float32, types.is_float64)) or bool(
        types.is_boolean(kind)
    )


def _is_name(kind: Any) -> bool:
    from pyarrow import types

    text = types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"
    return bool(text or types.is_integer(kind) or types.is_boolean(kind))
