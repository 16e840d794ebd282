"""The columns of a frame, by name, whatever made it: numbers, words or times.

A value means the same everywhere: 3 and 3.0 are the word "3", in CSV as in Parquet, the text of a
number becomes the nearest float64, and an empty cell, a null, None and NaN are all an absent value.
Frames that Arrow can read come as its arrays where pyarrow is installed, all others as arrays of
NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import chain
from numbers import Real
from typing import Any
from unicodedata import normalize

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.exceptions import TableError
from traceless.files.words import canonical_word

NUMBER = r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[nN][aA][nN])"
GROUPED = r"[+-]?[0-9]{1,3}([,.' ][0-9]{3})+([.,][0-9]*)?"  # thousands kept apart
Values = tuple[list[Any], Integers]  # the different ones, and which of them stands in each row


class CellError(TableError):
    """A value does not fit its column."""

    def __init__(self, message: str, place: int) -> None:
        super().__init__(message)
        self.place = place  # of the row, in its batch


@dataclass(frozen=True)
class Cells:
    """The values of a column."""

    array: Any  # of Arrow or NumPy
    name: str  # of the column
    where: str = "The data frame"  # or the file
    row_name: Callable[[int], str] = "row {}".format  # of a row counted from 0: its line, say
    decimal: str = "."  # what text has before the fraction of a number

    @property
    def is_arrow(self) -> bool:
        """Whether the values are those of an Arrow array."""
        return not isinstance(self.array, np.ndarray)

    @property
    def kind(self) -> str:
        """The type in one word: number, boolean, time, text, or another."""
        if self.is_arrow:
            return kind_of(self.array.type)
        return _NUMPY.get(self.array.dtype.kind, str(self.array.dtype))

    def numbers(self) -> Floats:
        """As float64, with NaN for absent values; infinities are refused."""
        if self.kind not in ("number", "boolean", "text"):
            raise self.unfit("numbers")
        out = self.floats()
        if out is None:  # text that has to be looked at, value by value
            values, places = self.distinct()
            known = [_number(value, self.decimal) for value in values]
            table = np.array([np.nan if one is None else one for one in known])
            wrong = np.array([one is None for one in known])[places]
            mend = ""
            if wrong.any():
                mend = _mend(str(values[places[int(np.argmax(wrong))]]), self.decimal)
            self.check_each(~wrong, "a number is needed", mend)
            out = table[places]
        self.check_each(~np.isinf(out), "a finite number is needed")
        return out

    def words(self) -> tuple[list[str], Integers]:
        """The different words and their places; an absent value is the empty word."""
        if self.kind not in ("number", "boolean", "text"):
            raise self.unfit("text, whole numbers or truth values")
        values, places = self.distinct()
        words = [word_of(value) for value in values]
        wrong = np.array([word is None for word in words])[places]
        self.check_each(~wrong, "a text or a whole number is needed")
        return [word or "" for word in words], places

    def distinct(self) -> Values:
        """The different values, as Python has them, and which of them stands in each row."""
        array = self.array
        if self.is_arrow:
            import pyarrow as pa

            coded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
            values = [*coded.dictionary.to_pylist(), None]
            indices = coded.indices.cast(pa.int64()).fill_null(len(values) - 1)
            return values, indices.to_numpy(zero_copy_only=False)
        if array.dtype.kind != "O":
            different, places = np.unique(array, return_inverse=True)
            return different.tolist(), places
        seen: dict[Any, int] = {}  # 1, 1.0 and True are equal
        keys = [value if type(value) is str else (type(value), value) for value in array.tolist()]
        places = np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.intp)
        return [key[1] if type(key) is tuple else key for key in seen], places

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
        value = self.array[place]
        value = value.as_py() if self.is_arrow else getattr(value, "item", lambda: value)()
        text = repr(value)
        shown = text if len(text) <= 40 else f"{text[:36]}...{text[-1]}"
        got = "there is none" if word_of(value) == "" else f"got {shown}"
        said = f"{self.where}, {self.row_name(place)}, column {self.name!r}: {what}, {got}."
        raise CellError(f"{said} {mend}".rstrip(), place)

    def unfit(self, wanted: str) -> TableError:
        """The error for a column of the wrong type."""
        kind = self.array.type if self.is_arrow else self.array.dtype
        mend = f" Declare it as Date({self.name!r})." if self.kind == "time" else ""
        return TableError(
            f"{self.where}: column {self.name!r} must hold {wanted}, but is of type {kind}.{mend}"
        )

    def floats(self) -> Floats | None:
        """As float64, if they are typed, or text of numbers with a decimal point; else None."""
        array = self.array
        if not self.is_arrow:
            return None if array.dtype.kind in "OU" else np.asarray(array, dtype=np.float64)
        import pyarrow as pa
        import pyarrow.compute as pc

        types = pa.types
        if types.is_dictionary(array.type):
            array = array.dictionary_decode()
        text = self.kind == "text" and not types.is_null(array.type)
        if text:
            array = pc.utf8_trim_whitespace(array)
            array = pc.if_else(pc.equal(array, ""), pa.scalar(None, array.type), array)
            if self.decimal != ".":
                if pc.any(pc.match_substring(array, ".")).as_py():
                    return None
                array = pc.replace_substring(array, self.decimal, ".")
        if types.is_decimal(array.type):  # Arrow's own cast does not round correctly
            array = array.cast(pa.string())
        with suppress(pa.ArrowInvalid):  # it does not say where
            values = array.cast(pa.float64(), safe=False)
            if not text or not pc.any(pc.is_nan(values)).as_py():  # Arrow reads nan(7) too
                return np.asarray(values.to_numpy(zero_copy_only=False))
        return None


_NUMPY = dict.fromkeys("iuf", "number") | {"b": "boolean", "M": "time", "O": "text", "U": "text"}
_ARROW = {
    "number": "integer floating decimal",
    "boolean": "boolean",
    "time": "date timestamp",
    "text": "string large_string string_view null",
}


def kind_of(arrow: Any) -> str:
    """A type of Arrow in one word: number, boolean, time, text, or another."""
    from pyarrow import types

    plain = arrow.value_type if types.is_dictionary(arrow) else arrow
    for said, tests in _ARROW.items():
        if True in [getattr(types, f"is_{test}")(plain) for test in tests.split()]:
            return said
    return str(plain)


@dataclass(frozen=True)
class Frame:
    """Named columns of equal length.

    Attributes
    ----------
    names : list of str
        Without an index of pandas, which is no column.
    n_rows : int
    index : tuple
        The names of an index of pandas.
    """

    names: list[str]
    n_rows: int
    _column: Callable[[str], Any]
    _cells: Cells = Cells(None, "")  # what all of them have in common
    index: tuple[Any, ...] = ()

    @classmethod
    def of(cls, X: Any) -> Frame | None:
        """The columns of a frame; None for arrays, matrices and everything else without names.

        Parameters
        ----------
        X : frame of pandas or polars, table of Arrow, DuckDB relation, dict of columns, list of
            dicts, or anything else that narwhals or Arrow can read
        """
        if isinstance(X, np.ndarray | Frame):
            return X if isinstance(X, Frame) else None
        if isinstance(X, list | tuple) and X and all(isinstance(row, Mapping) for row in X):
            keys = dict.fromkeys(key for row in X for key in row)
            X = {key: _objects([row.get(key) for row in X]) for key in keys}
        if isinstance(X, Mapping):
            columns = {_name(name): _objects(column) for name, column in X.items()}
            lengths = {len(column) for column in columns.values()}
            if len(lengths) > 1:
                raise ValueError(f"The columns have different numbers of rows: {sorted(lengths)}.")
            return cls([*columns], next(iter(lengths), 0), columns.__getitem__)
        try:
            eager: Any = nw.from_native(X, eager_only=True, pass_through=True)
            if isinstance(eager, nw.DataFrame) and not eager.implementation.is_pyarrow():
                return _of_narwhals(eager)
        except DuplicateError as error:
            raise ValueError(f"A column is there more than once: {error}") from None
        if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
            import pyarrow as pa

            with suppress(pa.ArrowInvalid):  # a single column has no name
                return cls.of_arrow(pa.table(X))
        return None

    @classmethod
    def of_arrow(cls, table: Any, cells: Cells | None = None) -> Frame:
        """A table or record batch of Arrow; `cells` says where it is from."""
        index, names = index_names(table.schema), [*map(_name, table.schema.names)]
        kept = [k for k, name in enumerate(names) if name not in index]
        places = {names[k]: k for k in kept}
        if len(places) < len(kept):
            raise ValueError("A column is there more than once. Give each a name of its own.")

        def column(name: str) -> Any:
            found = table.column(places[name])
            found = found.combine_chunks() if hasattr(found, "combine_chunks") else found
            return getattr(found, "storage", found)

        return cls([*places], table.num_rows, column, cells or cls._cells)

    def cells(self, name: str) -> Cells:
        """A column by its name; names are compared in Unicode's composed form."""
        self.check_names([name])
        return replace(self._cells, array=self._column(_name(name)), name=name)

    def head(self, name: str, n_rows: int) -> Cells:
        """The cells of the first rows."""
        cells = self.cells(name)
        return replace(cells, array=cells.array[:n_rows])

    def check_names(self, names: Sequence[str]) -> None:
        """Raise unless there are such columns."""
        missing = [name for name in names if _name(name) not in self.names]
        if missing:
            shown = ", ".join(map(repr, self.names[:20])) + (", ..." * (len(self.names) > 20))
            mend = f" {missing[0]!r} is its index: X.reset_index() makes a column of it."
            mend = mend if missing[0] in self.index else ""
            raise TableError(
                f"{self._cells.where} has no column {missing[0]!r}; it has {shown}.{mend}"
            )


