"""Parquet files, read a run of rows at a time: by `scan` and by tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any, BinaryIO

from traceless.sources.arrow import (
    Columns,
    check_present,
    choose,
    is_list,
    is_number,
    not_numbers,
    rows_of,
)
from traceless.sources.batches import Rows
from traceless.sources.files import default_batch_rows, reading
from traceless.sources.parquet_sizes import bounded_batches
from traceless.sources.partitions import Scanned


def parquet_file(file: Path | BinaryIO) -> Any:
    """An open Parquet file; pages that have a checksum are checked when they are read."""
    from pyarrow.parquet import ParquetFile

    return ParquetFile(file, page_checksum_verification=True)


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
            for batch in bounded_batches(self.file, file, self.batch_rows, names, self.groups):
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
