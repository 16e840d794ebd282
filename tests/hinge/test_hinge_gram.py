"""Kernel values that are kept: right, within the memory allowed, none of rows that have gone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from families import sample
from oracles import dense_kernel
from papers.karasuyama2009.points import PointProblem
from traceless.hinge.gram import Gram
from traceless.hinge.kernels import Kernel

RBF = Kernel("rbf", gamma=0.3)


def called(A, B):
    return dense_kernel(RBF, A, B)


@given(
    st.sampled_from([RBF, Kernel("linear"), Kernel("callable", function=called)]),
    st.sampled_from([2, 70]),
    st.sampled_from([1 << 20, 5000]),
    st.integers(0, 2**32),
)
def test_values_are_those_of_the_rows_whatever_came_and_went(kernel, width, memory, seed):
    rng = np.random.default_rng(seed)
    gram, held, slots = Gram(kernel, width, memory), np.zeros((0, width)), np.zeros(0, np.int64)
    for _ in range(6):
        X = rng.normal(size=(int(rng.integers(0, 12)), width))
        held, slots = np.concatenate([held, X]), np.concatenate([slots, gram.place(X)])
        kept = rng.random(len(held)) < 0.8
        held, slots = held[kept], slots[kept]
        gram.hand_over(object(), slots)
        if not len(held):
            continue
        a, b = (rng.integers(len(held), size=int(rng.integers(1, 9))) for _ in range(2))
        G = kernel.values(held, held)
        if kernel.exact:
            assert np.array_equal(gram.values(slots[a], slots[b]), G[np.ix_(a, b)])
            assert np.array_equal(gram.diagonal(slots), G.diagonal())
        np.testing.assert_allclose(gram.values(slots[a], slots[b]), G[np.ix_(a, b)], rtol=1e-12)
        assert gram.lines.held <= max(4, memory // (8 * len(held)))


@pytest.mark.parametrize("kernel", [RBF, Kernel("linear"), Kernel("poly", gamma=0.1, coef0=1.0)])
def test_wide_rows_are_multiplied_at_once(kernel, rng):
    X = rng.normal(size=(150, 70))
    gram, tight = Gram(kernel, 70, 1 << 20), Gram(kernel, 70, 500)
    slots = gram.place(X)
    gram.hand_over(object(), slots[20:])
    for one in (gram, tight):
        one.place(X[:10])
        one.fill()
    assert (gram.lines.held, tight.lines.held) == (140, 0)
    before, held = gram.lines.computed, np.concatenate([np.arange(10), np.arange(20, 150)])
    slots = np.concatenate([np.arange(10), slots[20:]])
    assert np.array_equal(gram.values(slots, slots), kernel.values(X[held], X[held]))
    assert gram.lines.computed == before


@pytest.mark.parametrize("memory", [1 << 30, 50_000])
def test_what_is_allowed_is_not_exceeded(rng, memory):
    X, y = sample(rng, 300)
    problem = PointProblem(Kernel("rbf", gamma=0.1), 3, memory).fit(X, y, 1.0)
    problem.update((*sample(rng, 30), 1.0), np.arange(30))
    lines = problem.held._place.gram.lines
    assert 8 * lines.held * lines.n <= memory


def test_nothing_of_what_is_forgotten_is_kept(rng):
    X, y = sample(rng, 100)
    X[3] = 0.123, 4.567, 8.9
    problem = PointProblem(RBF, 3).fit(X, y, 10.0)
    gram = problem.held._place.gram
    values = [4.567, *gram.values(np.array([3]), np.array([40, 50]))[0]]
    assert all(gram.lines.count(v) for v in values)
    problem.update(remove=[3])
    assert not any(gram.lines.count(v) for v in values)


def test_a_kernel_that_is_not_positive_is_refused(rng):
    X, y = sample(rng, 40)
    for kernel in (Kernel("sigmoid", gamma=2.0, coef0=-1.0), Kernel("callable", function=wrong)):
        with pytest.raises(ValueError, match="not positive semidefinite"):
            PointProblem(kernel, 3).fit(X, y, 1.0)


def wrong(A, B):
    return np.abs(A[:, :1] - B[:, 0])