def _of_narwhals(frame: Any) -> Frame:
    places = {_name(name): k for k, name in enumerate(frame.columns)}
    native, cells = frame.to_native(), Cells(None, "")
    if hasattr(native, "index"):
        cells = replace(cells, row_name=lambda k: f"row {native.index[k]!r}")
    has_arrow = find_spec("pyarrow") is not None

    def column(name: str) -> Any:
        series = frame[:, places[name]]
        if has_arrow:
            with suppress(Exception):  # values of several types, which Arrow has no column for
                found = series.to_arrow()
                found = found.combine_chunks() if hasattr(found, "combine_chunks") else found
                return getattr(found, "storage", found)
        return series.to_numpy()

    index = tuple(getattr(getattr(native, "index", None), "names", ()))
    return Frame([*places], len(frame), column, cells, index)


def index_names(schema: Any) -> frozenset[str]:
    """Columns in which a table of Arrow keeps an index of pandas or Dask: none of the frame's."""
    stored = (schema.pandas_metadata or {}).get("index_columns", [])
    nameless = filter(is_nameless_index, schema.names)
    return frozenset(map(_name, chain(nameless, (one for one in stored if isinstance(one, str)))))


def is_nameless_index(name: str) -> bool:
    """Whether a column is an index without a name, as pandas and Dask write it."""
    return re.fullmatch(r"__(index_level_\d+|null_dask_index)__", name) is not None


