"""Whether the machine is quiet: a product of two matrices, repeated, takes as long each time.

On a machine that others use as well, the slower half of the repetitions is slower by far more than
the clock of a core explains. A benchmark looks before it starts and when it is done, and says so on
its page when it was disturbed: OpenBLAS with two threads on a busy core can take forty times as
long, which is no property of what is measured.
"""

from __future__ import annotations

import os
import time
from statistics import quantiles

import numpy as np
from scipy.linalg.blas import dgemm

from papers.timing import cores

REPETITIONS, SIZE = 40, 400  # about 0.1 s on one core
SPREAD = 1.3  # the third quartile over the fastest: 1.02 to 1.15 on machines that do nothing else
BUSY = 0.5  # other processes that want to run, for each core


def spread(repetitions: int = REPETITIONS) -> float:
    """The third quartile of the times of one product over the fastest."""
    A = np.asfortranarray(np.random.default_rng(0).random((SIZE, SIZE)))
    seconds = []
    for _ in range(repetitions + 3):  # the first wake threads
        start = time.perf_counter()
        dgemm(1.0, A, A)
        seconds.append(time.perf_counter() - start)
    return quantiles(seconds[3:], n=4)[2] / min(seconds[3:])


def waiting() -> float:
    """Processes that ran or wanted to in the last minute, for each core that we may use."""
    return os.getloadavg()[0] / cores() if hasattr(os, "getloadavg") else 0.0


def disturbances(own: float = 0.0) -> list[str]:
    """What is wrong with the machine just now, a sentence each; none if it is quiet.

    Parameters
    ----------
    own : float
        What we have added to the load ourselves, for each core.
    """
    found, slow, load = [], spread(), waiting()
    if slow > SPREAD:
        found.append(f"a quarter of equal products took {slow:.1f} times as long as the fastest")
    if load > BUSY + own:
        found.append(f"{load:.1f} processes for each core wanted to run")
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
