"""SlidingWindow: at all times the model of a fit on the rows in the window."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from traceless import LSSVC, LSSVR, PathSVC, SlidingWindow

ESTIMATORS = [LSSVC(), LSSVR(), LSSVC(solver="woodbury"), PathSVC(C=3.0, gamma=0.5)]


@parametrize_with_checks([SlidingWindow(estimator, 500) for estimator in ESTIMATORS])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def stream(n, seed=0):
    """Rows, labels of three classes that come and go, and weights."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) // 7 + rng.integers(2, size=n)) % 3
    return np.round(rng.normal(size=(n, 2)) + y[:, None], 2), y, rng.choice([0.5, 1.0, 2.0], size=n)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@settings(max_examples=20)
@given(
    batches=st.lists(st.integers(1, 25), min_size=1, max_size=8),
    size=st.integers(1, 30),
    weighted=st.booleans(),
)
def test_the_window_is_a_fresh_fit_on_its_rows(estimator, batches, size, weighted):
    n = sum(batches)
    X, y, weight = stream(n)
    window, end = SlidingWindow(estimator, size), 0
    for k in batches:
        rows, end = slice(end, end + k), end + k
        window.partial_fit(X[rows], y[rows], weight[rows] if weighted else None)
    last = slice(max(0, n - size), n)
    assert window.n_samples_ == min(n, size)
    fresh = type(estimator)(**estimator.get_params())
    fresh.fit(X[last], y[last], weight[last] if weighted else None)
    if not getattr(window.estimator_, "ambiguous_", False):
        assert window.digest() == fresh.digest()
    np.testing.assert_allclose(window.predict(X), fresh.predict(X), atol=1e-9)


def test_one_update_for_what_comes_and_what_goes(monkeypatch):
    X, y, _ = stream(50)
    window = SlidingWindow(PathSVC(gamma=0.5), 30).fit(X[:30], y[:30])
    seen = []
    update = PathSVC.update
    monkeypatch.setattr(
        PathSVC, "update", lambda self, **rows: (seen.append(rows), update(self, **rows))[1]
    )
    window.partial_fit(X[30:35], y[30:35])
    assert len(seen) == 1
    assert np.array_equal(seen[0]["add"][0], X[30:35])
    assert np.array_equal(seen[0]["forget"][0], X[:5])


def test_a_river_like_loop():
    X, y, _ = stream(80)
    window, right = SlidingWindow(LSSVC(), size=25), 0
    for x, label in zip(X, y, strict=True):
        if window.n_samples_:
            right += int(window.predict(x[None])[0] == label)
        window.partial_fit(x[None], [label])
    assert right > 30
    assert window.digest() == LSSVC().fit(X[-25:], y[-25:]).digest()


def test_rows_of_weight_zero_take_no_place():
    X, y, _ = stream(20)
    weight = np.r_[np.ones(10), np.zeros(10)]
    window = SlidingWindow(PathSVC(gamma=0.5), 10).fit(X[:10], y[:10])
    before = window.digest()
    assert window.partial_fit(X[10:], y[10:], weight[10:]).digest() == before
    with pytest.raises(ValueError, match="nothing to learn"):
        SlidingWindow(PathSVC(), 5).fit(X[10:], y[10:], weight[10:])
    assert SlidingWindow(PathSVC(gamma=0.5), 10).fit(X, y, weight).digest() == before


def test_what_it_is_and_what_it_offers():
    X, y = load_diabetes(return_X_y=True)
    window = SlidingWindow(LSSVR(), 100)
    assert is_regressor(window)
    assert not is_classifier(window)
    assert not hasattr(window, "decision_function")
    assert window.n_samples_ == 0
    with pytest.raises(NotFittedError):
        window.predict(X)
    window.partial_fit(X, y)
    assert window.score(X, y) == window.estimator_.score(X, y)
    assert window.digest() == LSSVR().fit(X[-100:], y[-100:]).digest()
    two = np.column_stack([y, -y])
    assert SlidingWindow(LSSVR(), 50).fit(X, two).partial_fit(X[:9], two[:9]).n_samples_ == 50

    X, y = load_iris(return_X_y=True)
    window = SlidingWindow(PathSVC(gamma=0.5), 60).fit(X, y)
    assert is_classifier(window)
    assert window.classes_.tolist() == [1, 2]
    assert np.array_equal(window.decision_function(X), window.estimator_.decision_function(X))
    assert window.score(X[-60:], y[-60:]) > 0.9
    assert pickle.loads(pickle.dumps(window)).digest() == window.digest()


def test_frames_and_sparse_rows():
    X, y, _ = stream(60)
    table = pd.DataFrame(X, columns=["a", "b"])
    window = SlidingWindow(LSSVC(), 20).fit(table, y).partial_fit(table[:5], y[:5])
    assert window.feature_names_in_.tolist() == ["a", "b"]
    kept = np.r_[45:60, 0:5]
    assert window.digest() == LSSVC().fit(X[kept], y[kept]).digest()
    with pytest.raises(ValueError, match="feature names"):
        window.partial_fit(table[["b", "a"]], y)
    thin = sparse.csr_matrix(X)
    window = SlidingWindow(LSSVC(), 20).fit(thin, y).partial_fit(X[:5], y[:5])
    assert window.digest() == LSSVC().fit(X[kept], y[kept]).digest()
    assert window.predict(thin).shape == (60,)
    with pytest.raises(TypeError, match="dense"):
        SlidingWindow(PathSVC(), 20).fit(thin, y)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_what_is_refused_changes_nothing(estimator):
    X, y, _ = stream(40)
    window = SlidingWindow(estimator, 30).fit(X, y)
    before = window.digest()
    for rows in (
        (X[:, :1], y),
        (X * np.nan, y),
        (X, y[:3]),
        (X, y, -np.ones(len(y))),
        (X, y, np.ones(3)),
        (X, y * np.nan),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            window.partial_fit(*rows)
        assert window.digest() == before
        assert window.n_samples_ == 30
    last = X[-30:], y[-30:]
    assert window.partial_fit(X[:4], y[:4]).n_samples_ == 30
    fresh = type(estimator)(**estimator.get_params())
    fresh.fit(np.r_[last[0][4:], X[:4]], np.r_[last[1][4:], y[:4]])
    assert window.digest() == fresh.digest()


def test_what_a_window_cannot_be():
    X, y, _ = stream(20)
    with pytest.raises(TypeError, match="can forget"):
        SlidingWindow(SVC(), 10).fit(X, y)
    for size in (0, 2.5, True, "all"):
        with pytest.raises(ValueError, match="size must be a whole number"):
            SlidingWindow(LSSVC(), size).fit(X, y)
    window = SlidingWindow(LSSVC(), 10).fit(X, y)
    with pytest.raises(ValueError, match="not in classes"):
        window.partial_fit(X, y, classes=[0])


def test_a_smaller_size_is_reached_at_the_next_rows():
    X, y, _ = stream(40)
    window = SlidingWindow(PathSVC(gamma=0.5), 30).fit(X, y).set_params(size=12)
    window.partial_fit(X[:3], y[:3])
    kept = np.r_[31:40, 0:3]
    assert window.digest() == PathSVC(gamma=0.5).fit(X[kept], y[kept]).digest()
