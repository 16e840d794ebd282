"""A table: files, folders, patterns or standard input, as batches of a schema's rows."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.exceptions import TableError
from traceless.sources.arrow import check_present
from traceless.sources.files import default_batch_rows, listed, unreadable
from traceless.sources.formats import FORMATS, READERS, SUFFIXES, Reader
from traceless.sources.schema import Cells, Schema

STDIN = "-"


@dataclass(frozen=True)
class Batch:
    """Some rows of one file.

    Attributes
    ----------
    schema : Schema
    cells : dict of str to Cells
    n_rows : int
    """

    schema: Schema
    cells: dict[str, Cells]
    n_rows: int

    @property
    def X(self) -> Floats:  # noqa: N802
        """The features."""
        out = np.zeros((self.n_rows, self.schema.width))
        start = 0
        for column in self.schema.columns:
            column.encode(self.cells[column.name], out[:, start : start + column.width])
            start += column.width
        return out

    @property
    def y(self) -> NDArray[Any]:
        """The labels or targets."""
        targets = [self.schema.target_of(self.cells[name]) for name in self.schema.target]
        return targets[0] if len(targets) == 1 else np.column_stack(targets)

    @property
    def weight(self) -> Floats | None:
        """The weights, where there is a column of them."""
        name = self.schema.weight
        return None if name is None else self.cells[name].numbers()


class Table:
    r"""Files of rows, read as a schema says.

    Parameters
    ----------
    paths : sequence of str
        Files, folders, patterns such as ``"data/*.csv"``, or ``"-"`` for standard input.
        The suffix says what a file is: .csv, .tsv, .parquet, .arrow, .feather or .npz.
    schema : Schema
    format_ : {"csv", "tsv", "parquet", "arrow", "npz"}, optional
        For files of other suffixes, and standard input (by default CSV).

    Attributes
    ----------
    part : float or None
        Fraction that has been read, between 0 and 1; None where the size is unknown.

    Examples
    --------
    >>> import tempfile
    >>> from traceless.sources import Number, Schema, Table
    >>> path = f"{tempfile.mkdtemp()}/people.csv"
    >>> with open(path, "w") as file:
    ...     _ = file.write("name,age,bought\nAnn,31,yes\nBob,45,no\n")
    >>> X, y, weight = Table([path], Schema([Number("age")], ["bought"])).arrays()
    >>> X.tolist(), y.tolist(), weight
    ([[31.0], [45.0]], ['yes', 'no'], None)
    """

    def __init__(self, paths: Sequence[str], schema: Schema, format_: str | None = None) -> None:
        self.schema = schema
        self.part: float | None = 0.0
        self._format = format_
        self._inputs = _inputs_of(paths)
        self._names, self._batch_rows = schema.names, default_batch_rows(schema.width)
        self._sizes = [0 if s == STDIN else os.path.getsize(s) for s in self._inputs]

    def batches(self, names: Sequence[str] | None = None) -> Iterator[Batch]:
        """All rows, a batch at a time.

        Parameters
        ----------
        names : sequence of str, optional
            The columns to read; by default features, target and weight.
        """
        wanted = list(dict.fromkeys(self._names if names is None else names))
        empty = True
        for place, source in enumerate(self._inputs):
            for batch, part in self._read(source, wanted):
                empty, self.part = False, None
                if part is not None and STDIN not in self._inputs:
                    done = sum(self._sizes[:place]) + part * self._sizes[place]
                    self.part = done / max(sum(self._sizes), 1)
                yield batch
        if empty:
            raise TableError(f"There are no rows in {', '.join(map(_shown, self._inputs[:3]))}.")

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Batches as (X, y), or (X, y, weight) where there is a column of weights."""
        for batch in self.batches():
            weight = batch.weight
            yield (batch.X, batch.y) if weight is None else (batch.X, batch.y, weight)

    def arrays(self) -> tuple[Floats, NDArray[Any], Floats | None]:
        """X, y and weight of all rows at once."""
        X, y, *weight = (np.concatenate(parts) for parts in zip(*self.rows(), strict=True))
        return X, y, weight[0] if weight else None

    def _read(self, source: str, wanted: list[str]) -> Iterator[tuple[Batch, float | None]]:
        where, first = _shown(source), 0
        with _opened(source, self._format) as table:
            _check_columns(table.names, wanted, where)
            with _readable(where):
                for batch, part in table.batches(wanted, self._batch_rows):
                    cells = {
                        name: Cells(column, name, where, first, table.typed)
                        for name, column in zip(wanted, batch.columns, strict=True)
                    }
                    first += batch.num_rows
                    if batch.num_rows:
                        yield Batch(self.schema, cells, batch.num_rows), part


def column_names(path: str, format_: str | None = None) -> list[str]:
    """The names of a file's columns; its rows are not read.

    Parameters
    ----------
    path : str
        A file, or ``"-"``; of several, the first.
    format_ : str, optional
        As for `Table`.

    Returns
    -------
    list of str
    """
    with _opened(_inputs_of([path])[0], format_) as table:
        return list(table.names)


def _check_columns(present: list[str], wanted: list[str], where: str) -> None:
    """Raise unless each wanted column is there, once."""
    try:
        check_present(present, wanted, where)
    except ValueError as error:
        raise TableError(str(error)) from error
    twice = [name for name in wanted if present.count(name) > 1]
    if twice:
        raise TableError(f"{where} has {present.count(twice[0])} columns {twice[0]!r}; keep one.")


# --- opening -----------------------------------------------------------------------------------


def _inputs_of(paths: Sequence[str]) -> list[str]:
    """Each file once, and standard input once."""
    files = [path for path in paths if path != STDIN]
    if len(paths) - len(files) > 1:
        raise TableError("Standard input (-) can be read only once; name it once.")
    found = list(map(str, listed(files))) if files else []
    return [STDIN, *found] if len(files) < len(paths) else found


def _shown(source: str) -> str:
    """A file as messages name it: relative to the working directory, if it is below."""
    if source == STDIN:
        return "standard input"
    path, here = Path(source), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


@contextmanager
def _opened(source: str, format_: str | None) -> Iterator[Reader]:
    """A file of a given format (by default what the suffix says), its columns known."""
    if format_ is None and source != STDIN:
        format_ = SUFFIXES.get(Path(source).suffix.lower())
        if format_ is None:
            raise TableError(
                f"{_shown(source)} is of no known kind: tables are {', '.join(SUFFIXES)}. Say "
                f"which it is with --format ({', '.join(FORMATS)})."
            )
    file: BinaryIO
    with ExitStack() as stack:
        if source != STDIN:
            file = stack.enter_context(open(source, "rb"))
        elif format_ in (None, "csv", "tsv"):
            file = sys.stdin.buffer
        else:  # readers of other formats seek: a copy without a name, so that nothing stays
            file = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(sys.stdin.buffer, file)
            file.seek(0)
        size = None if file is sys.stdin.buffer else os.fstat(file.fileno()).st_size
        with _readable(_shown(source)):
            reader = READERS[format_ or "csv"](file, size)
        yield reader


@contextmanager
def _readable(where: str) -> Iterator[None]:
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
