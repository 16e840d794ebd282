"""(c) Seconds of a stage: learning its rows and solving, against learning all rows again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from traceless.experiments.conduct import shown
from traceless.experiments.images import Images
from traceless.experiments.verdict import Rows
from traceless.experiments.zhu2018.equality import Indices, coefficients, machine
from traceless.experiments.zhu2018.plan import Plan
from traceless.knowledge.sums import Knowledge
from traceless.timing import Job, interleaved_medians


def stage_times(images: Images, plan: Plan) -> Rows:
    """(c) Seconds to learn, to solve and to retrain, by stage."""
    stages = np.array_split(np.arange(len(images.X)), plan.stages)
    units, before = plan.timed_units, None
    jobs: dict[tuple[int, str], Callable[[], Job]] = {}
    for stage, rows in enumerate(stages, 1):
        known = _known(images, units, np.arange(rows[-1] + 1))
        jobs[stage, "learn"] = partial(_learn, images, units, before, rows)
        jobs[stage, "solve"] = partial(_solve, units, known)
        jobs[stage, "retrain"] = partial(_retrain, images, units, rows[-1] + 1)
        before = known
    turns = shown(range(plan.rounds + 1), "(c) stages")
    seconds = interleaved_medians(jobs, turns)
    return [
        {
            "stage": stage,
            "rows": int(rows[-1] + 1),
            **{how: seconds[stage, how] for how in ("learn", "solve", "retrain")},
        }
        for stage, rows in enumerate(stages, 1)
    ]


def _known(images: Images, units: int, rows: Indices) -> Knowledge:
    return machine(units).partial_fit(images.X[rows], images.digits[rows]).knowledge_


def _learn(images: Images, units: int, before: Knowledge | None, rows: Indices) -> Job:
    """Learn the rows of a stage on top of what is known."""
    model, X, y = machine(units), images.X[rows], images.digits[rows]
    if before is not None:
        model.merge(before)
    return lambda: model.partial_fit(X, y)


def _solve(units: int, known: Knowledge) -> Job:
    """Compute the coefficients of what is known."""
    model = machine(units).merge(known)
    return lambda: coefficients(model)


def _retrain(images: Images, units: int, n: int) -> Job:
    """Learn all rows so far from scratch, and compute the coefficients."""
    X, y = images.X[:n], images.digits[:n]
    return lambda: machine(units).fit(X, y)
