"""What the columns of a table mean: declared, never learned from rows.

number    x -> (x - shift) / scale, and an indicator of absent values
boolean   x -> 1 or 0, and an indicator
date      x -> (x - origin) / unit, and an indicator  (`dates`)
category  x -> 1 in the feature of its value
hashed    x -> 1 in the feature of its bucket, BLAKE2b(x) mod buckets

An absent value is 0 in all features of its column but the indicator, whose coefficient learns what
stands for it. Without the value's own features a category needs none: the intercept stands for it.

Each kind turns cells into one number, NaN where there is none (`read`), and such numbers, which may
come as an array, into features (`write`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, cast
from unicodedata import normalize

import numpy as np

from traceless.arithmetic.integers import Floats
from traceless.exceptions import RangeError
from traceless.features.cells import Cells, word_of
from traceless.features.dates import (
    UNITS,
    Moment,
    is_format,
    moment_of,
    moments,
    nanoseconds_of,
    quotients,
)

TRUE, FALSE = ("true", "yes", "1"), ("false", "no", "0")
MOST_BUCKETS = 2**16


@dataclass(frozen=True, repr=False)
class Column:
    """Base of all kinds of columns.

    Parameters
    ----------
    name : str
    required : bool, default=False
        Whether absent values are refused.
    """

    name: str
    required: bool = field(default=False, kw_only=True)
    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"The name of a column must be text, got {self.name!r}.")
        object.__setattr__(self, "name", normalize("NFC", self.name))
        if not isinstance(self.required, bool):
            raise self._unfit(f"required must be True or False, got {self.required!r}")

    @cached_property
    def feature_names(self) -> list[str]:
        """The column, and the indicator of absent values unless they are refused."""
        return [self.name] if self.required else [self.name, f"{self.name} missing"]

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def divisor(self) -> float:
        """How much of the number that is read makes 1 of the feature."""
        return 1.0

    def __repr__(self) -> str:
        said = self.facts()
        words = [
            repr(self.name),
            *(f"{k}={v!r}" for k, v in said.items() if k not in ("kind", "name")),
        ]
        return f"{type(self).__name__}({', '.join(words)})"

    def facts(self) -> dict[str, Any]:
        """What is declared, in JSON's types; defaults are left out."""
        said: dict[str, Any] = {"kind": self.kind}
        for one in fields(self):
            value = getattr(self, one.name)
            if value != one.default:
                said[one.name] = list(value) if isinstance(value, tuple) else value
        return said

    def numbers(self, cells: Cells) -> Floats:
        """One number for each row, NaN for absent values; raises if these are refused."""
        found = self.read(cells)
        if self.required:
            mend = f"Fill it in, or declare {type(self).__name__}({self.name!r}) as not required."
            cells.check_each(~np.isnan(found), f"a {self.kind} is needed", mend)
        return found

    def read(self, cells: Cells) -> Floats:
        """One number for each row, NaN for absent values."""
        raise NotImplementedError

    def write(self, x: Floats, out: Floats) -> None:
        """Fill the features, which are 0, for such numbers."""
        absent = np.isnan(x)
        out[:, 0] = np.where(absent, 0.0, x)
        if not self.required:
            out[:, 1] = absent

    def _unfit(self, said: str) -> ValueError:
        return ValueError(f"Column {self.name!r}: {said}.")

    def _check_words(self, words: Sequence[Any], what: str) -> None:
        """Raise unless there are words, each once."""
        if not words or not all(isinstance(word, str) for word in words):
            raise self._unfit(f"{what} must be words, and at least one; got {list(words)}")
        if len({*words}) < len(words):
            twice = min(word for word in words if words.count(word) > 1)
            raise self._unfit(f"{what} must differ; {twice!r} is there twice")


@dataclass(frozen=True, repr=False)
class Number(Column):
    """A column of numbers, shifted and scaled as declared.

    Parameters
    ----------
    name : str
    shift, scale : float
        The feature is (x - shift) / scale.
    required : bool, default=False
        Whether absent values are refused. If not, a second feature indicates them.

    Examples
    --------
    >>> Number("age", shift=40, scale=12).feature_names
    ['age', 'age missing']
    """

    shift: float = 0.0
    scale: float = 1.0
    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        super().__post_init__()
        shift, scale = self.shift, self.scale
        numbers = {type(shift), type(scale)} <= {int, float}
        if not (numbers and math.isfinite(shift) and 0 < scale < math.inf):
            raise self._unfit(
                "the shift must be a finite number and the scale one above 0, got "
                f"{shift!r} and {scale!r}"
            )
        for name, value in (("shift", shift), ("scale", scale)):  # 12 and 12.0 are one declaration
            object.__setattr__(self, name, float(value))

    @property
    def divisor(self) -> float:
        """The scale."""
        return self.scale

    def read(self, cells: Cells) -> Floats:  # noqa: D102
        found = cells.numbers()
        with np.errstate(over="ignore"):
            stays = ~np.isinf((found - self.shift) / self.scale)
        formula = f"(x - {self.shift:g}) / {self.scale:g}"
        cells.check_each(stays, f"a number is needed that stays finite as {formula}")
        return found

    def write(self, x: Floats, out: Floats) -> None:  # noqa: D102
        with np.errstate(over="ignore"):  # codes beyond 2^53 are refused
            super().write((x - self.shift) / self.scale, out)


