"""Cells: one column of a table's batch, as numbers, whole numbers or words.

A value means the same in every format: 3 is the word "3" in CSV and in Parquet, and
the text of a number is taken to the nearest float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.exceptions import TableError
from traceless.sources.arrow import is_number

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
        Whether the format gives each column a type; CSV does not.
    """

    array: Any
    name: str
    where: str
    first: int
    typed: bool

    def numbers(self) -> Floats:
        """As float64; missing values, NaN and infinities are refused."""
        import pyarrow as pa

        self._check_complete()
        array = self.array
        if not self.typed:
            array = self._parsed()
        elif not is_number(array.type):
            raise self._unfit("numbers")
        elif pa.types.is_decimal(array.type):  # Arrow's own cast does not round correctly
            array = array.cast(pa.string())
        array = array.cast(pa.float64(), safe=False)
        out: Floats = np.asarray(array.to_numpy(zero_copy_only=False))
        self.check_each(np.isfinite(out), "a finite number is needed")
        return out

    def integers(self) -> Integers:
        """As int64; other than whole numbers are refused."""
        import pyarrow as pa

        self._check_complete()
        if not self.typed:
            words = self._matching(WHOLE, "a whole number is needed").to_pylist()
            return np.array([int(word) for word in words], dtype=np.int64)
        if pa.types.is_signed_integer(self.array.type):
            return np.asarray(self.array.cast(pa.int64()).to_numpy(zero_copy_only=False))
        values = self.numbers()
        whole = (np.trunc(values) == values) & (abs(values) <= 2**53)
        self.check_each(whole, "a whole number is needed")
        return values.astype(np.int64)

    def words(self, missing: str | None = None) -> Any:
        """As an Arrow array of strings; nulls become `missing`, or are refused."""
        import pyarrow as pa

        array = self.array
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        kinds = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_null)
        if str(array.type) not in TEXT and not any(test(array.type) for test in kinds):
            raise self._unfit("text, whole numbers or truth values")
        if missing is None:
            self._check_complete()
            return array.cast(pa.string())
        return array.cast(pa.string()).fill_null(missing)

    def labels(self) -> NDArray[Any]:
        """As an array of strings; nulls and empty strings are refused as missing labels."""
        words = np.asarray(self.words().to_numpy(zero_copy_only=False)).astype(np.str_)
        self.check_each(words != "", "the label is missing")
        return words

    def check_each(self, fits: NDArray[np.bool_], what: str) -> None:
        """Raise an error that names the first row that does not fit."""
        if fits.all():
            return
        place = int(np.argmin(fits))
        value = self.array[place].as_py()
        text = repr(value)
        shown = text if len(text) <= 40 else f"{text[:36]}...{text[-1]}"
        got = "there is none" if value is None or value == "" else f"got {shown}"
        raise TableError(
            f"{self.where}, row {self.first + place}, column {self.name!r}: {what}, {got}."
        )

    def _unfit(self, wanted: str) -> TableError:
        return TableError(
            f"{self.where}: column {self.name!r} must hold {wanted}, but is of type "
            f"{self.array.type}."
        )

    def _check_complete(self) -> None:
        if self.array.null_count:
            present = self.array.is_valid().to_numpy(zero_copy_only=False)
            self.check_each(present, "a value is needed")

    def _parsed(self) -> Any:
        """Text to the nearest float64; blanks around it are allowed."""
        import pyarrow as pa

        try:
            return self.array.cast(pa.float64())
        except pa.ArrowInvalid:  # which does not say where
            return self._matching(NUMBER, "a number is needed").cast(pa.float64())

    def _matching(self, pattern: str, what: str) -> Any:
        """The words without blanks around them, if all match the pattern."""
        import pyarrow.compute as pc

        words = pc.utf8_trim_whitespace(self.array)
        fits = pc.match_substring_regex(words, pattern)
        self.check_each(fits.to_numpy(zero_copy_only=False), what)
        return words
