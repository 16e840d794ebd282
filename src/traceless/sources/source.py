"""What an estimator is given in place of X and y: rows in memory, or a source of rows."""

from __future__ import annotations

import os
import re
from typing import Any

from traceless.sources.batches import Source
from traceless.sources.dask import from_dask

__all__ = ["Source", "as_source"]

_of_engine = re.compile(r"(dask|dask_expr|polars|pyspark)(\.|$)").match  # names of modules


def as_source(X: Any, y: Any, sample_weight: Any = None, table: Any = None) -> Source | None:
    """Rows as a source, if they are not in this process's memory; else None.

    Parameters
    ----------
    X : Source, Dask array or dataframe, or anything else
    y, sample_weight
        With a `Source` None, as it names its own; with Dask collections likewise Dask
        collections (a number will do for the weight).
    table : Table, optional
        By which frames are read.

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
    modules = type(X).__module__, type(y).__module__, type(sample_weight).__module__
    if not any(map(_of_engine, modules)):
        return None
    if modules[0].startswith("pyspark"):
        raise TypeError(
            "X is a Spark DataFrame; pass traceless.from_spark(df, target) in place of X and y."
        )
    if modules[0].startswith("polars") and type(X).__name__ == "LazyFrame":
        raise TypeError(
            "X is a polars LazyFrame, whose rows do not exist yet. Pass X.collect(), or, if they "
            "do not fit into memory, traceless.from_batches(X, target) in place of X and y."
        )
    return from_dask(X, y, sample_weight, table)
