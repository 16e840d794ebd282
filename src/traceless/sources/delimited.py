"""CSV and TSV: UTF-8 text with a header, read in blocks.

All cells are read as text, and the schema gives them their type later: no type is inferred, so
no value depends on the block in which it stands. Excel's habits are known: a byte-order mark, a
first line such as ``sep=;``, and rows in which every cell is blank, which are no rows.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO
from unicodedata import normalize

from traceless.exceptions import TableError

BLOCK = 2**21  # bytes parsed at a time, and Arrow reads 32 ahead; a row must fit
LONGEST_HEADER = 2**22
_MEND = 'save it as "CSV UTF-8", or say how it is written: encoding = "cp1252"'


class RowError(TableError):
    """A row cannot be read.

    Parameters
    ----------
    message : str
    row : int
        Counted from 0, without the header.
    line : int, optional
        Counted from 1, where it is known.
    """

    def __init__(self, message: str, row: int, line: int | None = None) -> None:
        super().__init__(message)
        self.row, self.line = row, line


class Delimited:
    """An open CSV or TSV file, its header read.

    Parameters
    ----------
    file : binary file
    delimiter : str
    nulls : sequence of str
        Words that stand for missing values.
    block : int
        Bytes parsed at a time.
    """

    def __init__(
        self,
        file: BinaryIO,
        delimiter: str = ",",
        nulls: Sequence[str] = (),
        block: int = BLOCK,
    ) -> None:
        self._body = _Body(file)
        self._nulls, self._block = nulls, block
        self.names = self._body.header(delimiter)
        self.delimiter = self._body.delimiter

    def batches(self, wanted: Sequence[str], rows: int) -> Iterator[Any]:  # noqa: ARG002
        """Record batches of strings."""
        if self._body.is_at_end():
            return
        try:
            for batch in self._reader():
                there = _without_blank_rows(batch)
                yield there.select(wanted)
        except ValueError as error:
            raise self._explained(error) from error
        if self._body.quotes % 2:
            raise TableError("a quoted value does not end: the number of quotation marks is odd.")

    def line_of(self, file: BinaryIO, row: int, blank: bool = False) -> int | None:
        """The line in which a row begins, as editors count: from 1, with the header.

        Parameters
        ----------
        file : binary file
            The same file, opened anew.
        row : int
            Counted from 0, without the header.
        blank : bool, default=False
            Whether rows of blank cells were counted.

        Returns
        -------
        int or None
            None if Python's reader does not follow Arrow's.
        """
        found, before = -1, 0  # the row that comes next, -1 is the header; lines before it
        with io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="") as lines:
            reader = csv.reader(lines, delimiter=self.delimiter)
            try:
                for values in reader:
                    is_first = before == 0 and values[:1] and values[0].startswith("sep=")
                    no_row = not values or bool(is_first)
                    if not blank or found < 0:
                        no_row = no_row or not "".join(values)
                    if not no_row or (found >= 0 and len(self.names) == 1):
                        if found == row:
                            return before + 1
                        found += 1
                    before = reader.line_num
            except csv.Error:
                pass
        return None

    def _reader(self) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow

        once = [name for name, times in Counter(self.names).items() if times == 1]
        return arrow.open_csv(
            self._body,
            arrow.ReadOptions(use_threads=False, block_size=self._block, column_names=self.names),
            arrow.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(self.names) > 1,  # else one is a missing value
            ),
            arrow.ConvertOptions(
                column_types=dict.fromkeys(once, pa.string()),
                include_columns=once,
                null_values=list(self._nulls),
                strings_can_be_null=bool(self._nulls),
            ),
        )

    def _explained(self, error: ValueError) -> ValueError:
        """Arrow's error, or a plainer one where its meaning is known; Arrow counts rows from 1."""
        said = str(error)
        if row := re.search(r"Row #(\d+): Expected \d+ columns, got (\d+)", said):
            return RowError(
                f"it has {row[2]} values, and the header {len(self.names)} columns. A value that "
                "holds the delimiter must be in quotes.",
                int(row[1]) - 1,
            )
        if row := re.search(r"Row #(\d+): .*invalid UTF8", said):
            return RowError(f"it is not UTF-8 text; {_MEND}.", int(row[1]) - 1)
        if "straddles" in said:
            return TableError(f"a row is longer than {self._block} bytes; is a quote not closed?")
        return error


class _Body(io.RawIOBase):
    """The stream that Arrow reads after the header; it counts quotation marks."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._ahead, self.quotes = file, b"", 0
        self.delimiter = ","

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._ahead or self._file.read(size)
        data, self._ahead = (data, b"") if size < 0 else (data[:size], data[size:])
        self.quotes += data.count(b'"')
        return data

    def is_at_end(self) -> bool:
        """Whether nothing but line ends is left."""
        while not self._ahead.strip(b"\r\n"):
            self._ahead = self._file.read(2**10)
            if not self._ahead:
                return True
        return False

    def header(self, delimiter: str) -> list[str]:
        """The names in the first line that is not empty; a quoted one may span lines."""
        line, quotes, self.delimiter = bytearray(), 0, delimiter
        while not line or quotes % 2:
            more = self._file.readline(LONGEST_HEADER)
            if not more and not line:
                raise TableError("it is empty.")
            if not more or len(line) + len(more) > LONGEST_HEADER:
                raise TableError("its first line is not a header.")
            said = None if line else re.fullmatch(rb'(\xef\xbb\xbf)?"?sep=(.)"?[\r\n]*', more)
            if said:  # Excel's own word for it
                self.delimiter = said[2].decode()
            elif line or more.strip(b"\xef\xbb\xbf\r\n " + self.delimiter.encode()):
                line += more
                quotes += more.count(b'"')
        try:
            text = line.decode("utf-8-sig").strip("\r\n")
            names = next(csv.reader([text], delimiter=self.delimiter, strict=True))
            return [normalize("NFC", name) for name in names]
        except (UnicodeDecodeError, csv.Error) as error:
            is_utf16 = line.startswith((b"\xff\xfe", b"\xfe\xff"))
            mend = _MEND.replace("cp1252", "utf-16") if is_utf16 else _MEND
            raise TableError(
                f"its first line is not a header of UTF-8 text ({error}); {mend}."
            ) from error


def _without_blank_rows(batch: Any) -> Any:
    """The rows that have a value; of a single column all, where a blank is an absent value."""
    import pyarrow.compute as pc

    blank = None
    for column in batch.columns if batch.num_columns > 1 else ():
        empty = pc.fill_null(pc.equal(column, ""), True)
        blank = empty if blank is None else pc.and_(blank, empty)
        if not pc.any(blank).as_py():
            return batch
    return batch if blank is None else batch.filter(pc.invert(blank))
