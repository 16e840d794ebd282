"""A table: files, folders, patterns or standard input, as batches of a schema's rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.exceptions import TableError
from traceless.features.cells import Cells, Frame
from traceless.sources.arrow import check_once, check_present
from traceless.sources.files import default_batch_rows, listed
from traceless.sources.formats import STDIN, Input
from traceless.sources.schema import Schema, TextFormat, ids_of, weights_of

Ids = Literal["needed", "if there", "never"]


@dataclass(frozen=True)
class Batch:
    """Some rows of one file.

    Attributes
    ----------
    schema : Schema
    data : RecordBatch
    common : Cells
        Where they are from.
    """

    schema: Schema
    data: Any
    common: Cells

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.data.num_rows)

    @cached_property
    def frame(self) -> Frame:
        """The columns, without an index of pandas."""
        return Frame.of_arrow(self.data, self.common)

    def cells(self, name: str) -> Cells:
        """Any column that was read: ids may be an index."""
        return Frame.of_arrow(self.data.replace_schema_metadata(None), self.common).cells(name)

    @property
    def X(self) -> Floats:  # noqa: N802
        """The declared columns."""
        return self.schema.table.rows(self.frame)

    @property
    def y(self) -> NDArray[Any]:
        """The labels or targets; zeros where there are none."""
        if not self.schema.target:
            return np.zeros(self.n_rows, dtype=np.int64)
        targets = [self.schema.target_of(self.cells(name)) for name in self.schema.target]
        return targets[0] if len(targets) == 1 else np.column_stack(targets)

    @property
    def weight(self) -> Floats | None:
        """The weights, where there is a column of them."""
        name = self.schema.weight
        return None if name is None else weights_of(self.cells(name))

    @property
    def ids(self) -> list[str] | None:
        """The ids, where there is a column of them."""
        name = self.schema.id
        return (
            None if name is None or name not in self.data.schema.names else ids_of(self.cells(name))
        )

    def taken(self, places: list[int]) -> Batch:
        """The rows at these positions, which messages name by their rows in the file."""
        name = self.common.row_name
        common = replace(self.common, row_name=lambda k: name(places[k]))
        return Batch(self.schema, self.data.take(places), common)


class Files:
    r"""Files of rows, read as a schema says.

    Parameters
    ----------
    paths : sequence of str, or of data frames
        Files, folders, patterns such as ``"data/*.csv"``, or ``"-"`` for standard input.
        The suffix says what a file is: .csv, .tsv, .jsonl or .ndjson (each also with .gz
        behind it), or .parquet. Frames of pandas and polars, and tables
        of Arrow, are read like files.
    schema : Schema
    format_ : {"csv", "tsv", "jsonl", "parquet"}, optional
        For files of other suffixes, and standard input (by default CSV).

    Examples
    --------
    >>> import tempfile
    >>> from traceless.features import Number, Table
    >>> from traceless.sources import Files, Schema
    >>> path = f"{tempfile.mkdtemp()}/people.csv"
    >>> with open(path, "w") as file:
    ...     _ = file.write("name,age,bought\nAnn,31,yes\nBob,45,no\n")
    >>> X, y, weight = Files([path], Schema(Table([Number("age")]), ["bought"])).arrays()
    >>> X.tolist(), y.tolist(), weight
    ([[31.0], [45.0]], ['yes', 'no'], None)
    """

    def __init__(self, paths: Sequence[Any], schema: Schema, format_: str | None = None) -> None:
        self.schema = schema
        self._inputs = _inputs(paths, format_, schema.text)
        self._batch_rows = default_batch_rows(schema.table.width(len(schema.table.names)))
        self._rows = [0] * len(self._inputs)  # that were read of each

    @property
    def where(self) -> str:
        """The names of the first files, for messages."""
        return ", ".join([one.where for one in self._inputs[:3]])

    def batches(
        self, names: Sequence[str] | None = None, maybe: Sequence[str] = ()
    ) -> Iterator[Batch]:
        """All rows, a batch at a time.

        Parameters
        ----------
        names : sequence of str, optional
            The columns to read; by default features, target and weight.
        maybe : sequence of str, optional
            Columns to read too, from the files that have them.
        """
        wanted = list(dict.fromkeys(self.schema.names if names is None else names))
        self._rows = [0] * len(self._inputs)
        for place in range(len(self._inputs)):
            yield from self._read(place, wanted, maybe)
        if not any(self._rows):
            raise TableError(f"There are no rows in {self.where}.")

    def rows(self, ids: Ids = "needed") -> Iterator[tuple[Any, ...]]:
        """Batches as (X, y), (X, y, weight) or (X, y, weight, ids), as the schema says.

        Parameters
        ----------
        ids : {"needed", "if there", "never"}
            Whether every file must have the column of ids, if one is declared; or they come from
            the files that have it; or from none.
        """
        names = [] if self.schema.id is None or ids == "never" else [self.schema.id]
        wanted = [*self.schema.names, *names] if ids == "needed" else None
        for batch in self.batches(wanted, maybe=names):
            rows = batch.X, batch.y, batch.weight, batch.ids
            last = max(k for k, part in enumerate(rows) if part is not None)
            yield rows[: last + 1]

    def arrays(self) -> tuple[Floats, NDArray[Any], Floats | None]:
        """X, y and weight of all rows at once."""
        rows = self.rows(ids="never")
        X, y, *weight = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        return X, y, weight[0] if weight else None

    def place_of(self, row: int) -> str:
        """Where a row is, of all that were read, counted from 0: its file, and its line there."""
        for one, rows in zip(self._inputs, self._rows, strict=True):
            if row < rows:
                return f"{one.where}, {one.row_name(row)}"
            row -= rows
        raise LookupError("So many rows were not read.")

    def _read(self, place: int, wanted: list[str], maybe: Sequence[str]) -> Iterator[Batch]:
        source = self._inputs[place]
        with source.opened() as table:
            _check_columns(table.names, wanted, source)
            names = list(dict.fromkeys([*wanted, *(n for n in maybe if n in table.names)]))
            decimal = "." if source.format == "jsonl" else self.schema.text.decimal
            with source.readable():
                for batch in table.batches(names, self._batch_rows):
                    first = self._rows[place]
                    self._rows[place] += batch.num_rows
                    if batch.num_rows:
                        row_name = partial(_row_after, source.row_name, first)
                        common = Cells(None, "", source.where, row_name, decimal)
                        yield Batch(self.schema, batch, common)


def _row_after(row_name: Callable[[int], str], first: int, row: int) -> str:
    return row_name(first + row)


def column_names(
    path: str,
    format_: str | None = None,
    text: TextFormat = TextFormat(),  # noqa: B008 (frozen)
) -> list[str]:
    """The names of a file's columns; its rows are not read.

    Parameters
    ----------
    path : str
        A file, or ``"-"``; of several, the first.
    format_ : str, optional
        As for `Files`.
    text : TextFormat, optional
        How CSV is written.

    Returns
    -------
    list of str
    """
    return header_of(path, format_, text)[0]


def header_of(path: str, format_: str | None, text: TextFormat) -> tuple[list[str], TextFormat]:
    """The names of a file's columns, and how it is written, where its own first line says that."""
    with _inputs([path], format_, text)[0].opened() as table:
        delimiter = getattr(table, "delimiter", text.delimiter)
        return list(table.names), replace(text, delimiter=delimiter)


