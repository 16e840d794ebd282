"""The checks: our own estimators and maps pass, and each check catches what it is for."""

import dataclasses
import hashlib
import threading
from unittest import SkipTest

import numpy as np
import pytest
from scipy.linalg.blas import daxpy
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import check_array, column_or_1d

import ours
from cases import Cubes, name
from traceless import LSSVC
from traceless.checks import (
    check_estimator,
    check_feature_map,
    copies,
    estimator_checks,
    feature_map_checks,
)
from traceless.features import BoundMap, FeatureMap, Linear

BITS = "check_updated_equals_refitted"


def of_all(things, checks, **options):
    """Each check of each thing, with a readable id."""
    return [
        pytest.param(check, id=f"{name(thing)}-{check.__name__.removeprefix('check_')}")
        for thing in things
        for check in checks(thing, **options)
    ]


@pytest.mark.parametrize("check", of_all(ours.estimators(), estimator_checks, n_histories=1))
def test_every_estimator(check):
    check()


@pytest.mark.parametrize(
    "check",
    [
        case
        for case in of_all(ours.on_every_map(), estimator_checks, n_histories=1)
        if case.values[0].__name__ == BITS
    ],
)
def test_every_solver_on_every_map(check):
    check()


@pytest.mark.parametrize("check", of_all([*ours.feature_maps(), Cubes()], feature_map_checks))
def test_every_map(check):
    check()


def named(several):
    return {check.__name__: check for check in several}


def failing(several):
    """The names of the checks that fail."""
    out = []
    for check in several:
        try:
            check()
        except SkipTest:
            pass
        except Exception:
            out.append(check.__name__)
    return out


def first_failure(kind, check):
    """What a check of an estimator raises; where threads take turns, with some seed."""
    for seed in range(20):
        try:
            named(estimator_checks(kind(), seed=seed))[check]()
        except Exception as error:
            return error
    return None


# --- an estimator from elsewhere, and how it can go wrong --------------------------------------


class Means(ClassifierMixin, BaseEstimator):
    """The class of the nearest mean, in whole numbers: right in every respect."""

    def __new__(cls, *_, **__):
        self = super().__new__(cls)
        self._lock = threading.RLock()
        return self

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k != "_lock"}

    def __setstate__(self, state):
        self.__dict__.update(state, _lock=threading.RLock())

    def fit(self, X, y):
        with self._lock:
            self._held = self._changed((np.shape(X)[1], {}), self._rows(X, y), 1)
        return self

    def partial_fit(self, X, y):
        return self.update(add=(X, y))

    def forget(self, X, y):
        return self.update(forget=(X, y))

    def update(self, add=None, forget=None):
        with self._lock:
            held = self._current()
            for rows, sign in ((add, 1), (forget, -1)):
                if rows is not None and len(rows[0]):
                    held = self._changed(held, self._rows(*rows), sign)
            self._held = held
        return self

    def decision_function(self, X):
        width, sums = self._current()
        X = self._codes(check_array(X), width)
        means = [np.array(v, dtype=float) / n for _, (n, v) in sorted(sums.items())]
        return np.column_stack([-((X - mean) ** 2).sum(axis=1) for mean in means])

    def predict(self, X):
        values, classes = self.decision_function(X), sorted(self._current()[1])
        return np.array(classes)[values.argmax(axis=1)]

    def digest(self):
        return hashlib.sha256(repr(sorted(self._current()[1].items())).encode()).hexdigest()

    @property
    def n_samples_(self):
        return sum(n for n, _ in self._current()[1].values())

    @property
    def classes_(self):
        return np.array(sorted(self._current()[1]))

    def _current(self):
        if "_held" not in self.__dict__:
            raise NotFittedError("nothing was learned")
        return self._held

    def _rows(self, X, y):
        X, y = check_array(X, dtype=np.float64), column_or_1d(y)
        if len(X) != len(y):
            raise ValueError("as many labels as rows")
        return X, y

    def _codes(self, X, width):
        if X.shape[1] != width:
            raise ValueError("as many columns as before")
        return np.rint(X * 64)

    def _changed(self, held, rows, sign):
        width, sums = held
        codes = self._codes(rows[0], width).astype(int).tolist()
        sums = dict(sums)
        for code, label in zip(codes, rows[1].tolist(), strict=True):
            n, old = sums.pop(label, (0, [0] * width))
            new = tuple(a + sign * b for a, b in zip(old, code, strict=True))
            if n + sign < 0 or (n + sign == 0 and any(new)):
                raise ValueError("never learned")
            if n + sign:
                sums[label] = n + sign, new
        return width, sums


