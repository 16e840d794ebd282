"""Means and covariances of the rows, against NumPy on the rows themselves."""

import numpy as np
import pytest

from cases import PENALTIES, penalty_name
from traceless import LSSVC, LSSVR
from traceless.features import Linear


def rows(rng, n=80):
    X = rng.normal(size=(n, 4)) * [1, 10, 0.1, 1] + [0, 1e6, 3, 0]
    X[:, 3] = 7.0
    X = np.rint(X * 2**14) / 2**14
    return X, rng.integers(0, 3, n), rng.choice([0.5, 1.0, 2.0], n)


def assert_close(a, b, tolerance=1e-12):
    assert np.abs(a - b).max() <= tolerance * max(np.abs(b).max(), 1e-300)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_centred_moments_are_those_of_the_rows(standardize, class_weight, rng):
    X, y, w = rows(rng)
    model = LSSVC(rho=0.3, standardize=standardize, class_weight=class_weight).fit(X, y, w)
    found = model._moments()
    omega = w.copy()
    if class_weight:
        totals = np.array([w[y == k].sum() for k in range(3)])
        omega = w * (w.sum() / (3 * totals))[y]
    mean = (omega[:, None] * X).sum(axis=0) / omega.sum()
    Z = X - mean
    own = X - (w[:, None] * X).sum(axis=0) / w.sum()  # scales are those of the rows alone
    R = (y[:, None] == np.arange(3)).astype(float)
    level = (omega[:, None] * R).sum(axis=0) / omega.sum()
    assert found.is_centred
    assert (found.n_rows, found.counts) == (80, tuple(np.bincount(y).tolist()))
    assert found.weight == pytest.approx(omega.sum(), rel=1e-13)
    assert_close(found.totals, (omega[:, None] * R).sum(axis=0))
    assert_close(found.center, mean)
    assert_close(found.C, (Z.T * omega) @ Z, 1e-9)
    assert_close(found.c, (Z.T * omega) @ (R - level), 1e-9)
    ridge = 0.3 * (w[:, None] * own**2).sum(axis=0) / w.sum() if standardize else np.full(4, 0.3)
    assert_close(found.ridge, ridge, 1e-9)
    assert (found.ridge[3] == 0.0) == standardize
    assert found.used.tolist() == [0, 1, 2]


@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
@pytest.mark.parametrize("bias", [True, False])
def test_p_times_c_are_the_coefficients(penalty, bias, rng):
    X, _, w = rows(rng)
    X = X if penalty["free_intercept"] and bias else X - [0, 1e6, 0, 0]
    y = np.rint(rng.normal(size=80) * 2**14) / 2**14
    model = LSSVR(Linear(bias=bias), rho=0.3, **penalty).fit(X, y, w)
    found = model._moments()
    Z = (found.P @ found.c)[:, 0] * 2.0**-14
    assert_close(Z[:4], model.coef_, 1e-10)
    assert (Z[:4] == 0.0).tolist() == (model.coef_ == 0.0).tolist()
    A = found.C[np.ix_(found.used, found.used)] + np.diag(found.ridge[found.used])
    assert_close(found.P[np.ix_(found.used, found.used)] @ A, np.eye(len(A)), 1e-8)
    own = np.trace(found.P @ found.C) + found.is_centred
    assert found.degrees_of_freedom == pytest.approx(own, rel=1e-9)


def test_degrees_of_freedom_of_a_hat_matrix(rng):
    """The trace of the map from targets to predictions, column by column."""
    X = rng.normal(size=(12, 3)) + 100.0
    model = LSSVR(rho=2.0).fit(X, np.zeros(12))
    hat = np.column_stack([LSSVR(rho=2.0).fit(X, e).predict(X) for e in np.eye(12)])
    assert model._moments().degrees_of_freedom == pytest.approx(np.trace(hat), rel=1e-9)
