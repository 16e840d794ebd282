"""The cells of a column in one batch: their values, and where they stand in the file.

A value means the same in every format: 3 is the word "3" in CSV and in Parquet, the text of a
number becomes the nearest float64, and an empty cell, a null and a NaN are all a missing value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.exceptions import TableError
from traceless.files.limits import refusal
from traceless.sources.arrow import floats, is_number

NUMBER = r"^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[nN][aA][nN])$"
GROUPED = r"^[+-]?[0-9]{1,3}([,.' ][0-9]{3})+([.,][0-9]*)?$"  # thousands kept apart
WHOLE = r"^[+-]?[0-9]{1,18}$"
WHOLE_FLOAT = r"^([+-]?[0-9]+)\.0+$"
FILL_IN = "Fill it in, or declare what stands for it: traceless new --missing {}={}."
TEXT = ("string", "large_string", "string_view")  # Arrow's names of one thing


class CellError(TableError):
    """A value does not fit its column."""

    def __init__(self, message: str, place: int) -> None:
        super().__init__(message)
        self.place = place  # of the row, in its batch


def row_number(row: int) -> str:
    """A row, counted from 0, as messages name it where a file has no lines."""
    return f"row {row + 1}"


class MayMiss:
    """A column of one feature, and a second one where values may be missing."""

    name: str
    missing: Any

    @property
    def feature_names(self) -> list[str]:
        """The name of the column, and of the indicator of missing values if there is one."""
        return [self.name] if self.missing is None else [self.name, f"{self.name} missing"]

    @property
    def width(self) -> int:
        """One feature, or two where missing values are declared."""
        return len(self.feature_names)


@dataclass(frozen=True)
class Cells:
    """The values of a column in one batch, and their position in the file."""

    array: Any  # pyarrow.Array
    name: str  # of the column
    where: str  # the file, for messages
    first: int  # number of the first row, counted from 0, without the header
    typed: bool  # whether the format gives each column a type; text does not
    decimal: str = "."  # what text has before the fraction of a number
    row_name: Callable[[int], str] = row_number  # of a row counted from 0: its line, for example

    def numbers(self) -> Floats:
        """As float64; missing values and infinities are refused."""
        out = self.numbers_or_nan()
        self.check_each(~np.isnan(out), "a number is needed")
        return out

    def numbers_or_nan(self) -> Floats:
        """As float64, with NaN for missing values; infinities are refused."""
        import pyarrow as pa

        array = self._plain()
        if pa.types.is_null(array.type):
            return np.full(len(array), np.nan)
        if not self.typed:
            array = self._number_texts(array)
        elif not is_number(array.type):
            raise self.unfit("numbers")
        out = floats(array).astype(np.float64, copy=False)
        self.check_each(~np.isinf(out), "a finite number is needed")
        return out

    def integers(self) -> Integers:
        """As int64; missing values and numbers with a fraction are refused."""
        import pyarrow as pa

        what, array = "a whole number is needed", self._plain()
        if not self.typed:
            words = self._trimmed(array)
            self.check_each(_matches(words, WHOLE), what)
            return np.array([int(word) for word in words.to_pylist()], dtype=np.int64)
        if pa.types.is_signed_integer(array.type) and not array.null_count:
            return np.asarray(array.cast(pa.int64()).to_numpy(zero_copy_only=False))
        values = self.numbers()
        self.check_each((np.trunc(values) == values) & (abs(values) <= 2**53), what)
        return values.astype(np.int64)

    def words(self, whole_numbers: bool = False) -> Any:
        """As an Arrow array of strings; a missing value is the empty word.

        Parameters
        ----------
        whole_numbers : bool, default=False
            Whether a column of floats may hold whole numbers, as one with missing values does
            where whole numbers cannot be missing.
        """
        import pyarrow as pa

        array = self._plain()
        fractions = pa.types.is_floating(array.type) or pa.types.is_decimal(array.type)
        if whole_numbers and fractions:
            array = self._whole()
        kinds = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_null)
        if str(array.type) not in TEXT and not any(test(array.type) for test in kinds):
            raise self.unfit("text, whole numbers or truth values")
        return array.cast(pa.string()).fill_null("")

    def labels(self) -> NDArray[Any]:
        """As an array of strings; missing labels are refused."""
        import pyarrow.compute as pc

        found = self.words()
        longest = pc.max(pc.utf8_length(found)).as_py() or 0  # NumPy gives each as much room
        what = f"{self.where}: the labels of column {self.name!r}"
        if said := refusal(what, 4 * len(found) * longest):
            raise TableError(said)
        words = np.asarray(found.to_numpy(zero_copy_only=False)).astype(np.str_)
        self.check_each(words != "", "the label is missing")
        return words

    def ids(self) -> list[str]:
        """As the canonical text of ids; missing ids are refused.

        17, 17.0, "17" and " 17.0 " are one id. A text is otherwise taken as it stands, without
        blanks around it and in Unicode's composed form: "017" is another id.
        """
        import pyarrow.compute as pc

        words = self.words(whole_numbers=True)
        words = pc.utf8_trim_whitespace(pc.utf8_normalize(words, form="NFC"))
        found: list[str] = pc.replace_substring_regex(words, WHOLE_FLOAT, r"\1").to_pylist()
        self.check_each(np.array([word != "" for word in found]), "an id is needed")
        return found

    def check_each(self, fits: NDArray[np.bool_], what: str, mend: str = "") -> None:
        """Raise an error that names the first row that does not fit.

        Parameters
        ----------
        fits : ndarray of bool
        what : str
            What is needed, as in "a number is needed".
        mend : str, optional
            A sentence that says what to do.
        """
        if fits.all():
            return
        place = int(np.argmin(fits))
        value = self.array[place].as_py()
        text = repr(value)
        shown = text if len(text) <= 40 else f"{text[:36]}...{text[-1]}"
        got = "there is none" if value is None or value == "" else f"got {shown}"
        row = self.row_name(self.first + place)
        said = f"{self.where}, {row}, column {self.name!r}: {what}, {got}."
        raise CellError(f"{said} {mend}".rstrip(), place)

    def unfit(self, wanted: str) -> TableError:
        """The error for a column of the wrong type."""
        from pyarrow import types

        kind = self.array.type
        dates = types.is_date(kind) or types.is_timestamp(kind)
        mend = f" Declare it with --date {self.name}." if dates else ""
        return TableError(
            f"{self.where}: column {self.name!r} must hold {wanted}, but is of type {kind}.{mend}"
        )

    def from_row(self, place: int) -> Cells:
        """The cells from this position on."""
        return replace(self, array=self.array[place:], first=self.first + place)

    def taken(self, places: list[int]) -> Cells:
        """The cells at these positions, which messages name by their rows in the file."""

        def row_name(k: int) -> str:
            return self.row_name(self.first + places[k])

        return replace(self, array=self.array.take(places), first=0, row_name=row_name)

    def _plain(self) -> Any:
        """The array, with the values of a dictionary in place of their numbers."""
        import pyarrow as pa

        kind = self.array.type
        return self.array.cast(kind.value_type) if pa.types.is_dictionary(kind) else self.array

    def _whole(self) -> Any:
        """Floats as whole numbers; nulls for NaN."""
        import pyarrow as pa

        values = self.numbers_or_nan()
        missing = np.isnan(values)
        known = np.where(missing, 0.0, values)
        fits = (np.trunc(known) == known) & (abs(known) <= 2**53)
        self.check_each(fits, "a text or a whole number is needed")
        return pa.array(known.astype(np.int64), mask=missing)

    def _trimmed(self, array: Any) -> Any:
        import pyarrow.compute as pc

        return pc.utf8_trim_whitespace(array.fill_null(""))

    def _number_texts(self, array: Any) -> Any:
        """Texts that are all numbers with a decimal point, and nulls."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.decimal == ".":
            with suppress(pa.ArrowInvalid):  # blanks, or no number; it does not say where
                values = array.cast(pa.float64())
                if not pc.any(pc.is_nan(values)).as_py():  # Arrow reads nan(7) too
                    return values
        words = self._trimmed(array)
        missing = pc.equal(words, "")
        fits = _matches(words, NUMBER.replace(r"\.", f"[{self.decimal}]"))
        fits |= missing.to_numpy(zero_copy_only=False)
        mend = "" if fits.all() else _mend(words[int(np.argmin(fits))].as_py(), self.decimal)
        self.check_each(fits, "a number is needed", mend)
        words = pc.replace_substring(words, self.decimal, ".")
        return pc.if_else(missing, pa.scalar(None, pa.string()), words)


def canonical_id(text: str) -> str:
    """An id that somebody typed, as `Cells.ids` would read it from a table."""
    import pyarrow as pa

    return Cells(pa.array([text]), "id", "the id", 0, typed=False).ids()[0]


def _matches(words: Any, pattern: str) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    found = pc.match_substring_regex(words, pattern).to_numpy(zero_copy_only=False)
    return np.asarray(found, dtype=np.bool_)


def _mend(word: str, decimal: str) -> str:
    """How to mend a text that is no number."""
    other, said = "," if decimal == "." else ".", ""
    if re.match(GROUPED, word):
        said = "Write numbers without signs or blanks between the thousands. "
    if re.match(NUMBER, word.replace(other, ".", 1)):
        said += f"If {other!r} stands before the fraction, declare --decimal {other!r}."
    return said
