"""The formats of tables: a reader for each, and the suffixes of its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, Protocol

from traceless.sources.arrow import check_texts
from traceless.sources.arrow_sizes import MAGIC, check_declared_sizes
from traceless.sources.delimited import Delimited
from traceless.sources.npz import Npz
from traceless.sources.parquet import parquet_file
from traceless.sources.parquet_sizes import bounded_batches


class Reader(Protocol):
    """An open table of any format."""

    names: list[str]
    typed: bool

    def batches(self, wanted: list[str], rows: int) -> Iterator[tuple[Any, float | None]]:
        """Record batches of the wanted columns, and the fraction of the file that is read."""


class Parquet:
    """An open Parquet file; it is read a run of rows at a time."""

    typed = True

    def __init__(self, file: BinaryIO, _size: int) -> None:
        self._source, self._file = file, parquet_file(file)
        self.names: list[str] = self._file.schema_arrow.names

    def batches(self, wanted: list[str], rows: int) -> Iterator[tuple[Any, float | None]]:
        """Record batches, and the fraction of the rows that is read."""
        total, done = self._file.metadata.num_rows, 0
        for batch in bounded_batches(self._source, self._file, rows, wanted):
            done += batch.num_rows
            yield batch, done / max(total, 1)


class Arrow:
    """An open file or stream of Arrow record batches."""

    typed = True

    def __init__(self, file: BinaryIO, size: int) -> None:
        import pyarrow as pa

        self._file, self._size = file, size
        check_declared_sizes(file)
        if file.read(len(MAGIC)) == MAGIC:
            reader = pa.ipc.open_file(file)
            self._batches = (reader.get_batch(k) for k in range(reader.num_record_batches))
        else:
            file.seek(0)
            reader = pa.ipc.open_stream(file)
            self._batches = iter(reader)
        self.names: list[str] = reader.schema.names

    def batches(self, wanted: list[str], rows: int) -> Iterator[tuple[Any, float | None]]:
        """Record batches, cut where they are long, and the fraction of the file that is read."""
        before = 0
        for batch in self._batches:
            batch.validate(full=True)
            chosen, after = batch.select(wanted), self._file.tell()
            for start in range(0, batch.num_rows, rows):
                done = min(1.0, (start + rows) / batch.num_rows)
                part = chosen.slice(start, rows)
                check_texts(part)
                yield part, (before + done * (after - before)) / self._size
            before = after


READERS: dict[str, Callable[[BinaryIO, Any], Reader]] = {
    "csv": partial(Delimited, delimiter=","),
    "tsv": partial(Delimited, delimiter="\t"),
    "parquet": Parquet,
    "arrow": Arrow,
    "npz": Npz,
}
FORMATS = tuple(READERS)
SUFFIXES = {f".{name}": name for name in FORMATS} | {".feather": "arrow"}
