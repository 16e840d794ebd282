"""Claims, the thresholds that test them, and the verdict that follows.

A criterion is tried in several cases (feature maps, for instance). The verdict on a figure is

- *does not reproduce* if an essential criterion fails in every case,
- *reproduces* if every criterion holds in every case,
- *reproduces in part* otherwise.

A benchmark's claim is a ratio beside the one that was hoped for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from papers.page import Table
from papers.rows import Rows, groups

Verdict = Literal["reproduces", "reproduces in part", "does not reproduce"]


@dataclass(frozen=True)
class Case:
    """What was measured in one case, in words, and whether it meets the threshold."""

    measured: str
    holds: bool


def at_least(value: float, threshold: float, words: str = "{:.2g} ×") -> Case:
    """A number that must not be below the threshold.

    Examples
    --------
    >>> at_least(12.0, 10.0)
    Case(measured='12 ×', holds=True)
    """
    return Case(words.format(value), bool(value >= threshold))


def at_most(value: float, threshold: float, words: str = "{:.2g} ×") -> Case:
    """A number that must not be above the threshold."""
    return Case(words.format(value), bool(value <= threshold))


def every(outcomes: Sequence[bool], of: str = "") -> Case:
    """A comparison that must come out equal each time."""
    return Case(f"{sum(outcomes)} of {len(outcomes)}{of}", all(outcomes))


@dataclass(frozen=True)
class Criterion:
    """One testable part of a paper's claim, and how it went in each case.

    Examples
    --------
    >>> judge([Criterion("ten times faster", {"Linear": at_least(12.0, 10.0)})])
    'reproduces'
    """

    text: str
    cases: Mapping[str, Case]
    essential: bool = True


@dataclass(frozen=True)
class Claim:
    """A ratio that was measured beside the one that was hoped for."""

    what: str
    ratio: float
    goal: float
    at_least: bool = False

    @property
    def case(self) -> Case:
        """The ratio, tried against its goal."""
        return (at_least if self.at_least else at_most)(self.ratio, self.goal, "{:6.2f} ×")

    @property
    def hope(self) -> str:
        """The goal, with its direction."""
        return f"{'≥' if self.at_least else '≤'} {self.goal:g}"

    @property
    def verdict(self) -> str:
        """The goal was met or missed."""
        return "met" if self.case.holds else "MISSED"

    def __str__(self) -> str:
        return f"{self.what:<66} {self.case.measured} (goal {self.hope}) {self.verdict}"


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
    tables : mapping from titles to tables
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
    tables: Mapping[str, Table] = field(default_factory=dict)

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


def by(name: str, rows: Rows, test: Callable[[Rows], Case]) -> dict[str, Case]:
    """Put the rows to a test, once for each value of a column.

    Examples
    --------
    >>> by("map", [{"map": "Linear", "n": 2}], lambda r: at_least(r[0]["n"], 1))["Linear"].holds
    True
    """
    return {str(value): test(some) for value, some in groups(rows, name).items()}
