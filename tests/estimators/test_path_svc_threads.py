"""PathSVC shared by threads: all of a change is seen, or nothing."""

import copy
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
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


def together(*jobs):
    """Run jobs in threads that start at once; their results, or the first error."""
    start = threading.Barrier(len(jobs))

    def run(job):
        start.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result() for future in [pool.submit(run, job) for job in jobs]]


def swap(model, X, y, start, end, ahead):
    """Forget rows two by two, and learn those that come `ahead` rows later."""
    for i in range(start, end, 2):
        old, new = slice(i, i + 2), slice(ahead + i, ahead + i + 2)
        model.update(add=(X[new], y[new]), forget=(X[old], y[old]))


def test_copies_change_in_threads_of_their_own(hurried, rows):
    X, y = rows
    model = PathSVC(gamma=0.5).fit(X[:100], y[:100])
    others = [model, copy.copy(model), copy.deepcopy(model), copy.copy(copy.deepcopy(model))]
    together(*(partial(swap, other, X, y, 0, 10 + 10 * k, 100) for k, other in enumerate(others)))
    for k, other in enumerate(others):
        kept = np.r_[10 + 10 * k : 110 + 10 * k]
        assert other.digest() == PathSVC(gamma=0.5).fit(X[kept], y[kept]).digest()


def test_readers_do_not_wait_for_a_path(rows):
    X, y = rows
    entered, go_on = threading.Event(), threading.Event()

    def kernel(A, B):
        if threading.current_thread() is writer:
            entered.set()
            assert go_on.wait(60)
        return np.exp(-0.5 * ((A[:, None] - B) ** 2).sum(axis=-1))

    writer = None
    before = PathSVC(kernel=kernel).fit(X[:60], y[:60]).predict(X)
    model = PathSVC(kernel=kernel).fit(X[:60], y[:60])  # nobody has asked it for anything
    writer = threading.Thread(target=partial(model.partial_fit, X[60:], y[60:]))
    writer.start()
    assert entered.wait(60)
    with ThreadPoolExecutor(1) as pool:
        try:
            assert np.array_equal(pool.submit(model.predict, X).result(20), before)
            assert pool.submit(lambda: model.dual_coef_).result(20).shape[0] == 2
            assert pool.submit(lambda: model.kkt_residual_).result(20) < 1e-9
            assert pool.submit(copy.deepcopy, model).result(20).n_samples_ == 60
        finally:
            go_on.set()
    writer.join()
    assert model.n_samples_ == 160


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