def test_an_estimator_from_elsewhere_passes():
    for seed in range(3):
        check_estimator(Means(), seed=seed)


class KeepsViews(Means):
    """Rows wait in a queue, as the caller gave them."""

    def partial_fit(self, X, y):
        self._queue = [*self.__dict__.get("_queue", []), self._rows(X, y)]
        return self

    def fit(self, X, y):
        self._queue = []
        return super().fit(X, y)

    def _current(self):
        queue, self._queue = self.__dict__.get("_queue", []), []
        for rows in queue:
            self._held = self._changed(self._held, rows, 1)
        return super()._current()


class WritesRows(Means):
    def _codes(self, X, width):
        if X.flags.writeable:
            X[:] = np.rint(X * 64) / 64 + 2.0**-30
        return super()._codes(X, width)


class OtherBitsInFortransOrder(Means):
    def _codes(self, X, width):
        return super()._codes(X, width) + (X.flags.f_contiguous and not X.flags.c_contiguous)


class InFloats(Means):
    """Sums of floats: the last bits are those of the history."""

    def _codes(self, X, width):
        return super()._codes(X, width) / 7

    def _changed(self, held, rows, sign):
        width, sums = held
        sums = dict(sums)
        for x, label in zip(self._codes(rows[0], width), rows[1].tolist(), strict=True):
            n, old = sums.pop(label, (0, np.zeros(width)))
            if n + sign < 0:
                raise ValueError("never learned")
            if n + sign:
                sums[label] = n + sign, tuple((np.array(old) + sign * x).tolist())
        return width, sums


class RemembersClasses(Means):
    """A class that was there once stays in the digest."""

    def _changed(self, held, rows, sign):
        self._seen = self.__dict__.get("_seen", set()) | set(rows[1].tolist())
        return super()._changed(held, rows, sign)

    def digest(self):
        return super().digest() + repr(sorted(self._seen))


class CannotBecomeEmpty(Means):
    """The last row stays."""

    def _changed(self, held, rows, sign):
        changed = super()._changed(held, rows, sign)
        return changed if changed[1] else held


class StumblesOverNothing(Means):
    def update(self, add=None, forget=None):
        for rows in (add, forget):
            if rows is not None:
                self._rows(*rows)
        return super().update(add, forget)


class ChangesInPlace(Means):
    """One dictionary for good: shared by copies, and half changed when something goes wrong."""

    def _changed(self, held, rows, sign):
        width, sums = held
        for x, label in zip(rows[0], rows[1].tolist(), strict=True):
            part = Means._changed(self, (width, sums), (x[None], np.array([label])), sign)
            sums.clear()
            sums.update(part[1])
        return width, sums


class ChecksTooLate(Means):
    def update(self, add=None, forget=None):
        if add is not None and len(add[0]):
            width, sums = self._current()
            self._held = width, {**sums, "x": (len(add[0]), (0,) * width)}
        held = self.__dict__.get("_held", (0, {}))
        self._held = held[0], {k: v for k, v in held[1].items() if k != "x" or add is None}
        try:
            return super().update(add, forget)
        except ValueError:
            self._late = 1  # what it has shown so far stays
            raise

    @property
    def late_(self):
        return self.__dict__.get("_late", 0)


class ForgetsAnything(Means):
    def _changed(self, held, rows, sign):
        try:
            return super()._changed(held, rows, sign)
        except ValueError as error:
            if str(error) == "never learned":
                return held
            raise


class WritesState(Means):
    """Sums are added up by BLAS, which does not care whether it may."""

    def _changed(self, held, rows, sign):
        width, sums = super()._changed(held, rows, sign)
        if "_total" not in self.__dict__ or not held[1]:
            self._total = np.zeros(width)
        total = sign * np.rint(rows[0] * 64).sum(axis=0)
        self._total = daxpy(total, self._total)  # in place
        return width, sums


class LosesARow(Means):
    """When it is sent."""

    def __getstate__(self):
        state = super().__getstate__()
        if "_held" in state:
            width, sums = state["_held"]
            state["_held"] = width, {k: (n + 1, v) for k, (n, v) in sums.items()}
        return state


class ClonesItsRows(Means):
    def __sklearn_clone__(self):
        other = Means.__new__(type(self))
        other.__setstate__(self.__getstate__())
        return other


