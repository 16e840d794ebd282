"""Whether the machine is quiet: a product of two matrices, repeated, takes as long each time.

On a machine that others use as well, the slower half of the repetitions is slower by far more than
the clock of a core explains. A benchmark looks before it starts and when it is done, and says so on
its page when it was disturbed: OpenBLAS with two threads on a busy core can take forty times as
long, which is no property of what is measured.

Neither is where memory comes from. A virtual machine that gives free memory back to its host takes
a second to get 128 MB again, a hundred times as long as to write them: so a benchmark's process
keeps what it has had, for all that it compares.
"""

from __future__ import annotations

import ctypes
import sys
import time
from pathlib import Path
from statistics import quantiles

import numpy as np
from scipy.linalg.blas import dgemm

REPETITIONS, SIZE = 40, 400  # about 0.1 s on one core
SPREAD = 1.3  # the third quartile over the fastest: 1.02 to 1.15 on machines that do nothing else
BUSY = 0.1  # of the cores, by others
STATISTICS = Path("/proc/stat")
KEPT = "freed memory kept by the process"


def keep_memory() -> list[str]:
    """Tell malloc to keep what is freed; that it does, as a line about the machine, or nothing."""
    if sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"):  # of glibc
        return []
    mallopt = ctypes.CDLL(None).mallopt
    no_mappings, never_trimmed = (-4, 0), (-1, -1)  # M_MMAP_MAX, M_TRIM_THRESHOLD
    kept = mallopt(*no_mappings) and mallopt(*never_trimmed)
    return [KEPT] if kept else []


def spread(repetitions: int = REPETITIONS) -> float:
    """The third quartile of the times of one product over the fastest."""
    A = np.asfortranarray(np.random.default_rng(0).random((SIZE, SIZE)))
    seconds = []
    for _ in range(repetitions + 3):  # the first wake threads
        start = time.perf_counter()
        dgemm(1.0, A, A)
        seconds.append(time.perf_counter() - start)
    return quantiles(seconds[3:], n=4)[2] / min(seconds[3:])


def busy(seconds: float = 1.0) -> float:
    """The part of all cores' time that others take while this process sleeps.

    What a benchmark has just done itself does not count, as it would in the load of the last
    minute. Where the system keeps no such count (it does on Linux), none is said to be busy.
    """
    if not STATISTICS.exists():
        return 0.0
    before = ticks()
    time.sleep(seconds)
    idle, total = (new - old for new, old in zip(ticks(), before, strict=True))
    return 1 - idle / total if total else 0.0


def ticks() -> tuple[int, int]:
    """Idle time of all cores since the start of the system, and all time, in its ticks."""
    first = STATISTICS.read_text().partition("\n")[0]
    user, nice, system, idle, waiting, *others = map(int, first.split()[1:9])
    return idle + waiting, user + nice + system + idle + waiting + sum(others)


def disturbances() -> list[str]:
    """What is wrong with the machine just now, a sentence each; none if it is quiet."""
    found, others, slow = [], busy(), spread()
    if slow > SPREAD:
        found.append(f"a quarter of equal products took {slow:.1f} times as long as the fastest")
    if others > BUSY:
        found.append(f"others kept {others:.0%} of the cores busy")
    return found


def said(before: list[str], after: list[str]) -> str:
    """A note for the page, or nothing."""
    parts = [
        f"{when} {' and '.join(found)}"
        for when, found in (("Before", before), ("after", after))
        if found
    ]
    if not parts:
        return ""
    return (
        f"**The machine was not quiet.** {'; '.join(parts)}. Ratios of interleaved medians suffer "
        "least, times most: do not quote them."
    )
