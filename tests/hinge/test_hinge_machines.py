"""Regressors and one class: the KKT conditions in plain numpy and scikit-learn are the oracles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVR, OneClassSVM

from families import FAMILIES, TARGETS, draw_rows, machine
from oracles import dense_kernel
from stress import machine_residual
from traceless import PathOneClass, PathSVR

machines = st.one_of(
    st.tuples(st.sampled_from([*FAMILIES]), st.none(), st.sampled_from([0.02, 0.1, 0.5, 0.9, 1.0])),
    st.tuples(
        st.sampled_from([*FAMILIES]),
        st.sampled_from([*TARGETS]),
        st.sampled_from([0.0, 1e-6, 0.1, 0.5]),
    ),
)


@settings(max_examples=40)
@given(machines, st.integers(0, 2**32), st.integers(2, 40))
def test_histories_end_in_the_bits_of_a_fit(which, seed, n):
    rng = np.random.default_rng(seed)
    family, style, _ = which
    held = draw_rows(family, style, rng, n)
    model = machine(*which).fit(*held)
    for _ in range(3):
        new, gone = (
            draw_rows(family, style, rng, int(rng.integers(1, 12))),
            rng.random(len(held[1])) < 0.4,
        )
        model.update(add=new, forget=model.ids_[gone])
        held = [np.concatenate([a[~gone], b]) for a, b in zip(held, new, strict=True)]
        assert machine_residual(model, which, held) <= 1.0
    order = rng.permutation(len(held[1]))
    fresh = machine(*which).fit(*(values[order] for values in held))
    huge = 1e-7 if "huge bound" in family else 1e-9
    assert max(model.kkt_residual_, fresh.kkt_residual_) <= huge
    if not (model.ambiguous_ or fresh.ambiguous_):
        assert model.digest() == fresh.digest()


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
    which = "near, huge bound", "classes", 0.0
    rng = np.random.default_rng([9100049, *which[0].encode()])
    held = draw_rows(*which[:2], rng, int(rng.integers(5, 80)))
    model = machine(*which).fit(*held)
    new = draw_rows(*which[:2], rng, int(rng.integers(1, 20)))
    gone = rng.random(len(held[1])) < rng.choice([0.02, 0.4, 0.95])
    model.update(add=new, forget=model.ids_[gone])
    X = np.concatenate([held[0][~gone], new[0]])
    K = dense_kernel(FAMILIES[which[0]].kernel, X, X)[:, model.support_]
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
