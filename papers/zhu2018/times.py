"""(c) Seconds of a stage against retraining; (d) speed-up, size-up and scale-up.

t(p, n) is the time to learn n rows from files with p processes, one BLAS thread each, and to
solve. From these times

    speed-up(p) = t(1, n) / t(p, n)      p is ideal
    size-up(m)  = t(p, m N) / t(p, N)    m is linear; less if there are fixed costs
    scale-up(p) = t(1, n) / t(p, p n)    1 is ideal
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from papers.cost_model.costs import SCALE, Job, written
from papers.datasets import Images, Indices
from papers.report import Plan
from papers.rows import Rows
from papers.timing import interleave
from papers.zhu2018.equality import coefficients, machine
from traceless import Knowledge, wESVM

TIMES = (1, 2, 4)  # m
WORKERS = (1, 2)
CLASS_NUMBERS = (2, 10)


def stage_times(images: Images, plan: Plan) -> Rows:
    """(c) Seconds to learn, to solve and to retrain, by stage."""
    stages = np.array_split(np.arange(len(images.X)), plan.stages)
    X, y, units = images.X, images.digits, plan.timed_units
    jobs: dict[tuple[int, str], Callable[[], Job]] = {}
    before: Knowledge | None = None
    for stage, rows in enumerate(stages, 1):
        n = rows[-1] + 1
        known = machine(units).partial_fit(X[:n], y[:n]).knowledge_
        jobs[stage, "learn"] = partial(_learn, images, units, before, rows)
        jobs[stage, "solve"] = partial(_solve, units, known)
        jobs[stage, "retrain"] = partial(partial, machine(units).fit, X[:n], y[:n])
        before = known
    seconds = interleave(jobs, plan.rounds, "(c) stages", prepared=True)
    return [
        {
            "stage": stage,
            "rows": int(rows[-1] + 1),
            **{how: seconds[stage, how] for how in ("learn", "solve", "retrain")},
        }
        for stage, rows in enumerate(stages, 1)
    ]


def _learn(images: Images, units: int, before: Knowledge | None, rows: Indices) -> Job:
    """Learn the rows of a stage on top of what is known."""
    model = machine(units) if before is None else machine(units).merge(before)
    return partial(model.partial_fit, images.X[rows], images.digits[rows])


def _solve(units: int, known: Knowledge) -> Job:
    """Compute the coefficients of what is known."""
    model = machine(units).merge(known)
    return lambda: coefficients(model)


def worker_times(plan: Plan) -> Rows:
    """(d) Seconds to learn from files and solve, by processes, rows and classes."""
    with tempfile.TemporaryDirectory(prefix="traceless-") as folder:
        jobs: dict[tuple[int, int, int], Job] = {}
        for K, m in product(CLASS_NUMBERS, TIMES):
            source = written(Path(folder), m * plan.base, K)
            for p in WORKERS:
                model = wESVM(plan.work_units, scale=SCALE, n_jobs=p)
                jobs[K, m * plan.base, p] = partial(model.fit, source)
        seconds = interleave(jobs, plan.rounds, "(d) processes")
    return [
        {"classes": K, "features": plan.work_units + 1, "rows": n, "workers": p, "seconds": s}
        for (K, n, p), s in seconds.items()
    ]
