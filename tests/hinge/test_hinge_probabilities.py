"""Platt's sigmoid against a minimiser of SciPy, and coupled pairs against a constrained one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from traceless.hinge.probabilities import LEAST, Sigmoid, coupled, probabilities, sigmoid


def loss(ab, f, y, weight):
    few, many = weight[y < 0].sum(), weight[y > 0].sum()
    t = np.where(y > 0, (many + 1) / (many + 2), 1 / (few + 2))
    z = ab[0] * f + ab[1]
    return weight @ (t * z + np.logaddexp(0.0, -z))


@pytest.mark.parametrize("slope", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_sigmoid_is_better(rng, slope, weighted):
    f = rng.normal(size=80)
    y = np.where(rng.random(80) < 1 / (1 + np.exp(-slope * f + 0.5)), 1.0, -1.0)
    weight = rng.uniform(0.1, 3.0, size=80) if weighted else np.ones(80)
    found = sigmoid(f, y, weight)
    best = minimize(loss, [-1.0, 0.0], (f, y, weight), tol=1e-9)
    assert loss(found, f, y, weight) <= best.fun + 1e-12
    np.testing.assert_allclose(found, best.x, rtol=1e-4, atol=1e-5)


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(2, 60))
def test_the_order_of_rows_does_not_count(seed, n):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4)
    y = np.where(np.arange(n) < rng.integers(1, n), 1.0, -1.0)
    weight, order = rng.uniform(0.1, 3.0, size=n), rng.permutation(n)
    found = sigmoid(f, y, weight)
    assert found == sigmoid(f[order], y[order], weight[order])
    assert np.isfinite(found).all()
    assert found.a <= 0.0


def test_a_weight_of_two_is_two_rows(rng):
    f, y = rng.normal(size=30), rng.choice([-1.0, 1.0], size=30)
    weight = rng.integers(1, 4, size=30)
    twice = sigmoid(np.repeat(f, weight), np.repeat(y, weight), np.ones(weight.sum()))
    assert sigmoid(f, y, weight * 1.0) == pytest.approx(twice, rel=1e-9)


def test_values_that_say_nothing_or_the_opposite():
    y = np.repeat([-1.0, 1.0], [30, 10])
    for f in (np.zeros(40), -y, np.full(40, 3.0)):
        found = sigmoid(f, y, np.ones(40))
        assert found(np.array([0.5]))[1][0] == pytest.approx(0.25, abs=0.02)
    assert sigmoid(-y, y, np.ones(40)).a == 0.0


def test_far_values_are_probabilities():
    negative, positive = Sigmoid(-1.0, 0.0)(np.array([-1e6, -40.0, 0.0, 40.0, 1e6]))
    assert positive[2] == 0.5
    assert (np.diff(positive) >= 0.0).all()
    np.testing.assert_allclose(negative + positive, 1.0, rtol=1e-15)
    assert negative[3] == pytest.approx(np.exp(-40.0), rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 9])
def test_pairs_are_coupled_as_in_the_paper(rng, n):
    """The solution of Wu, Lin and Weng by their own conditions: Q p is the same in all places."""
    first = rng.random((n * (n - 1) // 2, 50))
    first[:, :5] = rng.choice([0.0, 1.0], size=(len(first), 5))
    p = coupled([(r, 1.0 - r) for r in first], n)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    assert (p > 0.0).all()
    r = np.clip(first, LEAST, 1.0 - LEAST)
    for k in range(50):
        Q, pairs = np.zeros((n, n)), iter(r[:, k])
        for i in range(n):
            for j in range(i + 1, n):
                ij = next(pairs)
                v = np.zeros(n)
                v[i], v[j] = 1.0 - ij, -ij
                Q += np.outer(v, v)
        assert np.ptp(Q @ p[k]) < 1e-12
        alone = coupled([(q[k : k + 1], 1.0 - q[k : k + 1]) for q in first], n)
        assert (alone[0] == p[k]).all()  # whatever batch it comes in


def test_probabilities_of_a_model_of_pairs_come_back():
    """Pairs that agree with some probabilities of the classes give these."""
    p = np.array([0.1, 0.2, 0.7])
    pairs = [(p[i] / (p[i] + p[j]), p[j] / (p[i] + p[j])) for i, j in ((0, 1), (0, 2), (1, 2))]
    found = coupled([(np.array([a]), np.array([b])) for a, b in pairs], 3)
    np.testing.assert_allclose(found[0], p, rtol=1e-12)
    f = np.log([[b / a for a, b in pairs]])
    fitted = [Sigmoid(-1.0, 0.0)] * 3
    np.testing.assert_allclose(probabilities(f, fitted, 3, True)[0], p, rtol=1e-12)
    each = 1 / (1 + np.exp(-f[0]))
    np.testing.assert_allclose(probabilities(f, fitted, 3, False)[0], each / each.sum())
