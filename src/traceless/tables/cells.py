"""Cells: one column of a batch, as numbers, whole numbers or words.

The same value means the same whatever the file: 3 is the word "3" in CSV and in Parquet, and
the text of a number is taken to the nearest float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.distributed.arrow import is_number
from traceless.exceptions import TableError

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
WHOLE = r"^[+-]?[0-9]{1,18}$"
TEXT = ("string", "large_string", "string_view")  # Arrow's names of one thing


@dataclass(frozen=True)
class Cells:
    """The values of a column in one batch, and where they stand.

    Attributes
    ----------
    array : pyarrow.Array
    name : str
        Of the column.
    where : str
        The file, for messages.
    first : int
        Number of the first row; rows are counted from 1, without the header.
    typed : bool
        Whether the file says what type a column has; CSV does not.
    """

    array: Any
    name: str
    where: str
    first: int
    typed: bool

    def numbers(self) -> Floats:
        """As float64: each value finite, each there."""
        import pyarrow as pa

        self._check_complete()
        kind = self.array.type
        if not self.typed:
            values = self._parsed()
        elif pa.types.is_decimal(kind):  # by way of its digits, which are rounded once
            values = self.array.cast(pa.string()).cast(pa.float64())
        elif is_number(kind):
            values = self.array.cast(pa.float64(), safe=False)
        else:
            raise self.unfit("numbers")
        out = np.asarray(values.to_numpy(zero_copy_only=False))
        if not np.isfinite(out).all():
            raise self.refused(int(np.argmin(np.isfinite(out))), "a finite number is needed")
        return out

    def integers(self) -> Integers:
        """As int64, if each is a whole number."""
        import pyarrow as pa

        self._check_complete()
        kind = self.array.type
        if not self.typed:
            words = self._matching(WHOLE, "a whole number is needed").to_pylist()
            return np.array([int(word) for word in words], dtype=np.int64)
        if pa.types.is_signed_integer(kind):
            return np.asarray(self.array.cast(pa.int64()).to_numpy(zero_copy_only=False))
        values = self.numbers()
        whole = (np.trunc(values) == values) & (abs(values) <= 2**53)
        if not whole.all():
            raise self.refused(int(np.argmin(whole)), "a whole number is needed")
        return values.astype(np.int64)

    def words(self, missing: str | None = None) -> Any:
        """As an Arrow array of strings; nulls become `missing`, or are refused."""
        import pyarrow as pa

        array = self.array
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        kinds = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_null)
        if str(array.type) not in TEXT and not any(test(array.type) for test in kinds):
            raise self.unfit("text, whole numbers or truth values")
        if missing is None:
            self._check_complete()
            return array.cast(pa.string())
        return array.cast(pa.string()).fill_null(missing)

    def labels(self) -> NDArray[Any]:
        """Words as NumPy's strings; the empty one is a missing label."""
        words = np.asarray(self.words().to_numpy(zero_copy_only=False)).astype(np.str_)
        empty = words == ""
        if empty.any():
            raise self.refused(int(np.argmax(empty)), "the label is missing")
        return words

    def refused(self, place: int, what: str) -> TableError:
        """What to raise for the value at a place of this batch."""
        value = self.array[place].as_py()
        got = "there is none" if value is None or value == "" else f"got {_shown(value)}"
        return TableError(
            f"{self.where}, row {self.first + place}, column {self.name!r}: {what}, {got}."
        )

    def unfit(self, wanted: str) -> TableError:
        """What to raise for a column of another type."""
        return TableError(
            f"{self.where}: column {self.name!r} must hold {wanted}, but is of type "
            f"{self.array.type}."
        )

    def _check_complete(self) -> None:
        if self.array.null_count:
            place = int(np.argmax(self.array.is_null().to_numpy(zero_copy_only=False)))
            raise self.refused(place, "a value is needed")

    def _parsed(self) -> Any:
        """Text to the nearest float64; blanks around it are allowed."""
        import pyarrow as pa

        try:
            return self.array.cast(pa.float64())
        except pa.ArrowInvalid:  # which does not say where
            return self._matching(NUMBER, "a number is needed").cast(pa.float64())

    def _matching(self, pattern: str, what: str) -> Any:
        """The words without blanks around them, if all are of the pattern."""
        import pyarrow.compute as pc

        words = pc.utf8_trim_whitespace(self.array)
        fits = pc.match_substring_regex(words, pattern).to_numpy(zero_copy_only=False)
        if not fits.all():
            raise self.refused(int(np.argmin(fits)), what)
        return words


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:36]}...{text[-1]}"