@dataclass(frozen=True, repr=False)
class Boolean(Column):
    """A column of truth values: 1 or 0. Words are compared without regard to case.

    Parameters
    ----------
    name : str
    true, false : sequence of str
        The words for 1 and for 0. Columns of truth values have "true" and "false", numbers 1
        and 0 have "1" and "0".
    required : bool, default=False
        Whether absent values are refused. If not, a second feature indicates them.

    Examples
    --------
    >>> Boolean("smoker", ["ja"], ["nein"], required=True).feature_names
    ['smoker']
    """

    true: tuple[str, ...] = TRUE
    false: tuple[str, ...] = FALSE
    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_words([*self.true, *self.false], "the words")
        for name in ("true", "false"):
            words = tuple([normalize("NFC", word).lower() for word in getattr(self, name)])
            self._check_words(words, f"the words for {name}")
            object.__setattr__(self, name, words)
        self._check_words((*self.true, *self.false), "the words for true and false")
        if "" in (*self.true, *self.false):
            raise self._unfit("an empty word stands for an absent value, not for true or false")

    def read(self, cells: Cells) -> Floats:  # noqa: D102
        meaning = dict.fromkeys(self.true, 1.0) | dict.fromkeys(self.false, 0.0)
        listed = ", ".join([*self.true, *self.false])
        return _looked_up(cells, meaning.get, f"one of the words {listed} is needed", fold=True)


@dataclass(frozen=True, repr=False)
class Date(Column):
    """A column of dates or times.

    Parameters
    ----------
    name : str
    origin : str, default="2000-01-01"
        The date or time that becomes 0, in ISO 8601.
    unit : str, default="days"
        The time that becomes 1: "weeks", "days", "hours", "minutes", "seconds", or a number of
        them, as in "365.25 days".
    format : str, optional
        How text is written, as in "%d.%m.%Y"; by default ISO 8601.
    required : bool, default=False
        Whether absent values are refused. If not, a second feature indicates them.

    Examples
    --------
    >>> Date("visited", unit="hours", required=True).feature_names
    ['visited']
    """

    origin: str = "2000-01-01"
    unit: str = "days"
    format: str | None = None
    kind: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.origin, str) or moment_of(self.origin) is None:
            raise self._unfit(
                f"a date in ISO 8601 is needed, such as 2000-01-01, got {self.origin!r}"
            )
        if not isinstance(self.unit, str) or nanoseconds_of(self.unit) is None:
            raise self._unfit(
                f"the unit must be {', '.join(UNITS)} or a number of these, such as "
                f"'365.25 days', got {self.unit!r}"
            )
        if self.format is not None and not is_format(self.format):
            raise self._unfit(
                "a format has year, month and day, and no names of days or months, as in "
                f"%d.%m.%Y %H:%M; got {self.format!r}"
            )

    def read(self, cells: Cells) -> Floats:  # noqa: D102
        days, nanoseconds, absent = moments(cells, self.format)
        origin, unit = cast(Moment, moment_of(self.origin)), cast(int, nanoseconds_of(self.unit))
        found = quotients(days - origin[0], nanoseconds - origin[1], unit)
        return np.where(absent, np.nan, found)


@dataclass(frozen=True, repr=False)
class Words(Column):
    """Base of columns of words: 1 in one of the features, which are numbered from 0."""

    def write(self, x: Floats, out: Floats) -> None:  # noqa: D102
        there = np.flatnonzero(~np.isnan(x))
        places = x[there]
        wrong = (places != np.rint(places)) | (places < 0) | (places >= self.width)
        if wrong.any():
            raise RangeError(
                f"Column {self.name!r} has {places[wrong][0]:g}, where arrays have the numbers 0 "
                f"to {self.width - 1} for what is declared, and NaN. Give a frame with named "
                "columns, whose words are looked up."
            )
        out[there, places.astype(np.intp)] = 1.0


