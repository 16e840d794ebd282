"""Claims, the criteria that test them, and the verdict that follows.

A criterion is tried in several cases (here: feature maps). The verdict on a figure is

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
class Finding:
    """One figure: the paper's claim, our numbers, and how both compare."""

    name: str
    title: str
    claim: str
    gist: str  # the claim in a few words, for the summary
    found: str
    criteria: Sequence[Criterion]
    rows: Rows
    draw: Callable[[Rows], Any]  # makes a matplotlib figure

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


def select(rows: Rows, **where: Any) -> Rows:
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
