"""CSV and TSV: UTF-8 text with a header, read in blocks.

All cells are read as text, and the schema gives them their type later: no type is inferred, so
no value depends on the block in which it stands.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from traceless.exceptions import TableError

BLOCK = 2**21  # bytes parsed at a time, and Arrow reads 32 ahead; a row must fit
LONGEST_HEADER = 2**22


class Delimited:
    """An open CSV or TSV file, its header read."""

    typed = False

    def __init__(
        self, file: BinaryIO, size: int | None, delimiter: str, block: int = BLOCK
    ) -> None:
        self._body = _Body(file)
        self._size, self._delimiter, self._block = size, delimiter, block
        self.names = self._body.header(delimiter)

    def batches(self, wanted: list[str], rows: int) -> Iterator[tuple[Any, float | None]]:  # noqa: ARG002
        """Record batches of strings, and the fraction of the file that is read."""
        if self._body.is_at_end():
            return
        try:
            for number, batch in enumerate(self._reader(wanted)):
                yield batch, self._body.end_of_block(number) / self._size if self._size else None
        except ValueError as error:
            raise self._explained(error) from error
        if self._body.quotes % 2:
            raise TableError("a quoted value does not end: the number of quotation marks is odd.")

    def _reader(self, wanted: list[str]) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow

        return arrow.open_csv(
            self._body,
            arrow.ReadOptions(use_threads=False, block_size=self._block, column_names=self.names),
            arrow.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(self.names) > 1,  # else one is a missing value
            ),
            arrow.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.string()),
                include_columns=wanted,
                strings_can_be_null=False,
            ),
        )

    def _explained(self, error: ValueError) -> ValueError:
        """Arrow's error, or a plainer one where its meaning is known; Arrow counts rows from 1."""
        said = str(error)
        if row := re.search(r"Row #(\d+): Expected \d+ columns, got (\d+)", said):
            return TableError(
                f"row {int(row[1]) - 1} has {row[2]} values, and the header "
                f"{len(self.names)} columns."
            )
        if row := re.search(r"Row #(\d+): .*invalid UTF8", said):
            return TableError(f"row {int(row[1]) - 1} is not UTF-8 text.")
        if "straddles" in said:
            return TableError(f"a row is longer than {self._block} bytes; is a quote not closed?")
        return error


class _Body(io.RawIOBase):
    """The stream that Arrow reads after the header; it counts bytes and quotation marks."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._ahead = b""
        self.read_so_far = self.quotes = 0
        self._ends: list[int] = []  # of the blocks

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._ahead or self._file.read(size)
        data, self._ahead = (data, b"") if size < 0 else (data[:size], data[size:])
        self.read_so_far += len(data)
        self.quotes += data.count(b'"')
        self._ends.append(self.read_so_far)
        return data

    def end_of_block(self, number: int) -> int:
        """The bytes up to the end of a block; Arrow reads many blocks ahead, and parses in turn."""
        return self._ends[min(number, len(self._ends) - 1)]

    def is_at_end(self) -> bool:
        """Whether nothing but line ends is left."""
        while not self._ahead.strip(b"\r\n"):
            self._ahead = self._file.read(2**16)
            if not self._ahead:
                return True
        return False

    def header(self, delimiter: str) -> list[str]:
        """The names in the first line that is not empty; a quoted one may span lines."""
        line, quotes = bytearray(), 0
        while not line or quotes % 2:
            more = self._file.readline(LONGEST_HEADER)
            if not more and not line:
                raise TableError("it is empty.")
            if not more or len(line) + len(more) > LONGEST_HEADER:
                raise TableError("its first line is not a header.")
            self.read_so_far += len(more)
            if line or more.strip():
                line += more
                quotes += more.count(b'"')
        try:
            text = line.decode("utf-8-sig").strip("\r\n")
            return next(csv.reader([text], delimiter=delimiter, strict=True))
        except (UnicodeDecodeError, csv.Error) as error:
            raise TableError(f"its first line is not a header of UTF-8 text ({error}).") from error
