"""JSON lines: one object a line, whose keys are the columns.

A value is the text that stands in the file, so it means what it means in CSV: 31 and "31" are one
number and one word, and no digit is lost. A null, a NaN and a key that is not there are missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO
from unicodedata import normalize

from traceless.exceptions import TableError
from traceless.sources.delimited import RowError

LONGEST_LINE = 2**21
MOST_BYTES = 2**24  # read at a time, and one line more
HEAD = 1024  # rows in which the names of columns are looked for


class JsonLines:
    """An open file of JSON lines, its first rows read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._row = self._line = 0
        self._head = self._some(HEAD)
        if not self._head:
            raise TableError("it is empty.")
        self.names = list(dict.fromkeys(name for row in self._head for name in row))

    def batches(self, wanted: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of strings."""
        import pyarrow as pa

        some, first = self._head, 0
        while some:
            columns = [pa.array(list(_texts(some, name, first)), pa.string()) for name in wanted]
            yield pa.record_batch(columns, names=wanted)
            some, first = self._some(rows), first + len(some)

    def line_of(self, file: BinaryIO, row: int, blank: bool = False) -> int | None:  # noqa: ARG002
        """The line of a row, counted from 1; blank lines are no rows."""
        found = -1
        for number, line in enumerate(file, start=1):
            found += bool(line.strip())
            if found == row:
                return number
        return None

    def _some(self, rows: int) -> list[dict[str, Any]]:
        """The next rows."""
        found: list[dict[str, Any]] = []
        size = 0
        while len(found) < rows and size < MOST_BYTES:
            line = self._file.readline(LONGEST_LINE + 1)
            if not line:
                break
            self._line, size = self._line + 1, size + len(line)
            if self._line == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                found.append(self._parsed(line))
                self._row += 1
        return found

    def _parsed(self, line: bytes) -> dict[str, Any]:
        if len(line) > LONGEST_LINE:
            raise self._bad(f"it is longer than {LONGEST_LINE} bytes.")
        try:
            row = _DECODER.decode(line.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise self._bad(f"it is not JSON in UTF-8 ({error}).") from error
        if not isinstance(row, dict):
            raise self._bad('it is not a JSON object, as in {"age": 31}.')
        return {normalize("NFC", name): value for name, value in row.items()}

    def _bad(self, message: str) -> RowError:
        return RowError(message, self._row, self._line)


def _texts(rows: list[dict[str, Any]], name: str, first: int) -> Iterator[str | None]:
    """The texts of a column."""
    for place, row in enumerate(rows):
        value = row.get(name)
        if isinstance(value, bool):
            yield "true" if value else "false"
        elif value is None or isinstance(value, str):
            yield value
        else:
            raise RowError(f"{name!r} holds a list or an object, not one value.", first + place)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys all differ."""
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a key is there twice")
    return row


_DECODER = json.JSONDecoder(
    parse_int=str, parse_float=str, parse_constant=str, object_pairs_hook=_once
)
