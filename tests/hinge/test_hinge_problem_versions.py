"""A problem stays what it is, whatever is made of it; the kernel matrix belongs to the newest."""

import copy
import gc
import weakref

import numpy as np
import pytest

from families import sample
from oracles import equal_bits, promise, published_residual, residual
from papers.karasuyama2009.points import PointProblem
from traceless.hinge.kernels import Kernel

KERNEL = Kernel("rbf", gamma=0.5)


@pytest.fixture(params=[1 << 30, 45_000], ids=["whole", "lines"])
def problem(request, rng):
    return PointProblem(KERNEL, 3, request.param).fit(*sample(rng, 80), 10.0)


def fresh(problem):
    return PointProblem(problem.kernel, 3, seed=3).fit(problem.X, problem.y, problem.bounds)


def is_right(problem):
    assert residual(problem) <= promise(problem)
    assert published_residual(problem) <= promise(problem)
    assert equal_bits(problem.canonical(), fresh(problem).canonical())
    return True


def cache_of(problem):
    return problem._held.cache


@pytest.mark.parametrize("asked", ["before", "after"])
def test_an_old_state_answers_and_changes_after_newer_ones(problem, rng, asked):
    old = copy.copy(problem)
    if asked == "before":
        expected = old.canonical()
    for k in range(4):
        problem.update((*sample(rng, 6), 10.0), np.arange(4 + k))
    if asked == "before":
        assert old.canonical() is expected
    assert is_right(old)
    assert is_right(problem)
    old.update((*sample(rng, 5), 10.0), [1, 2])
    problem.update((*sample(rng, 5), 10.0), [1, 2])
    assert is_right(old)
    assert is_right(problem)
    assert cache_of(old) is not cache_of(problem)


def test_a_change_that_is_not_taken_leaves_everything_as_it_was(problem, rng):
    before, store = problem.canonical(), cache_of(problem)
    ahead = [problem.changed((*sample(rng, 7), 10.0), np.arange(k)) for k in range(3)]
    ahead += [problem.changed(remove=np.arange(9))]
    assert problem.canonical() is before
    assert all(is_right(other) for other in ahead)  # also those whose slots were used again
    assert cache_of(problem) is store
    problem.update(remove=[0])
    assert cache_of(problem) is store
    assert is_right(problem)
    assert all(is_right(other) for other in ahead)


def test_no_kernel_matrix_is_copied_for_an_update(problem, rng):
    gram = cache_of(problem).gram
    for _ in range(10):
        problem.update((*sample(rng, 3), 10.0), [0, 1, 2])
    assert cache_of(problem).gram is gram


def test_a_deep_copy_leaves_the_kernel_matrix_where_it_is(problem, rng):
    other, store = copy.deepcopy(problem), cache_of(problem)
    other.update((*sample(rng, 5), 10.0), [0])
    assert cache_of(problem) is store
    assert store.owner is problem._held.token
    assert is_right(other)
    assert is_right(problem)
    late = copy.deepcopy(problem)
    problem.update((*sample(rng, 5), 10.0), [0])
    late.update((*sample(rng, 5), 10.0), [0])  # ours is gone meanwhile
    assert is_right(late)


def test_an_old_state_keeps_no_kernel_matrix_alive(rng):
    problem = PointProblem(KERNEL, 3).fit(*sample(rng, 60), 10.0)
    old = copy.copy(problem)
    gram = weakref.ref(cache_of(problem).gram)
    problem.update((*sample(rng, 400), 10.0))  # a larger one is made
    gc.collect()
    assert gram() is None
    assert len(old) == 60


def test_what_does_not_fit_is_not_computed_to_publish_it(rng, monkeypatch):
    X, y = sample(rng, 600)
    problem = PointProblem(KERNEL, 3, memory=1_000_000).fit(X, y, 1.0)
    assert not cache_of(problem).whole
    problem.update((*sample(rng, 2), 1.0), [0, 1])
    values, count = Kernel.values, []

    def counted(self, A, BT):
        count.append(len(A) * BT.shape[1])
        return values(self, A, BT)

    monkeypatch.setattr(Kernel, "values", counted)
    solution = problem.canonical()
    margin = int((problem.sides == 1).sum())
    support = len(solution.support)
    assert 0 < sum(count) <= 2 * margin * support < 600 * support / 4
    monkeypatch.undo()
    assert is_right(problem)
