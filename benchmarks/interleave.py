"""Honest timing on shared machines: jobs take turns, and only ratios of medians are reported."""

from __future__ import annotations

import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_info

SETTLE = 0.1  # seconds between jobs: the threads of one BLAS must not spin into another's time


def interleave(jobs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each job, run in turns for some rounds after one unmeasured round."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(rounds + 1):
        for name, job in jobs.items():
            _show(f"round {turn} of {rounds}: {name}")
            time.sleep(SETTLE)
            start = time.perf_counter()
            job()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    _show("")
    return {name: statistics.median(values) for name, values in seconds.items()}


def _show(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text:<70}\r")


@dataclass(frozen=True)
class Claim:
    """A ratio that was measured beside the one that was hoped for."""

    what: str
    ratio: float
    goal: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the goal was reached."""
        return self.ratio >= self.goal if self.at_least else self.ratio <= self.goal

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        verdict = "met" if self.met else "MISSED"
        return f"{self.what:<66} {self.ratio:6.2f} × (goal {sign} {self.goal:g}) {verdict}"


def machine() -> str:
    """Processor, threads, and the versions that matter."""
    blas = {
        f"{Path(i['filepath']).parent.name}: {i['internal_api']} {i['version']}, "
        f"{i['num_threads']} threads"
        for i in threadpool_info()
        if i["user_api"] == "blas"
    }
    return "\n".join(
        [
            f"{_processor()}, Python {platform.python_version()}, {platform.system()}",
            f"numpy {np.__version__}, scipy {scipy.__version__}, "
            f"scikit-learn {sklearn.__version__}",
            *sorted(blas),
        ]
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
