"""Parameters that follow from the rows held now: gamma, and where linear kernels are centred."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.svm import SVC

from traceless import PathSVC
from traceless.hinge.machines import Classifier
from traceless.hinge.model import HingeModel
from traceless.hinge.settings import Settings, centre_of, power_of_two


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


@given(st.floats(1e-250, 1e250))
def test_the_power_of_two_is_the_nearest(spread):
    gamma = power_of_two(spread)
    assert math.frexp(gamma)[0] == 0.5
    assert abs(math.log2(gamma) + math.log2(spread)) <= 0.5 + 1e-9


def test_steady_is_near_scale(wine):
    X, y = wine
    for part in (slice(0, 30), slice(30, 178), slice(0, 178)):
        scale = SVC(gamma="scale").fit(X[part], y[part])._gamma
        steady = PathSVC().fit(X[part], y[part]).gamma_
        assert math.frexp(steady)[0] == 0.5
        assert 0.7 < steady / scale < 1.42


@pytest.mark.parametrize("gamma", ["steady", "scale", "auto"])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_a_model_of_equal_rows_is_the_same_whatever_its_history(wine, gamma, kernel):
    X, y = wine[0] / wine[0].std(axis=0), wine[1]
    parameters = {"gamma": gamma, "kernel": kernel, "degree": 2}
    model = PathSVC(**parameters).fit(X[:60] * 3.0, y[:60])
    model.partial_fit(X[60:], y[60:]).forget(X[:60] * 3.0, y[:60])
    model.update(add=(X[:20], y[:20]), forget=(X[60:80], y[60:80]))
    fresh = PathSVC(**parameters).fit(np.r_[X[80:], X[:20]], np.r_[y[80:], y[:20]])
    assert model.gamma_ == fresh.gamma_
    assert model.digest() == fresh.digest()


def test_steady_follows_paths_and_scale_solves_anew(wine, monkeypatch):
    X, y = wine
    models = {gamma: PathSVC(gamma=gamma).fit(X[:100], y[:100]) for gamma in ("steady", "scale")}
    solved, calls = HingeModel.solved, []
    monkeypatch.setattr(HingeModel, "solved", lambda *args: (calls.append(1), solved(*args))[1])
    for gamma, expected in (("steady", 0), ("scale", 20)):
        calls.clear()
        before = models[gamma].gamma_
        for k in range(20):
            new, old = slice(100 + k, 101 + k), slice(k, k + 1)
            models[gamma].update(add=(X[new], y[new]), forget=(X[old], y[old]))
        assert len(calls) == expected
        assert (models[gamma].gamma_ == before) == (gamma == "steady")
    calls.clear()
    far = models["steady"].partial_fit(1e3 * X[:30], y[:30])
    assert calls
    held = far._model.rows
    assert far.digest() == PathSVC().fit(held.X[::-1], held.y[::-1]).digest()


@pytest.mark.parametrize("gamma", ["steady", "scale"])
def test_rows_without_which_gamma_moves(gamma):
    settings = Settings(Classifier(1.0, None, "ovo"), "rbf", gamma, 3, 0.0)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(int(rng.integers(2, 9)), 2)) * 10.0 ** rng.integers(-3, 3)
        X[0] *= rng.choice([1.0, 2.0, 100.0])
        weight = rng.choice([0.5, 1.0, 3.0], size=len(X))
        now = settings.gamma_of(X, weight)
        told = settings.moves_gamma(X, weight)
        for i in range(len(X)):
            rest = np.arange(len(X)) != i
            assert told[i] or settings.gamma_of(X[rest], weight[rest]) == now


def test_without_looks_at_gamma_too(wine):
    X, y = wine
    X = np.r_[X[:60], 100.0 * X[60:64]]
    model = PathSVC().fit(X, y[:64])
    ahead, fresh = model._without(np.arange(60, 64)), PathSVC().fit(X[:60], y[:60])
    assert ahead.gamma_ == fresh.gamma_ != model.gamma_
    np.testing.assert_allclose(ahead.decision_function(X), fresh.decision_function(X), atol=1e-8)


# --- centres -------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 1.0, -3.5, 1e5, -2e5, 1.6e9, 1.6e12, -1e15, 1e300]),
            st.sampled_from([0.0, 1e-9, 1.0, 1e3, 1e7, 1e200]),
        ),
        min_size=1,
        max_size=3,
    ),
    st.integers(0, 2**32),
)
def test_rows_are_centred_exactly(columns, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([low + width * rng.random(9) for low, width in columns])
    centre = centre_of(X)
    assert np.array_equal(centre_of(X[::-1]), centre) or (centre is None)
    if centre is None:
        centre = np.zeros(len(columns))
    widest = float((X.max(axis=0) - X.min(axis=0)).max())
    for x in X.ravel().reshape(9, -1):
        for value, m in zip(x, centre, strict=True):
            assert Fraction(value) - Fraction(m) == Fraction(value - m)
            assert widest == 0.0 or abs(value - m) <= 9.0 * widest
    moved = X - centre
    assert (np.abs(moved) <= np.abs(X)).all()


def test_columns_of_zeros_and_ones_or_of_usual_size_are_left_alone(rng):
    for X in (np.eye(5), rng.normal(size=(9, 3)), rng.random((9, 2)) + 3.0, np.ones((3, 2))):
        assert centre_of(X) is None


def test_a_stream_of_timestamps(rng):
    """The centre moves with them, seldom."""
    time = 1.7e9 + np.cumsum(rng.exponential(60.0, size=400))
    X = np.column_stack([time, rng.normal(size=(400, 2)) * 1e3])
    y = (X[:, 1] + 500 * rng.normal(size=400) > 0).astype(int)
    model, centres = PathSVC(kernel="linear", C=1e-4).fit(X[:100], y[:100]), []
    for k in range(0, 300, 5):
        new, old = slice(100 + k, 105 + k), slice(k, k + 5)
        model.update(add=(X[new], y[new]), forget=(X[old], y[old]))
        centres.append(model._model.kernel.centre[0])
    assert 1 < len(set(centres)) < 6
    assert model.digest() == PathSVC(kernel="linear", C=1e-4).fit(X[300:], y[300:]).digest()
    assert model.kkt_residual_ < 1e-9
