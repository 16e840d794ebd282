"""SlidingWindow: at all times the model of a fit on the rows in the window."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import traceless
from traceless import LSSVC, LSSVR, MismatchError, NotLearnedError, PathSVC, SlidingWindow
from traceless.features import RandomFourier

ESTIMATORS = [LSSVC(), LSSVR(), LSSVC(solver="woodbury"), PathSVC(C=3.0, gamma=0.5)]


@parametrize_with_checks([SlidingWindow(estimator, 500) for estimator in ESTIMATORS])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def stream(n, seed=0):
    """Rows, labels of three classes that come and go, and weights."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) // 7 + rng.integers(2, size=n)) % 3
    return np.round(rng.normal(size=(n, 2)) + y[:, None], 2), y, rng.choice([0.5, 1.0, 2.0], size=n)


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


def test_rows_of_weight_zero_take_no_place():
    X, y, _ = stream(20)
    weight = np.r_[np.ones(10), np.zeros(10)]
    window = SlidingWindow(PathSVC(gamma=0.5), 10).fit(X[:10], y[:10])
    before = window.digest()
    assert window.partial_fit(X[10:], y[10:], sample_weight=weight[10:]).digest() == before
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


def test_frames():
    X, y, _ = stream(60)
    table = pd.DataFrame(X, columns=["a", "b"])
    window = SlidingWindow(LSSVC(), 20).fit(table, y).partial_fit(table[:5], y[:5])
    assert window.feature_names_in_.tolist() == ["a", "b"]
    kept = np.r_[45:60, 0:5]
    assert window.digest() == LSSVC().fit(X[kept], y[kept]).digest()
    with pytest.raises(ValueError, match="feature names"):
        window.partial_fit(table[["b", "a"]], y)


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


# --- forgetting --------------------------------------------------------------------------------

every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)


def fresh(estimator, *rows):
    return type(estimator)(**estimator.get_params()).fit(*rows)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def assert_holds(window, rows):
    """The rows of the window itself, in order."""
    assert same(window._rows.batch(slice(None)), rows)


def test_of_equal_rows_the_oldest_go():
    X, y = np.array([[1.0], [2.0], [1.0], [3.0], [1.0]]), np.array([0, 1, 0, 1, 0])
    window = SlidingWindow(LSSVC(), 9).fit(X, y).forget(X[:1], y[:1])
    assert_holds(window, (X[1:], y[1:], np.ones(4)))
    window.forget([[1.0], [-0.0]], [0, 0], [1.0, 0.0])  # a row of weight 0 is no row
    assert_holds(window, (X[[1, 3, 4]], y[[1, 3, 4]], np.ones(3)))


@every_estimator
def test_rows_that_are_not_there_are_named(estimator):
    X, y, weight = stream(40)
    window = SlidingWindow(estimator, 30).fit(X, y, weight)
    before, rows = window.digest(), window._rows
    for (A, b, w), number in (
        ((X[8:12], y[8:12], weight[8:12]), 0),  # the first ten have left
        ((X[[10, 11, 10]], y[[10, 11, 10]], weight[[10, 11, 10]]), 2),
        ((X[[12, 13]], [y[12], y[13] + 1], weight[[12, 13]]), 1),
        ((X[[12, 13, 14]], y[[12, 13, 14]], [0.0, weight[13], weight[14] + 1]), 2),
        ((X[[12, 13]] + [[0, 0], [0, 1e-9]], y[[12, 13]], weight[[12, 13]]), 1),
    ):
        with pytest.raises(NotLearnedError, match=rf"first of them is row {number}\b.*Nothing was"):
            window.forget(A, b, w)
        assert window.digest() == before
        assert window._rows is rows
    with pytest.raises(NotFittedError, match="anything to forget"):
        SlidingWindow(estimator, 3).forget(X, y)


def test_sparse_and_dense_rows_are_the_same_rows():
    X, y, _ = stream(20)
    X[np.abs(X) < 1] = 0.0
    thin = sparse.csr_matrix(X)
    untidy = sparse.csr_matrix((np.r_[X[3], 0.0], [0, 1, 1], [0, 3]), shape=(1, 2))
    for model, first, then in ((LSSVC(), thin, X), (LSSVC(), X, thin), (PathSVC(), thin, X)):
        window = SlidingWindow(model, 20).fit(first, y).forget(then[4:6], y[4:6])
        window.forget(untidy, y[3:4]).partial_fit(then[:2], y[:2])
        kept = [2, *range(6, 20), 0, 1]
        assert window.update(forget=(then[:2], y[:2])).n_samples_ == 17
        kept = [*range(2, 3), *range(6, 20), 0, 1]
        assert window.digest() == fresh(model, X[kept], y[kept]).digest()


