"""Any stream of batches as a source of rows.

A batch is a pair (X, y), with weights a triple, of arrays, tensors or dataframes; or it has named
columns: a record batch or table of Arrow, a dataframe, a dict of arrays. Whoever makes batches
one after the other has a stream: an iterator, a query, a loader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from traceless.device.tensors import to_array
from traceless.knowledge.values import labels
from traceless.sources.arrow import (
    check_kinds,
    check_once,
    check_present,
    layout_of,
    rows_of,
)
from traceless.sources.batches import Rows, Source, as_arrays, sum_batches
from traceless.sources.layouts import delta_name

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe

WHERE = "the batch"


def from_batches(
    batches: Any, target: Any = None, *, columns: Any = None, sample_weight: str | None = None
) -> Source:
    """A stream of batches as a source of rows, which need not fit into memory together.

    Parameters
    ----------
    batches : iterable, function that returns one, or something that makes batches
        Batches are (X, y) or (X, y, sample_weight), or have named columns. A Dataset, Scanner
        or ParquetFile of pyarrow, a DeltaTable, a polars LazyFrame, a DuckDB relation, a torch
        DataLoader and a Ray dataset will do, and everything else that Arrow's C stream interface
        can read. An iterator can be read once; all others are asked anew each time.
    target : str or list of str, optional
        Where columns are named, that of the labels or targets.
    columns : list of str or Table, optional
        The features; all but target, weight and an index of pandas by default. One column of
        lists will do; words, dates and absent values are declared by a `Table`, that of the model.
    sample_weight : str, optional
        The column of weights.

    Returns
    -------
    Source
        To be passed to ``fit``, ``partial_fit`` or ``forget`` in place of X and y. Its rows are
        learned in this process, as they come. The first batch is read at once, to know the
        columns, and not read again.

    Examples
    --------
    >>> import numpy as np
    >>> from traceless import LSSVC, from_batches
    >>> batches = [(np.eye(2), [0, 1]), (-np.eye(2), [1, 0])]
    >>> LSSVC().fit(from_batches(batches)).n_samples_
    4
    """
    source = StreamSource(_maker(batches), target, columns, sample_weight)
    if hasattr(batches, "to_pyarrow_dataset"):
        source.table_version, source.name = batches.version(), delta_name(batches)
    return source


class StreamSource(Source):
    """Rows that come batch by batch; made by `from_batches`."""

    def __init__(
        self, make: Callable[[], Iterator[Any]], target: Any, columns: Any, weight: str | None
    ) -> None:
        self._make, self._layout = make, None
        self._chosen = target, columns, weight
        begun, held, named = make(), [], None
        for first in begun:
            held.append(first)
            named = _named(first)
            if np.shape(_three(first)[0])[0] if named is None else named.num_rows:
                break  # lists are as long as those of the first row
        if not held:
            raise ValueError("The stream has no batch: no row to learn, and no columns to know.")
        self._begun: Iterator[Any] | None = chain(held, begun)
        if named is None:
            if target is not None or columns is not None or weight is not None:
                raise TypeError(
                    "target, columns and sample_weight name columns, and these batches have none: "
                    f"they are {type(first).__name__}s of X and y."
                )
            X, y, weight = _three(first)
            self._weighted = weight is not None
            self.n_features, self.feature_names = int(np.shape(X)[1]), None
            self.n_targets = 1 if np.ndim(y) == 1 else int(np.shape(y)[1])
        else:
            length = partial(_length_of_lists, named)
            layout = layout_of(named.schema, columns, target, weight, WHERE, length)
            self._layout, self.table, self.n_features = layout, layout.table, layout.width
            self.feature_names, self.n_targets = layout.feature_names, layout.n_targets

    def knowledge(self, recipe: Recipe, n_jobs: int | None = None) -> Knowledge:  # noqa: ARG002
        """The knowledge of all batches, one after the other."""
        begun, self._begun = self._begun, None
        known = sum_batches(recipe, map(self._rows, self._make() if begun is None else begun))
        assert known is not None  # there was a first batch
        return known

    def _rows(self, batch: Any) -> Rows:
        if self._layout is None:
            X, y, weight = _three(batch)
            if X.shape[1] != self.n_features:
                raise ValueError(
                    f"A batch has {X.shape[1]} columns, and the first has {self.n_features}. "
                    "Nothing was changed."
                )
            if (weight is not None) != self._weighted:
                raise ValueError(
                    "Some batches have weights and others have none. Give all rows a weight; 1 "
                    "counts as none. Nothing was changed."
                )
            return as_arrays((X, y, weight))
        named = _named(batch)
        if named is None:
            raise TypeError(
                f"The first batch has named columns, and a later {type(batch)} has not."
            )
        check_present(named.schema.names, self._layout.names, WHERE)
        check_kinds(named.schema, self._layout, WHERE)  # text of digits would be cast
        return rows_of(named, self._layout, WHERE)


def _maker(batches: Any) -> Callable[[], Iterator[Any]]:
    """A function that begins a stream."""
    if hasattr(batches, "to_pyarrow_dataset"):  # a DeltaTable
        batches = batches.to_pyarrow_dataset()
    if hasattr(batches, "collect_batches"):  # polars
        return lambda: iter(batches.collect_batches())
    if hasattr(batches, "iter_batches"):  # Ray, which has no schema_arrow, or a ParquetFile
        kind = {} if hasattr(batches, "schema_arrow") else {"batch_format": "pyarrow"}
        return lambda: iter(batches.iter_batches(**kind))
    if hasattr(batches, "to_batches"):  # a Dataset or Scanner of pyarrow
        return lambda: iter(batches.to_batches())
    if isinstance(batches, Iterator):
        return _once(batches)
    if hasattr(batches, "__arrow_c_stream__"):
        import pyarrow as pa

        if isinstance(batches, pa.RecordBatchReader):
            return _once(iter(batches))
        return lambda: iter(pa.RecordBatchReader.from_stream(batches))
    if isinstance(batches, Iterable):
        return lambda: iter(batches)
    if callable(batches):
        return lambda: iter(batches())
    raise TypeError(
        "from_batches takes an iterable of batches, a function that returns one, a Dataset, "
        "Scanner or ParquetFile of pyarrow, a DeltaTable, a polars LazyFrame, a DuckDB relation or "
        f"a Ray dataset, got {type(batches).__name__}."
    )


def _once(stream: Iterator[Any]) -> Callable[[], Iterator[Any]]:
    left = [stream]

    def make() -> Iterator[Any]:
        if not left:
            raise ValueError(
                "This stream was read before, and an iterator can be read once. Give from_batches "
                "a function that returns a new one. Nothing was changed."
            )
        return left.pop()

    return make


def _three(batch: Any) -> Rows:
    """X, y and weights of a batch without names; tensors as arrays."""
    if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
        raise TypeError(
            "A batch must be (X, y), (X, y, sample_weight), or have named columns, got "
            f"{type(batch).__name__}. A single batch is passed in a list, files are opened by scan."
        )
    X, y, weight = [_host(part) for part in (batch[0], labels(batch[1]), *batch[2:], None)[:3]]
    if np.ndim(X) != 2:
        raise ValueError(
            f"X of a batch must have two dimensions, rows and columns, got shape {np.shape(X)}. "
            "Use X.reshape(len(X), -1)."
        )
    return X, y, weight


def _host(values: Any) -> Any:
    """A tensor as an array of this process's memory; all else as it is, lists as arrays."""
    return np.asarray(values) if isinstance(values, list | tuple) else to_array(values)


