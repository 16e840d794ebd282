"""One input of rows: a file of any format, standard input, or a data frame in memory."""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from unicodedata import normalize

from traceless.exceptions import TableError
from traceless.sources.delimited import Delimited, RowError
from traceless.sources.files import File, unreadable
from traceless.sources.json_lines import JsonLines
from traceless.sources.parquet import Parquet
from traceless.sources.schema import TextFormat

STDIN = "-"
_AHEAD = 2**20  # bytes that are read of a text at once: far away each time is a request
FORMATS = ("csv", "tsv", "jsonl", "parquet")
TEXTS = ("csv", "tsv", "jsonl")  # read from beginning to end, so they may come through a pipe
SUFFIXES = {f".{name}": name for name in FORMATS} | {".ndjson": "jsonl"}
SUFFIXES |= {f"{suffix}.gz": name for suffix, name in SUFFIXES.items() if name in TEXTS}


class Reader(Protocol):
    """An open table of any format."""

    names: list[str]

    def batches(self, wanted: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of the wanted columns."""


class InMemory:
    """A data frame of pandas or polars, or an Arrow table, in memory."""

    def __init__(self, frame: Any) -> None:
        import pyarrow as pa

        if type(frame).__module__.partition(".")[0] == "pandas":  # which has NaN for null
            table = pa.Table.from_pandas(frame, preserve_index=False)
        else:
            table = pa.table(frame)
        self.names = [normalize("NFC", name) for name in table.column_names]
        self._table = table.rename_columns(self.names)

    def batches(self, wanted: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of the wanted columns."""
        return iter(self._table.select(wanted).to_batches(max_chunksize=rows))


class Input:
    """A file, standard input, or a data frame.

    Parameters
    ----------
    source : File, "-" or frame
    format_ : str or None
        By default what the suffix says.
    text : TextFormat
    """

    def __init__(self, source: Any, format_: str | None, text: TextFormat) -> None:
        self._source, self._text = source, text
        self._reader: Any = None
        self.where, self.format = "The data frame", "frame"
        if isinstance(source, File):
            path, here = Path(source.path), Path.cwd()
            is_below = source.is_here and path.is_relative_to(here)
            self.where = str(path.relative_to(here) if is_below else path)
            self.format = format_ or format_of(path.name) or ""
        elif isinstance(source, str):
            self.where, self.format = "standard input", format_ or "csv"

    @contextmanager
    def opened(self) -> Iterator[Reader]:
        """The open table, its columns known."""
        if not self.format:
            raise TableError(
                f"{self.where} is of no known kind: tables are {', '.join(SUFFIXES)}. Say "
                f"which it is with --format ({', '.join(FORMATS)})."
            )
        with ExitStack() as stack:
            file: Any = None if self.format == "frame" else self._file(stack)
            if self.format == "parquet" and self._source == STDIN:  # this reader seeks: a copy
                copy = stack.enter_context(tempfile.TemporaryFile())  # without a name, so that
                shutil.copyfileobj(file, copy)  # nothing stays
                copy.seek(0)
                file = copy
            with self.readable():
                self._reader = self._read(file)
            yield self._reader

    def row_name(self, row: int, blank: bool = False) -> str:
        """A row, counted from 0, as people find it: by its line, or by its number from 1.

        `blank`: whether rows of blank cells were counted.
        """
        number = f"row {row + 1}"
        if self.format not in TEXTS:
            return number
        if self._source == STDIN or self._reader is None:
            return number + ("" if self.format == "jsonl" else " after the header")
        with ExitStack() as stack:
            file = self._recoded(_unzipped(self._file(stack)))
            line = self._reader.line_of(file, row, blank)
        return number if line is None else f"line {line}"

    @contextmanager
    def readable(self) -> Iterator[None]:
        """Turn any error of a library over a bad file into a `TableError`."""
        try:
            yield
        except MemoryError:
            raise
        except RowError as error:
            row = f"line {error.line}" if error.line else self.row_name(error.row, blank=True)
            raise TableError(f"{self.where}, {row}: {error}") from error
        except TableError as error:
            raise TableError(f"{self.where}: {error}") from error
        except ImportError as error:
            raise ImportError(
                f"Reading tables needs a library: pip install 'traceless[cli]' ({error})."
            ) from error
        except Exception as error:
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise  # the disk, not the file: a library led astray seeks before the start
            raise TableError(str(unreadable(self.where, error))) from error

    def _read(self, file: Any) -> Reader:
        if self.format == "frame":
            return InMemory(self._source)
        if self.format == "parquet":
            return Parquet(file)
        if self.format == "jsonl":
            return JsonLines(_unzipped(file))
        delimiter = "\t" if self.format == "tsv" else self._text.delimiter
        return Delimited(self._recoded(_unzipped(file)), delimiter, self._text.null)

    def _file(self, stack: ExitStack) -> Any:
        return (
            sys.stdin.buffer if self._source == STDIN else stack.enter_context(self._source.open())
        )

    def _recoded(self, file: Any) -> Any:
        """The file, as UTF-8 where it is written in another encoding."""
        encoding = "utf-8" if self.format == "jsonl" else self._text.encoding
        if codecs.lookup(encoding).name == "utf-8":
            return file
        return codecs.EncodedFile(file, "utf-8", encoding)


def format_of(path: str) -> str | None:
    """The format that the name of a file says, if it says one."""
    ends = [suffix for suffix in SUFFIXES if path.lower().endswith(suffix)]
    return SUFFIXES[max(ends, key=len)] if ends else None


def _unzipped(file: BinaryIO) -> Any:
    """The file, or what is in it if it is compressed by gzip; no text begins as gzip does."""
    there: Any = file if hasattr(file, "peek") else io.BufferedReader(file, _AHEAD)
    return gzip.open(there) if there.peek(2)[:2] == b"\x1f\x8b" else there
