"""The factor of a margin set, which points enter and leave."""

import numpy as np
import pytest

from traceless.hinge import cholesky

RHO = 1.5


@pytest.fixture
def gram(rng):
    X = rng.normal(size=(12, 4))
    return np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))


def grown(A):
    """The factor of A + ρ11ᵀ, column by column, in a larger array."""
    n = len(A)
    R = np.full((n + 3, n + 3), np.nan)
    for k in range(n):
        column = np.full(n + 3, np.nan)
        column[:k] = A[k, :k] + RHO
        cholesky.forward(R, k, column)
        assert cholesky.grow(R, k, column, A[k, k] + RHO)
    return R


def bordered(A, p, q):
    n = len(A)
    M = np.block([[A, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    return np.linalg.solve(M, [*p, q])


def test_it_solves_the_bordered_system(gram, rng):
    p, q = rng.normal(size=12), 0.7
    *x, t = bordered(gram, p, q)
    R, kept, ones, (ours, z, size) = grown(gram), p.copy(), np.ones(12), np.empty((3, 12))
    cholesky.forward_both(R, 12, kept, ones)
    assert cholesky.bordered(R, 12, RHO, q, kept, ones, ours, z, size) == pytest.approx(t, abs=1e-9)
    np.testing.assert_allclose(ours, x, atol=1e-9)
    assert (size >= np.abs(ours) - 1e-12).all()
