"""Parquet and Arrow: files and streams whose columns have types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

MAGIC = b"ARROW1"


class Parquet:
    """An open Parquet file; it is read a run of rows at a time."""

    typed = True

    def __init__(self, file: BinaryIO) -> None:
        from pyarrow.parquet import ParquetFile

        self._file = ParquetFile(file, page_checksum_verification=True)  # where there are any
        self.names: list[str] = self._file.schema_arrow.names

    def batches(self, wanted: list[str], rows: int) -> Iterator[tuple[Any, float | None]]:
        """Record batches, and which part of the file is read then."""
        total, done = self._file.metadata.num_rows, 0
        for batch in self._file.iter_batches(rows, columns=wanted, use_threads=False):
            done += batch.num_rows
            yield batch, done / max(total, 1)


class Arrow:
    """An open file or stream of Arrow record batches, told apart by their first bytes."""

    typed = True

    def __init__(self, file: BinaryIO, size: int) -> None:
        import pyarrow as pa

        self._file, self._size = file, size
        if file.read(len(MAGIC)) == MAGIC:
            reader = pa.ipc.open_file(file)
            self._batches = (reader.get_batch(k) for k in range(reader.num_record_batches))
        else:
            file.seek(0)
            reader = pa.ipc.open_stream(file)
            self._batches = iter(reader)
        self.names: list[str] = reader.schema.names

    def batches(self, wanted: list[str], rows: int) -> Iterator[tuple[Any, float | None]]:
        """Record batches, cut where they are long, and which part of the file is read then."""
        for batch in self._batches:
            batch.validate(full=True)
            chosen = batch.select(wanted)
            for start in range(0, batch.num_rows, rows):
                yield chosen.slice(start, rows), self._file.tell() / self._size
