"""Errors against those of least squares from the rows, and sums of squares against fractions."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import t as student

from traceless import LSSVR
from traceless.features import Linear, RandomFourier
from traceless.solvers.errors import residual_squares


def textbook(phi, Y, weight):
    """Least squares by QR of the rows: noise, errors of coefficients, R⁻¹."""
    root = np.sqrt(weight)[:, None]
    Q, R = np.linalg.qr(phi * root)
    residuals = root * Y - Q @ (Q.T @ (root * Y))
    noise = np.sqrt((residuals**2).sum(axis=0) / (len(phi) - phi.shape[1]))
    inverse = np.linalg.inv(R)
    return noise, np.outer(noise, np.sqrt((inverse**2).sum(axis=1))), inverse


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(80, 6)) * [1, 10, 0.1, 1, 1, 5] + [0, 100, 0, 3, 0, -7]
    Y = np.column_stack([X @ rng.normal(size=6), 1000 + 3 * X[:, 0]]) + rng.normal(size=(80, 2))
    return X, Y, rng.integers(1, 9, 80) / 4.0


FINE = {"resolution": 2**-30}


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize(("bias", "free_intercept"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_vanishing_rho_gives_the_errors_of_least_squares(
    rows, standardize, bias, free_intercept, weighted
):
    X, Y, weight = rows
    weight = weight if weighted else np.ones(len(X))
    model = LSSVR(
        Linear(bias=bias, **FINE),
        rho=2.0**-40,
        free_intercept=free_intercept,
        standardize=standardize,
        target_resolution=2**-30,
    ).fit(X, Y, weight)
    phi = Linear(bias=bias, **FINE).transform(X)
    noise, errors, inverse = textbook(phi, Y, weight)
    np.testing.assert_allclose(model.noise_std_, noise, rtol=1e-9)
    np.testing.assert_allclose(model.coef_std_, errors[:, :6], rtol=1e-7)
    wanted = errors[:, 6] if bias else np.zeros(2)
    np.testing.assert_allclose(model.intercept_std_, wanted, rtol=1e-7)
    new = phi[:20] + 1.0 if not bias else np.column_stack([phi[:20, :-1] + 1.0, np.ones(20)])
    mean, std = model.predict(X[:20] + 1.0, return_std=True)
    leverage = ((new @ inverse) ** 2).sum(axis=1)
    np.testing.assert_allclose(std, np.sqrt(1 + leverage)[:, None] * noise, rtol=1e-7)
    left = 80 - phi.shape[1]
    low, high = model.predict_interval(X[:20] + 1.0, level=0.9)
    np.testing.assert_allclose(high - mean, student.ppf(0.95, left) * std, rtol=1e-7)
    np.testing.assert_allclose(mean - low, high - mean, rtol=1e-6)


@pytest.mark.parametrize("penalty", [{}, {"standardize": False}, {"free_intercept": False}])
def test_any_rho_gives_the_errors_of_the_rows_with_a_prior(rows, penalty):
    """The prior as further rows: √D w = 0, which do not count."""
    X, Y, weight = rows
    model = LSSVR(Linear(**FINE), rho=20.0, target_resolution=2**-30, **penalty)
    model.fit(X, Y[:, 0], weight)
    phi = Linear(**FINE).transform(X)
    D = np.full(7, 20.0)
    if penalty.get("standardize", True):
        centred = X - np.average(X, axis=0, weights=weight)
        D[:6] *= np.average(centred**2, axis=0, weights=weight)
    D[6] = 20.0 if "free_intercept" in penalty else 0.0
    A = (phi.T * weight) @ phi + np.diag(D)
    P = np.linalg.inv(A)
    residuals = Y[:, 0] - phi @ (P @ (phi.T @ (weight * Y[:, 0])))
    d = np.trace(P @ (A - np.diag(D)))
    noise = np.sqrt(weight @ residuals**2 / (80 - d))
    np.testing.assert_allclose(model.noise_std_, noise, rtol=1e-7)
    np.testing.assert_allclose(model.coef_std_, noise * np.sqrt(P.diagonal()[:6]), rtol=1e-7)
    np.testing.assert_allclose(model.intercept_std_, noise * np.sqrt(P[6, 6]), rtol=1e-7)
    std = model.predict(X, return_std=True)[1]
    np.testing.assert_allclose(std, noise * np.sqrt(1 + (phi @ P * phi).sum(axis=1)), rtol=1e-7)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e5])
@pytest.mark.parametrize("free_intercept", [True, False])
def test_squares_of_residuals_are_exact(rng, scale, free_intercept):
    X = rng.normal(size=(12, 4)) * [1.0, 1e6, 1e-3, 1.0]
    Y = np.column_stack([scale * X[:, 0], 1e6 + X[:, 1]])
    model = LSSVR(target_resolution=2**-30, free_intercept=free_intercept).fit(X, Y)
    solution, phi = model._weights()
    codes = phi.codes(X) - (0.0 if solution.shift is None else solution.shift)
    wanted = [Fraction(0), Fraction(0)]
    for row, y in zip(codes, np.rint(Y * 2**30), strict=True):
        for k in range(2):
            products = zip(row, solution.Z[:, k], strict=True)
            wanted[k] += (Fraction(y[k]) - sum(Fraction(a) * Fraction(b) for a, b in products)) ** 2
    assert residual_squares(model.knowledge_, solution) == wanted


def test_a_root_of_the_covariance(rows):
    X, Y, _ = rows
    moments = LSSVR().fit(np.column_stack([X, np.ones(80)]), Y)._moments()
    assert (moments.root[6] == 0).all()
    np.testing.assert_allclose(moments.root @ moments.root.T, moments.P, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("feature_map", [Linear(), Linear(bias=False), RandomFourier(150)])
def test_errors_do_not_depend_on_the_batch(rng, feature_map):
    X = 100.0 * rng.normal(size=(300, 7)) + 1e4
    model = LSSVR(feature_map).fit(X, rng.normal(size=(300, 2)))
    X[1:9:3] *= [[30.0], [1e4], [1e7]]  # beyond the short slices
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(X))
    for rows in (slice(0, 1), slice(1, 3), slice(7, 20), slice(299, 300), slice(None, None, -1)):
        np.testing.assert_array_equal(model.predict(X[rows], return_std=True)[1], std[rows])


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_rows_near_and_far_are_equally_right(rng, scale):
    X = scale * rng.normal(size=(50, 4)) * [1.0, 10.0, 0.1, 100.0]
    model = LSSVR(rho=3.0).fit(X, rng.normal(size=50))
    new = X * np.repeat([1.0, 100.0, 1e3, 1.0, 1e4], 10)[:, None]
    phi = Linear().transform(X)[:, :4]
    centred = phi - phi.mean(axis=0)
    P = np.linalg.inv(centred.T @ centred + np.diag(3.0 * centred.var(axis=0)))
    far = Linear().transform(new)[:, :4] - phi.mean(axis=0)
    wanted = model.noise_std_ * np.sqrt(1 + 1 / 50 + (far @ P * far).sum(axis=1))
    np.testing.assert_allclose(model.predict(new, return_std=True)[1], wanted, rtol=1e-9)


@pytest.mark.parametrize("n_rows", [1, 5])
def test_without_rows_to_spare_errors_are_nan(rng, n_rows):
    X = rng.normal(size=(n_rows, 8))
    model = LSSVR(rho=2.0**-35).fit(X, X[:, 0])
    with pytest.warns(RuntimeWarning, match=f"{n_rows} rows are fitted with {n_rows} degrees"):
        assert np.isnan(model.noise_std_)
    assert np.isnan(model.predict(X, return_std=True)[1]).all()
    assert np.isnan(model.coef_std_).all()
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(("n", "J"), [(200, 10), (60, 30), (40, 80)])
def test_intervals_hold_what_they_promise(n, J):
    """Coverage of 95 % over many data sets, with ρ that belongs to the data."""
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(60):
        w = rng.normal(size=J) / np.sqrt(J)
        X, new = rng.normal(size=(n, J)), rng.normal(size=(30, J))
        y, later = (A @ w + rng.normal(size=len(A)) for A in (X, new))
        low, high = LSSVR(rho="evidence").fit(X, y).predict_interval(new)
        inside.append(np.mean((low <= later) & (later <= high)))
    assert 0.92 < np.mean(inside) < 0.97
