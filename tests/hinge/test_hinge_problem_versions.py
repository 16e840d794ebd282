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
    assert equal_bits(problem.published, fresh(problem).published)
    return True


def cache_of(problem):
    return problem.held._place.gram


def test_an_old_state_answers_and_changes_after_newer_ones(problem, rng):
    old, expected = copy.copy(problem), problem.published
    for k in range(4):
        problem.update((*sample(rng, 6), 10.0), np.arange(4 + k))
    assert old.published is expected
    assert is_right(old)
    assert is_right(problem)
    old.update((*sample(rng, 5), 10.0), [1, 2])
    problem.update((*sample(rng, 5), 10.0), [1, 2])
    assert is_right(old)
    assert is_right(problem)
    assert cache_of(old) is not cache_of(problem)


def test_a_change_that_is_not_taken_leaves_everything_as_it_was(problem, rng):
    before, store = problem.published, cache_of(problem)
    ahead = [problem.changed((*sample(rng, 7), 10.0), np.arange(k)) for k in range(3)]
    ahead += [problem.changed(remove=np.arange(9))]
    assert problem.published is before
    assert all(is_right(other) for other in ahead)  # also those whose slots were used again
    assert cache_of(problem) is store
    problem.update(remove=[0])
    assert cache_of(problem) is store
    assert is_right(problem)
    assert all(is_right(other) for other in ahead)


def test_only_lines_of_new_points_are_computed_for_an_update(problem, rng):
    lines = cache_of(problem).lines
    if lines.memory < 8 * 80**2:
        pytest.skip("lines that had to give way are computed again")
    before = lines.computed
    for _ in range(10):
        problem.update((*sample(rng, 1), 10.0), [0])
    assert lines.computed - before < 80**2 / 2


def test_a_deep_copy_leaves_the_kernel_matrix_where_it_is(problem, rng):
    other, store = copy.deepcopy(problem), cache_of(problem)
    other.update((*sample(rng, 5), 10.0), [0])
    assert cache_of(problem) is store
    assert store.owner is problem.held
    assert is_right(other)
    assert is_right(problem)
    late = copy.deepcopy(problem)
    problem.update((*sample(rng, 5), 10.0), [0])
    late.update((*sample(rng, 5), 10.0), [0])  # ours is gone meanwhile
    assert is_right(late)


def test_an_old_state_keeps_no_kernel_matrix_alive(rng):
    problem = PointProblem(KERNEL, 3).fit(*sample(rng, 900), 10.0)
    old, gram = copy.copy(problem), weakref.ref(cache_of(problem))
    del old.held
    problem.update(remove=np.arange(850))  # most of its slots are empty
    problem.update(remove=[0])
    gc.collect()
    assert gram() is None
    assert len(old) == 900
