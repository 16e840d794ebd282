"""The meaning of the columns of a table: declared, never learned from rows.

number   x -> (x - shift) / scale
boolean  x -> 1 or 0
date     x -> (x - origin) / unit  (`dates`)
category x -> one column of 0 and 1 for each declared value
hashed   x -> one column of 0 and 1 for each bucket; the bucket is BLAKE2b(x) mod buckets

A declared value stands for missing numbers, booleans and dates, and a further column is 1 where
it does. What a column does not declare is not in its facts.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.sources.cells import FILL_IN, Cells, MayMiss
from traceless.sources.dates import Date

Labels = Literal["text", "int", "number", "none"]
TRUE, FALSE = ("true", "yes", "1"), ("false", "no", "0")
MOST_BUCKETS = 2**16


@dataclass(frozen=True)
class Number(MayMiss):
    """A column of numbers, shifted and scaled as declared.

    Parameters
    ----------
    name : str
    shift, scale : float
        The feature is (x - shift) / scale.
    missing : float, optional
        The number that stands for missing ones; a second feature is then 1 where it does. By
        default a missing number is refused.

    Examples
    --------
    >>> Number("age", shift=40, scale=12).width
    1
    >>> Number("age", missing=40).feature_names
    ['age', 'age missing']
    """

    name: str
    shift: float = 0.0
    scale: float = 1.0
    missing: float | None = None
    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        shift, scale = self.shift, self.scale
        numbers = {type(shift), type(scale)} <= {int, float}
        if not (numbers and math.isfinite(shift) and 0 < scale < math.inf):
            raise ValueError(
                f"Column {self.name!r}: the shift must be a finite number and the scale one "
                f"above 0, got {self.shift!r} and {self.scale!r}."
            )
        stand_in = self.missing
        if stand_in is not None and not (
            type(stand_in) in (int, float) and math.isfinite(stand_in)
        ):
            raise ValueError(
                f"Column {self.name!r}: what stands for a missing number must be a finite number, "
                f"got {stand_in!r}."
            )

    def encode(self, cells: Cells, out: Floats) -> None:
        """Fill one column of features, and the indicator of missing values."""
        values = cells.numbers_or_nan()
        values = _filled(values, cells, self.missing, "number", out)
        with np.errstate(over="ignore"):
            out[:, 0] = (values - self.shift) / self.scale
        cells.check_each(
            np.isfinite(out[:, 0]),
            f"a number is needed that stays finite as (x - {self.shift:g}) / {self.scale:g}",
        )


@dataclass(frozen=True)
class Boolean(MayMiss):
    """A column of truth values: 1 or 0. Words are compared without regard to case.

    Parameters
    ----------
    name : str
    true, false : sequence of str
        The words for 1 and for 0. Columns of truth values have "true" and "false", numbers 1
        and 0 have "1" and "0".
    missing : str, optional
        The word that stands for missing ones; a second feature is then 1 where it does. By
        default a missing value is refused.

    Examples
    --------
    >>> Boolean("smoker", ["ja"], ["nein"]).width
    1
    """

    name: str
    true: tuple[str, ...] = TRUE
    false: tuple[str, ...] = FALSE
    missing: str | None = None
    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        for field in ("true", "false"):
            words = tuple(getattr(self, field))
            _check_words(words, f"The words of column {self.name!r}")
            object.__setattr__(self, field, tuple([word.lower() for word in words]))
        _check_words((*self.true, *self.false), f"The words of column {self.name!r}")
        known = (*self.true, *self.false)
        if "" in known or (self.missing is not None and self.missing not in known):
            raise ValueError(
                f"Column {self.name!r}: what stands for a missing value must be one of "
                f"{', '.join(known)}, and none of these empty; got {self.missing!r}."
            )

    def encode(self, cells: Cells, out: Floats) -> None:
        """Fill one column of 0 and 1, and the indicator of missing values."""
        import pyarrow as pa
        import pyarrow.compute as pc

        words = pc.utf8_lower(pc.utf8_trim_whitespace(cells.words(whole_numbers=True)))
        known = pa.array(["", *self.true, *self.false])
        places = pc.index_in(words, known).fill_null(-1).to_numpy(zero_copy_only=False)
        listed = ", ".join([*self.true, *self.false])
        cells.check_each(places >= 0, f"one of the words {listed} is needed")
        values = np.where(places == 0, np.nan, places <= len(self.true))
        stand_in = None if self.missing is None else float(self.missing in self.true)
        out[:, 0] = _filled(values, cells, stand_in, "word", out)


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

        places = pc.index_in(cells.words(), pa.array(self.values))
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


Column = Number | Boolean | Date | Category | Hashed
KINDS: dict[str, type[Column]] = {
    kind.kind: kind for kind in (Number, Boolean, Date, Category, Hashed)
}


@dataclass(frozen=True)
class TextFormat:
    """How CSV and TSV are written.

    Parameters
    ----------
    delimiter : str, default=","
        The sign between the cells of CSV; TSV has tabs.
    decimal : {".", ","}, default="."
        The sign before the fraction of a number.
    nulls : sequence of str, optional
        Words that mean that a value is missing, as an empty cell does.
    """

    delimiter: str = ","
    decimal: str = "."
    nulls: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "nulls", tuple(self.nulls))
        if self.nulls:
            _check_words(self.nulls, "The words for missing values")
        if self.delimiter not in tuple(",;|:\t "):
            raise ValueError(
                f"The delimiter must be one of , ; | : or a tab or a blank, got {self.delimiter!r}."
            )
        if self.decimal not in (".", ","):
            raise ValueError(f"The decimal sign must be . or , and not {self.decimal!r}.")


@dataclass(frozen=True)
class Schema:
    """Which columns are features, target, weight and id.

    Parameters
    ----------
    columns : sequence of Number, Boolean, Date, Category or Hashed
        The features, in this order.
    target : sequence of str
        One column of labels, one or more of numbers to predict, or none.
    labels : {"text", "int", "number", "none"}, default="text"
        What the target is: words (the number 3 is then the word "3"), whole numbers as
        labels, or the numbers of a regression. "none" is for models that need no target.
    weight : str, optional
        Column of weights.
    classes : sequence of str or int, optional
        The labels that may occur; others are refused. By default any may.
    id : str, optional
        Column of the texts by which rows are known: no feature, and never needed to predict.
    text : TextFormat, optional
        How CSV and TSV are written; by default with commas (or tabs) and decimal points.

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
    id: str | None = None
    text: TextFormat = TextFormat()

    def __post_init__(self) -> None:
        for field in ("columns", "target", "classes"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        if not self.columns:
            raise ValueError("No columns are declared to learn from.")
        if self.labels not in ("text", "int", "number", "none"):
            raise ValueError(f"Labels must be text, int, number or none, got {self.labels!r}.")
        most = {"none": 0, "number": len(self.target)}.get(self.labels, 1)
        if len(self.target) > most or bool(self.target) == (self.labels == "none"):
            raise ValueError(
                "A column of labels is needed, or one or more of numbers to predict, or none with "
                f"labels='none'; got {len(self.target)} columns of labels={self.labels!r}."
            )
        others = [] if self.id is None else [self.id]
        _check_words([*self.names, *others], "The names of the columns, of target, weight and id")
        declared = [c for c in self.columns if getattr(c, "missing", None) is not None]
        both = {f"{column.name} missing" for column in declared} & set(self.features)
        if both:
            raise ValueError(
                f"{min(both)!r} is a column, and also the name of the indicator of missing values "
                "of another. Rename the column."
            )
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
        more: dict[str, Any] = {} if self.id is None else {"id": self.id}
        if self.text != TextFormat():
            more["text"] = _listed(self.text)
        return {
            "columns": [{"kind": column.kind} | _listed(column) for column in self.columns],
            "target": list(self.target),
            "labels": self.labels,
            "weight": self.weight,
            "classes": list(self.classes),
            **more,
        }

    @classmethod
    def from_facts(cls, facts: Any) -> Schema:
        """The schema that `facts` described; anything else is refused."""
        try:
            fields = dict(facts)
            columns = [dict(one) for one in fields.pop("columns")]
            if "text" in fields:
                fields["text"] = TextFormat(**fields["text"])
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


def _listed(declared: Column | TextFormat) -> dict[str, Any]:
    """The fields as JSON can hold them, without those that declare nothing."""
    fields = asdict(declared).items()
    return {n: list(v) if isinstance(v, tuple) else v for n, v in fields if v is not None}


def _filled(values: Floats, cells: Cells, missing: float | None, what: str, out: Floats) -> Floats:
    """The values with what stands for missing ones, which `out` then indicates."""
    empty = np.isnan(values)
    if missing is None:
        cells.check_each(~empty, f"a {what} is needed", FILL_IN.format(cells.name, "VALUE"))
        return values
    out[:, 1] = empty
    return np.where(empty, missing, values)


def _check_words(words: Any, what: str) -> None:
    """Raise unless there are words, each once."""
    if not words or [word for word in words if not isinstance(word, str)]:
        raise ValueError(f"{what} must be text, and at least one; got {list(words)}.")
    if len({*words}) < len(words):
        twice = min(word for word in words if words.count(word) > 1)
        raise ValueError(f"{what} must differ; {twice!r} is there twice.")
