"""Proposals for the declaration of a table, from its first rows.

A declaration that is taken from rows is a trace of them: a list of categories names values that
occurred, and a scale is an average. So what is proposed is rounded, lists no value seen in fewer
than five rows, comes with its reason, and is for a person to judge.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from traceless.features.cells import GROUPED, NUMBER, Cells, Frame, word_of
from traceless.features.dates import moment_of, moments
from traceless.features.kinds import FALSE, TRUE, Boolean, Category, Column, Date, Hashed, Number

ROWS = 10_000  # that are looked at, from the first
MOST_CATEGORIES = 20
FEWEST_ROWS = 5  # in which a category is seen before it is listed
ODD = 0.1  # of the values of a column may be mistakes, which are named
FINE = 2.0**-8  # deviation below which a column is too fine for the grid of 2^-14
FORMATS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d.%m.%Y %H:%M")
PEOPLE = {"patient", "customer", "person", "user", "client", "member", "email", "name"}
PEOPLE |= {"kunde", "vorname", "nachname"}
PAIRS = ("ja nein", "j n", "y n", "t f", "wahr falsch", "oui non")  # for true and for false
REMARK = (
    "These are proposals, taken from rows: a list of categories or a scale that comes from rows is "
    "a trace of them, which stays when they are forgotten. Put in what you know without them."
)
Proposal = tuple[Column | None, str]  # None: left out; and why


@dataclass(frozen=True)
class Seen:
    """The words of a column in some rows, the empty one for absent values."""

    name: str
    words: list[str]
    kind: str  # number, boolean, time, text, or another
    decimal: str = "."

    @classmethod
    def of(cls, cells: Cells, nulls: Sequence[str] = ()) -> Seen:
        """The words of cells, some of which stand for absent values."""
        if cells.kind == "time":
            days, rest, absent = map(np.ndarray.tolist, moments(cells))
            words = ["" if a else f"{d} {r}" for d, r, a in zip(days, rest, absent, strict=True)]
        elif cells.kind in ("text", "number", "boolean"):
            values, places = cells.distinct()
            shown = [_shown(value) for value in values]
            shown = ["" if word in nulls else word for word in shown]
            words = [shown[k] for k in places.tolist()]
        else:
            words = ["a value"] * len(cells.array)
        return cls(cells.name, words, cells.kind, cells.decimal)

    def at(self, rows: Sequence[int]) -> Seen:
        """The words of some rows."""
        return Seen(self.name, [self.words[k] for k in rows], self.kind, self.decimal)

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each word stands there."""
        return Counter([word for word in self.words if word])

    @property
    def n_present(self) -> int:
        """Rows that have a value."""
        return self.counts.total()

    @cached_property
    def odd(self) -> list[str]:
        """The words that are no numbers, where nearly all are."""
        return [word for word in self.counts if not is_number(word, self.decimal)]

    @property
    def is_number(self) -> bool:
        """Whether nearly all values are numbers; digits with a zero before them are a code."""
        if self.kind == "number":
            return True
        coded = any(re.fullmatch("0[0-9]+", word) for word in self.counts)
        n_odd = sum(self.counts[word] for word in self.odd)
        few = len(self.odd) <= 1 or n_odd <= ODD * self.n_present
        return self.kind == "text" and not coded and few and n_odd < self.n_present / 2

    @property
    def looks_like_ids(self) -> bool:
        """Whether the name is one of ids, or all values are different codes."""
        name, counts = self.name.lower(), self.counts
        ending = re.search(r"((^|[^a-z])(id|key|no)|nr|uuid|number|nummer)\.?$", name)
        camel = re.search("[a-z](Id|ID|No|Key)$", self.name)
        named = name in PEOPLE or ending or camel or name == "unnamed: 0"
        codes = self.kind == "text" and self.all(lambda word: re.fullmatch("0*[0-9]+", word))
        coded = codes and any(word[0] == "0" and len(word) > 1 for word in counts)
        different = len(counts) > 0.9 * self.n_present
        may = len(counts) > 2 and self.kind not in ("time", "boolean")
        return may and bool(named or (coded and different))

    def all(self, fits: Callable[[str], Any]) -> bool:
        """Whether a test holds for all words, and there are some."""
        return bool(self.counts) and all(map(fits, self.counts))

    def why(self, what: str) -> str:
        """A reason, with the number of absent values."""
        absent = len(self.words) - self.n_present
        return f"{what}, {absent} missing" if absent else what


def proposals(
    frame: Frame,
    target: Any = None,
    ids: str | None = None,
    scales: bool = False,
    nulls: Sequence[str] = (),
) -> tuple[list[Column], dict[str, str]]:
    """What to declare of a frame, and the reason for each column, declared or left out.

    Parameters
    ----------
    frame : Frame
    target : str or sequence of str, optional
    ids : str, optional
        The column of ids; by default columns with names of ids are left out.
    scales : bool, default=False
        Whether to propose a shift and a scale for all numbers.
    nulls : sequence of str
        Words for absent values.
    """
    targets = [] if target is None else [target] if isinstance(target, str) else [*target]
    frame.check_names([*targets, *([] if ids is None else [ids])])
    columns, reasons = [], {}
    for seen in looked_at(frame, nulls):
        if seen.name in targets:
            continue
        column, why = _proposal(seen, ids, scales)
        reasons[seen.name] = why
        if column is not None:
            columns.append(column)
    if not frame.n_rows:
        raise ValueError("There are no rows to look at.")
    if not columns:
        left = "; ".join([f"{name!r} is {why}" for name, why in reasons.items()])
        raise ValueError(f"No column is left to learn from: {left}.")
    return columns, reasons


