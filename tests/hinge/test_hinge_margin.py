"""The bordered system in one order of evaluation, against the same steps in plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceless.hinge.margin import SOUND, MarginSystem, gather, independent, sum_of_rows


def plain_factor(A):
    """R with RᵀR = A, or None."""
    A, n = A.tolist(), len(A)
    limit = [SOUND * A[j][j] for j in range(n)]
    for j in range(n):
        if not A[j][j] > limit[j]:
            return None
        root = math.sqrt(A[j][j])
        A[j][j] = root
        for i in range(j + 1, n):
            A[j][i] /= root
        for r in range(j + 1, n):
            for i in range(r, n):
                A[r][i] -= A[j][r] * A[j][i]
    return A


def plain_solution(R, z):
    """The x with RᵀR x = z."""
    z, n = list(z), len(z)
    for j in range(n):
        z[j] /= R[j][j]
        for i in range(j + 1, n):
            z[i] -= z[j] * R[j][i]
    for j in reversed(range(n)):
        for i in range(j + 1, n):
            z[j] -= R[j][i] * z[i]
        z[j] /= R[j][j]
    return z


def total(values):
    out = values[0]
    for v in values[1:]:
        out += v
    return out


def plain_bordered(R, rho, p, q):
    x, ones = plain_solution(R, p), plain_solution(R, [1.0] * len(p))
    beta = (total(x) - q) / total(ones)
    return [a - beta * b for a, b in zip(x, ones, strict=True)], beta + rho * q


@given(st.integers(1, 40), st.integers(1, 30), st.integers(0, 2**32))
def test_every_bit_is_that_of_the_plain_steps(n, width, seed):
    rng = np.random.default_rng(seed)
    X, p, q = rng.normal(size=(n, width)), rng.normal(size=n), rng.normal()
    G = X @ X.T + 0.01 * np.eye(n) if seed % 4 else X @ X.T
    margin, R = MarginSystem(G), plain_factor(G + MarginSystem.shift(G))
    assert margin.sound == (R is not None)
    if R is None:
        return
    x, t = margin.solved(p, q)
    ours, lift = plain_bordered(R, margin.rho, p.tolist(), q)
    assert x.tolist() == ours
    assert t == lift


def test_refined_it_solves_the_system(rng):
    X, p, q = rng.normal(size=(12, 4)), rng.normal(size=12), 0.7
    G = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
    M = np.block([[G, np.ones((12, 1))], [np.ones((1, 12)), np.zeros((1, 1))]])
    x, t = MarginSystem(G).refined(p, q)
    np.testing.assert_allclose([*x, t], np.linalg.solve(M, [*p, q]), atol=1e-11)


def test_independent_rows_of_a_singular_matrix(rng):
    X = rng.normal(size=(9, 3))
    G = np.r_[X, X[:4]] @ np.r_[X, X[:4]].T
    assert not MarginSystem(G).sound
    some = independent(G)
    assert len(some) == 4  # three columns, and the constant
    assert (np.diff(some) > 0).all()
    assert MarginSystem(np.ascontiguousarray(G[np.ix_(some, some)])).sound


@pytest.mark.parametrize("k", [0, 1, 4, 6, 11])
def test_rows_are_added_four_at_a_time(k, rng):
    gram, out = rng.normal(size=(12, 37)), rng.normal(size=30)
    rows, c, right = rng.permutation(12)[:k], rng.normal(size=k), out.copy()
    for start in range(0, k - k % 4, 4):
        part = [c[i] * gram[rows[i], :30] for i in range(start, start + 4)]
        right = right + (((part[0] + part[1]) + part[2]) + part[3])
    for i in range(k - k % 4, k):
        right = right + c[i] * gram[rows[i], :30]
    assert np.array_equal(sum_of_rows(gram, rows, c, out), right)


def test_gathered_values_are_those_of_the_places(rng):
    gram, lines, columns = rng.normal(size=(9, 20)), np.array([3, 3, 0]), rng.permutation(20)[:7]
    assert np.array_equal(
        gather(gram, lines, columns, np.empty((3, 7))), gram[np.ix_(lines, columns)]
    )
