"""Telling rows in memory from rows that an engine holds, without importing the engine."""

from __future__ import annotations

import os
from typing import Any

from traceless.distributed.source import Source


def as_source(X: Any, y: Any, sample_weight: Any = None) -> Source | None:
    """Rows as a source, if they are not in this process's memory; else None.

    Parameters
    ----------
    X : Source, Dask array or dataframe, or anything else
    y, sample_weight
        With a `Source` None, as it names its own; with Dask collections likewise Dask
        collections (a number will do for the weight).

    Returns
    -------
    Source or None
        None for everything that scikit-learn would take as an array.
    """
    if isinstance(X, Source):
        if y is not None or sample_weight is not None:
            raise TypeError(
                "A source of rows brings its own target and weights: pass it alone, and name "
                "them where it is made, as in scan(path, target, sample_weight=...)."
            )
        return X
    if isinstance(X, str | os.PathLike):
        raise TypeError(
            f"X is the path {os.fspath(X)!r}; files are opened with "
            "traceless.scan(path, target), and what that returns is passed in place of X and y."
        )
    engine = _engine(X)
    if engine == "pyspark":
        raise TypeError(
            "X is a Spark DataFrame; pass traceless.distributed.from_spark(df, target) in "
            "place of X and y."
        )
    if engine == "polars" and type(X).__name__ == "LazyFrame":
        raise TypeError(
            "X is a polars LazyFrame, whose rows do not exist yet. Pass X.collect(), or, if "
            "they do not fit into memory, write them with X.sink_parquet(path) and pass "
            "traceless.scan(path, target) in place of X and y."
        )
    return _from_dask(X, y, sample_weight)


def _from_dask(X: Any, y: Any, sample_weight: Any) -> Source | None:
    named = {"X": X, "y": y, "sample_weight": sample_weight}
    lazy = [name for name, rows in named.items() if _engine(rows) in ("dask", "dask_expr")]
    if not lazy:
        return None
    for name in lazy:
        if not type(named[name]).__module__.startswith(
            ("dask.array", "dask.dataframe", "dask_expr")
        ):
            raise TypeError(
                f"{name} is a Dask {type(named[name]).__name__}; pass Dask arrays or dataframes, "
                "as dask.array.from_delayed makes them."
            )
    others = [n for n, rows in named.items() if n not in lazy and not _is_number_or_none(rows)]
    if others or y is None:
        other = others[0] if others else "y"
        raise TypeError(
            f"{lazy[0]} is a Dask collection and {other} is {type(named[other]).__name__}: pass "
            "Dask collections for all of X, y and sample_weight, with the same partitions, or "
            f"{lazy[0]}.compute()."
        )
    from traceless.distributed.dask import DaskSource

    return DaskSource(X, y, sample_weight)


def _engine(rows: Any) -> str:
    return type(rows).__module__.partition(".")[0]


def _is_number_or_none(rows: Any) -> bool:
    return rows is None or isinstance(rows, int | float)