def _named(batch: Any) -> Any:
    """A batch with named columns as one record batch; None if it has none."""
    named = isinstance(batch, Mapping) or hasattr(batch, "__arrow_c_stream__")
    if not named and not hasattr(batch, "__arrow_c_array__"):
        return None
    import pyarrow as pa

    if isinstance(batch, pa.RecordBatch):
        return _stored(batch)
    if isinstance(batch, Mapping):
        table = pa.table({name: _column(name, values) for name, values in batch.items()})
    else:
        table = pa.table(batch)
    whole = table.combine_chunks().to_batches()
    return _stored(whole[0] if whole else pa.RecordBatch.from_pylist([], table.schema))


def _stored(batch: Any) -> Any:
    """A record batch with columns of special types, such as tensors, as they are stored."""
    check_once(batch.schema.names, WHERE)
    columns = [getattr(column, "storage", column) for column in batch.columns]
    stored = type(batch).from_arrays(columns, names=batch.schema.names)
    return stored.replace_schema_metadata(batch.schema.metadata)


def _column(name: str, values: Any) -> Any:
    """A column of a dict of arrays or tensors: of numbers, or of lists where it is a matrix."""
    values = _host(values)
    if np.ndim(values) < 2:
        return values
    import pyarrow as pa

    values = np.asarray(values)
    if values.ndim > 2:
        raise ValueError(
            f"{name!r} of a batch must be a column or a matrix, got shape {values.shape}."
        )
    return pa.FixedSizeListArray.from_arrays(values.ravel(), values.shape[1])


def _length_of_lists(batch: Any, name: str) -> int:
    return len(batch.column(name)[0]) if batch.num_rows else 0
