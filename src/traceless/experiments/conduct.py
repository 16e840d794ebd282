"""How an experiment is conducted: what must be known first, one thread, findings, a report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from threadpoolctl import threadpool_limits

from traceless.experiments.report import Report, summary_table
from traceless.experiments.verdict import Finding
from traceless.progress import progress

QUICK = "This was a quick run on few rows. Run it without --quick to judge the paper."
T = TypeVar("T")


def conduct(
    folder: Path,
    notices: Sequence[str],
    find: Callable[[], Sequence[Finding]],
    report: Callable[[float], Report],
) -> Path:
    """Measure, judge and write everything; returns the path of the report.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    notices : sequence of str
        What the reader must know first.
    find : callable
        The findings, in the order of the report.
    report : callable
        What stands beside them, given how many seconds they took.
    """
    for notice in notices:
        sys.stdout.write(f"{notice}\n")
    start = time.monotonic()
    with threadpool_limits(1, user_api="blas"):  # threads that wait for each other spoil times
        findings = find()
    took = time.monotonic() - start
    path = report(took).write(findings, folder)
    sys.stdout.write(f"\n{summary_table(findings)}\n\nReport: {path}\n")
    return path


def shown(points: Sequence[T], label: str) -> Iterator[T]:
    """The points of a figure, with a bar on standard error."""
    return progress(points, f"{label:<30}", verbose=True, after=0.0)


def ran(seconds: float) -> str:
    """When the run was, and how long it took."""
    return f"{time.strftime('%Y-%m-%d %H:%M')}, {seconds:.0f} s"
