"""Parquet files as partitions of rows: some row groups of a file each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby
from typing import Any

from traceless.sources.arrow import (
    Columns,
    check_kinds,
    check_once,
    check_present,
    choose,
    index_names,
    is_list,
    is_nameless_index,
    rows_of,
    table_in,
)
from traceless.sources.batches import Rows
from traceless.sources.files import default_batch_rows, reading
from traceless.sources.layouts import Constants, File
from traceless.sources.parquet import bounded_batches, parquet_file
from traceless.sources.partitions import Scanned
from traceless.sources.remote import Remote
from traceless.sources.stamps import Stamp, check_rows, unchanged


@dataclass(frozen=True)
class RowGroups:
    """Some row groups of a file, with `n_rows` rows.

    `constants` are columns that have one value in all of them.
    """

    stamp: Stamp
    groups: tuple[int, ...]
    n_rows: int
    columns: Columns
    batch_rows: int
    constants: Constants = ()

    def batches(self) -> Iterator[Rows]:
        """The rows, `batch_rows` at a time; one empty batch if there are none."""
        import pyarrow as pa

        name = str(self.stamp.file)
        with unchanged([self.stamp]), _opened(self.stamp.file) as file:
            there = {*file.schema_arrow.names}  # made anew each time it is asked for
            read = [name for name in self.columns.names if name in there]
            n, source = 0, partial(_bytes_of, self.stamp.file)
            for batch in bounded_batches(source, file, self.batch_rows, read, self.groups):
                n += batch.num_rows
                yield rows_of(_with(batch, self.constants), self.columns, name)
            check_rows(name, n, self.n_rows)
            if not n:
                batch = pa.RecordBatch.from_pylist([], file.schema_arrow)
                yield rows_of(_with(batch, self.constants), self.columns, name)


def scan_parquet(
    files: Sequence[File],
    constants: Sequence[Constants],
    target: Any,
    weight: Any,
    columns: Any,
    batch_rows: int | None,
) -> Scanned:
    """See `traceless.scan`."""
    stamps = [Stamp.of(file) for file in files]
    partitions: list[RowGroups] = []
    layout = None
    for stamp, same in zip(stamps, constants, strict=True):
        with _opened(stamp.file) as file:
            schema = _with(file.schema_arrow.empty_table(), same).schema
            where = str(stamp.file)
            check_once(schema.names, where)
            if layout is None:
                index = index_names(schema)
                features, target = choose(schema.names, columns, target, weight, where, index)
                width, names = _width(files, features, schema)
                layout = Columns(features, width, target, weight, table_in(columns))
                rows = batch_rows or default_batch_rows(width)
            _check_schema(schema, layout, where, every=columns is None)
            runs = _runs(file.metadata, rows)
        partitions += [RowGroups(stamp, *run, layout, rows, same) for run in runs]
    return partitions, width, names


@contextmanager
def _opened(file: File) -> Iterator[Any]:
    """An open Parquet file."""
    with reading(file):
        import pyarrow as pa
    with reading(file, pa.ArrowException, OSError):
        if isinstance(file, Remote):
            with _bytes_of(file) as there, parquet_file(there) as found:
                yield found
        else:
            with parquet_file(file) as found:
                yield found


def _bytes_of(file: File) -> AbstractContextManager[Any]:
    """A file, open to read its bytes."""
    if isinstance(file, Remote):
        there: AbstractContextManager[Any] = file.filesystem.open_input_file(str(file))
        return there
    return open(file, "rb")


def _with(rows: Any, constants: Constants) -> Any:
    """Arrow rows with further columns; one that the file has itself stays as it is there."""
    import pyarrow as pa

    for name, value in constants:
        if name not in rows.schema.names:
            rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
    return rows


def _width(
    files: Sequence[File], features: tuple[str, ...], schema: Any
) -> tuple[int, list[str] | None]:
    """Number and names of the features: columns, or nameless entries of a list."""
    kind = schema.field(features[0]).type
    if len(features) > 1 or not is_list(kind):
        return len(features), list(features)
    if hasattr(kind, "list_size"):
        return int(kind.list_size), None
    for path in files:
        with _opened(path) as file:
            check_present(file.schema_arrow.names, list(features), str(path))
            for batch in file.iter_batches(1, columns=list(features)):
                first = batch.column(features[0])[0].as_py()
                return len(first or ()), None
    raise ValueError(
        f"No file has a row, so it is unknown how long the lists in {features[0]!r} are."
    )


def _check_schema(schema: Any, layout: Columns, where: str, every: bool) -> None:
    check_present(schema.names, layout.names, where)
    check_kinds(schema, layout, where)
    left = {*layout.names, *index_names(schema)}
    extra = [n for n in schema.names if n not in left and not is_nameless_index(n)] if every else []
    if extra:
        raise ValueError(
            f"{where} has a column {extra[0]!r} that the first file has not; name the features "
            "with columns=[...], or leave that file out."
        )


def _runs(metadata: Any, rows: int) -> list[tuple[tuple[int, ...], int]]:
    """Row groups, in runs of about `rows` rows, and their rows; an empty run if there is none."""
    groups = range(metadata.num_row_groups)
    ends = list(accumulate((metadata.row_group(g).num_rows for g in groups), initial=0))
    runs = [tuple(run) for _, run in groupby(groups, key=lambda g: ends[g] // rows)]
    return [(run, ends[run[-1] + 1] - ends[run[0]]) for run in runs] or [((), 0)]
