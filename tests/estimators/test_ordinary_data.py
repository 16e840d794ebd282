"""Data as it comes: far from zero, in any units, with default parameters.

scikit-learn's StandardScaler and Ridge or RidgeClassifier are the oracle. Features and targets
are on the grids, so that rounding has no part in a difference.
"""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cases import MAPS, PENALTIES, name, penalty_name
from traceless import LSSVC, LSSVR
from traceless.exceptions import UninformativeWarning
from traceless.features import Linear

SOLVERS = pytest.mark.parametrize("solver", ["cholesky", "woodbury"])


def on_grid(values):
    return np.rint(np.asarray(values) * 2**14) / 2**14


def rows(rng, n=400):
    """Columns of 0 ± 1, 1e6 ± 1, 1000 ± 10, 0 ± 0.1, a constant 7 and one that is rarely 1."""
    X = rng.normal(size=(n, 6)) * [1, 1, 10, 0.1, 0, 0] + [0, 1e6, 1000, 0, 7, 0]
    X[:3, 5] = 1.0
    return on_grid(X)


def in_units(pipeline):
    """Coefficients and intercepts of a pipeline of a scaler and a linear model, by column."""
    scaler, model = pipeline[0], pipeline[-1]
    coef = np.atleast_2d(model.coef_) / scaler.scale_
    return coef, np.atleast_1d(model.intercept_) - coef @ scaler.mean_


def assert_close(found, expected, tolerance=1e-12):
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


def weights(rng, n, kind):
    if kind == "none":
        return None
    w = rng.choice([0.5, 1.0, 2.0, 3.0], n)
    return w / 2**10 if kind == "small" else w


# --- the same as the pipeline ----------------------------------------------------------------


@SOLVERS
@pytest.mark.parametrize("kind", ["none", "some", "small"])
@pytest.mark.parametrize("alpha", [1.0, 0.01, 300.0])
def test_regression_is_the_pipelines(rng, solver, kind, alpha):
    X = rows(rng)
    y = on_grid(1e4 + (X - X.mean(axis=0)) @ [1, 2, 0.2, 30, 0, 5] + rng.normal(size=len(X)))
    w = weights(rng, len(X), kind)
    ours = LSSVR(rho=alpha, solver=solver).fit(X, y, w)
    theirs = make_pipeline(StandardScaler(), Ridge(alpha=alpha, solver="cholesky")).fit(
        X, y, standardscaler__sample_weight=w, ridge__sample_weight=w
    )
    coef, _ = in_units(theirs)
    scale = theirs[0].scale_  # in the units of the pipeline, where each coefficient counts alike
    assert_close(ours.coef_ * scale, coef[0] * scale, 1e-12 if solver == "cholesky" else 1e-10)
    assert_close(ours.predict(X), theirs.predict(X), 1e-12 if solver == "cholesky" else 1e-10)
    assert ours.coef_[4] == pytest.approx(0.0, abs=1e-25)


@pytest.mark.parametrize("kind", ["none", "some"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 1: 1.0, 2: 0.25}])
@pytest.mark.parametrize("classes", [2, 3])
def test_classification_is_the_pipelines(rng, class_weight, kind, classes):
    X = rows(rng)
    y = np.digitize(X[:, 0] + X[:, 1] - 1e6 + rng.normal(size=len(X)), [-0.5, 0.9][: classes - 1])
    w = weights(rng, len(X), kind)
    own = None if class_weight is None else class_weight
    if own == "balanced" and w is not None:  # ours counts a row of weight 2 as two, theirs as one
        own = {k: w.sum() / (classes * w[y == k].sum()) for k in range(classes)}
    ours = LSSVC(class_weight=class_weight).fit(X, y, w)
    model = RidgeClassifier(class_weight=own, solver="cholesky")
    theirs = make_pipeline(StandardScaler(), model).fit(
        X, y, standardscaler__sample_weight=w, ridgeclassifier__sample_weight=w
    )
    coef, _ = in_units(theirs)
    scale = theirs[0].scale_
    assert_close(ours.coef_ * scale, coef * scale)
    assert_close(ours.decision_function(X), theirs.decision_function(X))
    assert (ours.predict(X) == theirs.predict(X)).all()


@pytest.mark.parametrize("phi", [phi for phi in MAPS if phi.bias], ids=name)
def test_features_of_any_map_are_standardised(rng, phi):
    X, y = rng.normal(size=(150, 4)) * 0.5, rng.integers(0, 3, 150)
    F = phi.transform(X)[:, :-1]
    ours = LSSVC(phi, rho=0.7, standardize=True).fit(X, y)
    theirs = make_pipeline(StandardScaler(), RidgeClassifier(alpha=0.7)).fit(F, y)
    assert_close(ours.decision_function(X), theirs.decision_function(F), 1e-9)
    by_default = LSSVC(phi, rho=0.7).fit(X, y).decision_function(X)
    ours.set_params(standardize=phi.has_units)  # bounded features are left as they are
    assert (ours.decision_function(X) == by_default).all()


@pytest.mark.parametrize("free", [True, False])
def test_without_a_constant_feature_the_penalty_is_the_papers(rng, free):
    X, y = rng.normal(size=(50, 3)) * [1, 10, 0.1], rng.normal(size=50)
    for solver in ("cholesky", "woodbury"):
        paper = LSSVR(Linear(bias=False), free_intercept=False, standardize=False, solver=solver)
        model = LSSVR(Linear(bias=False), free_intercept=free, standardize=True, solver=solver)
        assert (model.fit(X, y).coef_ == paper.fit(X, y).coef_).all()
        assert model.intercept_ == 0.0


