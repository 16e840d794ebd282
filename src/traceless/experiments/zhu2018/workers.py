"""(d) Speed-up, size-up and scale-up with one and two processes.

t(p, n) is the time to learn n rows from files with p processes, one BLAS thread each, and to
solve. From these times

    speed-up(p) = t(1, n) / t(p, n)      p is ideal
    size-up(m)  = t(p, m N) / t(p, N)    m is linear; less if there are fixed costs
    scale-up(p) = t(1, n) / t(p, p n)    1 is ideal

The rows are synthetic: standard normal columns, classes by the largest of K random
projections. Only the work matters here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from traceless import wESVM
from traceless.experiments.conduct import shown
from traceless.experiments.images import Floats
from traceless.experiments.verdict import Rows
from traceless.experiments.zhu2018.equality import Labels
from traceless.experiments.zhu2018.plan import SCALE, Plan
from traceless.sources import Source, scan
from traceless.timing import Job, interleaved_medians

COLUMNS = 64
PIECES = 8  # slices of the files, whatever the number of processes
TIMES = (1, 2, 4)  # m
WORKERS = (1, 2)
CLASS_NUMBERS = (2, 10)


def synthetic(n: int, n_classes: int) -> tuple[Floats, Labels]:
    """Rows and labels; the first rows are the same whatever n."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(COLUMNS, n_classes))
    X = rng.normal(size=(n, COLUMNS))
    return X, np.argmax(X @ directions, axis=1)


def worker_times(plan: Plan) -> Rows:
    """(d) Seconds to learn from files and solve, by processes, rows and classes."""
    with tempfile.TemporaryDirectory(prefix="traceless-") as folder:
        jobs: dict[tuple[int, int, int], Callable[[], Job]] = {}
        for K, m in product(CLASS_NUMBERS, TIMES):
            source = written(Path(folder), m * plan.base, K, PIECES)
            for p in WORKERS:
                jobs[K, m * plan.base, p] = partial(_fit, source, plan.work_units, p)
        seconds = interleaved_medians(jobs, shown(range(plan.rounds + 1), "(d) processes"))
    return [
        {"classes": K, "features": plan.work_units + 1, "rows": n, "workers": p, "seconds": s}
        for (K, n, p), s in seconds.items()
    ]


def written(folder: Path, n: int, n_classes: int, pieces: int) -> Source:
    """Synthetic rows and labels in files, to be read in so many slices."""
    X, y = synthetic(n, n_classes)
    rows, labels = folder / f"rows-{n}-{n_classes}.npy", folder / f"labels-{n}-{n_classes}.npy"
    np.save(rows, X)
    np.save(labels, y)
    return scan(rows, labels, batch_rows=-(-n // pieces))


def _fit(source: Source, units: int, workers: int) -> Job:
    model = wESVM(units, scale=SCALE, n_jobs=workers)
    return lambda: model.fit(source)
