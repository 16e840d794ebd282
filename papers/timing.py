"""Timing on shared machines: jobs take turns, and the median of each is reported."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from threadpoolctl import threadpool_info

from traceless.progress import progress

PACKAGES = (
    *("traceless", "numpy", "scipy", "scikit-learn", "numba", "scikit-learn-intelex", "polars-ds"),
    *("padasip", "river", "cvmatrix", "dask", "pyspark", "pyarrow"),
)
SETTLE = 0.1  # seconds of rest: threads of one BLAS must not spin into the next job's time
Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")


def interleave(
    jobs: Mapping[Key, Callable[[], Any]],
    rounds: int,
    label: str = "",
    *,
    prepared: bool = False,
    of: Callable[[list[float]], float] = median,
) -> dict[Key, float]:
    """Median seconds of each job, run in turns for some rounds after one unmeasured round.

    Parameters
    ----------
    jobs : mapping from names to functions
    rounds : int
        How often each job is measured.
    label : str
        Named by the progress bar.
    prepared : bool
        Each function first makes a job ready, unmeasured, and returns the function to be timed.
    of : callable
        What is reported of a job's times.

    Examples
    --------
    >>> list(interleave({"nothing": lambda: None}, 1))
    ['nothing']
    """
    seconds: dict[Key, list[float]] = {name: [] for name in jobs}
    threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    for turn in shown(range(rounds + 1), label or f"{len(jobs)} jobs, {rounds} rounds"):
        for name, make in jobs.items():
            job = make() if prepared else make
            time.sleep(SETTLE if threads > 1 else 0.0)
            start = time.perf_counter()
            job()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return {name: of(values) for name, values in seconds.items()}


def shown(items: Sequence[T], label: str) -> Iterator[T]:
    """The items, with a progress bar on standard error."""
    return progress(items, f"{label:<30}", verbose=True, after=0.0)


def machine() -> list[str]:
    """Processor, cores, versions and BLAS, a line each."""
    blas = {
        f"{Path(i['filepath']).parent.name}: {i['internal_api']} {i['version']}, "
        f"{i['num_threads']} threads"
        for i in threadpool_info()
        if i["user_api"] == "blas"
    }
    return [
        f"{_processor()}, {cores()} of its cores, Python {platform.python_version()}, "
        f"{platform.system()}",
        ", ".join(f"{name} {found}" for name in PACKAGES if (found := _version(name))),
        *sorted(blas),
    ]


def cores() -> int:
    """Cores that this process may use."""
    known = getattr(os, "sched_getaffinity", None)
    return len(known(0)) if known else os.cpu_count() or 1


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