@every_estimator
def test_a_window_may_become_empty_and_go_on(estimator, tmp_path):
    X, y, _ = stream(30)
    window = SlidingWindow(estimator, 20).fit(X[:9], y[:9]).forget(X[:9], y[:9])
    assert window.n_samples_ == 0
    with pytest.raises(NotFittedError):
        window.predict(X)
    window.save(tmp_path / "w")
    for model in (window, traceless.load(tmp_path / "w")):
        model.partial_fit(X, y)
        assert model.digest() == fresh(estimator, X[10:], y[10:]).digest()


def test_labels_of_another_type_may_come_once_all_are_gone():
    X, y, _ = stream(20)
    window = SlidingWindow(PathSVC(gamma=0.5), 20).fit(X, y)
    with pytest.raises(MismatchError, match="of one type"):
        window.partial_fit(X[:3], ["a", "b", "a"])
    assert window.n_samples_ == 20
    window.forget(X, y).partial_fit(X[:3], ["a", "b", "a"])
    assert window.forget(X[:1], ["a"]).classes_.tolist() == ["a", "b"]


def test_true_is_not_the_label_1():
    X, y = stream(20)[0], np.arange(20) % 2
    window = SlidingWindow(LSSVC(), 20).fit(X, y)
    with pytest.raises(NotLearnedError):
        window.forget(X[1:2], [True])
    assert window.forget(X[1:2], [1.0]).n_samples_ == 19


def test_large_labels_keep_their_last_bit():
    big = 2**60 + 1
    X = np.arange(4.0)[:, None]
    window = SlidingWindow(LSSVC(), 9).fit(X[:2], np.array([big, -big]))
    window.partial_fit(X[2:], np.array([big, big], dtype=np.uint64))
    assert window.classes_.tolist() == [-big, big]
    window.forget(X[:2], [big, -big])
    assert window.digest() == LSSVC().fit(X[2:], [big, big]).digest()


def test_an_empty_side_changes_nothing():
    X, y, _ = stream(20)
    none = X[:0], y[:0]
    window = SlidingWindow(LSSVC(), 12)
    with pytest.raises(ValueError, match="0 sample"):
        window.update(add=none)
    with pytest.raises(NotFittedError):
        window.update(forget=none)
    with pytest.raises(ValueError, match="got neither"):
        window.update()
    window.update(add=(X[:9], y[:9]), forget=none)
    before = window.digest()
    for nothing in (none, ([], []), (sparse.csr_matrix((0, 2)), [])):
        assert window.update(add=nothing, forget=nothing).digest() == before
        assert window.partial_fit(*nothing).forget(*nothing).digest() == before
    window.update(add=(X[9:15], y[9:15]), forget=none).update(add=none, forget=(X[5:6], y[5:6]))
    assert_holds(window, tuple(np.delete(a[3:15], 2, axis=0) for a in (X, y, np.ones(20))))
    with pytest.raises(ValueError, match="tuple"):
        window.update(add=X)


def test_the_model_cannot_be_changed_behind_the_windows_back():
    X, y, _ = stream(40)
    for estimator in (LSSVC(), LSSVC(solver="woodbury"), PathSVC(gamma=0.5)):
        window = SlidingWindow(estimator, 30).fit(X[:30], y[:30])
        before = window.digest()
        for change in ("forget", "partial_fit", "fit"):
            with pytest.raises(RuntimeError, match="window's own partial_fit, forget"):
                getattr(window.estimator_, change)(X[:1], y[:1])
        assert window.digest() == window.estimator_.digest() == before
        own = copy.copy(window.estimator_).forget(X[:1], y[:1])
        assert own.n_samples_ == 29
        assert window.digest() == before
        window.partial_fit(X[30:], y[30:])  # and the stream goes on
        assert window.digest() == fresh(estimator, X[10:], y[10:]).digest()
        assert pickle.loads(pickle.dumps(window.estimator_)).forget(X[10:11], y[10:11])


def test_parameters_of_the_model_may_be_changed():
    X, y, _ = stream(40)
    for estimator, parameter in ((LSSVC(), {"rho": 9.0}), (PathSVC(gamma=0.5), {"C": 9.0})):
        window = SlidingWindow(estimator, 30).fit(X[:30], y[:30])
        window.estimator_.set_params(**parameter)
        changed = type(estimator)(**(estimator.get_params() | parameter))
        expected = changed.fit(X[:30], y[:30]).decision_function(X)
        assert np.array_equal(window.decision_function(X), expected)
        window.partial_fit(X[30:], y[30:])
        expected = changed.fit(X[10:], y[10:]).decision_function(X)
        np.testing.assert_allclose(window.decision_function(X), expected, atol=1e-9)


