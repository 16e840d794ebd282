"""A trial: an estimator, rows for it, and histories of learning and forgetting them.

A history is a list of steps, each with rows to learn and rows to forget, and with the rows that
are held after it; a fit from scratch on these rows says what the model must be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from traceless.arithmetic.integers import Floats
from traceless.estimators.sliding_window import SlidingWindow

POOL = 24  # rows that histories are made of
Rows = tuple[Any, ...]  # (X, y) or (X, y, sample_weight)


@dataclass(frozen=True)
class Step:
    """Rows to learn and rows to forget, by number."""

    verb: str  # "learn", "forget", "update" or "merge"
    add: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()


class Trial:
    """An estimator, with rows (drawn from X, or made up), labels or targets, and weights for it."""

    def __init__(
        self,
        estimator: Any,
        *,
        seed: int = 0,
        n_features: int = 3,
        X: Any = None,
        n_histories: int = 3,
    ) -> None:
        self.estimator, self.seed, self.n_histories = estimator, seed, n_histories
        if self.limit < 3:
            raise ValueError(
                f"A window of {self.limit} rows is too small to be checked: 3 or more."
            )
        self.rng = np.random.default_rng(seed)
        self.X = drawn_rows(self.rng, POOL, n_features, X)
        self.y = self._responses()
        self.weight: NDArray[Any] | None = None
        if has_fit_parameter(estimator, "sample_weight") and self.rng.random() < 0.5:
            self.weight = self.rng.choice([0.5, 1.0, 2.0, 3.0], size=POOL)

    def _responses(self) -> NDArray[Any]:
        tags = get_tags(self.estimator)
        if is_classifier(self.estimator):
            several = tags.classifier_tags is None or tags.classifier_tags.multi_class
            names = [["a", "bb", "c"], [3, -5, 2**40]][self.rng.integers(2)]
            n = int(self.rng.integers(2, 4)) if several else 2
            return np.asarray(np.array(names)[self.rng.permutation(np.arange(POOL) % n)])
        n = int(self.rng.integers(1, 3)) if tags.target_tags.multi_output else 1
        targets = self.X @ self.rng.normal(size=(self.X.shape[1], n))
        noisy: NDArray[Any] = np.rint(16 * (targets + self.rng.normal(size=targets.shape))) / 16
        return noisy[:, 0] if n == 1 else noisy

    @property
    def limit(self) -> int:
        """How many rows the estimator holds at most."""
        return int(self.estimator.size) if isinstance(self.estimator, SlidingWindow) else 2**62

    def take(self, numbers: Sequence[int]) -> Rows:
        """Some rows, in arrays of their own."""
        at = np.array(numbers, dtype=np.intp)
        rows = self.X[at], self.y[at]
        return rows if self.weight is None else (*rows, self.weight[at])

    def fitted(self, numbers: Sequence[int]) -> Any:
        """A new estimator, fitted to some rows."""
        return clone(self.estimator).fit(*self.take(numbers))

    def first(self, n: int) -> list[int]:
        """The first n rows, or as many as the estimator can hold."""
        return list(range(min(n, self.limit)))

    def with_history(self, n: int) -> tuple[Any, list[int]]:
        """A model of the first n rows that predicted between changes, and the rows it holds.

        It has not predicted since the last change, which an estimator may postpone.
        """
        held = self.first(n)
        model = self.fitted(held[:2])
        for row in held[2:]:
            answers(model, self.X)
            learn(model, self.take([row]))
        answers(model, self.X)
        for change in (forget, learn):
            change(model, self.take(held[-1:]))
        return model, held

    def after(self, held: Sequence[int], step: Step) -> list[int]:
        """The rows held after a step; of equal ones the oldest go."""
        out = list(held)
        for number in step.gone:
            out.remove(number)
        return [*out, *step.add][-self.limit :]

    def history(
        self, n_steps: int, start: Sequence[int], least: int = 0
    ) -> list[tuple[Step, list[int]]]:
        """Steps, and the rows held after each, at least some; rows may come repeatedly."""
        held, merged, out = list(start), set(), []
        offered = [name for name in ("update", "merge") if hasattr(self.estimator, name)]
        verbs = ["learn", "forget", *offered]
        for _ in range(n_steps):
            verb = self.rng.choice(verbs) if len(held) > least else "learn"
            add = self.rng.integers(POOL, size=self.rng.integers(1, 6)).tolist()
            gone: list[int] = []
            if verb in ("forget", "update"):
                n = int(self.rng.integers(1, len(held) - least + 1))
                gone = [held[i] for i in self.rng.permutation(len(held))[:n]]
                add = [] if verb == "forget" else add
            if verb == "merge":
                slice_ = tuple(sorted(add))
                verb = "learn" if slice_ in merged else "merge"  # a second merge is refused
                merged.add(slice_)
            step = Step(str(verb), tuple(add), tuple(gone))
            held = self.after(held, step)
            out.append((step, held))
        return out

    def play(self, model: Any, step: Step) -> tuple[Rows, Rows]:
        """Let a model take a step; the arrays that it was given are returned."""
        add, gone = self.take(step.add), self.take(step.gone)
        if step.verb == "learn":
            learn(model, add)
        elif step.verb == "forget":
            forget(model, gone)
        elif step.verb == "update":
            model.update(add=add, forget=gone)
        else:
            model.merge(clone(self.estimator).fit(*add))
        return add, gone


def drawn_rows(rng: np.random.Generator, n: int, n_features: int, X: Any) -> Floats:
    """Rows drawn from X, or made up: small, on a coarse grid that any resolution in use holds."""
    if X is None:
        return np.asarray(np.rint(64 * rng.normal(size=(n, n_features))) / 32)
    return np.array(X, dtype=np.float64)[rng.integers(len(X), size=n)]


def learn(model: Any, rows: Rows) -> None:
    """Let a model learn rows."""
    if hasattr(model, "partial_fit"):
        weight = {"sample_weight": rows[2]} if len(rows) == 3 else {}
        model.partial_fit(*rows[:2], **weight)
    else:
        model.update(add=rows)


def forget(model: Any, rows: Rows) -> None:
    """Let a model forget rows."""
    if hasattr(model, "forget"):
        model.forget(*rows)
    else:
        model.update(forget=rows)


# --- the public state of a model ---------------------------------------------------------------


def answers(model: Any, X: Any) -> NDArray[Any]:
    """The answers of a model to rows: decision values, or predictions."""
    return np.asarray(getattr(model, "decision_function", model.predict)(X))


def same_bits(a: Any, b: Any) -> bool:
    """Whether two arrays are the same: type, shape and every bit."""
    a, b = np.asarray(a), np.asarray(b)
    alike = a.dtype == b.dtype and a.shape == b.shape
    if a.dtype.hasobject:
        return bool(alike and a.tolist() == b.tolist())
    return bool(alike and a.tobytes() == b.tobytes())


def certain(model: Any) -> bool:
    """Whether a model promises the bits of a fit from scratch; `PathSVC` says when it does not."""
    return not any(
        getattr(one, "ambiguous_", False) for one in (model, getattr(model, "estimator_", None))
    )


def public_state(model: Any, X: Any) -> dict[str, Any]:
    """The public state of a model: parameters, fitted attributes, digest and answers."""
    out = {
        f"the parameter {name}": repr(value) if hasattr(value, "get_params") else value
        for name, value in model.get_params(deep=False).items()
    }
    for name in dir(model):
        if name.endswith("_") and not name.startswith("_"):
            value = getattr(model, name, None)
            if not hasattr(value, "get_params"):  # an estimator in it
                out[name] = value
    if hasattr(model, "digest"):
        out["digest()"] = model.digest()
    if getattr(model, "n_samples_", 1):
        out["answers"] = answers(model, X)
    return out


def differences(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The names of the entries that differ in some bit, as one string."""

    def same(a: Any, b: Any) -> bool:
        if {type(a), type(b)} & {np.ndarray, np.float64, float}:  # also NaN
            return same_bits(a, b)
        return a is b or bool(type(a) is type(b) and a == b)

    names = sorted(before.keys() | after.keys())
    none = object()
    return ", ".join(n for n in names if not same(before.get(n, none), after.get(n, none)))


