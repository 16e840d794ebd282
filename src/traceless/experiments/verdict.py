"""Claims, the criteria that test them, and the verdict that follows.

A criterion is tried in several cases (feature maps, for instance). The verdict on a figure is

- *does not reproduce* if an essential criterion fails in every case,
- *reproduces* if every criterion holds in every case,
- *reproduces in part* otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Verdict = Literal["reproduces", "reproduces in part", "does not reproduce"]
Row = dict[str, Any]  # one line of a figure's table
Rows = list[Row]


@dataclass(frozen=True)
class Case:
    """What was measured in one case, in words, and whether it meets the criterion."""

    measured: str
    holds: bool


@dataclass(frozen=True)
class Criterion:
    """One testable part of a claim, and how it went in each case.

    Examples
    --------
    >>> faster = Criterion("ten times faster", {"Linear": Case("12 ×", 12 > 10)})
    >>> judge([faster])
    'reproduces'
    """

    text: str
    cases: Mapping[str, Case]
    essential: bool = True


@dataclass(frozen=True)
class Table:
    """A table of text to be printed."""

    title: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Finding:
    """One figure: the paper's claim, our numbers, and how both compare.

    Attributes
    ----------
    name, title, claim, found : str
    gist : str
        The claim in a few words, for the summary.
    criteria : sequence of Criterion
    rows : list of dict
        The table that is kept as CSV.
    draw : callable
        Makes a matplotlib figure of `rows`.
    design : str
        What was done to test the claim, where the paper does not say.
    tables : sequence of Table
        Printed below the figure.
    """

    name: str
    title: str
    claim: str
    gist: str
    found: str
    criteria: Sequence[Criterion]
    rows: Rows
    draw: Callable[[Rows], Any]
    design: str = ""
    tables: Sequence[Table] = ()

    @property
    def verdict(self) -> Verdict:
        """What the criteria say."""
        return judge(self.criteria)


def judge(criteria: Sequence[Criterion]) -> Verdict:
    """The verdict that follows from some criteria."""
    outcomes = [[case.holds for case in c.cases.values()] for c in criteria]
    if any(c.essential and not any(o) for c, o in zip(criteria, outcomes, strict=True)):
        return "does not reproduce"
    return "reproduces" if all(map(all, outcomes)) else "reproduces in part"


def select(rows: Rows, /, **where: Any) -> Rows:
    """The rows whose columns have these values.

    Examples
    --------
    >>> select([{"map": "Linear", "n": 1}, {"map": "Linear", "n": 2}], n=2)
    [{'map': 'Linear', 'n': 2}]
    """
    return [row for row in rows if all(row[k] == v for k, v in where.items())]


def column(rows: Rows, name: str) -> list[Any]:
    """One column of some rows."""
    return [row[name] for row in rows]


def values(rows: Rows, name: str) -> list[Any]:
    """The different values of a column, in order of appearance."""
    return list(dict.fromkeys(column(rows, name)))


def by(name: str, rows: Rows, test: Callable[[Rows], Case]) -> dict[str, Case]:
    """Put the rows to a test, once for each value of a column.

    Examples
    --------
    >>> by("map", [{"map": "Linear", "n": 2}], lambda r: Case("", r[0]["n"] > 1))["Linear"].holds
    True
    """
    return {str(value): test(select(rows, **{name: value})) for value in values(rows, name)}


def every(outcomes: Sequence[bool]) -> Case:
    """All comparisons came out equal."""
    return Case(f"{sum(outcomes)} of {len(outcomes)}", all(outcomes))
