"""Kernel matrices that are given: points join and leave, and numbers are used again."""

import numpy as np
import pytest

from traceless.hinge import precomputed

NONE = np.zeros(0, dtype=np.int64)


@pytest.fixture
def kernel(rng):
    X = rng.normal(size=(9, 3))
    return X @ X.T


def test_points_join_and_leave(kernel):
    gram, numbers = precomputed.joined(np.zeros((0, 0)), NONE, kernel[:5, :5])
    assert np.array_equal(gram, kernel[:5, :5])
    gram, held = precomputed.less(gram, np.array([1, 3])), np.array([0, 2, 4])
    assert not gram[[1, 3]].any()
    assert not gram[:, [1, 3]].any()
    gram, numbers = precomputed.joined(gram, held, kernel[5:, np.r_[held, 5:9]])
    assert numbers.tolist() == [1, 3, 5, 6]
    everyone = np.r_[held, numbers]
    points = np.r_[held, 5:9]
    assert np.array_equal(gram[np.ix_(everyone, everyone)], kernel[np.ix_(points, points)])


def test_what_is_no_kernel_matrix_is_refused(kernel):
    with pytest.raises(ValueError, match=r"shape \(2, 5\)"):
        precomputed.joined(kernel[:3, :3], np.arange(3), kernel[3:5, :4])
    with pytest.raises(ValueError, match="symmetric"):
        precomputed.joined(np.zeros((0, 0)), NONE, np.triu(kernel))


def test_rounding_does_not_make_it_asymmetric(kernel):
    kernel = kernel + 1e-15 * np.triu(np.ones_like(kernel))
    gram, _ = precomputed.joined(np.zeros((0, 0)), NONE, kernel)
    assert np.array_equal(gram, gram.T)


def test_values_are_sums_over_the_support(kernel, rng):
    held, support, c = np.array([4, 0, 2]), np.array([2, 4]), rng.normal(size=2)
    f = precomputed.values(kernel[:, held], held, support, c)
    np.testing.assert_allclose(f, kernel[:, support] @ c)
