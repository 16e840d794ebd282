"""The evidence against the probability of the rows themselves, and the same choice everywhere."""

import numpy as np
import pytest
from scipy.linalg import null_space
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from threadpoolctl import threadpool_limits

from cases import PENALTIES
from traceless import LSSVC, LSSVR
from traceless.features import Linear, Polynomial, RandomFourier
from traceless.solvers import evidence
from traceless.solvers.evidence import Evidence


def sums_of(model):
    _, phi, penalty, weights = model._problem()
    shared = None if weights is None else weights[0]
    return Evidence(model.knowledge_, penalty, phi, model._code, shared)


def of_rows(phi, Y, rho, weight, free_intercept):
    """-2 log p(Y) with σ² at its best, by the n × n covariance of the rows; up to a constant."""
    root = np.sqrt(weight)[:, None]
    X = phi[:, :-1] if free_intercept else phi
    basis = null_space(root.T) if free_intercept else np.eye(len(Y))
    A, Z = basis.T @ (root * X), basis.T @ (root * Y)
    M = np.eye(len(A)) + A @ A.T / rho
    fit = np.log((Z * np.linalg.solve(M, Z)).sum(axis=0))
    return len(A) * fit.sum() + Y.shape[1] * np.linalg.slogdet(M)[1]


def scaled(phi, weight, standardize):
    """Features in the units that they are penalised in; the constant one is in its own."""
    if not standardize:
        return phi
    centred = phi - np.average(phi, axis=0, weights=weight)
    scale = np.sqrt(np.average(centred**2, axis=0, weights=weight))
    return phi / np.append(scale[:-1], 1.0)


@pytest.fixture
def rows(rng):
    X = np.round(rng.normal(size=(40, 5)) * [1, 10, 0.1, 1, 1] + [0, 100, 0, 3, 0], 3)
    y = X[:, 0] + 0.3 * X[:, 1] + rng.normal(size=40)
    return X, np.column_stack([y, 1000 + rng.normal(size=40)]), rng.integers(1, 5, 40) / 2.0


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("n", [40, 4])
@pytest.mark.parametrize("weighted", [True, False])
def test_it_is_the_probability_of_the_targets(rows, penalty, n, weighted):
    X, Y, weight = (some[:n] for some in rows)
    weight = weight if weighted else np.ones(n)
    model = LSSVR(rho="evidence", **penalty).fit(X, Y, weight)
    sums = sums_of(model)
    grid = sums.grid()
    phi = scaled(Linear().transform(X), weight, penalty["standardize"])
    free, Y = penalty["free_intercept"], np.rint(Y * 2**14)
    wanted = np.array([of_rows(phi, Y, rho, weight, free) for rho in grid])
    for found in (sums.floats().evidence(np.array(grid))[0], [*map(sums.exactly, grid)]):
        np.testing.assert_allclose(found - wanted, 0.0, atol=1e-5)
    assert model.rho_ == max(np.array(grid)[wanted <= wanted.min() + 0.05])


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(
    ("kind", "class_weight"),
    [(2, None), (2, "balanced"), (3, None), (3, "balanced"), ("labels", None)],
)
def test_it_is_the_probability_of_the_coded_classes(rows, penalty, kind, class_weight):
    X, Y, weight = rows
    all_weights = weight
    if kind == "labels":
        y = (np.median(Y, axis=0) < Y).astype(int)
        one_hot = np.column_stack([y, np.ones(40)])
    else:
        y = np.digitize(X[:, 0], [-0.5, 0.5][: kind - 1])
        one_hot = (y[:, None] == np.arange(kind)).astype(float)
    model = LSSVC(rho="evidence", class_weight=class_weight, **penalty).fit(X, y, weight)
    if class_weight is not None:
        all_weights = weight * np.array(model._problem()[3][0])[y]
    sums = sums_of(model)
    # the scales are those of all rows, whatever their classes weigh
    phi = scaled(Linear().transform(X), weight, penalty["standardize"])
    for rho in sums.grid()[::7]:
        coded = model._code(one_hot)
        wanted = of_rows(phi, coded, rho, all_weights, penalty["free_intercept"])
        found = sums.floats().evidence(np.array([rho]))[0][0]
        np.testing.assert_allclose([found, sums.exactly(rho)], wanted, atol=1e-7)


@pytest.mark.parametrize("load", [load_diabetes, load_iris, load_breast_cancer, load_wine])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_floats_are_within_their_bound(load, penalty):
    X, y = load(return_X_y=True)
    model = (LSSVR if load is load_diabetes else LSSVC)(rho="evidence", **penalty).fit(X, y)
    sums = sums_of(model)
    grid = sums.grid()
    E, bound = sums.floats().evidence(np.array(grid))
    assert (np.abs(E - [*map(sums.exactly, grid)]) <= 0.1 * bound).all()
    assert bound[grid.index(model.rho_)] < 0.02


@pytest.mark.parametrize("n_rows", [300, 60])
def test_the_choice_is_the_same_with_wide_bounds(monkeypatch, n_rows):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:n_rows], y[:n_rows]
    narrow = LSSVC(rho="evidence").fit(X, y).rho_
    computed = []
    exactly = Evidence.exactly
    monkeypatch.setattr(Evidence, "exactly", lambda s, rho: computed.append(rho) or exactly(s, rho))
    monkeypatch.setattr(evidence, "_LOGARITHMS", 1e-3)
    assert LSSVC(rho="evidence").fit(X, y).rho_ == narrow
    assert 1 <= len(computed) < 20


