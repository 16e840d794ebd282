"""What a model says of the rows of a Spark DataFrame, as further columns of it."""

from __future__ import annotations

import typing
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from traceless.features.table import Table, table_of
from traceless.sources.arrow import check_once, check_present
from traceless.sources.spark import WHERE, check_numeric, feature
from traceless.sources.threads import one_thread
from traceless.transaction import snapshot

_TYPES = {"b": "boolean", "i": "bigint", "u": "bigint", "f": "double", "S": "binary"}


def on_spark(
    model: Any,
    df: Any,
    columns: Any = None,
    *,
    prediction: str | None = "prediction",
    scores: str | None = None,
    probability: str | None = None,
) -> Any:
    """A Spark DataFrame with what a fitted model says of each row, computed where the rows are.

    Parameters
    ----------
    model : fitted LSSVC or LSSVR
    df : pyspark.sql.DataFrame
    columns : str or list of str, optional
        The features: columns of numbers, one column of arrays or of Spark ML's vectors, or, in
        its order, those of the model's `Table`. By default the names that it was fitted with.
    prediction, scores, probability : str or None
        Names of the columns to add: the label or target, the value of `decision_function`, and
        the probability of each class; arrays where there are several numbers. None adds none.

    Returns
    -------
    pyspark.sql.DataFrame
        Lazy, as Spark's DataFrames are; the other columns do not pass through Python.
    """
    names = getattr(model, "feature_names_in_", ()) if columns is None else columns
    chosen = [names] if isinstance(names, str) else list(names)
    if not chosen:
        raise TypeError("The model knows no names of columns: say which hold the features.")
    check_present(df.columns, chosen, WHERE)
    if table_of(model) is None:
        check_numeric(df, chosen)
    asked = {"predict": prediction, "decision_function": scores, "predict_proba": probability}
    added = {name: method for method, name in asked.items() if name is not None}
    check_once([*df.columns, *added], WHERE)
    model = snapshot(model)
    features = [feature(df, name) for name in chosen]
    return df.select("*", *(_asked(model, m)(*features).alias(n) for n, m in added.items()))


def _asked(model: Any, method: str) -> Callable[..., Any]:
    """A function of Spark's columns: the answers of a method, batch by batch."""
    import pandas as pd
    from pyspark.sql.functions import pandas_udf

    n_features, table = int(model.n_features_in_), table_of(model)
    example = _answer(model, method, np.zeros((1, n_features)))
    kind = _TYPES.get(example.dtype.kind, "string")

    def answers(batches: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        with one_thread():
            for columns in batches:
                several = columns if isinstance(columns, tuple) else (columns,)  # one comes bare
                X = _rows(several, n_features, table)
                found = _answer(model, method, X) if len(X) else example[:0]
                yield pd.Series(list(found) if found.ndim == 2 else found)

    answers.__annotations__ = {  # Spark looks at the types themselves
        "batches": typing.Iterator[typing.Tuple[pd.Series, ...]],  # noqa: UP006
        "return": typing.Iterator[pd.Series],
    }
    found: Callable[..., Any] = pandas_udf(answers, kind if example.ndim == 1 else f"array<{kind}>")
    return found


def _rows(columns: tuple[Any, ...], n_features: int, table: Table | None) -> Any:
    """X, of one column of arrays, of columns of numbers, or of those that a table declares."""
    if table is not None:
        import pandas as pd

        return table.rows(pd.DataFrame(dict(zip(table.names, columns, strict=True))))
    first = columns[0]
    if len(columns) == 1 and len(first) and np.ndim(first.iloc[0]) == 1:
        X = np.stack(first.to_list())
    else:
        X = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
    if len(X) and X.shape[1] != n_features:
        raise ValueError(
            f"A row has {X.shape[1]} features; the model was fitted with {n_features}."
        )
    return X


def _answer(model: Any, method: str, X: Any) -> Any:
    with warnings.catch_warnings():  # columns were found by their names
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return getattr(model, method)(X)
