import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from cases import PAPER, PENALTIES, exact_model, examples, penalty_name
from traceless import (
    LSSVC,
    LSSVR,
    Knowledge,
    MismatchError,
    NotLearnedError,
    ResolutionWarning,
)
from traceless.features import Linear, Polynomial, RandomFourier, RandomLayer


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


# --- right ---------------------------------------------------------------------------------


def at_bits(kind, bits):
    step = 2.0**-bits
    if kind is Linear:
        return Linear(resolution=step)
    if kind is Polynomial:
        return Polynomial(2, resolution=step)
    extra = {"resolution": step, "input_resolution": step}
    if kind is RandomFourier:  # its features are at most √(2/64) in size
        return RandomFourier(64, gamma=0.1, resolution=step / 4, input_resolution=step)
    return RandomLayer(64, **extra)


@pytest.mark.parametrize(("bits", "tolerance"), [(12, 1e-4), (20, 1e-6)])
@pytest.mark.parametrize("kind", [Linear, Polynomial, RandomFourier, RandomLayer])
def test_against_float64_on_the_features_before_rounding(kind, bits, tolerance):
    """The difference to a dense float solve is explained by the grid alone."""
    X, y = load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), y / y.std()
    ours = LSSVR(at_bits(kind, bits), rho=10.0, target_resolution=2**-24, **PAPER).fit(X, y)
    F = at_bits(kind, 36).transform(X)  # the same map, hardly rounded
    w = np.linalg.solve(F.T @ F + 10.0 * np.eye(F.shape[1]), F.T @ y)
    difference = np.linalg.norm(ours.predict(X) - F @ w) / np.linalg.norm(F @ w)
    assert difference <= tolerance


@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
@given(
    X=npst.arrays(np.int64, (5, 2), elements=st.integers(-4, 4)),
    y=npst.arrays(np.int64, 5, elements=st.integers(0, 2)),
    rho=st.sampled_from([1.0, 0.1, 3.0]),
)
@examples(50)
def test_coefficients_are_correctly_rounded(penalty, X, y, rho):
    """Exact rational arithmetic on small rows, every coefficient and intercept."""
    phi = Linear(resolution=[0.25, 0.125])
    model = LSSVC(phi, rho=rho, **penalty).fit(X / 4, y)
    codings = [np.where(y == c, 1, -1) for c in model.classes_]
    codings = codings[1:] if len(codings) == 2 else codings
    if len(model.classes_) == 1:
        codings = [np.ones(5, dtype=int)]
    steps = np.array([0.25, 0.125])
    C = phi.bind(2).codes(X / 4)[:, :-1]
    Z, b = exact_model(C, np.array(codings).T, rho, penalty, steps)
    assert (model.coef_ == (Z / steps[:, None]).T).all()
    assert (model.intercept_ == b).all()


# --- classes, targets, parameters ----------------------------------------------------------------


def test_classes_come_and_go(iris):
    X, y = iris
    model = LSSVC().fit(X[y == 1], y[y == 1])
    assert model.classes_.tolist() == [1]
    assert set(model.predict(X)) == {1}
    model.partial_fit(X[y != 1], y[y != 1])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.coef_.shape == (3, 4)
    model.forget(X[y == 2], y[y == 2])
    assert model.classes_.tolist() == [0, 1]
    assert model.coef_.shape == (1, 4)
    assert model.decision_function(X).shape == (150,)
    assert model.digest() == LSSVC().fit(X[y < 2], y[y < 2]).digest()
    model.forget(X[y == 1], y[y == 1])
    assert set(model.predict(X)) == {0}
    model.forget(X[y == 0], y[y == 0])
    assert (model.n_samples_, model.classes_.tolist()) == (0, [])
    with pytest.raises(NotFittedError, match="all were forgotten"):
        model.predict(X)
    assert model.partial_fit(X, y).digest() == LSSVC().fit(X, y).digest()


def test_declared_classes_are_checked(iris):
    X, y = iris
    model = LSSVC().partial_fit(X, y, classes=[0, 1, 2, 3])
    assert model.classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"classes \[2\] that are not in"):
        model.partial_fit(X, y, classes=[0, 1])