class Recent(ClassifierMixin, BaseEstimator):
    """An estimator from elsewhere, which changes in place: the label of the nearest row."""

    fails = False

    def fit(self, X, y):
        self.rows_ = [(tuple(x), label) for x, label in zip(X.tolist(), y.tolist(), strict=True)]
        self.classes_ = np.unique(y)
        return self

    def update(self, add=None, forget=None):
        for x, label in zip(*add, strict=True) if add else ():
            self.rows_.append((tuple(x.tolist()), label.item()))
        for x, label in zip(*forget, strict=True) if forget else ():
            if self.fails:
                raise OSError("in the middle")
            self.rows_.remove((tuple(x.tolist()), label.item()))
        return self

    def predict(self, X):
        return np.array([min(self.rows_, key=lambda r: np.abs(x - r[0]).sum())[1] for x in X])

    @property
    def n_samples_(self):
        return len(self.rows_)


def test_an_estimator_from_elsewhere():
    X, y, _ = stream(30)
    window = SlidingWindow(Recent(), 10).fit(X[:10], y[:10]).partial_fit(X[10:20], y[10:20])
    assert window.forget(X[12:14], y[12:14]).estimator_.n_samples_ == 8
    rows = list(window.estimator_.rows_)
    window.estimator_.fails = True
    with pytest.raises(OSError, match="in the middle"):
        window.partial_fit(X[20:], y[20:])
    assert window.estimator_.rows_ == rows
    with pytest.raises(TypeError, match="can forget"):
        SlidingWindow(SlidingWindow(Recent())).fit(X, y)


# --- memory, copies, threads -------------------------------------------------------------------


def test_rows_that_have_left_are_not_kept_in_memory():
    X, y, _ = stream(40)
    window = SlidingWindow(LSSVC(), 10).fit(X, y)
    for _ in range(3):
        for part in vars(window._rows).values():
            assert getattr(part, "base", None) is None or len(part.base) <= 10
        window.partial_fit(X[:3], y[:3])
    window.forget(X[:2], y[:2])
    assert all(len(part) == 8 for part in vars(window._rows).values() if np.ndim(part))
    assert all(getattr(part, "base", None) is None for part in vars(window._rows).values())


def test_arguments_are_in_the_order_of_the_estimators():
    X, y, weight = stream(20)
    window = SlidingWindow(LSSVC(), 20).partial_fit(X, y, [0, 1, 2], weight)
    assert window.digest() == LSSVC().partial_fit(X, y, [0, 1, 2], weight).digest()
    with pytest.raises(ValueError, match="give them by name"):
        SlidingWindow(LSSVR(), 20).partial_fit(X, y, weight)
    for wrong in (np.ones(1), np.ones((20, 1)), np.ones(19)):
        with pytest.raises(ValueError, match="sample_weight"):
            window.partial_fit(X, y, sample_weight=wrong)
    assert window.partial_fit(X, y, sample_weight=2.0).n_samples_ == 20


def test_a_smaller_size_is_reached_whatever_comes():
    X, y, _ = stream(40)
    for arrive in (
        lambda window: window.partial_fit(X[:2], y[:2], sample_weight=[0.0, 0.0]),
        lambda window: window.partial_fit(X[:0], y[:0]),
        lambda window: window.forget(X[20:21], y[20:21]),
    ):
        window = SlidingWindow(LSSVC(), 30).fit(X, y).set_params(size=12)
        arrive(window)
        assert_holds(window, (X[28:], y[28:], np.ones(12)))
        assert window.digest() == LSSVC().fit(X[28:], y[28:]).digest()
        assert window.partial_fit(X[:1], y[:1]).n_samples_ == 12


def test_sealing():
    X, y, _ = stream(60)
    window = SlidingWindow(LSSVC(RandomFourier(20), solver="woodbury"), 30).fit(X[:30], y[:30])
    for i in range(30, 60):
        window.partial_fit(X[i : i + 1], y[i : i + 1])
    exact = LSSVC(RandomFourier(20)).fit(X[30:], y[30:])
    assert np.array_equal(window.seal().decision_function(X), exact.decision_function(X))
    assert not hasattr(SlidingWindow(PathSVC()), "seal")