# --- what a newcomer tries -------------------------------------------------------------------


@pytest.mark.parametrize("far", [0.0, 1000.0, 1e6, -1e6])
def test_columns_far_from_zero_change_nothing(rng, far):
    X = on_grid(rng.normal(size=(300, 3)))
    y = (X[:, 0] + 0.3 * rng.normal(size=300) > 0).astype(int)
    near, moved = LSSVC().fit(X, y), LSSVC().fit(X + far, y)
    assert (near.coef_ == moved.coef_).all()  # variances and covariances are the same, exactly
    assert (near.predict(X) == moved.predict(X + far)).all()
    theirs = make_pipeline(StandardScaler(), RidgeClassifier()).fit(X + far, y)
    assert (moved.predict(X + far) == theirs.predict(X + far)).mean() > 0.999
    assert moved.score(X + far, y) > 0.8


def test_units_of_the_columns_change_nothing(rng):
    X, y = on_grid(rng.normal(size=(100, 3))), rng.normal(size=100)
    units = np.array([2.0**10, 2.0**-8, 1.0])
    a = LSSVR().fit(X, y)
    b = LSSVR(Linear(resolution=2.0**-14 * units)).fit(X * units, y)
    assert (a.coef_ == b.coef_ * units).all()
    assert (a.predict(X) == b.predict(X * units)).all()


@SOLVERS
@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
def test_one_row_one_class_and_constant_columns(penalty, solver):
    one = LSSVR(solver=solver, **penalty).fit([[3.0, 4.0]], [5.0])
    assert np.isfinite(one.predict([[0.0, 9.0]])).all()
    if penalty["free_intercept"]:
        assert one.predict([[0.0, 9.0]])[0] == 5.0
        assert one.coef_.tolist() == [0.0, 0.0]
    same = LSSVC(solver=solver, **penalty).fit([[1.0], [2.0], [4.0]], ["a"] * 3)
    assert same.predict([[9.0]]).tolist() == ["a"]
    X, y = np.full((6, 3), 2.5), np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])
    flat = LSSVR(solver=solver, **penalty).fit(X, y)
    if penalty["standardize"]:
        assert np.abs(flat.coef_).max() < 1e-25
    if penalty["free_intercept"]:
        assert flat.predict(X) == pytest.approx(2.0, rel=1e-12)
    two = LSSVC(solver=solver, **penalty).fit(X, [0, 0, 0, 0, 1, 1])
    assert two.predict(X).tolist() == [0] * 6


@SOLVERS
def test_fewer_rows_than_columns(rng, solver):
    X, y = on_grid(rng.normal(size=(10, 40)) + 100), on_grid(rng.normal(size=10))
    ours = LSSVR(solver=solver).fit(X, y)
    theirs = make_pipeline(StandardScaler(), Ridge(solver="cholesky")).fit(X, y)
    assert_close(ours.predict(X), theirs.predict(X), 1e-10)


def test_a_class_weight_of_zero_everywhere_and_somewhere(rng):
    X, y = rows(rng, 60), np.arange(60) % 3
    nothing = LSSVC(class_weight={0: 0.0, 1: 0.0, 2: 0.0}).fit(X, y)
    assert not nothing.coef_.any()
    assert not nothing.intercept_.any()
    some = LSSVC(class_weight={0: 0.0}).fit(X, y)
    assert (some.intercept_[0], some.coef_[0].tolist()) == (-1.0, [0.0] * 6)


# --- found by an attacker -------------------------------------------------------------------------


def test_intervals_without_a_column_that_varies(rng):
    y = on_grid(rng.normal(size=9))
    low, high = LSSVR().fit(np.ones((9, 3)), y).predict_interval(np.ones((2, 3)))
    half = y.std(ddof=1) * np.sqrt(1 + 1 / 9) * stats.t.ppf(0.975, 8)
    assert_close(high - low, np.full(2, 2 * half), 1e-6)


def test_an_outlier_that_came_and_went_leaves_nothing_in_a_live_model():
    rng = np.random.default_rng(0)
    for _ in range(10):
        X = on_grid(rng.normal(size=(50, 5)))
        y, outlier = X[:, 0] + rng.normal(size=50), np.round(rng.normal(size=(1, 5)) * 3e7)
        live = LSSVR(solver="woodbury", standardize=False).fit(X, y)
        for change in (live.partial_fit, live.forget):
            assert np.isfinite(live.coef_).all()
            change(outlier, [1.0])
        assert_close(live.coef_, LSSVR(standardize=False).fit(X, y).coef_, 1e-10)


def test_classes_of_weight_zero_alone_have_probabilities(rng):
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, "a", "b")
    model = LSSVC(class_weight={"a": 0}).fit(X, y).forget(X[y == "b"], y[y == "b"])
    assert model.predict_proba(X[:1]).tolist() == [[1.0]]
    with pytest.warns(UninformativeWarning):
        found = LSSVC(class_weight={"a": 0, "b": 0}).fit(X, y).predict_proba(X[:1])
    assert_close(found, np.array([[(y == "a").mean(), (y == "b").mean()]]))
