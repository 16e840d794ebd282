"""All or nothing: whatever goes wrong in an update, the problem is what it was."""

import signal

import numpy as np
import pytest

from families import sample
from oracles import dense_kernel, promise, residual
from papers.karasuyama2009.points import PointProblem
from traceless.hinge import published
from traceless.hinge.kernels import Kernel


def picture(problem):
    parts = problem.X, problem.y, problem.bounds, problem.alpha, problem.slopes
    return [a.tobytes() for a in parts] + [problem.intercept, problem.n_breakpoints, len(problem)]


@pytest.mark.parametrize("where", ["before", "after"])
def test_an_error_on_the_way(rng, monkeypatch, where):
    X, y = sample(rng, 80)
    problem = PointProblem(Kernel("rbf"), 3).fit(X, y, 1.0)
    before, add = picture(problem), (*sample(rng, 10), 1.0)
    publish = published.published

    def fail(*end):
        if where == "after":
            publish(*end)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("traceless.hinge.problem.published", fail)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                problem.update(add, np.arange(10))
        with pytest.raises(KeyboardInterrupt):
            problem.update(bounds=2.0)
        with pytest.raises(KeyboardInterrupt):
            problem.fit(*add)
    assert picture(problem) == before
    assert residual(problem) <= promise(problem)
    problem.update(add, np.arange(10))
    assert residual(problem) <= promise(problem)


@pytest.mark.parametrize("calls", range(6))
def test_a_kernel_that_fails_after_some_calls(rng, calls):
    X, y = sample(rng, 60)
    left = [10**6]

    def kernel(A, B):
        left[0] -= 1
        if left[0] < 0:
            raise OSError("no kernel today")
        return dense_kernel(Kernel("rbf"), A, B)

    problem = PointProblem(Kernel("callable", function=kernel), 3, memory=60_000).fit(X, y, 1.0)
    before = picture(problem)
    add = (*sample(rng, 8), 1.0)
    left[0] = calls
    with pytest.raises(OSError, match="today"):  # noqa: PT012
        for _ in range(9):
            problem.update(add, np.arange(8))
            before = picture(problem)
    left[0] = 10**6
    assert picture(problem) == before
    problem.update(add, np.arange(8))
    assert residual(problem) <= promise(problem)


@pytest.mark.parametrize("memory", [4_000, 15_000, 40_000])
def test_a_first_margin_too_large_for_the_memory_says_so(rng, memory):
    X, y = sample(rng, 200)
    with pytest.raises(MemoryError, match="raise `memory`"):
        PointProblem(Kernel("rbf", gamma=5.0), 3, memory=memory).fit(X, y, 10.0)


def test_a_path_is_interrupted(rng):
    X, y = sample(rng, 300)
    calls = []

    def kernel(A, B):
        calls.append(len(A))
        if len(calls) == 40:
            signal.raise_signal(signal.SIGINT)
        return dense_kernel(Kernel("rbf"), A, B)

    problem = PointProblem(Kernel("callable", function=kernel), 3)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest-xdist ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            problem.fit(X, y, 1.0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(problem) == 0
    assert residual(problem.fit(X, y, 1.0)) <= promise(problem)
