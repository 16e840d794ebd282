"""A kernel matrix that is given: digests that tell matrices apart, and no point that is none."""

import numpy as np
import pytest

from traceless import PathSVC


def fitted(K, y, **options):
    return PathSVC(kernel="precomputed", C=10.0).fit(K, y, **options)


def of_edges(edges, n):
    K = 2.0 * np.eye(n)
    for i, j in edges:
        K[i, j] = K[j, i] = 0.25
    return K


ONE = [(0, 2), (0, 3), (0, 5), (0, 6), (1, 2), (1, 6), (2, 4), (3, 6)]
OTHER = [(0, 1), (0, 2), (0, 4), (0, 5), (1, 3), (1, 4), (2, 6), (3, 4)]
LABELS = np.array([0, 0, 0, 0, 1, 1, 1])


def test_matrices_whose_rows_are_alike_have_digests_of_their_own():
    """Each point has as many neighbours of each label in one as some point has in the other."""
    a, b = fitted(of_edges(ONE, 7), LABELS), fitted(of_edges(OTHER, 7), LABELS)
    assert np.abs(np.sort(a.dual_coef_[0]) - np.sort(b.dual_coef_[0])).max() > 0.01
    assert a.digest() != b.digest()


RING = [(i, (i + 1) % 8) for i in range(8)]
RINGS = [(i, i // 4 * 4 + (i + 1) % 4) for i in range(8)]
MATRICES = {
    "distinct": (None, np.arange(30) % 3),
    "equal": (np.repeat(np.arange(10), 3), np.arange(30) // 15),
    "identity": (np.eye(40), np.arange(40) % 2),
    "ring": (of_edges(RING, 8), np.array([0, 0, 1, 1, 0, 0, 1, 1])),
    "rings": (of_edges(RINGS, 8), np.array([0, 0, 1, 1, 0, 0, 1, 1])),
}


@pytest.mark.parametrize("name", MATRICES)
def test_the_order_of_the_points_is_no_part_of_a_digest(name, rng):
    K, y = MATRICES[name]
    if K is None or K.ndim == 1:
        Z = rng.normal(size=(30, 3))
        Z = Z if K is None else Z[K]
        K = np.exp(-0.3 * ((Z[:, None] - Z) ** 2).sum(axis=-1))
    digest = fitted(K, y).digest()
    for _ in range(5):
        order = rng.permutation(len(y))
        assert fitted(K[np.ix_(order, order)], y[order]).digest() == digest


def test_rings_that_no_point_tells_apart_have_digests_of_their_own():
    digests = {fitted(*MATRICES[name]).digest() for name in ("ring", "rings")}
    assert len(digests) == 2


def test_a_point_of_weight_zero_is_none(rng):
    Z = rng.normal(size=(20, 2))
    K = np.exp(-((Z[:, None] - Z) ** 2).sum(axis=-1))
    y, weight = np.arange(20) % 2, np.ones(20)
    weight[[3, 11]] = 0.0
    kept = np.flatnonzero(weight)
    model = fitted(K[:15, :15], y[:15], sample_weight=weight[:15])
    assert model.n_samples_ == 13
    assert not np.isin(K[3, [0, 1, 2]], model._model.gram).any()
    columns = np.r_[kept[kept < 15], 15:20]
    weight[15] = 0.0
    model.partial_fit(K[np.ix_(np.arange(15, 20), columns)], y[15:], sample_weight=weight[15:])
    assert model.last_ids_.tolist() == [-1, 13, 14, 15, 16]
    kept = np.flatnonzero(weight)
    fresh = fitted(K[np.ix_(kept, kept)], y[kept])
    assert model.digest() == fresh.digest()
    assert model._model.gram.shape == (17, 17)
    assert not np.isin(K[15, [0, 1, 2]], model._model.gram).any()


def test_a_model_without_points_has_a_digest(rng):
    K = np.eye(4)
    model = fitted(K, [0, 1, 0, 1])
    assert model.forget(ids=model.ids_).digest() == model.digest()
