"""The meaning of the columns of a table: declared, never learned from rows.

number   x -> (x - shift) / scale
category x -> one column of 0 and 1 for each declared value
hashed   x -> one column of 0 and 1 for each bucket; the bucket is BLAKE2b(x) mod buckets

A value means the same in every format: 3 is the word "3" in CSV and in Parquet, and the text of
a number becomes the nearest float64.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.exceptions import TableError
from traceless.sources.arrow import is_number

Labels = Literal["text", "int", "number"]
MOST_BUCKETS = 2**16
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
WHOLE = r"^[+-]?[0-9]{1,18}$"
TEXT = ("string", "large_string", "string_view")  # Arrow's names of one thing


@dataclass(frozen=True)
class Cells:
    """The values of a column in one batch, and their position in the file."""

    array: Any  # pyarrow.Array
    name: str  # of the column
    where: str  # the file, for messages
    first: int  # number of the first row, counted from 0, without the header
    typed: bool  # whether the format gives each column a type; CSV does not

    def numbers(self) -> Floats:
        """As float64; missing values, NaN and infinities are refused."""
        import pyarrow as pa

        self._check_complete()
        array = self.array
        if not self.typed:  # text, with blanks around it allowed
            try:
                array = array.cast(pa.float64())
            except pa.ArrowInvalid:  # which does not say where
                array = self._matching(NUMBER, "a number is needed")
        elif not is_number(array.type):
            raise self._unfit("numbers")
        elif pa.types.is_decimal(array.type):  # Arrow's own cast does not round correctly
            array = array.cast(pa.string())
        out = np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
        self.check_each(np.isfinite(out), "a finite number is needed")
        return out

    def integers(self) -> Integers:
        """As int64; numbers with a fraction are refused."""
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

    def _matching(self, pattern: str, what: str) -> Any:
        """The words without blanks around them, if all match the pattern."""
        import pyarrow.compute as pc

        words = pc.utf8_trim_whitespace(self.array)
        fits = pc.match_substring_regex(words, pattern)
        self.check_each(fits.to_numpy(zero_copy_only=False), what)
        return words


@dataclass(frozen=True)
class Number:
    """A column of numbers, shifted and scaled as declared.

    Examples
    --------
    >>> Number("age", shift=40, scale=12).width
    1
    """

    name: str
    shift: float = 0.0
    scale: float = 1.0
    kind: ClassVar[str] = "number"
    width: ClassVar[int] = 1

    @property
    def feature_names(self) -> list[str]:
        """The name of the column."""
        return [self.name]

    def __post_init__(self) -> None:
        shift, scale = self.shift, self.scale
        numbers = {type(shift), type(scale)} <= {int, float}
        if not (numbers and math.isfinite(shift) and 0 < scale < math.inf):
            raise ValueError(
                f"Column {self.name!r}: the shift must be a finite number and the scale one "
                f"above 0, got {self.shift!r} and {self.scale!r}."
            )

    def encode(self, cells: Cells, out: Floats) -> None:
        """Fill one column of features."""
        out[:, 0] = (cells.numbers() - self.shift) / self.scale


@dataclass(frozen=True)
class Category:
    """A column of words, one feature for each declared value; others are refused.

    Declare the empty value to let missing ones be a category of their own.

    Examples
    --------
    >>> Category("color", ("red", "green")).width
    2
    """

    name: str
    values: tuple[str, ...]
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        _check_words(self.values, f"The categories of column {self.name!r}")

    @property
    def feature_names(self) -> list[str]:
        """The column and each of its values."""
        return [f"{self.name}={value}" for value in self.values]

    @property
    def width(self) -> int:
        """One feature for each value."""
        return len(self.values)

    def encode(self, cells: Cells, out: Floats) -> None:
        """Fill a column of 0 and 1 for each value."""
        import pyarrow as pa
        import pyarrow.compute as pc

        places = pc.index_in(cells.words(missing=""), pa.array(self.values))
        known = places.is_valid().to_numpy(zero_copy_only=False)
        listed = ", ".join(map(repr, self.values[:20]))
        cells.check_each(known, f"one of the categories {listed} is needed")
        out[np.arange(len(places)), places.to_numpy(zero_copy_only=False)] = 1.0


@dataclass(frozen=True)
class Hashed:
    """A column of words without a list of values: each word falls into a bucket by its hash.

    Examples
    --------
    >>> Hashed("city", 64).width
    64
    """

    name: str
    buckets: int
    kind: ClassVar[str] = "hashed"

    def __post_init__(self) -> None:
        if type(self.buckets) is not int or not 1 <= self.buckets <= MOST_BUCKETS:
            raise ValueError(
                f"Column {self.name!r}: the number of buckets must be between 1 and "
                f"{MOST_BUCKETS}, got {self.buckets!r}."
            )

    @property
    def feature_names(self) -> list[str]:
        """The column and the number of each of its bins."""
        return [f"{self.name}#{k}" for k in range(self.width)]

    @property
    def width(self) -> int:
        """One feature for each bucket."""
        return self.buckets

    def encode(self, cells: Cells, out: Floats) -> None:
        """Fill a column of 0 and 1 for each bucket."""
        words = cells.words().dictionary_encode()
        hashes = (
            hashlib.blake2b(word.encode(), digest_size=8).digest()
            for word in words.dictionary.to_pylist()
        )
        buckets = [int.from_bytes(digest, "little") % self.buckets for digest in hashes]
        places = np.array(buckets, dtype=np.intp)[words.indices.to_numpy(zero_copy_only=False)]
        out[np.arange(len(places)), places] = 1.0


Column = Number | Category | Hashed
KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (Number, Category, Hashed)}


@dataclass(frozen=True)
class Schema:
    """Which columns are features, target and weight.

    Parameters
    ----------
    columns : sequence of Number, Category or Hashed
        The features, in this order.
    target : sequence of str
        One column of labels, or one or more of numbers to predict.
    labels : {"text", "int", "number"}, default="text"
        What the target is: words (the number 3 is then the word "3"), whole numbers as
        labels, or the numbers of a regression.
    weight : str, optional
        Column of weights.
    classes : sequence of str or int, optional
        The labels that may occur; others are refused. By default any may.

    Examples
    --------
    >>> from traceless.sources import Category, Number, Schema
    >>> schema = Schema([Number("age"), Category("color", ("red", "green"))], ["bought"])
    >>> schema.width
    3
    >>> Schema.from_facts(schema.facts()) == schema
    True
    """

    columns: tuple[Column, ...]
    target: tuple[str, ...]
    labels: Labels = "text"
    weight: str | None = None
    classes: tuple[str, ...] | tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for field in ("columns", "target", "classes"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        if not self.columns:
            raise ValueError("No columns are declared to learn from.")
        if self.labels not in ("text", "int", "number"):
            raise ValueError(f"Labels must be text, int or number, got {self.labels!r}.")
        if not self.target or (self.labels != "number" and len(self.target) > 1):
            raise ValueError(
                "A column of labels is needed, or one or more of numbers to predict; got "
                f"{len(self.target)} columns of labels={self.labels!r}."
            )
        _check_words(self.names, "The names of the columns, of target and weight")
        if self.classes and self.labels == "text":
            _check_words(self.classes, "The classes")
        wanted = {"text": str, "int": int}.get(self.labels)
        if any(type(label) is not wanted for label in self.classes):
            raise ValueError(f"Classes {list(self.classes)} do not suit labels={self.labels!r}.")

    @property
    def feature_names(self) -> list[str]:
        """The names of the features that the columns give to a model, in order."""
        return [name for column in self.columns for name in column.feature_names]

    @property
    def width(self) -> int:
        """Number of features."""
        return sum([column.width for column in self.columns])

    @property
    def features(self) -> list[str]:
        """Names of the columns that are features."""
        return [column.name for column in self.columns]

    @property
    def names(self) -> list[str]:
        """Names of all columns: features, target, weight."""
        return [*self.features, *self.target, *([] if self.weight is None else [self.weight])]

    def facts(self) -> dict[str, Any]:
        """The schema as JSON can hold it."""
        return {
            "columns": [_facts(column) for column in self.columns],
            "target": list(self.target),
            "labels": self.labels,
            "weight": self.weight,
            "classes": list(self.classes),
        }

    @classmethod
    def from_facts(cls, facts: Any) -> Schema:
        """The schema that `facts` described; anything else is refused."""
        try:
            fields = dict(facts)
            columns = [dict(one) for one in fields.pop("columns")]
            schema = cls(tuple([KINDS[one.pop("kind")](**one) for one in columns]), **fields)
            if schema.facts() != facts:
                raise ValueError("it does not describe itself")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"This is not the schema of a table: {error}.") from error
        return schema

    def target_of(self, cells: Cells) -> NDArray[Any]:
        """Any column as numbers to predict, or as labels of the declared type and classes."""
        if self.labels == "number":
            return cells.numbers()
        found = cells.integers() if self.labels == "int" else cells.labels()
        if self.classes:
            listed = ", ".join(map(repr, self.classes[:20]))
            known = np.isin(found, self.classes)
            cells.check_each(known, f"one of the classes {listed} is needed")
        return found


def _facts(column: Column) -> dict[str, Any]:
    fields = asdict(column).items()
    return {"kind": column.kind} | {n: list(v) if isinstance(v, tuple) else v for n, v in fields}


def _check_words(words: Any, what: str) -> None:
    """Raise unless there are words, each once."""
    if not words or [word for word in words if not isinstance(word, str)]:
        raise ValueError(f"{what} must be text, and at least one; got {list(words)}.")
    if len({*words}) < len(words):
        twice = min(word for word in words if words.count(word) > 1)
        raise ValueError(f"{what} must differ; {twice!r} is there twice.")
