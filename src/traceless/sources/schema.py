"""What the columns of a table mean: declared, and never learned from rows.

number   x -> (x - shift) / scale
category x -> one column of 0 and 1 for each declared value
hashed   x -> one column of 0 and 1 for each bucket; the bucket is BLAKE2b(x) mod buckets
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.sources.cells import Cells

Labels = Literal["text", "int", "number"]
MOST_BUCKETS = 2**16


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
    """A column of words that nobody can list: each falls into a bucket by its hash.

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
