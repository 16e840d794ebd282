"""The formats of tables: a reader for each, and the suffixes of its files."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any, BinaryIO, Protocol
from unicodedata import normalize

from traceless.sources.delimited import Delimited
from traceless.sources.json_lines import JsonLines
from traceless.sources.parquet import bounded_batches, parquet_file
from traceless.sources.schema import TextFormat


class Reader(Protocol):
    """An open table of any format."""

    names: list[str]
    typed: bool

    def batches(self, wanted: list[str], rows: int) -> Iterator[Any]:
        """Record batches of the wanted columns."""


class Parquet:
    """An open Parquet file; it is read a run of rows at a time."""

    typed = True

    def __init__(self, file: BinaryIO) -> None:
        self._source, self._file = partial(nullcontext, file), parquet_file(file)
        self._stored: list[str] = self._file.schema_arrow.names
        self.names = [normalize("NFC", name) for name in self._stored]

    def batches(self, wanted: list[str], rows: int) -> Iterator[Any]:
        """Record batches of the wanted columns."""
        stored = [self._stored[self.names.index(name)] for name in wanted]
        for batch in bounded_batches(self._source, self._file, rows, stored):
            yield batch.rename_columns([normalize("NFC", name) for name in batch.schema.names])


class InMemory:
    """A data frame of pandas or polars, or an Arrow table, in memory."""

    typed = True

    def __init__(self, frame: Any) -> None:
        import pyarrow as pa

        if type(frame).__module__.partition(".")[0] == "pandas":  # which has NaN for null
            self._table = pa.Table.from_pandas(frame, preserve_index=False)
        else:
            self._table = pa.table(frame)
        self._table = self._table.rename_columns(
            [normalize("NFC", name) for name in self._table.column_names]
        )
        self.names: list[str] = self._table.column_names

    def batches(self, wanted: list[str], rows: int) -> Iterator[Any]:
        """Record batches of the wanted columns."""
        return iter(self._table.select(wanted).to_batches(max_chunksize=rows))


FORMATS = ("csv", "tsv", "jsonl", "parquet")
TEXTS = ("csv", "tsv", "jsonl")  # read from beginning to end, so they may come through a pipe
SUFFIXES = {f".{name}": name for name in FORMATS} | {".ndjson": "jsonl"}
SUFFIXES |= {f"{suffix}.gz": name for suffix, name in SUFFIXES.items() if name in TEXTS}


def format_of(path: str) -> str | None:
    """The format that the name of a file says, if it says one."""
    ends = [suffix for suffix in SUFFIXES if path.lower().endswith(suffix)]
    return SUFFIXES[max(ends, key=len)] if ends else None


def read_text(file: BinaryIO, format_: str, text: TextFormat) -> JsonLines | Delimited:
    """A reader of CSV, TSV or JSON lines."""
    if format_ == "jsonl":
        return JsonLines(file)
    file = recoded(file, text)
    return Delimited(file, "\t" if format_ == "tsv" else text.delimiter, text.null)


def recoded(file: Any, text: TextFormat) -> Any:
    """The file, as UTF-8 where it is written in another encoding."""
    if codecs.lookup(text.encoding).name == "utf-8":
        return file
    return codecs.EncodedFile(file, "utf-8", text.encoding)
