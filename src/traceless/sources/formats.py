"""The formats of tables: files and standard input, opened by their suffix."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from traceless.exceptions import TableError
from traceless.sources.delimited import Delimited
from traceless.sources.files import listed, unreadable
from traceless.sources.npz import Npz
from traceless.sources.parquet import parquet_file

STDIN = "-"
ARROW_FILE = b"ARROW1"  # the first bytes of an Arrow file; a stream has others


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
        self._file = parquet_file(file)
        self.names: list[str] = self._file.schema_arrow.names

    def batches(self, wanted: list[str], rows: int) -> Iterator[tuple[Any, float | None]]:
        """Record batches, and the fraction of the rows that is read."""
        total, done = self._file.metadata.num_rows, 0
        for batch in self._file.iter_batches(rows, columns=wanted, use_threads=False):
            done += batch.num_rows
            yield batch, done / max(total, 1)


class Arrow:
    """An open file or stream of Arrow record batches."""

    typed = True

    def __init__(self, file: BinaryIO, size: int) -> None:
        import pyarrow as pa

        self._file, self._size = file, size
        if file.read(len(ARROW_FILE)) == ARROW_FILE:
            reader = pa.ipc.open_file(file)
            self._batches = (reader.get_batch(k) for k in range(reader.num_record_batches))
        else:
            file.seek(0)
            reader = pa.ipc.open_stream(file)
            self._batches = iter(reader)
        self.names: list[str] = reader.schema.names

    def batches(self, wanted: list[str], rows: int) -> Iterator[tuple[Any, float | None]]:
        """Record batches, cut where they are long, and the fraction of the file that is read."""
        for batch in self._batches:
            batch.validate(full=True)
            chosen = batch.select(wanted)
            for start in range(0, batch.num_rows, rows):
                yield chosen.slice(start, rows), self._file.tell() / self._size


READERS: dict[str, Callable[[BinaryIO, Any], Reader]] = {
    "csv": partial(Delimited, delimiter=","),
    "tsv": partial(Delimited, delimiter="\t"),
    "parquet": Parquet,
    "arrow": Arrow,
    "npz": Npz,
}
FORMATS = tuple(READERS)
SUFFIXES = {f".{name}": name for name in FORMATS} | {".feather": "arrow"}


def inputs_of(paths: Sequence[str]) -> list[str]:
    """Each file once, and standard input once."""
    files = [path for path in paths if path != STDIN]
    if len(paths) - len(files) > 1:
        raise TableError("Standard input (-) can be read only once; name it once.")
    found = [str(file) for file in listed(files)] if files else []
    return [STDIN, *found] if len(files) < len(paths) else found


def shown(source: str) -> str:
    """A file as messages name it: relative to the working directory, if it is below."""
    if source == STDIN:
        return "standard input"
    path, here = Path(source), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


@contextmanager
def opened(source: str, format_: str | None) -> Iterator[Reader]:
    """A file of a given format (by default what the suffix says), its columns known."""
    if format_ is None and source != STDIN:
        format_ = SUFFIXES.get(Path(source).suffix.lower())
        if format_ is None:
            raise TableError(
                f"{shown(source)} is of no known kind: tables are {', '.join(SUFFIXES)}. Say "
                f"which it is with --format ({', '.join(FORMATS)})."
            )
    with _stream(source, text=format_ in (None, "csv", "tsv")) as (file, size):
        with readable(shown(source)):
            reader = READERS[format_ or "csv"](file, size)
        yield reader


@contextmanager
def _stream(source: str, text: bool) -> Iterator[tuple[BinaryIO, int | None]]:
    """An open file and its size; text on standard input has none, other formats are copied."""
    if source != STDIN:
        with open(source, "rb") as file:
            yield file, os.fstat(file.fileno()).st_size
    elif text:
        yield sys.stdin.buffer, None
    else:  # readers seek in it
        with tempfile.TemporaryFile() as copy:  # without a name, so nothing stays
            shutil.copyfileobj(sys.stdin.buffer, copy)
            size = copy.tell()
            copy.seek(0)
            yield copy, size


@contextmanager
def readable(where: str) -> Iterator[None]:
    """Turn any error of a library over a bad file into a `TableError`."""
    try:
        yield
    except MemoryError:
        raise
    except TableError as error:
        raise TableError(f"{where}: {error}") from error
    except ImportError as error:
        raise ImportError(
            f"Reading tables needs a library: pip install 'traceless[cli]' ({error})."
        ) from error
    except Exception as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise  # the disk, not the file: a library that was led astray seeks before the start
        raise TableError(str(unreadable(where, error))) from error
