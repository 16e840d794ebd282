"""Regressors and one class; scikit-learn is the oracle, and `test_hinge_stress` has histories."""

import numpy as np
import pytest
from sklearn.svm import SVR, OneClassSVM

from families import FAMILIES, draw_rows
from posed import kernel_values
from traceless import PathOneClass, PathSVR


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_decision_values_are_those_of_scikit_learn(rng, kernel):
    X = rng.normal(size=(120, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=120)
    options = {"kernel": kernel, "gamma": 0.5, "coef0": 1.0, "degree": 2, "tol": 1e-9}
    weight = rng.choice([0.5, 1.0, 2.0], size=120)
    ours = PathSVR(epsilon=0.2, **options).fit(X, y, weight)
    theirs = SVR(epsilon=0.2, **options).fit(X, y, weight)
    # LIBSVM has kernel values of float32
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=2e-3)
    X = X + 3.0  # with a linear kernel the rows of one class must not be all around 0
    for nu in (0.05, 0.3):
        ours = PathOneClass(nu=nu, **options).fit(X, sample_weight=weight)
        theirs = OneClassSVM(nu=nu, **options).fit(X, sample_weight=weight)
        size = np.abs(theirs.decision_function(X)).max()
        found = ours.decision_function(X)
        np.testing.assert_allclose(found, theirs.decision_function(X), atol=1e-5 * size)
        np.testing.assert_allclose(ours.offset_, theirs.offset_, rtol=1e-4)
        np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-4)
        apart = np.abs(found) > 1e-5 * size
        np.testing.assert_array_equal(ours.predict(X)[apart], theirs.predict(X)[apart])


def test_the_two_sides_of_a_tube_without_width_cancel():
    """Both may be as large as C, and predictions are those of their difference."""
    family, style = "near, huge bound", "classes"
    rng = np.random.default_rng([9100049, *family.encode()])
    held = draw_rows(family, style, rng, int(rng.integers(5, 80)))
    options = FAMILIES[family].options
    model = PathSVR(C=FAMILIES[family].bound, epsilon=0.0, **options).fit(*held)
    new = draw_rows(family, style, rng, int(rng.integers(1, 20)))
    gone = rng.random(len(held[1])) < rng.choice([0.02, 0.4, 0.95])
    model.update(add=new, forget=model.ids_[gone])
    X = np.concatenate([held[0][~gone], new[0]])
    K = kernel_values(options, X, X)[:, model.support_]
    of_coefficients = K @ model.dual_coef_[0] + model.intercept_
    size = np.abs(model.dual_coef_).sum()
    assert np.abs(of_coefficients - model.predict(X)).max() <= 1e-14 * max(1.0, size)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_units_of_the_targets_change_nothing(rng, size):
    X = rng.normal(size=(80, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    one = PathSVR(C=10.0, epsilon=0.1, gamma=0.5).fit(X, y)
    other = PathSVR(C=10.0 * size, epsilon=0.1 * size, gamma=0.5).fit(X, y * size)
    np.testing.assert_allclose(other.predict(X) / size, one.predict(X), atol=1e-12)
    assert other.kkt_residual_ < 1e-12
    other.update(add=(X[:1] + 9.0, [1e3 * size]))  # ten times the largest target so far
    assert other.kkt_residual_ < 1e-12
    other.forget(ids=other.last_ids_)
    assert (
        other.digest()
        == PathSVR(C=10.0 * size, epsilon=0.1 * size, gamma=0.5).fit(X, y * size).digest()
    )


def test_parameters_are_reached_along_a_path(rng):
    X = rng.normal(size=(150, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=150)
    svr = PathSVR(C=1.0, epsilon=0.1, gamma=0.5).fit(X, y)
    for change in ({"C": 5.0}, {"epsilon": 0.3}, {"epsilon": 0.0}, {"C": 0.5, "epsilon": 0.2}):
        svr.set_params(**change)
        assert svr.digest() == PathSVR(**svr.get_params()).fit(X, y).digest()
    one = PathOneClass(nu=0.1, gamma=0.5).fit(X)
    for nu in (0.5, 0.02, 1.0, 0.3):
        assert one.set_params(nu=nu).digest() == PathOneClass(nu=nu, gamma=0.5).fit(X).digest()


@pytest.mark.parametrize("nu", [0.3, 1.0])
def test_one_row_and_none(nu):
    one = PathOneClass(nu=nu, gamma=1.0).fit([[1.0]])
    assert one.decision_function([[1.0]]) == pytest.approx(0.0, abs=1e-15)
    assert one.dual_coef_.tolist() == [[nu]]
    assert one.forget([[1.0]]).n_samples_ == 0
    assert (
        one.partial_fit([[2.0], [3.0]]).digest()
        == PathOneClass(nu=nu, gamma=1.0).fit([[3.0], [2.0]]).digest()
    )
    svr = PathSVR(gamma=1.0).fit([[1.0]], [7.5])
    assert svr.predict([[4.0]]).tolist() == [7.5]
    assert svr.forget(ids=[0]).n_samples_ == 0
    assert svr.partial_fit([[1.0], [2.0]], [1.0, 2.0]).n_samples_ == 2
