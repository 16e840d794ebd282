"""PathSVC shared by threads, and interrupted at any line: all of a change is seen, or nothing."""

import copy
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from traceless import PathSVC


@pytest.fixture
def hurried():
    """Threads take turns after every few instructions."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(2)
    y = rng.integers(3, size=160)
    return rng.normal(size=(160, 2)) + np.array([[0, 0], [1, 0], [0, 1.2]])[y], y


PARAMETERS = [
    {"gamma": 0.5, "C": 3.0},
    {"kernel": "linear", "strategy": "ovr"},
    {"C": 2.0, "cache_size": 0.2},
]


def together(*jobs):
    """Run jobs in threads that start at once; their results, or the first error."""
    start = threading.Barrier(len(jobs))

    def run(job):
        start.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result() for future in [pool.submit(run, job) for job in jobs]]


def answers(model, X):
    return model.digest(), model.decision_function(X).tobytes(), model.predict(X).tobytes()


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_readers_see_the_model_before_a_change_or_after_it(hurried, rows, parameters):
    X, y = rows
    changes = [(slice(60 + 5 * k, 65 + 5 * k), slice(5 * k, 5 * k + 5)) for k in range(12)]

    def change(model, new, old):
        return model.update(add=(X[new], y[new]), forget=(X[old], y[old]))

    model = PathSVC(**parameters).fit(X[:60], y[:60])
    alone, known = pickle.loads(pickle.dumps(model)), []
    known.append(answers(alone, X))
    for new, old in changes:
        known.append(answers(change(alone, new, old), X))
    valid = [set(kind) for kind in zip(*known, strict=True)]
    assert len(valid[0]) == len(changes) + 1
    done = threading.Event()

    def write():
        try:
            for new, old in changes:
                change(model, new, old)
        finally:
            done.set()

    def read():
        seen = [set(), set(), set()]
        while not done.is_set():
            for kind, one in zip(seen, answers(model, X), strict=True):
                kind.add(one)
            ids = model.ids_
            assert len(ids) == 60
            model._without([])  # and paths are followed that nobody takes
            old = copy.copy(model)
            assert old.support_.max() < old.n_samples_
            assert old.kkt_residual_ <= 1e-9
        return seen

    _, *read_by = together(write, read, read)
    for seen in read_by:
        assert all(kinds <= allowed for kinds, allowed in zip(seen, valid, strict=True))
    assert answers(model, X) == known[-1]
    held = model._model.rows
    assert model.digest() == PathSVC(**parameters).fit(held.X, held.y).digest()


def learn(model, X, y, start, end, step):
    for i in range(start, end, step):
        model.partial_fit(X[i : i + step], y[i : i + step])


def swap(model, X, y, start, end, ahead):
    """Forget rows two by two, and learn those that come `ahead` rows later."""
    for i in range(start, end, 2):
        old, new = slice(i, i + 2), slice(ahead + i, ahead + i + 2)
        model.update(add=(X[new], y[new]), forget=(X[old], y[old]))


def test_eight_threads_that_learn(hurried, rows):
    X, y = rows
    fresh = PathSVC(gamma=0.5).fit(X, y).digest()
    for _ in range(3):
        model = PathSVC(gamma=0.5)  # the first rows, too, come from any of them
        together(*(partial(learn, model, X, y, k, k + 20, 4) for k in range(0, 160, 20)))
        assert model.n_samples_ == 160
        assert model.ids_.tolist() == list(range(160))
        assert model.digest() == fresh


def test_writers_that_learn_and_forget(hurried, rows):
    X, y = rows
    model = PathSVC(kernel="linear").fit(X[:80], y[:80])
    together(*(partial(swap, model, X, y, k, k + 40, 80) for k in (0, 40)))
    assert model.digest() == PathSVC(kernel="linear").fit(X[80:], y[80:]).digest()


def test_copies_change_in_threads_of_their_own(hurried, rows):
    X, y = rows
    model = PathSVC(gamma=0.5).fit(X[:100], y[:100])
    others = [model, copy.copy(model), copy.deepcopy(model), copy.copy(copy.deepcopy(model))]
    together(*(partial(swap, other, X, y, 0, 10 + 10 * k, 100) for k, other in enumerate(others)))
    for k, other in enumerate(others):
        kept = np.r_[10 + 10 * k : 110 + 10 * k]
        assert other.digest() == PathSVC(gamma=0.5).fit(X[kept], y[kept]).digest()


def test_parameters_set_by_one_thread_and_used_by_another(hurried, rows):
    X, y = rows
    known = {C: PathSVC(C=C, gamma=0.5).fit(X, y).digest() for C in (1.0, 3.0)}
    model, done = PathSVC(gamma=0.5).fit(X, y), threading.Event()

    def turn():
        for k in range(20):
            assert model.set_params(C=(1.0, 3.0)[k % 2]).n_breakpoints_ > 0
        done.set()

    def read():
        seen = set()
        while not done.is_set():
            seen.add(model.digest())
        return seen

    _, *read_by = together(turn, read, read)
    assert all(seen <= set(known.values()) for seen in read_by)
    assert model.digest() == known[model.C]


# --- interrupted at any line ---------------------------------------------------------------------


class _Fault(BaseException):
    pass


def traced(job, stop=None):
    """Run a job, count the lines of ours that it executes, and raise before the one numbered."""
    count = [0]

    def local(frame, event, arg):
        if event == "line":
            if count[0] == stop:
                count[0] += 1
                raise _Fault
            count[0] += 1
        return local

    def trace(frame, event, arg):
        return local if "traceless" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        job()
    finally:
        sys.settrace(before)
    return count[0]


CHANGES = {
    "update": lambda m, X, y: m.update(add=(X[50:58], y[50:58]), forget=(X[:6], y[:6])),
    "forget": lambda m, X, y: m.forget(ids=m.ids_[:9]),
    "learn": lambda m, X, y: m.partial_fit(X[50:], y[50:]),
    "fit": lambda m, X, y: m.fit(X[50:], y[50:]),
}


def interrupted(job, stop):
    with suppress(_Fault):  # or it is done before: a matrix that is there needs fewer lines
        traced(job, stop)


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_an_interrupt_at_any_line_leaves_the_model_before_or_after(rows, name, parameters, rng):
    X, y = rows
    model = PathSVC(**parameters).fit(X[:50], y[:50])
    other = PathSVC(**parameters).fit(X[:50], y[:50])
    before = answers(model, X)
    lines = traced(lambda: CHANGES[name](other, X, y))
    after = answers(other, X)
    assert lines > 300
    for stop in rng.integers(lines, size=25).tolist():
        old = copy.copy(model)
        interrupted(lambda: CHANGES[name](model, X, y), stop)  # noqa: B023
        assert answers(model, X) in (before, after)
        assert answers(old, X) == before
        model = old if answers(model, X) == after else model
    CHANGES[name](model, X, y)
    assert answers(model, X) == after


def test_an_interrupt_on_the_way_to_other_parameters(rows, rng):
    X, y = rows
    model = PathSVC(gamma=0.5).fit(X, y)
    before = answers(model, X)
    lines = traced(lambda: copy.deepcopy(model).set_params(C=9.0).n_breakpoints_)
    for stop in rng.integers(lines, size=25).tolist():
        interrupted(lambda: model.set_params(C=9.0).n_breakpoints_, stop)
        assert answers(model.set_params(C=1.0), X) == before