def first_rows(path: str, format_: str | None, text: TextFormat, rows: int) -> Any:
    """The first rows of a file, all columns, as a table of Arrow."""
    import pyarrow as pa

    source, found = _inputs([path], format_, text)[0], []
    with source.opened() as table:
        _check_columns(table.names, table.names, source)
        with source.readable():
            for batch in table.batches(table.names, rows):
                found.append(batch)
                if sum(one.num_rows for one in found) >= rows:
                    break
        if not found:
            raise TableError("there are no rows.")
        return pa.Table.from_batches(found).slice(0, rows).combine_chunks()


def _check_columns(present: list[str], wanted: list[str], source: Input) -> None:
    """Raise unless each wanted column is there, once."""
    try:
        check_present(present, wanted, source.where)
        check_once([name for name in present if name in wanted], source.where)
    except ValueError as error:
        other = next((sign for sign in ";\t|," if sign in present[0]), None) if present else None
        mend = ""
        if len(present) == 1 and other:
            mend = f" Its columns seem to stand between {other!r}: declare delimiter = {other!r}."
        raise TableError(f"{error}{mend}") from error


def _inputs(paths: Sequence[Any], format_: str | None, text: TextFormat) -> list[Input]:
    """Each file once, standard input once, and frames."""
    frames = [one for one in paths if not isinstance(one, str | os.PathLike)]
    files = [path for path in paths if isinstance(path, str | os.PathLike) and path != STDIN]
    streams = len(paths) - len(files) - len(frames)
    if streams > 1:
        raise TableError("Standard input (-) can be read only once; name it once.")
    every = [*[STDIN] * streams, *(listed(files) if files else []), *frames]
    return [Input(one, format_, text) for one in every]