def test_rho_may_change_without_the_data(iris):
    X, y = iris
    model = LSSVC(rho=1.0).fit(X, y)
    for rho in (1e-3, 7, np.float32(0.5), 1.0):
        fresh = LSSVC(rho=rho).fit(X, y)
        model.set_params(rho=rho)
        assert (model.coef_ == fresh.coef_).all()
        assert (model.predict(X) == fresh.predict(X)).all()
        assert model.digest() == fresh.digest()


def test_regression_of_one_and_several_targets(rng):
    X, Y = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    both = LSSVR().fit(X, Y)
    assert both.coef_.shape == (2, 3)
    assert both.intercept_.shape == (2,)
    assert both.predict(X).shape == (60, 2)
    for k in range(2):
        one = LSSVR().fit(X, Y[:, k])
        assert one.coef_.shape == (3,)
        assert np.ndim(one.intercept_) == 0
        assert (one.coef_ == both.coef_[k]).all()
        assert (one.predict(X) == both.predict(X)[:, k]).all()
    no_bias = LSSVR(Linear(bias=False)).fit(X, Y[:, 0])
    assert no_bias.intercept_ == 0.0


def test_target_resolution(rng):
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60) * 1e-6
    fine = LSSVR(target_resolution=2**-40).fit(X, y)
    scaled = LSSVR(target_resolution=2**-20).fit(X, y * 2**20)
    assert (fine.coef_ * 2**20 == scaled.coef_).all()
    with pytest.warns(ResolutionWarning, match=r"Target 0 .* target_resolution=2\*\*-29"):
        LSSVR().fit(X, y)
    with pytest.raises(ValueError, match="target_resolution must be a power of two"):
        LSSVR(target_resolution=0.1).fit(X, y)


def test_columns_finer_than_the_grid_are_reported_when_first_learned(rng):
    X, y = rng.normal(size=(50, 3)) * [1.0, 1e-5, 1.0], rng.integers(0, 2, 50)
    with pytest.warns(ResolutionWarning, match=r"Column 1 .* resolution=2\*\*-2[0-9]") as record:
        model = LSSVC().fit(X, y)
    assert record[0].filename == __file__
    model.partial_fit(X, y)  # only once
    finer = Linear(resolution=[2**-14, 2**-28, 2**-14])
    assert LSSVC(finer, rho=1e-9).fit(X, y).coef_[0, 1] != 0
    constant = np.column_stack([X[:, 0], np.full(50, 1e-7)])
    LSSVC().fit(constant, y)  # a column that does not vary is not reported


# --- merging -------------------------------------------------------------------------------------


def test_merge_into_an_empty_model_takes_columns_and_names(iris):
    import pandas as pd

    X, y = iris
    frame = pd.DataFrame(X, columns=list("abcd"))
    donor = LSSVC().fit(frame, y)
    model = LSSVC().merge(donor)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.n_features_in_ == 4
    assert (model.predict(frame) == donor.predict(frame)).all()
    assert donor.n_samples_ == 150
    other = LSSVC().fit(frame.rename(columns={"a": "z"}), y)
    with pytest.raises(MismatchError, match="The columns differ"):
        model.merge(other)
    assert model.merge(LSSVC().fit(X, y), again=True).n_samples_ == 300


def test_what_cannot_be_merged(iris):
    X, y = iris
    model = LSSVC().fit(X, y)
    for other, error, message in (
        (LSSVC(Linear(resolution=2**-8)).fit(X, y), MismatchError, "resolution is"),
        (LSSVC(RandomFourier(9)).fit(X, y), MismatchError, "map is Linear here and RandomFourier"),
        (LSSVC().fit(X[:, :2], y), MismatchError, "n_features is 4 here and 2 there"),
        (LSSVR().fit(X, y), MismatchError, "target_resolution|regression"),
        (LSSVC(), NotFittedError, "not fitted"),
        (LSSVC().fit(X, y.astype(str)).knowledge_, MismatchError, "int and str"),
        (-Knowledge.of(Linear(), X[:1] + 9, y[:1]), NotLearnedError, "not those of any data set"),
        (3, TypeError, "takes a fitted LSSVC or a Knowledge, got int"),
    ):
        before = copy.copy(model.__dict__)
        with pytest.raises(error, match=message):
            model.merge(other)
        assert model.__dict__ == before
    with pytest.raises(MismatchError, match="resolution is"):
        LSSVC(Linear(resolution=2**-8)).merge(model)
    assert not hasattr(LSSVC(), "knowledge_")