class TwoSteps(Means):
    """What is held is replaced in two steps, with time between them."""

    def _current(self):
        held = super()._current()
        return held[0], {k: (n, self._sums[k]) for k, n in self._counts.items()}

    def fit(self, X, y):
        held = self._changed((np.shape(X)[1], {}), self._rows(X, y), 1)
        self._publish(held)
        return self

    def update(self, add=None, forget=None):
        with self._lock:
            super().update(add, forget)
            self._publish(self._held)
        return self

    def _publish(self, held):
        self._held = held
        sums = {k: v for k, (_, v) in held[1].items()}
        self._sums = {**self.__dict__.get("_sums", {}), **sums}
        for _ in range(3000):
            pass
        self._counts = {k: n for k, (n, _) in held[1].items()}


class WithoutALock(Means):
    """Read, take one's time, write."""

    def update(self, add=None, forget=None):
        held = self._current()
        for rows, sign in ((add, 1), (forget, -1)):
            if rows is not None and len(rows[0]):
                held = self._changed(held, self._rows(*rows), sign)
        for _ in range(3000):
            pass
        self._held = held
        return self


BROKEN = [
    (KeepsViews, "check_buffers_may_be_used_again"),
    (WritesRows, "check_rows_are_only_read"),
    (OtherBitsInFortransOrder, "check_rows_in_any_memory"),
    (InFloats, BITS),
    (RemembersClasses, BITS),
    (CannotBecomeEmpty, "check_all_rows_may_be_forgotten"),
    (StumblesOverNothing, "check_an_empty_side_changes_nothing"),
    (ChangesInPlace, "check_copies_are_models_of_their_own"),
    (ChangesInPlace, "check_faults_leave_a_whole_model"),
    (ChecksTooLate, "check_refused_rows_change_nothing"),
    (ForgetsAnything, "check_rows_never_learned_change_nothing"),
    (WritesState, "check_memory_that_others_own"),
    (LosesARow, "check_pickles"),
    (ClonesItsRows, "check_a_clone_has_learned_nothing"),
    (TwoSteps, "check_readers_see_whole_states"),
    (WithoutALock, "check_writers_wait_for_each_other"),
]


@pytest.mark.parametrize(("kind", "check"), BROKEN)
def test_each_check_catches_what_it_is_for(kind, check):
    caught = first_failure(kind, check)
    assert caught is not None
    assert f"in {check} of {kind.__name__}() with seed=" in caught.__notes__[0]


def test_each_check_of_estimators_is_shown_to_catch_something():
    shown = {check for _, check in BROKEN} | {"check_files"}  # which has a test of its own
    assert shown == set(named(estimator_checks(Means())))


def test_files_that_hold_something_else(monkeypatch):
    check = named(estimator_checks(LSSVC()))["check_files"]
    check()
    other = LSSVC().fit(np.arange(12.0).reshape(4, 3), [0, 1, 1, 0])
    monkeypatch.setattr(copies, "load", lambda path: other)
    with pytest.raises(AssertionError, match="what comes out of a file is the same model"):
        check()


# --- maps, and how they can go wrong -------------------------------------------------------------


class Own(FeatureMap):
    """Right in every respect."""

    def __init__(self, shift=0.25, bias=True, resolution=2**-10):
        self.shift = shift
        self.bias = bias
        self.resolution = resolution

    def values(self, X):
        return np.hstack([X + self.shift, X * X])


class LooksAround(Own):
    def values(self, X):
        return X - X.max(axis=0)


class Encodes(Own):
    """A map with a `bind` of its own."""

    def bind(self, n_features):
        steps = np.full(n_features, 2.0**-10)
        return BoundMap(self.specification(), n_features, steps, False, self.encode, type(self))

    def n_outputs(self, n_features):
        return n_features

    def encode(self, X, out):
        np.rint((X + 0.25) * 2**10, out=out)


class NotRounded(Encodes):
    def encode(self, X, out):
        np.multiply(X, 2**10 / 3, out=out)


class OddSteps(Encodes):
    def bind(self, n_features):
        steps = np.full(n_features, 0.1)
        return BoundMap(self.specification(), n_features, steps, False, self.encode, type(self))


class Miscounts(Encodes):
    def n_outputs(self, n_features):
        return n_features + 1


class WritesItsRows(Encodes):
    def encode(self, X, out):
        if X.flags.writeable:
            X += 2.0**-40
        super().encode(X, out)


