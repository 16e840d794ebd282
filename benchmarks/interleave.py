"""Honest timing on shared machines: jobs take turns, and only ratios of medians are reported."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

from threadpoolctl import threadpool_info

PACKAGES = (
    "traceless",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "scikit-learn-intelex",
    "polars-ds",
    "padasip",
    "river",
    "cvmatrix",
    "dask",
    "pyspark",
    "pyarrow",
)
Key = TypeVar("Key")
SETTLE = 0.1  # seconds between jobs: the threads of one BLAS must not spin into another's time


def interleave(
    jobs: Mapping[Key, Callable[[], object]],
    rounds: int,
    of: Callable[[list[float]], float] = statistics.median,
) -> dict[Key, float]:
    """Median seconds of each job, run in turns for some rounds after one unmeasured round."""
    seconds: dict[Key, list[float]] = {name: [] for name in jobs}
    for turn in range(rounds + 1):
        for name, job in jobs.items():
            _show(f"round {turn} of {rounds}: {name}")
            time.sleep(SETTLE)
            start = time.perf_counter()
            job()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    _show("")
    return {name: of(values) for name, values in seconds.items()}


def _show(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text:<70}\r")


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
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
