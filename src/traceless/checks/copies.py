"""A copy, a pickle or a file gives an equal model; each then changes without the other."""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import SkipTest

from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from traceless.checks.trial import Step, Trial, demand, demand_refit, differences, public_state
from traceless.estimators.loading import load
from traceless.files.saving import Savable

_MORE = Step("learn", add=(12, 13, 14))
_LESS = Step("forget", gone=(2,))


def check_copies_are_models_of_their_own(trial: Trial) -> None:
    """`copy.copy` and `copy.deepcopy`: a change of one leaves the other as it was."""
    for copied in (copy.copy, copy.deepcopy):
        for changed in (0, 1):
            _check_apart(trial, copied, f"a copy ({copied.__name__})", changed)


def check_a_clone_has_learned_nothing(trial: Trial) -> None:
    """`sklearn.base.clone` has the parameters and nothing else."""
    model, held = trial.with_history(11)
    other = clone(model)
    try:
        other.predict(trial.X)
    except NotFittedError:
        pass
    else:
        demand(False, "a clone has learned nothing, and says so", "it predicts")
    demand_refit(trial, other.fit(*trial.take(held)), held, "a clone that is fitted")


def check_pickles(trial: Trial) -> None:
    """All protocols of pickle."""
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):

        def sent(model: Any, protocol: int = protocol) -> Any:
            return pickle.loads(pickle.dumps(model, protocol))

        _check_apart(trial, sent, f"what comes out of a pickle (protocol {protocol})")


def check_memory_that_others_own(trial: Trial) -> None:
    """Pickle 5 with out-of-band buffers: a model over immutable memory does not write to it.

    BLAS ignores NumPy's read-only flag, so the memory is compared before and after.
    """
    for step in (_MORE, _LESS):
        model, held = trial.with_history(11)
        _demand_untouched(trial, model, held, step)


def check_files(trial: Trial) -> None:
    """`save` and `traceless.load` give an equal model, which learns and forgets like it."""
    if not isinstance(trial.estimator, Savable):
        raise SkipTest("it has no save")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"

        def saved(model: Any) -> Any:
            try:
                model.save(path)
            except TypeError as error:  # a class from elsewhere, which files cannot hold
                raise SkipTest(str(error)) from None
            return load(path)

        _check_apart(trial, saved, "what comes out of a file")


def _demand_step(trial: Trial, model: Any, held: list[int], step: Step, what: str) -> None:
    trial.play(model, step)
    demand_refit(trial, model, trial.after(held, step), f"{what}, {step.verb}ing")


def _check_apart(trial: Trial, copied: Callable[[Any], Any], what: str, changed: int = 1) -> None:
    """Check that a copy equals the model, and that one (1: the copy) changes without the other."""
    model, held = trial.with_history(11)
    other = copied(model)
    before = public_state(model, trial.X)
    wrong = differences(before, public_state(other, trial.X))
    demand(not wrong, f"{what} is the same model", f"other {wrong}")
    both = model, other
    _demand_step(trial, both[changed], held, _MORE, what)
    wrong = differences(before, public_state(both[1 - changed], trial.X))
    found = f"learning in one changed {wrong} of the other"
    demand(not wrong, f"{what} and the original each change by themselves", found)
    _demand_step(trial, both[1 - changed], held, _LESS, what)


def _demand_untouched(trial: Trial, model: Any, held: list[int], step: Step) -> None:
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    outside = [memoryview(bytearray(buffer.raw())).toreadonly() for buffer in buffers]
    kept = [bytes(part) for part in outside]
    ours, theirs = (pickle.loads(data, buffers=outside) for _ in range(2))
    before = public_state(theirs, trial.X)
    _demand_step(trial, ours, held, step, "a model over immutable memory")
    written = sum(a != b for a, b in zip(kept, outside, strict=True))
    promise = "immutable memory, which other models may share, is only read"
    demand(not written, promise, f"{step.verb}ing wrote to {written} of its buffers")
    wrong = differences(before, public_state(theirs, trial.X))
    demand(not wrong, promise, f"another model over it has other {wrong}")