@dataclass(frozen=True, repr=False)
class Category(Words):
    """A column of words, one feature for each declared value.

    Parameters
    ----------
    name : str
    values : sequence of str or int
        Whole numbers mean their digits.
    unknown : {"refuse", "zero"}, default="refuse"
        Whether other words are refused, or count as absent ones.
    required : bool, default=False
        Whether absent values are refused. If not, they are 0 in all features.

    Examples
    --------
    >>> Category("color", ["red", "green"]).feature_names
    ['color=red', 'color=green']
    """

    values: tuple[str, ...]
    unknown: str = field(default="refuse", kw_only=True)
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        super().__post_init__()
        given: Any = self.values
        if isinstance(given, str) or not hasattr(given, "__iter__"):
            raise self._unfit(f"the categories must be a list, got {given!r}")
        words = [word_of(value) for value in given]
        self._check_words(words, "the categories")
        object.__setattr__(self, "values", tuple(words))
        if self.unknown not in ("refuse", "zero"):
            raise self._unfit(f"unknown must be 'refuse' or 'zero', got {self.unknown!r}")

    @cached_property
    def feature_names(self) -> list[str]:
        """The column and each of its values."""
        return [f"{self.name}={value}" for value in self.values]

    def read(self, cells: Cells) -> Floats:  # noqa: D102
        place: dict[str, float] = {value: float(k) for k, value in enumerate(self.values)}
        unknown = np.nan if self.unknown == "zero" else None
        listed = ", ".join(map(repr, self.values[:20])) + ", ..." * (len(self.values) > 20)
        mend = f"Declare it, or take other words as absent: Category({self.name!r}, [...], "
        return _looked_up(
            cells,
            lambda word: place.get(word, unknown),
            f"one of the categories {listed} is needed",
            mend + "unknown='zero').",
        )

    def without(self, value: str) -> Category:
        """The declaration without one of its values, which is unknown from then on."""
        left = [other for other in self.values if other != value]
        return Category(self.name, tuple(left), unknown="zero", required=self.required)


@dataclass(frozen=True, repr=False)
class Hashed(Words):
    """A column of words without a list of values: each word falls into a bucket by its hash.

    Parameters
    ----------
    name : str
    buckets : int
    required : bool, default=False
        Whether absent values are refused. If not, they are 0 in all features.

    Examples
    --------
    >>> Hashed("city", 64).width
    64
    """

    buckets: int
    kind: ClassVar[str] = "hashed"

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.buckets) is not int or not 1 <= self.buckets <= MOST_BUCKETS:
            raise self._unfit(
                f"the number of buckets must be between 1 and {MOST_BUCKETS}, got {self.buckets!r}"
            )

    @cached_property
    def feature_names(self) -> list[str]:
        """The column and the number of each of its buckets."""
        return [f"{self.name}#{k}" for k in range(self.buckets)]

    @property
    def width(self) -> int:
        """One feature for each bucket."""
        return self.buckets

    def read(self, cells: Cells) -> Floats:  # noqa: D102
        return _looked_up(cells, self._bucket, "")

    def _bucket(self, word: str) -> float | None:
        if not word:
            return None
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        return float(int.from_bytes(digest, "little") % self.buckets)


KINDS: dict[str, type[Column]] = {
    kind.kind: kind for kind in (Number, Boolean, Date, Category, Hashed)
}


def from_facts(facts: Any) -> Column:
    """The column that `Column.facts` described; anything else is refused."""
    said = dict(facts)
    kind: Any = KINDS.get(said.pop("kind", ""))
    if kind is None:
        raise ValueError(
            f"Column {said.get('name')!r}: kind must be one of {', '.join(KINDS)}, got "
            f"{facts.get('kind')!r}."
        )
    known = {one.name for one in fields(kind)}
    other = next((name for name in said if name not in known), None)
    if other is not None:
        raise ValueError(
            f"Column {said.get('name')!r}: {facts['kind']} has no {other!r}; it has "
            f"{', '.join(sorted(known - {'name'}))}."
        )
    lists = {k: tuple(v) if isinstance(v, list) else v for k, v in said.items()}
    try:
        made: Column = kind(**lists)
        return made
    except TypeError as error:  # one that has no default is not given
        raise ValueError(f"Column {said.get('name')!r}: {error}.") from error


def _looked_up(
    cells: Cells,
    meaning: Callable[[str], float | None],
    what: str,
    mend: str = "",
    fold: bool = False,
) -> Floats:
    """The number that each word means, NaN for the empty one unless it has a meaning.

    Words without a meaning are refused.
    """
    words, places = cells.words()
    words = [word.strip().lower() for word in words] if fold else words
    known = [meaning(word) for word in words]
    fits = [word == "" or one is not None for word, one in zip(words, known, strict=True)]
    cells.check_each(np.array(fits)[places], what, mend)
    return np.array([np.nan if one is None else one for one in known])[places]