def test_targets_without_noise_are_decided_exactly():
    X = np.arange(30.0)[:, None] * 1e6
    model = LSSVR(rho="evidence", standardize=False).fit(X, 3 * X[:, 0] + 1)
    grid = sums_of(model).grid()
    assert model.rho_ == grid[-1] == 2.0**-15
    assert not np.isfinite(sums_of(model).floats().evidence(np.array(grid))[1]).all()


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        ([9.0, 1.04, 1.0], [9.0, 1.04, 1.0], 1),
        ([9.0, 1.06, 1.0], [9.0, 1.06, 1.0], 2),
        ([0.0, 1.0, 1.02], [2.0, 1.06, 1.04], 1),
        ([-np.inf, 1.0, -np.inf], [np.inf, 1.0, np.inf], 1),
    ],
)
def test_the_first_within_the_slack_of_the_least(low, high, wanted):
    exact = [9.0, 1.04, 1.03] if wanted == 1 else [9.0, 1.06, 1.0]
    assert evidence._first(np.array(low), np.array(high), exact.__getitem__) == wanted


# --- the same choice -----------------------------------------------------------------------


def models():
    X, y = load_breast_cancer(return_X_y=True)
    X = X / np.array([10, 10, 100, 1000, 1, 1, 1, 1, 1, 1] * 3)
    yield LSSVC(rho="evidence"), X, y
    yield LSSVC(Polynomial(2), rho="evidence", standardize=False), X[:, :6], y
    yield LSSVR(RandomFourier(60, gamma=0.1), rho="evidence", free_intercept=False), X, X[:, 3] + y
    yield LSSVC(rho="evidence", class_weight="balanced"), X, y


@pytest.mark.parametrize(("model", "X", "y"), [*models()])
def test_for_every_history(model, X, y):
    model.fit(X[:100], y[:100])
    other = clone(model).fit(X[200:], y[200:])
    assert model.rho_ > 0.0  # of the rows it had then
    model.merge(other).partial_fit(X[100:200], y[100:200]).forget(X[:20], y[:20])
    afresh = clone(model).fit(X[20:], y[20:])
    assert model.rho_ == afresh.rho_
    np.testing.assert_array_equal(model.feature_coef_, afresh.feature_coef_)


@pytest.mark.parametrize(("model", "X", "y"), [*models()])
def test_for_every_number_of_threads(model, X, y):
    found = set()
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.add(clone(model).fit(X, y).rho_)
    assert len(found) == 1


@pytest.mark.parametrize("load", [load_diabetes, load_breast_cancer, load_wine])
def test_for_every_order_of_rows_and_columns(load, rng):
    X, y = load(return_X_y=True)
    kind = LSSVR if load is load_diabetes else LSSVC
    wanted = kind(rho="evidence").fit(X, y).rho_
    for _ in range(3):
        rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
        assert kind(rho="evidence").fit(X[rows][:, columns], y[rows]).rho_ == wanted


def test_weights_and_rho_times_a_power_of_two_are_the_same_problem(rows):
    X, Y, weight = rows
    first = LSSVR(rho="evidence").fit(X, Y, weight)
    assert LSSVR(rho="evidence").fit(X, Y, 8 * weight).rho_ == 8 * first.rho_


# --- edges -----------------------------------------------------------------------------------


@pytest.mark.parametrize("y", [np.ones(5), np.full(5, 1e4)])
def test_targets_that_never_vary_take_the_largest(y):
    model = LSSVR(rho="evidence").fit(np.arange(5.0)[:, None], y)
    assert model.rho_ == 4 * 2.0**10
    np.testing.assert_array_equal(model.predict([[9.0]]), y[0])


def test_columns_that_never_vary_say_nothing(rng):
    X = rng.normal(size=(30, 3))
    wider = np.column_stack([X, np.full(30, 7.0)])
    for scaled in (True, False):
        model = LSSVR(rho="evidence", standardize=scaled)
        assert (
            model.fit(wider, X[:, 0]).rho_
            == LSSVR(rho="evidence", standardize=scaled).fit(X, X[:, 0]).rho_
        )
    assert LSSVR(rho="evidence").fit(wider[:, 3:], X[:, 0]).rho_ == 16 * 2.0**10


def test_one_row_and_one_class():
    assert LSSVR(rho="evidence").fit([[1.0]], [2.0]).predict([[5.0]]) == 2.0
    assert LSSVC(rho="evidence").fit([[1.0], [2.0]], ["a", "a"]).predict([[5.0]]) == ["a"]


def test_weights_of_each_problem_are_refused():
    X, y = load_iris(return_X_y=True)
    model = LSSVC(rho="evidence", class_weight="balanced", weighting="one_vs_rest")
    with pytest.raises(ValueError, match="Use weighting='shared'"):
        model.fit(X, y)


def test_the_choice_is_made_once_for_each_state(monkeypatch):
    X, y = load_diabetes(return_X_y=True)
    calls = []
    original = Evidence.floats
    monkeypatch.setattr(Evidence, "floats", lambda self: calls.append(1) or original(self))
    model = LSSVR(rho="evidence").fit(X, y)
    assert model.predict(X[:3]).shape == (3,)
    assert len(calls) == 1
    model.forget(X[:9], y[:9]).predict(X[:3])
    assert len(calls) == 2


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("weight", [None, "balanced"])
def test_where_no_column_varies_there_is_a_choice(penalty, weight):
    """The largest ρ where the intercept is free: nothing speaks against it."""
    X, y = np.full((20, 2), 3.0), np.arange(20) % 2
    for kind, options in ((LSSVR, {}), (LSSVC, {"class_weight": weight})):
        model = kind(rho="evidence", **options, **penalty)
        assert np.isfinite(model.fit(X, y).feature_coef_).all()
        if penalty["free_intercept"]:
            assert model.rho_ == 2.0**14  # the highest power below 20 rows, times 2^10