def looked_at(frame: Frame, nulls: Sequence[str] = ()) -> list[Seen]:
    """All columns of the first rows; a row in which all is blank is none."""
    head = [Seen.of(frame.head(name, ROWS), nulls) for name in frame.names]
    rows = [
        k for k, words in enumerate(zip(*[seen.words for seen in head], strict=True)) if any(words)
    ]
    return [seen.at(rows) for seen in head]


def is_number(word: str, decimal: str = ".") -> bool:
    """Whether a word is a number with this decimal sign."""
    return bool(re.fullmatch(NUMBER.replace(r"\.", f"[{decimal}]"), word))


def _proposal(seen: Seen, ids: str | None, scales: bool) -> Proposal:
    name, counts = seen.name, seen.counts
    if seen.kind not in ("text", "number", "boolean", "time"):
        return None, f"left out: a column of type {seen.kind} cannot be declared"
    if name == ids:
        return None, f"{len(counts)} different ids in {len(seen.words)} rows; no feature"
    if seen.looks_like_ids:
        return None, "left out: its name, or its values, are those of ids"
    if len(counts) < 2 and not (counts and len(seen.words) > seen.n_present):
        return None, f"left out: always {next(iter(counts), 'missing')!r}"
    words = {word.lower() for word in counts}
    if seen.kind == "boolean" or (
        words <= {*TRUE, *FALSE} and words & {*TRUE} and words & {*FALSE}
    ):
        return Boolean(name), seen.why("true or false")
    if pair := next((pair for pair in map(str.split, PAIRS) if words == {*pair}), None):
        return Boolean(name, (pair[0],), (pair[1],)), seen.why("true or false")
    if seen.is_number:
        return _of_numbers(seen, scales)
    return _of_dates(seen) or _of_words(seen)


def _of_numbers(seen: Seen, scales: bool) -> Proposal:
    words = [word for word in seen.words if word and is_number(word, seen.decimal)]
    values = [float(word.replace(seen.decimal, ".")) for word in words]
    mean, spread = statistics.fmean(values), statistics.pstdev(values)
    whole = all(map(float.is_integer, values))
    between = f"numbers from {min(values):.4g} to {max(values):.4g}"
    why = seen.why(f"whole {between}" if whole else between)
    if seen.kind == "text" and seen.odd:
        named = ", ".join(map(repr, seen.odd[:3])) + ", ..." * (len(seen.odd) > 3)
        why += f"; {named} is no number and will be refused: mend it"
    if whole and 2 < len(seen.counts) <= 10:
        why += "; if they are codes, declare a category"
    if not scales and not 0 < spread < FINE:
        return Number(seen.name), why
    scale = float(f"{spread:.1g}") or 1.0
    why += "" if scales else "; so little spread would be rounded away without a scale"
    return Number(seen.name, float(f"{round(mean / scale) * scale:.10g}"), scale), why


def _of_dates(seen: Seen) -> Proposal | None:
    if seen.kind == "time":
        return Date(seen.name), seen.why("dates")
    forms = [form for form in (None, *FORMATS) if seen.all(partial(moment_of, form=form))]
    if not forms:
        return None
    why = seen.why("dates" if forms[0] is None else f"dates as {forms[0]}")
    if len(forms) > 1:
        why += f"; they may also be {' or '.join(str(other) for other in forms[1:])}"
    return Date(seen.name, format=forms[0]), why


def _of_words(seen: Seen) -> Proposal:
    name, counts = seen.name, seen.counts
    if seen.odd and seen.all(lambda word: is_number(word, ".,") or re.fullmatch(GROUPED, word)):
        return None, "left out: numbers that are not written as 1234.5; make them numbers first"
    common = sorted(word for word, n in counts.items() if n >= FEWEST_ROWS)
    rare = len(counts) - len(common)
    if 2 <= len(common) <= MOST_CATEGORIES or (common and rare):
        said = f"{len(common)} different words"
        if not rare:
            return Category(name, tuple(common)), seen.why(said)
        said += (
            f" in {FEWEST_ROWS} rows or more; others ({rare}) are not listed, and count as absent"
        )
        if len(common) <= MOST_CATEGORIES and rare <= len(counts) / 2:
            return Category(name, tuple(common), unknown="zero"), seen.why(said)
    if len(counts) > 0.9 * seen.n_present and seen.n_present >= FEWEST_ROWS:
        return None, f"left out: nearly every row has another of {len(counts)} texts"
    buckets = min(1024, max(8, 2 ** math.ceil(math.log2(len(counts)))))
    return Hashed(name, buckets), seen.why(
        f"{len(counts)} different words, too many or rare to list"
    )


def _shown(value: Any) -> str:
    word = word_of(value)
    return (str(value) if word is None else word).strip()