def demand(met: bool, promise: str, came: str) -> None:
    """Raise AssertionError with the promise and the finding, unless the promise is met."""
    if not met:
        raise AssertionError(f"Promised: {promise}. Found: {came}.")


def demand_refit(trial: Trial, model: Any, held: list[int], when: str) -> None:
    """Raise unless a model equals a fit from scratch on the rows it holds."""
    n = getattr(model, "n_samples_", len(held))
    demand(n == len(held), f"the model holds {len(held)} rows {when}", f"n_samples_ is {n}")
    if not held:
        return
    window = isinstance(trial.estimator, SlidingWindow)  # the order of its rows matters
    fresh = trial.fitted(held if window else trial.rng.permutation(held).tolist())
    if not (certain(model) and certain(fresh)):
        return
    promise = f"{when}, the model is that of a fit from scratch on the rows held"
    if hasattr(model, "digest"):
        ours, theirs = model.digest(), fresh.digest()
        demand(ours == theirs, promise, f"digest {ours[:12]} where a new fit has {theirs[:12]}")
    if hasattr(model, "classes_"):
        ours, theirs = model.classes_, fresh.classes_
        demand(same_bits(ours, theirs), promise, f"classes_ {ours} where it has {theirs}")
    for one in (model, fresh):
        if hasattr(one, "seal"):
            one.seal()
    ours, theirs = answers(model, trial.X), answers(fresh, trial.X)
    demand(same_bits(ours, theirs), promise, "other bits in its answers")