def test_a_feature_map_changed_after_training_is_refused(iris):
    model = LSSVC(RandomFourier(9, gamma=0.2)).fit(*iris)
    expected = model.decision_function(iris[0])
    model.set_params(feature_map__gamma=0.3)
    for use in (
        lambda: model.predict(iris[0]),
        lambda: model.feature_coef_,
        lambda: model.partial_fit(*iris),
    ):
        with pytest.raises(MismatchError, match=r"gamma is 0\.[23] here and 0\.[23] there"):
            use()
    model.set_params(feature_map__gamma=0.2)
    assert (model.decision_function(iris[0]) == expected).all()
    assert model.n_samples_ == 150


# --- all or nothing ------------------------------------------------------------------------------

GOOD = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [1.0, 3.0]])


def bad_updates(labels, new):
    """Each is a call that must fail, with what its message says."""
    nan = np.full((1, 2), np.nan)
    one = labels[:1]
    return {
        "beyond the grid": (lambda m: m.partial_fit(GOOD[:1] + 1e300, one), r"more than 2\*\*53"),
        "text": (lambda m: m.partial_fit([["a", "b"]], one), "numeric"),
        "never learned": (lambda m: m.forget(GOOD[:1] * 50, one), "not those of any data set"),
        "too many": (lambda m: m.forget(GOOD[[0] * 5], np.repeat(one, 5)), "too many"),
        "another response": (
            lambda m: m.forget(GOOD, np.repeat(new, 4)),
            "too many|sums without rows",
        ),
        "another weight": (lambda m: m.forget(GOOD, labels, [2] * 4), "not those of any data set"),
        "the second half fails": (
            lambda m: m.update(add=(GOOD, labels), forget=(GOOD * 50, labels)),
            "not those of any data set",
        ),
        "nothing": (lambda m: m.update(), "got neither"),
        "no tuple": (lambda m: m.update(add=GOOD), "tuple"),
        "fit on NaN": (lambda m: m.fit(nan, one), "contains NaN"),
        "fit on other columns, bad y": (lambda m: m.fit(np.ones((1, 5)), [np.nan]), "NaN"),
        "fit without weight": (lambda m: m.fit(GOOD, labels, np.zeros(4)), "zero"),
        "fit with a bad rho": (lambda m: m.set_params(rho=-1).fit(GOOD, labels), "rho must be"),
    }


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
@pytest.mark.parametrize("case", bad_updates(np.zeros(4), 0))
def test_an_error_leaves_everything_as_it_was(kind, case):
    labels = np.array([0, 1, 1, 0]) if kind is LSSVC else np.array([0.5, 1.0, 2.0, 0.0])
    model = kind().fit(GOOD, labels)
    values = model.decision_function if kind is LSSVC else model.predict
    before = copy.copy(model.__dict__), model.digest(), values(GOOD), model.coef_
    call, message = bad_updates(labels, 7)[case]
    with pytest.raises(ValueError, match=message):
        call(model)
    model.set_params(rho=1.0)
    assert model.__dict__ == before[0]
    assert model.digest() == before[1]
    assert (values(GOOD) == before[2]).all()
    assert (model.coef_ == before[3]).all()


def test_a_first_update_that_fails_leaves_no_trace():
    model = LSSVC()
    for call in (
        lambda: model.partial_fit([[np.nan]], [0]),
        lambda: model.update(add=(GOOD, [0, 1, 1, 0]), forget=(GOOD, [1, 1, 1, 1])),
    ):
        with pytest.raises(ValueError, match=r"NaN|too many"):
            call()
        assert vars(model) == vars(LSSVC())


def test_what_is_not_learned_cannot_be_forgotten_or_asked():
    model = LSSVC()
    for call in (
        lambda: model.forget(GOOD, [0, 1, 1, 0]),
        lambda: model.predict(GOOD),
        model.digest,
    ):
        with pytest.raises(NotFittedError):
            call()
    for attribute in ("coef_", "intercept_", "classes_", "n_samples_", "knowledge_"):
        assert not hasattr(model, attribute)


def test_not_a_feature_map():
    with pytest.raises(TypeError, match="must be None or a FeatureMap such as"):
        LSSVC(feature_map="rbf").fit(GOOD, [0, 1, 0, 1])
