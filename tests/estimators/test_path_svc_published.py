"""One truth: what PathSVC publishes is what was checked, or there is a warning, or an error."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE
from sklearn.metrics.pairwise import linear_kernel
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from vega_datasets import data

from traceless import PathSVC
from traceless.hinge.published import Published

EPS = np.finfo(float).eps


def check_published(model, kernel, tolerance=1e-9):
    """KKT from public attributes alone, of two classes."""
    rows = model._model.rows
    y = np.where(rows.y == model.classes_[1], 1.0, -1.0)
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    bounds = model.C * rows.weight
    assert (alpha <= bounds).all()
    assert np.array_equal(np.sign(model.dual_coef_[0]), y[model.support_])
    total = float(alpha.sum())
    assert abs(float(y @ alpha)) <= 1e-12 * max(1.0, total)
    f = model.dual_coef_ @ kernel(model.support_vectors_, rows.X) + model.intercept_
    rounding = 10 * EPS * total * float(np.abs(kernel(rows.X, rows.X)).max())
    assert np.abs(f[0] - model.decision_function(rows.X)).max() <= max(tolerance, rounding)
    g = y * model.decision_function(rows.X) - 1.0
    wrong = np.where(alpha <= 0.0, -g, np.where(alpha >= bounds, g, np.abs(g)))
    assert wrong.max() <= tolerance
    assert model.kkt_residual_ == pytest.approx(max(wrong.max(), 0.0), abs=1e-12)


@pytest.fixture(scope="module")
def weather():
    table = data.seattle_weather()
    X = table[["precipitation", "temp_max", "temp_min", "wind"]].to_numpy()
    return X, (table["weather"] == "rain").to_numpy().astype(int)


def test_a_window_over_real_data(weather):
    X, y = weather
    model = PathSVC(kernel="linear", C=10.0).fit(X[:41], y[:41])
    for start in range(0, 400, 7):
        old, new = slice(start, start + 7), slice(start + 41, start + 48)
        model.update(add=(X[new], y[new]), forget=(X[old], y[old]))
        check_published(model, linear_kernel)
        rows = model._model.rows
        fresh = PathSVC(kernel="linear", C=10.0).fit(rows.X, rows.y)
        assert not model.ambiguous_
        assert model.digest() == fresh.digest()


# --- columns of zeros and ones -------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_one_hot_columns_have_bits_of_their_own(seed):
    rng = np.random.default_rng(seed)
    categories = rng.integers(0, 4, size=(90, 3))
    X = OneHotEncoder(sparse_output=False).fit_transform(categories)
    y = (X @ rng.normal(size=X.shape[1]) + 0.5 * rng.normal(size=90) > 0).astype(int)
    parameters = {"kernel": "linear", "C": [0.1, 1.0, 10.0][seed % 3]}
    model = PathSVC(**parameters).fit(X[:60], y[:60])
    for k in range(0, 30, 3):
        new, old = slice(60 + k, 63 + k), slice(k, k + 3)
        model.update(add=(X[new], y[new]), forget=(X[old], y[old]))
    order = 30 + rng.permutation(60)
    fresh = PathSVC(**parameters).fit(X[order], y[order])
    assert not model.ambiguous_
    assert not fresh.ambiguous_
    assert model.digest() == fresh.digest()
    assert np.array_equal(model.coef_, fresh.coef_)
    assert np.array_equal(model.intercept_, fresh.intercept_)
    assert np.array_equal(model.decision_function(X), fresh.decision_function(X))
    check_published(model, linear_kernel)


def test_coef_is_that_of_svc_and_only_linear_kernels_have_it(weather):
    X, y = weather
    X, y = StandardScaler().fit_transform(X[:200]), np.arange(200) % 3
    ours, theirs = PathSVC(kernel="linear").fit(X, y), SVC(kernel="linear", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    pairs = X @ ours.coef_.T + ours.intercept_
    ours.set_params(decision_function_shape="ovo")
    np.testing.assert_allclose(pairs, ours.decision_function(X), atol=1e-12)
    assert not hasattr(PathSVC().fit(X, y), "coef_")
    assert RFE(PathSVC(kernel="linear"), n_features_to_select=2).fit(X, y).support_.sum() == 2
    assert PathSVC(kernel="linear").fit(X, np.zeros(200)).coef_.tolist() == [[0.0] * 4]


# --- columns that are not scaled -----------------------------------------------------------------


def unscaled(rng, low, width, n=200):
    z = rng.random(n), rng.normal(size=n), rng.normal(size=n)
    X = np.column_stack([low + width * z[0], *z[1:]])
    return X, (z[0] - 0.5 + 0.3 * z[1] > 0).astype(int)


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize(
    ("low", "width"), [(5e4, 5e4), (1e5, 1e3), (1.6e9, 1e3), (-1.6e9, 1e3), (1e15, 10.0)]
)
def test_incomes_and_timestamps_are_solved(rng, low, width, C):
    X, y = unscaled(rng, low, width)
    model = PathSVC(kernel="linear", C=C).fit(X[:150], y[:150])
    model.update(add=(X[150:], y[150:]), forget=(X[:50], y[:50]))
    shifted = X - [low, 0.0, 0.0]  # the problem is the same
    fresh = PathSVC(kernel="linear", C=C).fit(shifted[50:], y[50:])
    assert model.kkt_residual_ <= 1e-9
    np.testing.assert_allclose(
        model.decision_function(X), fresh.decision_function(shifted), rtol=1e-9, atol=1e-9
    )
    assert model.digest() == PathSVC(kernel="linear", C=C).fit(X[50:], y[50:]).digest()
    pairs = X @ model.coef_[0] + model.intercept_[0]
    size = np.abs(X @ np.abs(model.coef_[0])).max()
    np.testing.assert_allclose(pairs, model.decision_function(X), atol=10 * EPS * size)


@pytest.mark.parametrize(("low", "width"), [(1.6e9, 1e7), (1.6e12, 1e10), (0.0, 1e12)])
def test_what_float64_cannot_solve_is_warned_of(rng, low, width):
    X, y = unscaled(rng, low, width)
    with pytest.warns(ConvergenceWarning, match="scale the columns"):
        PathSVC(kernel="linear").fit(X, y)


def test_rounding_excuses_nothing_above_the_ceiling(rng):
    X = rng.normal(size=(30, 2))
    (problem,) = PathSVC(gamma=0.5).fit(X, X[:, 0] > 0)._model.problems.values()
    s = problem.published

    def excess(residual, noise, tol):
        fields = {name: getattr(s, name) for name in s.__dataclass_fields__}
        return Published(**fields | {"residual": residual, "noise": noise}).excess(tol)

    assert excess(5e-7, 1e-6, 1e-9) == 0.0
    assert excess(5e-7, 1e-8, 1e-9) == 5e-7
    assert excess(2e-6, 1e-3, 1e-9) == pytest.approx(2e-6)
    assert excess(2e-6, 1e-3, 1e-2) == 0.0
    assert excess(1e-8, 1.0, 1e-9) == 0.1  # nobody can tell what it is
    assert excess(1e-4, 1e-9, 1e-3) == 0.0


@pytest.mark.filterwarnings("ignore:The solution has a KKT residual")
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("power", [-170, -155, -150, -100, 100, 140, 150, 153, 160, 300])
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_sizes_at_the_end_of_float64(rng, kernel, power, C):
    X, y = unscaled(rng, 0.0, 1.0, 70)
    X[:20] = np.round(X[:20])
    X = X * 10.0**power
    try:
        model = PathSVC(kernel=kernel, C=C, coef0=0.1).fit(X[:60], y[:60])
        model.update(add=(X[60:], y[60:]), forget=model.ids_[:5])
    except OverflowError as error:
        assert "cale the columns" in str(error)  # noqa: PT017
        assert power < -150 or power > 90
    else:
        assert np.isfinite(model.kkt_residual_)
        assert np.isfinite(model.decision_function(X)).all()


# --- the warning is part of the change -----------------------------------------------------------


def test_where_warnings_are_errors_nothing_is_changed(rng):
    X, y = unscaled(rng, 0.0, 1.0)
    wide, _ = unscaled(rng, 0.0, 1e12, 20)
    model = PathSVC(kernel="linear").fit(X, y)
    before, ids = model.digest(), model.last_ids_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            model.partial_fit(wide, y[:20])
        with pytest.raises(ConvergenceWarning):
            PathSVC(kernel="linear").fit(np.r_[X, wide], np.r_[y, y[:20]])
    assert model.digest() == before
    assert model.n_samples_ == 200
    assert model.last_ids_ is ids
    assert (
        model.forget(X[:5], y[:5]).digest() == PathSVC(kernel="linear").fit(X[5:], y[5:]).digest()
    )
    with pytest.warns(ConvergenceWarning) as told:
        model.partial_fit(wide, y[:20])
    assert model.n_samples_ == 215
    assert len(told) == 1


def test_the_warning_points_at_the_call(rng):
    X, y = unscaled(rng, 0.0, 1e12)
    for call in (PathSVC(kernel="linear").fit, PathSVC(kernel="linear").partial_fit):
        with pytest.warns(ConvergenceWarning) as told:
            call(X, y)
        assert told[0].filename == __file__


# --- bounds, memory, names -----------------------------------------------------------------------


def test_equal_rows_at_their_bounds_are_exactly_there(rng):
    X = np.repeat(rng.normal(size=(12, 2)), 7, axis=0)
    y = np.tile([0, 0, 0, 1, 1, 0, 1], 12)
    weight = rng.choice([0.1, 0.3, 0.7, 1.1], size=84)
    model = PathSVC(C=0.3, gamma=0.5).fit(X, y, weight)
    alpha = np.abs(model.dual_coef_[0])
    bounds = 0.3 * weight[model.support_]
    near = alpha > bounds * (1 - 1e-9)
    assert near.sum() > 20
    assert np.array_equal(alpha[near], bounds[near])


def test_what_a_memory_error_advises_helps(rng):
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    model = PathSVC(gamma=5.0, C=100.0, cache_size=0.2).fit(X[:60], y[:60])
    before = model.digest()
    with pytest.raises(MemoryError, match="raise it"):
        model.partial_fit(X[60:], y[60:])
    assert model.digest() == before
    model.set_params(cache_size=10.0).partial_fit(X[60:], y[60:])
    assert model.digest() == PathSVC(gamma=5.0, C=100.0).fit(X, y).digest()
    assert model._model.held._place.gram.lines.memory == 10 * 2**20


def laplacian(A, B, width=1.0):
    return np.exp(-width * np.abs(A[:, None] - B[None]).sum(axis=-1))


class _Callable:
    def __call__(self, A, B):
        return laplacian(A, B)


def test_digests_tell_kernel_functions_apart(rng):
    X = rng.normal(size=(40, 2))
    y = X[:, 0] > 0
    kernels = [laplacian, partial(laplacian, width=1.0), partial(laplacian, width=2.0)]
    digests = [PathSVC(kernel=kernel).fit(X, y).digest() for kernel in kernels]
    assert len(set(digests)) == 3
    again = PathSVC(kernel=partial(laplacian, width=2.0)).fit(X[::-1], y[::-1])
    assert again.digest() == digests[2]


@pytest.mark.parametrize(
    "kernel",
    [lambda A, B: laplacian(A, B), _Callable(), partial(laplacian, width=np.ones(1))],
    ids=["lambda", "object", "partial with an array"],
)
def test_kernel_functions_without_a_name_have_no_digest(rng, kernel):
    X = rng.normal(size=(40, 2))
    model = PathSVC(kernel=kernel).fit(X, X[:, 0] > 0).forget(ids=[0])
    model.predict(X)
    with pytest.raises(ValueError, match="top level of a module"):
        model.digest()


def test_labels_where_all_rows_are_at_their_bound():
    """At small C any intercept of an interval will do: labels are those of the published one."""
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    for _ in range(12):
        some, C = rng.choice(150, 75, replace=False), 10.0 ** rng.uniform(-3, -0.5)
        model = PathSVC(C=C, gamma=0.3).fit(X[some], y[some])
        ahead = model._without(np.arange(25))
        fresh = PathSVC(C=C, gamma=0.3).fit(X[some[25:]], y[some[25:]])
        expected = fresh.predict(X)
        assert (ahead.predict(X) == expected).all()
        assert (model.forget(ids=np.arange(25)).predict(X) == expected).all()
