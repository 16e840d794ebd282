"""Parquet files, read a run of rows at a time: by `scan` and by tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any, BinaryIO

from traceless.exceptions import TableError
from traceless.files.limits import refusal
from traceless.sources.arrow import (
    Columns,
    bounded,
    check_present,
    choose,
    is_list,
    is_number,
    not_numbers,
    rows_of,
)
from traceless.sources.batches import Rows
from traceless.sources.files import default_batch_rows, reading
from traceless.sources.partitions import Scanned

_TEXT = "BYTE_ARRAY"
_RATIO = 200  # of compression, which numbers and words hardly reach: their repetitions are encoded


def parquet_file(file: Path | BinaryIO) -> Any:
    """An open Parquet file; pages that have a checksum are checked when they are read."""
    from pyarrow.parquet import ParquetFile

    return ParquetFile(file, page_checksum_verification=True)


def parquet_batches(
    file: Path | BinaryIO, rows: int, names: list[str], groups: Sequence[int] | None = None
) -> Iterator[Any]:
    """Record batches of some columns, after what they declare of their sizes was looked at.

    A text that is repeated is in the file once, in a dictionary; so it is in memory, until
    `bounded` has looked at how long all of them are.

    Parameters
    ----------
    file : Path or open file
    rows : int
        In a batch.
    names : list of str
    groups : sequence of int, optional
        Row groups; by default all.
    """
    from pyarrow.parquet import ParquetFile

    with parquet_file(file) as opened:
        metadata, schema = opened.metadata, opened.schema_arrow
    wanted = [k for k in range(metadata.num_columns) if _top(metadata, k) in names]
    texts = [_top(metadata, k) for k in wanted if metadata.schema.column(k).physical_type == _TEXT]
    for group in range(metadata.num_row_groups) if groups is None else groups:
        _check_declared([metadata.row_group(group).column(k) for k in wanted])
    checked = {"metadata": metadata, "page_checksum_verification": True}
    with ParquetFile(file, read_dictionary=texts, **checked) as again:
        for batch in again.iter_batches(rows, groups, names, use_threads=False):
            yield bounded(batch, schema)


def _top(metadata: Any, k: int) -> str:
    """The name of the column that a column of values belongs to."""
    return str(metadata.schema.column(k).path.split(".")[0])


def _check_declared(chunks: list[Any]) -> None:
    """Raise if columns were compressed so much that few bytes would become many at once."""
    suspicious = [c for c in chunks if c.total_uncompressed_size > _RATIO * c.total_compressed_size]
    said = refusal("What is compressed", sum(c.total_uncompressed_size for c in suspicious))
    if said:
        raise TableError(said)


@dataclass(frozen=True)
class RowGroups:
    """Some row groups of a file."""

    file: Path
    groups: tuple[int, ...]
    columns: Columns
    batch_rows: int

    def batches(self) -> Iterator[Rows]:
        """The rows, `batch_rows` at a time; one empty batch if there are none."""
        import pyarrow as pa

        names, empty = self.columns.names, True
        with _opened(self.file) as file:
            for batch in parquet_batches(self.file, self.batch_rows, names, self.groups):
                empty = False
                yield rows_of(batch, self.columns, str(self.file))
            if empty:
                batch = pa.RecordBatch.from_pylist([], file.schema_arrow)
                yield rows_of(batch, self.columns, str(self.file))


def scan_parquet(
    files: list[Path], target: Any, weight: Any, columns: Any, batch_rows: int | None
) -> Scanned:
    """See `traceless.scan`."""
    with _opened(files[0]) as first:
        features, target = choose(first.schema_arrow.names, columns, target, weight, str(files[0]))
    width, names = _width(files, features)
    layout = Columns(features, width, target, weight)
    rows = batch_rows or default_batch_rows(width)
    partitions: list[RowGroups] = []
    for path in files:
        with _opened(path) as file:
            _check_schema(file.schema_arrow, layout, str(path), every=columns is None)
            runs = _runs(file.metadata, rows)
        partitions += [RowGroups(path, run, layout, rows) for run in runs]
    return partitions, width, names


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    with reading(path):
        import pyarrow as pa
    with reading(path, pa.ArrowException, OSError), parquet_file(path) as file:
        yield file


def _width(files: list[Path], features: tuple[str, ...]) -> tuple[int, list[str] | None]:
    """Number and names of the features: columns, or nameless entries of a list."""
    for path in files:
        with _opened(path) as file:
            schema = file.schema_arrow
            check_present(schema.names, list(features), str(path))
            kind = schema.field(features[0]).type
            if len(features) > 1 or not is_list(kind):
                return len(features), list(features)
            if hasattr(kind, "list_size"):
                return int(kind.list_size), None
            for batch in file.iter_batches(1, columns=list(features)):
                first = batch.column(features[0])[0].as_py()
                return len(first or ()), None
    raise ValueError(
        f"No file has a row, so it is unknown how long the lists in {features[0]!r} are."
    )


def _check_schema(schema: Any, layout: Columns, where: str, every: bool) -> None:
    check_present(schema.names, layout.names, where)
    for name in layout.features:
        kind = schema.field(name).type
        single = is_list(kind) and len(layout.features) == 1
        if not is_number(kind.value_type if single else kind):
            raise not_numbers(name, kind, where)
    extra = [name for name in schema.names if name not in layout.names] if every else []
    if extra:
        raise ValueError(
            f"{where} has a column {extra[0]!r} that the first file has not; name the features "
            "with columns=[...], or leave that file out."
        )


def _runs(metadata: Any, rows: int) -> list[tuple[int, ...]]:
    """Row groups, in runs of about `rows` rows; one empty run if there are none."""
    groups = range(metadata.num_row_groups)
    starts = list(accumulate((metadata.row_group(g).num_rows for g in groups), initial=0))
    return [tuple(run) for _, run in groupby(groups, key=lambda g: starts[g] // rows)] or [()]
