"""Answers where the rows are: what a model says of a Dask collection stays lazy, and with Dask.

An answer for a row does not depend on the rows that come with it, so a model is asked partition
by partition, and any cut gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from traceless.features.table import table_of
from traceless.sources.batches import Source
from traceless.sources.threads import one_thread
from traceless.transaction import snapshot

F = TypeVar("F", bound=Callable[..., Any])


def where_the_rows_are(method: F) -> F:
    """A method of rows X that answers for Dask collections lazily; others are passed on."""

    @wraps(method)
    def answered(self: Any, X: Any, *more: Any, **options: Any) -> Any:
        module = type(X).__module__
        if module.startswith(("dask.", "dask_expr.")):
            if more or any(options.values()):
                raise TypeError(
                    f"{method.__name__} of a Dask collection takes no options; map your own "
                    "function over its partitions."
                )
            return _mapped(self, method.__name__, X)
        if isinstance(X, Source):
            raise TypeError(
                f"{method.__name__} takes rows, and got a source: read a batch of its files, and "
                "pass that."
            )
        if module.startswith("pyspark."):
            raise TypeError(
                f"{method.__name__} takes rows, and got a Spark DataFrame. "
                "traceless.on_spark(model, df) adds columns to it."
            )
        return method(self, X, *more, **options)

    return answered  # type: ignore[return-value]


def _mapped(model: Any, name: str, X: Any) -> Any:
    """An answer for each row of a Dask array or dataframe, as one of the same kind."""
    from dask import delayed

    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and columns, got {X.ndim}.")
    sent = delayed(snapshot(model), pure=False, traverse=False)  # once, not with every task
    if hasattr(X, "chunks"):
        X = X.rechunk({1: -1})
        example = getattr(model, name)(np.zeros((1, X.shape[1])))[:0]
        shape = (
            {"drop_axis": 1} if example.ndim == 1 else {"chunks": (X.chunks[0], example.shape[1:])}
        )
        sent_along = {"model": sent, "method": name, "empty": example}
        return X.map_blocks(_of_part, **sent_along, meta=example, **shape)
    import pandas as pd

    first = pd.DataFrame(np.zeros((1, X.shape[1])), columns=list(X.columns))
    table = table_of(model)
    meta = of_frame(model, name, first, first if table is None else np.zeros((1, len(table.names))))
    meta = meta[:0]
    meta.index = X._meta.index[:0]
    return X.map_partitions(_of_part, sent, name, meta, meta=meta)


def of_frame(model: Any, name: str, rows: Any, asked: Any = None) -> Any:
    """An answer for each row of a pandas dataframe, with its index.

    Others may be asked in place of these.
    """
    import pandas as pd

    values = getattr(model, name)(rows if asked is None else asked)
    if values.ndim == 1:
        return pd.Series(values, index=rows.index, name=name)
    labels = getattr(model, "classes_", range(values.shape[1]))
    return pd.DataFrame(values, index=rows.index, columns=list(labels))


def _of_part(rows: Any, model: Any, method: str, empty: Any) -> Any:
    """An answer for each row of a block of an array, or of a partition of a dataframe."""
    with one_thread():
        if not rows.shape[0]:
            return empty
        return (
            of_frame(model, method, rows)
            if hasattr(rows, "index")
            else getattr(model, method)(rows)
        )
