"""All or nothing: a change that is refused, or fails midway, leaves the model as it was."""

from __future__ import annotations

import linecache
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from types import FrameType
from typing import Any, Self

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from traceless.checks.trial import (
    Rows,
    Step,
    Trial,
    answers,
    demand,
    demand_refit,
    differences,
    forget,
    learn,
    public_state,
)

_ONE_MORE = Step("learn", add=(9,))


def check_refused_rows_change_nothing(trial: Trial) -> None:
    """Rows of another width, NaN, missing labels, negative weights are refused without a trace."""
    model, held = trial.with_history(8)
    for name, bad in _bad_rows(trial):
        for change in (learn, forget):
            what = f"to {change.__name__} {name}"
            refused = _refused(trial, partial(change, model, bad), model, what)
            demand(refused, f"it is refused {what}", "it was not")
    trial.play(model, _ONE_MORE)
    demand_refit(trial, model, trial.after(held, _ONE_MORE), "after bad rows were refused")


def check_rows_never_learned_change_nothing(trial: Trial) -> None:
    """Forgetting more rows than are held is refused; a refusal of other rows changes nothing."""
    for name, known in (("more rows than it holds", True), ("others", False)):
        model, held = trial.with_history(8)
        rows, what = trial.take([*held, 0] if known else [9]), f"to forget {name}"
        refused = _refused(trial, partial(forget, model, rows), model, what)
        demand(refused or not known, f"it is refused {what}", "it was not")
        if refused:
            demand_refit(trial, model, held, f"after it was refused {what}")


def check_faults_leave_a_whole_model(trial: Trial) -> None:
    """An exception at any line of a change leaves the model as before the change, or as after it.

    Lines of this package and of the estimator's own are counted as they run during the call.
    Afterwards the model must learn on and equal a fit from scratch.
    """
    packages = {"traceless", type(trial.estimator).__module__.split(".")[0]}
    model, held = trial.with_history(7)
    before = public_state(model, trial.X)
    for change in _changes(trial, held):
        model = trial.with_history(7)[0]
        with _Tracing(packages) as usual:
            change.make(model)
        after = public_state(model, trial.X)
        for _ in range(2 * trial.n_histories):
            model = trial.with_history(7)[0]
            tracing = _Tracing(packages, usual.some(trial.rng), trial.rng.random() < 0.5)
            try:
                with tracing:
                    change.make(model)
            except BaseException:  # the fault, or another error raised from it
                if tracing.where is None:
                    raise
            found = public_state(model, trial.X)
            lost, left = differences(found, before), differences(found, after)
            promise = f"a fault during {change.name} leaves the model before or after it"
            came = f"after one at {tracing.where} it has other {lost}"
            demand(not lost or not left, promise, came)
            if not lost:
                change.make(model)
            demand_refit(trial, model, change.held, f"when {change.name} follows a fault")


# --- rows that are refused ---------------------------------------------------------------------


def _bad_rows(trial: Trial) -> Iterator[tuple[str, Rows]]:
    X, y = trial.take([9, 10])[:2]
    yield "rows with further columns", (np.hstack([X, X]), y)
    if get_tags(trial.estimator).target_tags.required:
        yield "rows without labels", (X, y[:1])
    yield "rows in one dimension", (X[0], y)
    yield "text", (np.full(X.shape, "x"), y)
    for bad in (np.nan, np.inf):
        yield f"rows with {bad}", (np.where(np.arange(X.size).reshape(X.shape) == 1, bad, X), y)
    if is_regressor(trial.estimator):
        yield "targets that are NaN", (X, y * np.nan)
    if has_fit_parameter(trial.estimator, "sample_weight"):
        yield "weights below zero", (X, y, np.array([1.0, -1.0]))
        yield "weights that are NaN", (X, y, np.array([1.0, np.nan]))
        yield "weights of other rows", (X, y, np.ones(3))


def _refused(trial: Trial, change: Callable[[], None], model: Any, what: str) -> bool:
    """Whether a change raises; it must then change nothing."""
    before = public_state(model, trial.X)
    try:
        change()
    except (ValueError, TypeError) as error:
        wrong = differences(before, public_state(model, trial.X))
        came = f"other {wrong} after {type(error).__name__}: {error}"
        demand(not wrong, f"if it is refused {what}, the model stays what it was", came)
        return True
    return False


# --- faults --------------------------------------------------------------------------------------


class _FaultError(Exception):
    """The fault that is injected."""


class _Interrupt(BaseException):
    """A fault like Ctrl-C, which `except Exception` does not catch."""


@dataclass(frozen=True)
class _Change:
    name: str
    make: Callable[[Any], Any]
    held: list[int]


def _changes(trial: Trial, held: list[int]) -> Iterator[_Change]:
    steps = [
        Step("learn", add=(8, 9)),
        Step("forget", gone=tuple(held[:2])),
        Step("update", add=(8, 9), gone=tuple(held[-1:])),
    ]
    for step in steps:
        if step.verb != "update" or hasattr(trial.estimator, "update"):
            yield _Change(step.verb, partial(trial.play, step=step), trial.after(held, step))
    if hasattr(trial.estimator, "merge"):
        part = trial.fitted([10, 11, 12])
        yield _Change("merge", lambda model: model.merge(part), [*held, 10, 11, 12])
    other = trial.first(5)[::-1]
    yield _Change("fit", lambda model: model.fit(*trial.take(other)), other)
    yield _Change("predict", lambda model: answers(model, trial.X), held)
    for name in ("digest", "seal"):
        if hasattr(trial.estimator, name):
            yield _Change(name, methodcaller(name), held)


class _Tracing:
    """Note the lines of some packages as they are run, and raise at line number `at` of them.

    `interrupt`: raise an exception that only ``except BaseException`` catches.
    """

    def __init__(self, packages: set[str], at: int = 0, interrupt: bool = False) -> None:
        self._packages, self._at = packages, at
        self._kind = _Interrupt if interrupt else _FaultError
        self._lines: list[tuple[str, int]] = []
        self.where: str | None = None  # the line of the fault, once it has come

    def __enter__(self) -> Self:
        self._before = sys.gettrace()  # a debugger, or coverage
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:  # noqa: ARG002
        module = frame.f_globals.get("__name__", "")
        ours = module.split(".")[0] in self._packages and not module.startswith(__package__)
        return self._line if ours else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:  # noqa: ARG002
        if event == "line":
            self._lines.append((frame.f_code.co_filename, frame.f_lineno))
            if len(self._lines) == self._at:
                self.where = ":".join(map(str, self._lines[-1]))
                raise self._kind(f"injected at {self.where}")
        return self._line

    def some(self, rng: np.random.Generator) -> int:
        """The number of a random line among those run; all lines of the source are equally likely.

        Not ``with`` itself: Python comes back to it before it calls ``__exit__``, and an
        exception at that moment leaves the block without it, whatever the code does.
        """
        places: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        for number, place in enumerate(self._lines, start=1):
            if not linecache.getline(*place).lstrip().startswith("with "):
                places[place].append(number)
        lines = list(places.values())
        numbers = lines[int(rng.integers(len(lines)))]
        return numbers[int(rng.integers(len(numbers)))]
