"""Where rows come from: files, folders, patterns, standard input; opened by what they are."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from traceless.distributed.files import listed, unreadable
from traceless.exceptions import TableError
from traceless.tables.archive import Npz
from traceless.tables.columnar import Arrow, Parquet
from traceless.tables.delimited import Delimited

STDIN = "-"
FORMATS = ("csv", "tsv", "parquet", "arrow", "npz")
SUFFIXES = {f".{name}": name for name in FORMATS} | {".feather": "arrow"}


class Opened(Protocol):
    """What each format offers."""

    names: list[str]
    typed: bool

    def batches(self, wanted: list[str], rows: int) -> Iterator[tuple[Any, float | None]]:
        """Record batches of the wanted columns, and the part of the file that is read."""


def sources_of(paths: Sequence[str]) -> list[str]:
    """Each file once, and standard input once."""
    files = [path for path in paths if path != STDIN]
    if len(paths) - len(files) > 1:
        raise TableError("Standard input (-) can be read only once; name it once.")
    found = [str(file) for file in listed(files)] if files else []
    return [STDIN, *found] if len(files) < len(paths) else found


def shown(source: str) -> str:
    """A source as messages name it: from here, if it is below."""
    if source == STDIN:
        return "standard input"
    path, here = Path(source), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


@contextmanager
def opened(source: str, given: str | None) -> Iterator[Opened]:
    """A source of a given format (by default what the suffix says), its columns known."""
    format_ = _format_of(source, given)
    with _stream(source, format_) as (file, size):
        with _readable(shown(source)):
            table = _table(format_, file, size)
        yield table


def sound(batches: Iterator[Any], where: str) -> Iterator[Any]:
    """The same batches; whatever is wrong with the file is said in a sentence."""
    while True:
        with _readable(where):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _format_of(source: str, given: str | None) -> str:
    if given is None and source != STDIN:
        given = SUFFIXES.get(Path(source).suffix.lower())
        if given is None:
            raise TableError(
                f"{shown(source)} is of no known kind: tables are {', '.join(SUFFIXES)}. Say "
                f"which it is with --format ({', '.join(FORMATS)})."
            )
    return given or "csv"


def _table(format_: str, file: BinaryIO, size: int | None) -> Opened:
    if format_ == "parquet":
        return Parquet(file)
    if format_ == "arrow":
        return Arrow(file, size or 0)
    if format_ == "npz":
        return Npz(file)
    return Delimited(file, size, "\t" if format_ == "tsv" else ",")


@contextmanager
def _stream(source: str, format_: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """An open file and its size; standard input has none, unless it must be sought in."""
    if source != STDIN:
        with open(source, "rb") as file:
            yield file, os.fstat(file.fileno()).st_size
    elif format_ in ("csv", "tsv"):
        yield sys.stdin.buffer, None
    else:
        with tempfile.TemporaryFile() as copy:  # without a name, so nothing stays
            shutil.copyfileobj(sys.stdin.buffer, copy)
            size = copy.tell()
            copy.seek(0)
            yield copy, size


@contextmanager
def _readable(where: str) -> Iterator[None]:
    """Turn whatever a library raises over a bad file into one sentence."""
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
