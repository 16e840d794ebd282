"""The caller's arrays may have any layout, are only read, and may be overwritten later."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

from traceless.checks.trial import (
    Rows,
    Trial,
    answers,
    demand,
    demand_refit,
    forget,
    learn,
    same_bits,
)


def check_rows_in_any_memory(trial: Trial) -> None:
    """Read-only, mapped, Fortran-ordered, cut out of larger arrays, backwards."""
    held = trial.first(12)
    for name, rows in _in_any_memory(trial, held):
        parts = [tuple(part[at] for part in rows) for at in (slice(8), slice(8, None))]
        model = clone(trial.estimator).fit(*parts[0])
        if len(held) > 8:
            for change in (learn, forget, learn):
                change(model, parts[1])
        demand_refit(trial, model, held, f"rows in memory that is {name}")
        same = same_bits(answers(model, rows[0]), answers(model, trial.X[held]))
        demand(same, f"the same answers for rows in memory that is {name}", "other bits")


def check_rows_are_only_read(trial: Trial) -> None:
    """No method writes to the arrays it is given."""
    held = trial.first(8)
    model = trial.fitted(held)
    others = trial.take([9, 10])
    calls: dict[str, Callable[[Rows], Any]] = {
        "fit": lambda rows: model.fit(*rows),
        "update": lambda rows: model.update(add=rows, forget=rows),
        "partial_fit": lambda rows: learn(model, rows),
        "forget": lambda rows: forget(model, rows),
        "predict": lambda rows: model.predict(rows[0]),
        "answers": lambda rows: answers(model, rows[0]),
    }
    for name, call in calls.items():
        if name == "update" and not hasattr(model, "update"):
            continue
        rows = trial.take(held) if name in ("fit", "update") else others
        before = [part.copy() for part in rows]
        call(rows)
        same = all(same_bits(a, b) for a, b in zip(before, rows, strict=True))
        demand(same, "the caller's arrays are only read", f"{name} wrote to them")


def check_buffers_may_be_used_again(trial: Trial) -> None:
    """Rows are copied where they are kept: overwriting them after a call changes nothing."""
    for _ in range(trial.n_histories):
        start = trial.first(2)
        rows = trial.take(start)
        model = clone(trial.estimator).fit(*rows)
        _overwrite(trial, rows)
        for step, held in trial.history(6, start):
            for given in trial.play(model, step):
                _overwrite(trial, given)
            if trial.rng.random() < 0.5 and held:
                answers(model, trial.X)
        demand_refit(trial, model, held, "though the caller has overwritten his rows")


def _overwrite(trial: Trial, rows: Rows) -> None:
    """Overwrite arrays with other valid rows, which would show in a model that kept them."""
    if rows[0].size:
        for part, other in zip(rows, trial.take([23] * len(rows[0])), strict=True):
            part[:] = other


def _in_any_memory(trial: Trial, numbers: list[int]) -> Iterator[tuple[str, Rows]]:
    for several in zip(*map(layouts, trial.take(numbers)), strict=True):
        yield several[0][0], tuple(part for _, part in several)
    if get_tags(trial.estimator).input_tags.sparse:
        X, *others = trial.take(numbers)
        yield "sparse", (sparse.csr_matrix(X), *others)


def layouts(a: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """An array in several kinds of memory, by name."""
    frozen = a.copy()
    frozen.setflags(write=False)
    yield "read-only", frozen
    yield "in Fortran's order", np.asfortranarray(a)
    larger = np.repeat(a, 2, axis=0)
    larger = np.repeat(larger, 2, axis=1) if a.ndim == 2 else larger
    yield "cut out of a larger array", larger[::2, ::2] if a.ndim == 2 else larger[::2]
    yield "backwards", np.ascontiguousarray(a[::-1])[::-1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, a)
        yield "mapped", np.load(path, mmap_mode="r")
