"""Regressors that say how far off they may be: shapes, histories, files, windows."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_diabetes

from traceless import LSSVC, LSSVR, SlidingWindow
from traceless.features import RandomFourier


@pytest.fixture
def rows():
    X, y = load_diabetes(return_X_y=True)
    return X, y


def same(a, b, X):
    """Whether all errors of two models are equal."""
    for left, right in [
        (a.coef_std_, b.coef_std_),
        (a.intercept_std_, b.intercept_std_),
        (a.noise_std_, b.noise_std_),
        *zip(a.predict(X, return_std=True), b.predict(X, return_std=True), strict=True),
        *zip(a.predict_interval(X), b.predict_interval(X), strict=True),
    ]:
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("n_targets", [1, 3])
def test_shapes_are_those_of_the_values(rows, n_targets):
    X, y = rows
    Y = y if n_targets == 1 else np.column_stack([y, y**2 / 100, -y])
    model = LSSVR().fit(X, Y)
    assert np.shape(model.coef_std_) == model.coef_.shape
    assert np.shape(model.intercept_std_) == np.shape(model.intercept_)
    assert np.shape(model.noise_std_) == np.shape(model.intercept_)
    mean, std = model.predict(X[:5], return_std=True)
    assert mean.shape == std.shape == model.predict(X[:5]).shape
    for end in model.predict_interval(X[:5], level=0.5):
        assert end.shape == mean.shape


def test_several_targets_have_the_errors_of_each(rows):
    X, y = rows
    both = LSSVR().fit(X, np.column_stack([y, 1000 - 2 * y]))
    one = LSSVR().fit(X, y)
    np.testing.assert_allclose(both.noise_std_, one.noise_std_ * np.array([1, 2]), rtol=1e-12)
    np.testing.assert_array_equal(both.coef_std_[0], one.coef_std_)


@pytest.mark.parametrize("rho", [1.0, "evidence"])
def test_errors_are_forgotten_with_the_rows(rows, rho):
    X, y = rows
    model = LSSVR(rho=rho).fit(X[:100], y[:100])
    before = model.noise_std_
    model.partial_fit(X[100:], y[100:]).forget(X[:50], y[:50])
    same(model, LSSVR(rho=rho).fit(X[50:], y[50:]), X)
    assert model.noise_std_ != before


def test_the_other_solver(rows):
    X, y = rows
    model = LSSVR(rho="evidence", solver="woodbury").fit(X[:100], y[:100])
    for start in range(100, 200, 10):
        model.partial_fit(X[start : start + 10], y[start : start + 10])
        model.forget(X[start - 100 : start - 90], y[start - 100 : start - 90])
        model.predict(X[:1], return_std=True)
    exact = LSSVR(rho="evidence").fit(X[100:200], y[100:200])
    assert model.rho_ == exact.rho_
    for ours, wanted in zip(
        model.predict(X, return_std=True), exact.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(ours, wanted, rtol=1e-9)
    same(model.seal(), exact, X)


def test_pickles_stay_as_small_as_the_knowledge(rows):
    X, y = rows
    model = LSSVR(RandomFourier(100)).fit(X, y)
    size = len(pickle.dumps(model))
    model.predict(X, return_std=True)
    assert len(pickle.dumps(model)) < 1.1 * size


def test_columns_far_from_zero_lose_no_digits(rng):
    X = rng.integers(-9, 10, size=(60, 3)).astype(float)
    y = X @ [1.0, 2.0, 3.0] + rng.integers(-4, 5, 60)
    near, far = LSSVR().fit(X, y), LSSVR().fit(X + 1e6, y + 1e6)
    for name in ("noise_std_", "coef_std_"):
        np.testing.assert_allclose(getattr(far, name), getattr(near, name), rtol=1e-12)
    np.testing.assert_allclose(
        far.predict(X + 1e6, return_std=True)[1], near.predict(X, return_std=True)[1], rtol=1e-12
    )


def test_a_column_that_never_varied_has_no_error(rows):
    X, y = rows
    model = LSSVR().fit(np.column_stack([X, np.full(len(X), 3.0)]), y)
    assert (model.coef_[-1], model.coef_std_[-1]) == (0.0, 0.0)
    np.testing.assert_allclose(model.coef_std_[:-1], LSSVR().fit(X, y).coef_std_, rtol=1e-12)


def test_only_columns_have_coef_std(rows):
    X, y = rows
    model = LSSVR(RandomFourier(40)).fit(X, y)
    with pytest.raises(AttributeError, match="coef_std_ has one error for each column"):
        model.coef_std_  # noqa: B018
    assert min(model.summary().columns["error"]) > 0.0


def test_sparse_rows(rows):
    X, y = rows
    model = LSSVR().fit(X, y)
    for dense, sparse in zip(
        model.predict(X[:9], return_std=True),
        model.predict(csr_matrix(X[:9]), return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(dense, sparse)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.1])
def test_levels_are_probabilities(rows, level):
    model = LSSVR().fit(*rows)
    for ask in (lambda: model.predict_interval(rows[0], level=level), lambda: model.summary(level)):
        with pytest.raises(ValueError, match="a probability between 0 and 1"):
            ask()


def test_a_window_has_the_errors_of_its_model(rows):
    X, y = rows
    window = SlidingWindow(LSSVR(rho="evidence"), size=100).partial_fit(X, y)
    model = LSSVR(rho="evidence").fit(X[-100:], y[-100:])
    for ours, theirs in [
        *zip(window.predict(X, return_std=True), model.predict(X, return_std=True), strict=True),
        *zip(window.estimator_.predict_interval(X), model.predict_interval(X), strict=True),
    ]:
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(TypeError, match="return_std"):
        SlidingWindow(LSSVC()).fit(X, y > 100).predict(X, return_std=True)