def _objects(values: Any) -> NDArray[Any]:
    """A column as an array; a list as one of objects, so that 1 and "1" stay two things."""
    if isinstance(values, list | tuple):
        return np.fromiter(values, dtype=object, count=len(values))
    found = np.asarray(values)
    if found.ndim != 1:
        raise ValueError(f"A column must have one dimension, got shape {found.shape}.")
    return found


def _name(name: Any) -> str:
    return normalize("NFC", str(name))


def _is_absent(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def word_of(value: Any) -> str | None:
    """A value as a word; None for what is no word.

    3, 3.0 and "3.0" are the word "3": pandas makes floats of whole numbers where one is absent.
    """
    if isinstance(value, str):
        return canonical_word(value)
    if _is_absent(value):
        return ""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, Real) or hasattr(value, "as_tuple"):  # of decimal
        return str(int(value)) if value == value // 1 else None
    return str(value.isoformat()) if hasattr(value, "isoformat") else None


def _number(value: Any, decimal: str) -> float | None:
    """A value as a number, NaN for an absent one; None for what is no number."""
    if isinstance(value, str):
        text = value.strip()
        if re.fullmatch(NUMBER.replace(r"\.", f"[{decimal}]"), text):
            return float(text.replace(decimal, "."))
        return None if text else np.nan
    if _is_absent(value):
        return np.nan
    return float(value) if isinstance(value, Real) or hasattr(value, "as_tuple") else None


def _mend(word: str, decimal: str) -> str:
    """How to mend a text that is no number."""
    other, said = "," if decimal == "." else ".", ""
    if re.fullmatch(GROUPED, word):
        said = "Write numbers without signs or blanks between the thousands. "
    if re.fullmatch(NUMBER, word.replace(other, ".", 1)):
        said += f"If {other!r} stands before the fraction, declare it: decimal = {other!r}."
    return said
