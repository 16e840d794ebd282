"""Numbers that both the figures and the criteria take from the tables."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, median

from papers.report import Paper
from papers.rows import Rows, column, groups

PAPER = Paper(Path(__file__).parent)
LIMITS = PAPER.limits


def typical(rows: Rows, name: str) -> dict[int, float]:
    """Medians over trials, by points."""
    each = groups(rows, "points")
    return {k: median(column(each[k], name)) for k in sorted(each)}


def advantages(rows: Rows, over: str = "SID") -> dict[int, float]:
    """How many times faster MID is, by points."""
    mid, other = typical(rows, "MID"), typical(rows, over)
    return {k: other[k] / mid[k] for k in mid}


def counted(rows: Rows, name: str) -> dict[int, float]:
    """Mean breakpoints over trials, by points; of two points and more."""
    each = groups(rows, "points")
    return {k: mean(column(each[k], name)) for k in sorted(each) if k > 1}


def shares(rows: Rows) -> dict[int, float]:
    """MID's breakpoints as a share of SID's, by points."""
    mid, sid = counted(rows, "breakpoints_MID"), counted(rows, "breakpoints_SID")
    return {k: mid[k] / sid[k] for k in mid}


def good(rows: Rows) -> Rows:
    """(c) Where the error of cross-validation is near the smallest."""
    best = min(column(rows, "cv_error"))
    return [r for r in rows if r["cv_error"] <= best + LIMITS.good]
