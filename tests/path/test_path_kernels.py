import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import dense_kernel

from traceless.path import Kernel
from traceless.path.store import Store

KERNELS = [
    Kernel("rbf", gamma=0.3),
    Kernel("linear"),
    Kernel("poly", gamma=0.7, coef0=0.5, degree=3),
    Kernel("poly", gamma=1.0, degree=0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.name}{k.degree}")
def test_values_are_right_symmetric_and_the_same_in_any_batch(rng, kernel):
    A = rng.normal(size=(300, 7))
    G = kernel.values(A, A.T)
    assert np.allclose(G, dense_kernel(kernel, A, A), rtol=1e-12, atol=1e-13)
    assert np.array_equal(G, G.T)
    rows = rng.permutation(300)[:41]
    for i in rows:
        assert np.array_equal(kernel.values(A[i : i + 1], A[rows].T)[0], G[i, rows])
    assert np.allclose(kernel.diagonal(A), G.diagonal(), rtol=1e-14)


@given(st.floats(0.0, 1e6))
def test_far_points(distance):
    value = Kernel("rbf").values(np.array([[distance]]), np.array([[0.0]]))[0, 0]
    right = np.exp(-(distance**2)) if distance**2 < 700 else 0.0
    assert value == pytest.approx(right, rel=1e-14, abs=0)


def test_slots_are_used_again_and_what_is_forgotten_is_not_kept(rng):
    store = Store(Kernel("rbf"), 2, 1 << 20)
    slots = store.place(rng.normal(size=(10, 2)), np.ones(10))
    store.take(slots, slots[:0])
    store.take(slots[:0], slots[2:5])
    assert (store.rows[:, 2:5] == 0).all()
    again = store.place(rng.normal(size=(3, 2)), np.ones(3))
    assert sorted(again) == [2, 3, 4]
    assert store.n == 10


@pytest.mark.parametrize("memory", [1 << 20, 4000])
def test_kept_kernel_values_are_those_of_the_rows(rng, memory):
    store = Store(Kernel("rbf"), 2, memory)
    X = rng.normal(size=(30, 2))
    slots = store.place(X, np.ones(30))
    store.take(slots, slots[:0])
    for j in range(4):
        store.need(j, np.arange(0))
    store.take(slots[:0], slots[10:15])
    new = store.place(rng.normal(size=(6, 2)), np.ones(6))
    store.take(new, new[:0])
    alive = np.setdiff1d(np.arange(store.n), store.free)
    G = store.kernel.values(store.rows[:, alive].T, store.rows[:, alive])
    for j in np.flatnonzero(store.line[: store.n] >= 0):
        if j in alive:
            assert np.array_equal(store.gram[store.line[j], alive], G[list(alive).index(j)])
    c = rng.normal(size=len(alive))
    assert np.allclose(store.times(alive, alive, c), G @ c)