class SwallowsNaN(Own):
    def values(self, X):
        return np.nan_to_num(X, posinf=1.0, neginf=-1.0)


class Stays(Encodes):
    """Reads its parameters when rows come."""

    def encode(self, X, out):
        np.rint((X + self.shift) * 2**10, out=out)


class SaysTooLittle(Own):
    def specification(self):
        return {k: v for k, v in super().specification().items() if k != "shift"}


class Borrows(Own):
    """Says that it is ours, and computes something else."""

    def bind(self, n_features):
        bound = Linear().bind(n_features)
        encode = bound.encode
        return dataclasses.replace(bound, encode=lambda X, out: encode(2 * X, out))


class NoVersion(Own):
    version = "two"


class Drawn(Own):
    """What it computes is not what its parameters say."""

    def __init__(self, shift=0.25, bias=True, resolution=2**-10):
        super().__init__(shift, bias, resolution)
        self.drawn = float(np.random.default_rng().integers(1000))

    def values(self, X):
        return X + self.drawn


BROKEN_MAPS = [
    (LooksAround, "check_one_row_equals_a_batch"),
    (LooksAround, "check_models_on_it_forget"),
    (NotRounded, "check_codes_are_integers"),
    (OddSteps, "check_codes_are_integers"),
    (Miscounts, "check_codes_are_integers"),
    (WritesItsRows, "check_rows_in_any_memory"),
    (SwallowsNaN, "check_rows_that_are_refused"),
    (Stays, "check_a_bound_map_stays_what_it_was"),
    (SaysTooLittle, "check_every_parameter_is_specified"),
    (NoVersion, "check_specification"),
    (Borrows, "check_specification"),
    (Drawn, "check_specification"),
]


@pytest.mark.parametrize(("kind", "check"), BROKEN_MAPS)
def test_each_check_of_maps_catches_what_it_is_for(kind, check):
    with pytest.raises(AssertionError, match=r"Promised: .*\. Found: ") as caught:
        named(feature_map_checks(kind()))[check]()
    assert check in caught.value.__notes__[0]
    with pytest.raises(AssertionError):
        check_feature_map(kind())


def test_each_check_of_maps_is_shown_to_catch_something():
    assert {check for _, check in BROKEN_MAPS} == set(named(feature_map_checks(Own())))


class Roots(Own):
    """For some rows only."""

    def values(self, X):
        return np.sqrt(X)


# --- how they are used -------------------------------------------------------------------------


def test_maps_of_ones_own_pass():
    check_feature_map(Own(), n_features=1)
    check_feature_map(Encodes(), 2, seed=5)
    counts = np.abs(np.random.default_rng(0).normal(size=(40, 2)))
    with pytest.raises(RuntimeWarning, match="sqrt"):
        check_feature_map(Roots(), 2)
    check_feature_map(Roots(), X=counts)
    check_estimator(LSSVC(Roots()), X=counts, n_histories=1)


def test_a_failure_says_what_was_promised_and_how_to_repeat_it():
    with pytest.raises(AssertionError, match=r"^Promised: after .*\. Found: digest") as caught:
        check_estimator(InFloats(), seed=3)
    assert caught.value.__notes__ == [f"in {BITS} of InFloats() with seed=3"]
    with pytest.raises(AssertionError) as again:
        named(estimator_checks(InFloats(), seed=3))[BITS]()
    assert str(again.value) == str(caught.value)


def test_checks_leave_the_estimator_alone():
    model = LSSVC().fit(np.arange(12.0).reshape(4, 3), [0, 1, 1, 0])
    before = model.digest()
    check_estimator(model, n_histories=1)
    assert model.digest() == before
    assert repr(clone(model)) == repr(LSSVC())


def test_what_cannot_be_checked():
    with pytest.raises(TypeError, match="learn and forget"):
        next(estimator_checks(GaussianNB()))
    with pytest.raises(TypeError, match="a FeatureMap"):
        check_feature_map(LSSVC())
    assert failing(estimator_checks(Means())) == []


def test_lines_of_the_package_are_where_faults_are_injected():
    """A fault in `Linear` alone would be found."""

    class Breaks(LSSVC):
        def update(self, add=None, forget=None):
            vars(self)["n_changes_"] = vars(self).get("n_changes_", 0) + 1
            return super().update(add, forget)

    assert "check_faults_leave_a_whole_model" in failing(estimator_checks(Breaks(Linear())))
