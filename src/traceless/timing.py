"""Timing on shared machines: jobs take turns, and the median of each is reported."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

SETTLE = 0.02  # seconds between jobs: BLAS threads must not spin into another job's time
Job = Callable[[], object]
Name = TypeVar("Name", bound=Hashable)


def interleaved_medians(
    prepare: Mapping[Name, Callable[[], Job]], rounds: Iterable[object]
) -> dict[Name, float]:
    """Median seconds of some jobs that take turns; the first round is not counted.

    Parameters
    ----------
    prepare : mapping from names to functions
        Each makes a job ready, unmeasured, and returns what is to be timed.
    rounds : iterable
        One item per round, at least two; a progress bar, for instance.

    Examples
    --------
    >>> list(interleaved_medians({"nothing": lambda: lambda: None}, range(2)))
    ['nothing']
    """
    seconds: dict[Name, list[float]] = {name: [] for name in prepare}
    for turn, _ in enumerate(rounds):
        for name, make in prepare.items():
            job = make()
            time.sleep(SETTLE)
            start = time.perf_counter()
            job()
            took = time.perf_counter() - start
            if turn:
                seconds[name].append(took)
    return {name: statistics.median(values) for name, values in seconds.items()}
