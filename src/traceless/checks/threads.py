"""Threads: readers see whole states, and writers wait for each other."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray

from traceless.checks.trial import Step, Trial, answers, certain, demand, demand_refit

_SWITCH = 1e-5  # seconds after which another thread has its turn
_PATIENCE = 120.0  # seconds after which a thread is taken to wait forever
_READERS, _WRITERS = 2, 4


def check_readers_see_whole_states(trial: Trial) -> None:
    """While one thread changes a model, others see it before or after each change."""
    start = trial.first(4)
    steps = trial.history(12 * trial.n_histories, start, least=1)  # an empty one has no answers
    digests, known = _states(trial, start, steps)
    model = trial.fitted(start)
    seen: list[tuple[str, NDArray[Any]]] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            digest = model.digest() if hasattr(model, "digest") else ""
            seen.append((digest, answers(model, trial.X)))

    def write() -> None:
        try:
            for step, _ in steps:
                trial.play(model, step)
        finally:
            done.set()

    _together([write, *[read] * _READERS])
    for digest, found in seen:
        whole = not digests or digest in digests
        demand(whole, "a reader sees a whole state", f"digest {digest[:12]}, of no state")
        near = any(a.shape == found.shape and _close(a, found) for a in known)
        demand(near, "a reader sees a whole state", "answers that are those of no state")
    demand_refit(trial, model, steps[-1][1], "after changes while others read")


def check_writers_wait_for_each_other(trial: Trial) -> None:
    """Several threads learn and forget at once: each change is made, once and whole."""
    base, new = list(range(8)), list(range(8, 24))
    if trial.limit < len(base) + len(new):
        raise SkipTest("rows would leave the window in an order that nobody knows")
    for _ in range(trial.n_histories):
        model = trial.fitted(base)
        model.predict(trial.X)

        def write(part: int, model: Any = model) -> None:
            for i in range(part, len(new), _WRITERS):
                trial.play(model, Step("learn", add=(new[i],)))
            trial.play(model, Step("forget", gone=(base[part],)))

        _together([partial(write, part) for part in range(_WRITERS)])
        held = [*base[_WRITERS:], *new]
        demand_refit(trial, model, held, f"after {_WRITERS} threads changed it at once")


def _states(
    trial: Trial, start: list[int], steps: Sequence[tuple[Step, list[int]]]
) -> tuple[set[str], list[NDArray[Any]]]:
    """The digests (none if one is uncertain) and the answers of all states along a history.

    Steps that do two things, such as `forget` and then `partial_fit`, are one change each.
    """
    twin = trial.fitted(start)
    all_certain, digests, known = hasattr(twin, "digest"), set(), []
    for step in (None, *(step for step, _ in steps)):
        if step is not None:
            trial.play(twin, step)
        all_certain = all_certain and certain(twin)
        if all_certain:
            digests.add(twin.digest())
        known.append(answers(twin, trial.X))
    return digests if all_certain else set(), known


def _close(a: NDArray[Any], b: NDArray[Any]) -> bool:
    if a.dtype.kind != "f":
        return bool((a == b).all())
    return bool(np.allclose(a, b, rtol=1e-6, atol=1e-6 * max(1.0, float(np.abs(a).max()))))


def _together(jobs: Sequence[Callable[[], None]]) -> None:
    """Run each job in a thread, all from one start; the first error of a job is raised."""
    start, failed = threading.Barrier(len(jobs)), []

    def run(job: Callable[[], None]) -> None:
        start.wait()
        try:
            job()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_PATIENCE)
    finally:
        sys.setswitchinterval(before)
    waiting = sum(thread.is_alive() for thread in threads)
    demand(not waiting, "threads do not wait for each other forever", f"{waiting} of them do")
    if failed:
        raise AssertionError(
            f"Promised: threads do not disturb each other. Found: {failed[0]!r} in one of them."
        ) from failed[0]
