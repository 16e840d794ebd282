"""Proposals for the declaration of a table, from its first rows.

A declaration that is taken from rows is a trace of them: a list of categories names values that
occurred, and a scale is an average. So what is proposed is rounded, comes with its reason, and is
for a person to judge.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from traceless.exceptions import TableError
from traceless.sources.arrow import check_present, is_nameless_index, is_number
from traceless.sources.cells import NUMBER, TEXT, Cells
from traceless.sources.dates import Date
from traceless.sources.formats import format_of
from traceless.sources.schema import FALSE, TRUE, Number, Schema, TextFormat
from traceless.sources.table import Table, column_names

MOST_CATEGORIES = 20
FEWEST_REGRESSION = 20  # different numbers of a target that is no label
FINE = 2.0**-8  # deviation below which a column is too fine for the grid of 2^-14
NULLS = ("NA", "N/A", "n/a", "NULL", "null", "None", "?", "-", "--", ".")
FORMATS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d.%m.%Y %H:%M")
PEOPLE = {"patient", "customer", "person", "user", "client", "member", "email", "name"}
REMARK = (
    "These are proposals, taken from rows: a list of categories, a scale or a value for missing "
    "numbers that comes from rows is a trace of them, which stays when they are forgotten. Put in "
    "what you know without them."
)


@dataclass(frozen=True)
class Proposal:
    """What to declare for a column.

    Attributes
    ----------
    column : str
    options : tuple of str
        Pairs of an option and its value, one after the other; "--columns" lists many columns.
    reason : str
    """

    column: str
    options: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Suggestion:
    """A whole declaration.

    Attributes
    ----------
    proposals : list of Proposal
        One for each column of the file.
    text : TextFormat
        How the file is written.
    rows : int
        How many were looked at.
    """

    proposals: list[Proposal]
    text: TextFormat
    rows: int


def suggest(
    path: str,
    target: Sequence[str],
    ids: str | None = None,
    format_: str | None = None,
    scales: bool = False,
    rows: int = 10_000,
) -> Suggestion:
    """Propose a declaration for a file.

    Parameters
    ----------
    path : str
    target : sequence of str
        The columns to predict.
    ids : str, optional
        The column of ids; by default one is looked for.
    format_ : str, optional
        As for `Table`.
    scales : bool, default=False
        Whether to propose scales for all numbers.
    rows : int
        How many rows are looked at, from the first.
    """
    delimiter = _delimiter(path, format_)
    names = column_names(path, format_, TextFormat(delimiter))
    check_present(names, [*target, *([] if ids is None else [ids])], path)
    seen, text = _read(path, names, TextFormat(delimiter), format_, rows), TextFormat()
    if (format_ or format_of(path)) in ("csv", "tsv"):
        text = TextFormat(delimiter, _decimal(seen), _nulls(seen))
    known = [column.cleaned(text) for column in seen]
    if ids is None:
        ids = next((c.name for c in known if c.name not in target and c.looks_like_ids), None)
    proposals = [_proposal(column, target, ids, scales) for column in known]
    return Suggestion(proposals, text, len(seen[0].words))


@dataclass(frozen=True)
class _Column:
    """The words of a column, the empty one for missing values."""

    name: str
    words: list[str]
    kind: str  # "text", or what its type says: "number", "boolean", "date", "words", another

    @cached_property
    def present(self) -> list[str]:
        return [word for word in self.words if word]

    @cached_property
    def missing(self) -> int:
        return self.words.count("")

    @cached_property
    def counts(self) -> Counter[str]:
        return Counter(self.present)

    @property
    def looks_like_ids(self) -> bool:
        name = self.name.lower()
        named = name in PEOPLE or re.search(r"(^|[^a-z])(id|uuid|key|nr|no|number)$", name)
        return bool(named) and self.kind != "date" and len(self.counts) > 1

    def all(self, fits: Callable[[str], Any]) -> bool:
        return bool(self.present) and all(map(fits, self.counts))

    def cleaned(self, text: TextFormat) -> _Column:
        """The column with its numbers and missing values as Python knows them."""
        words = ["" if word in text.nulls else word for word in self.words]
        column = _Column(self.name, words, self.kind)
        if self.kind != "text":
            return column
        points = [word.replace(text.decimal, ".") for word in words]
        if column.all(lambda w: _is_number(w, text.decimal)):
            return _Column(self.name, ["" if w.lower() == "nan" else w for w in points], "number")
        return column


def _proposal(column: _Column, target: Sequence[str], ids: str | None, scales: bool) -> Proposal:
    name, counts = column.name, column.counts
    if name in target:
        return _of_target(column)
    if name == ids:
        why = f"{len(counts)} different ids in {len(column.words)} rows; no feature"
        return Proposal(name, ("--id", name), why)
    if column.looks_like_ids:
        return Proposal(name, (), "left out: its name is that of an id")
    if is_nameless_index(name):
        return Proposal(name, (), "left out: an index of pandas")
    if len(counts) < 2 and not (counts and column.missing):
        return Proposal(name, (), f"left out: always {next(iter(counts), 'missing')!r}")
    if column.kind not in ("text", "number", "boolean", "date", "words"):
        return Proposal(name, (), f"left out: a column of type {column.kind} cannot be declared")
    words = {word.lower() for word in counts}
    if column.kind == "boolean" or (len(counts) > 1 and words <= {*TRUE, *FALSE}):
        false = ["false"] if column.kind == "boolean" else [w for w in FALSE if w in words]
        if false and (column.kind == "boolean" or words & {*TRUE}):  # it uses both
            stand_in = ("--missing", f"{name}={false[0]}") if column.missing else ()
            return Proposal(name, ("--boolean", name, *stand_in), _why(column, "true or false"))
    if column.kind == "number":
        return _of_numbers(column, scales)
    return _of_dates(column) or _of_words(column)


def _of_target(column: _Column) -> Proposal:
    counts = column.counts
    numbers = column.kind == "number"
    labels = numbers and column.all(lambda word: float(word).is_integer())
    if numbers and (not labels or len(counts) > FEWEST_REGRESSION):
        return Proposal(column.name, ("--regression", ""), _why(column, "numbers to predict"))
    return Proposal(column.name, (), f"the target: {len(counts)} labels")


def _of_numbers(column: _Column, scales: bool) -> Proposal:
    values = [float(word) for word in column.present]
    mean, spread = statistics.fmean(values), statistics.pstdev(values)
    options, whole = ["--columns", column.name], all(map(float.is_integer, values))
    between = f"numbers from {min(values):g} to {max(values):g}"
    why = _why(column, f"whole {between}" if whole else between)
    if whole and 2 < len(column.counts) <= 10:
        why += "; if they are codes, declare --category"
    if scales or 0 < spread < FINE:
        scale = float(f"{spread:.1g}") or 1.0
        shift = round(mean / scale) * scale
        options += ["--scale", f"{column.name}={shift:.10g}:{scale:g}"]
        why += "" if scales else "; so little spread would be rounded away without a scale"
    if column.missing:
        options += ["--missing", f"{column.name}={float(f'{statistics.median(values):.1g}'):g}"]
    return Proposal(column.name, tuple(options), why)


def _of_dates(column: _Column) -> Proposal | None:
    forms = [form for form in (None, *FORMATS) if column.all(_reads(form))]
    if column.kind != "date" and not forms:
        return None
    form = forms[0] if forms else None
    said = column.name if form is None else f"{column.name}={form}"
    why = _why(column, "dates" if form is None else f"dates as {form}")
    if len(forms) > 1:
        why += f"; they may also be {' or '.join(str(other) for other in forms[1:])}"
    stand_in: tuple[str, ...] = ()
    if column.missing:
        days = sorted(column.counts) if form is None else []
        stand_in = ("--missing", f"{column.name}={(days or ['2000-01-01'])[len(days) // 2][:10]}")
    return Proposal(column.name, ("--date", said, *stand_in), why)


def _of_words(column: _Column) -> Proposal:
    name, counts = column.name, column.counts
    if len(counts) <= MOST_CATEGORIES:
        values = [*sorted(counts), *([""] if column.missing else [])]
        why = _why(column, f"{len(counts)} different words")
        return Proposal(name, ("--category", f"{name}={listed_names(values)}"), why)
    if len(counts) > 0.9 * len(column.present):
        return Proposal(name, (), f"left out: nearly every row has another of {len(counts)} texts")
    buckets = min(1024, 2 ** math.ceil(math.log2(len(counts))))
    why = f"{len(counts)} different words are too many to list"
    return Proposal(name, ("--hash", f"{name}={buckets}"), why)


def listed_names(names: Sequence[str]) -> str:
    """Names between commas, in quotes where they hold a comma or a quote."""
    quoted = ['"' + n.replace('"', '""') + '"' if set(n) & set(',"\n') else n for n in names]
    return ",".join(quoted)


def _why(column: _Column, what: str) -> str:
    return f"{what}, {column.missing} missing" if column.missing else what


def _is_number(word: str, decimal: str) -> bool:
    """Whether a word is a number with this decimal sign."""
    return bool(re.match(NUMBER.replace(r"\.", f"[{decimal}]"), word))


def _reads(form: str | None) -> Callable[[str], Any]:
    return Date("d", format=form).moment


# --- reading -----------------------------------------------------------------------------------


def _delimiter(path: str, format_: str | None) -> str:
    """The sign that cuts the header of a CSV file into the most columns."""
    if (format_ or format_of(path)) != "csv":
        return ","
    found = {}
    for sign in ",;\t|":
        with suppress(TableError):  # quotes that end elsewhere
            found[sign] = len(column_names(path, format_, TextFormat(sign)))
    return max(found, key=found.__getitem__, default=",")


def _read(
    path: str, names: list[str], text: TextFormat, format_: str | None, rows: int
) -> list[_Column]:
    """The columns of the first rows."""
    nothing = Schema((Number("x"),), ("y",), text=text)  # columns are read by their names
    words: dict[str, list[str]] = {name: [] for name in names}
    kinds = dict.fromkeys(names, "text")
    for batch in Table([path], nothing, format_).batches(names):
        for name, cells in batch.cells.items():
            found = list(_words(cells))
            kinds[name] = _kind(cells)
            words[name] += found[: rows - len(words[name])]
        if len(words[names[0]]) >= rows:
            break
    return [_Column(name, words[name], kinds[name]) for name in names]


def _kind(cells: Cells) -> str:
    import pyarrow as pa

    kind = cells.array.type
    if not cells.typed or pa.types.is_null(kind):
        return "text"
    if pa.types.is_dictionary(kind) or str(kind) in TEXT:
        return "words"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "date"
    return "number" if is_number(kind) else str(kind)


def _words(cells: Cells) -> Iterator[str]:
    for value in cells.array.to_pylist():
        if value is None or value != value:  # NaN
            yield ""
        else:
            yield str(value).strip()


def _decimal(columns: list[_Column]) -> str:
    """The decimal sign of most columns of numbers with a fraction."""

    def fractions(sign: str) -> int:
        texts = (column for column in columns if column.kind == "text")
        return sum(
            column.all(lambda word: word in NULLS or _is_number(word, sign))
            and any(sign in word for word in column.counts)
            for column in texts
        )

    return "," if fractions(",") > fractions(".") else "."


def _nulls(columns: list[_Column]) -> tuple[str, ...]:
    """Words for missing values that stand among numbers or dates."""
    found: dict[str, None] = {}
    for column in columns:
        others = {word for word in column.counts if word in NULLS}
        rest = _Column(column.name, [w for w in column.present if w not in NULLS], column.kind)
        readers: list[Callable[[str], Any]] = list(map(_reads, (None, *FORMATS)))
        readers += [partial(_is_number, decimal=sign) for sign in ".,"]
        if others and column.kind == "text" and any(rest.all(read) for read in readers):
            found |= dict.fromkeys(sorted(others))
    return tuple(found)
