"""``probability=True``: LIBSVM's numbers nearly, the same bits whatever the history, no trace."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, make_moons
from sklearn.svm import SVC

from traceless import PathSVC, SlidingWindow, load
from traceless.hinge.probabilities import held_out
from traceless.model_selection import cross_val_predict, leave_one_out

IRIS = load_iris(return_X_y=True)
KINDS = [{}, {"strategy": "ovr"}, {"kernel": "linear", "class_weight": "balanced"}]


def svc(**options):
    return PathSVC(C=2.0, gamma=0.4, probability=True, **options)


@pytest.fixture(scope="module")
def moons():
    return make_moons(160, noise=0.35, random_state=0)


def test_close_to_libsvm(moons):
    """Which fits its sigmoid to five random folds."""
    for X, y in (moons, IRIS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is deprecated there
            theirs = SVC(C=2.0, gamma=0.4, probability=True, random_state=0).fit(X, y)
            expected = theirs.predict_proba(X)
        found = svc().fit(X, y).predict_proba(X)
        assert np.abs(found - expected).max() < 0.06


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_held_out_values_are_those_of_models_without_the_row(moons, options):
    X, y = moons[0][:60], moons[1][:60]
    model = svc(**options).fit(X, y)
    (found,) = held_out(model._model).values()
    np.testing.assert_allclose(found, leave_one_out(svc(**options), X, y), atol=1e-8)
    for i in (0, 7, 20):
        rest = np.arange(60) != i
        fresh = svc(**options).fit(X[rest], y[rest])
        if options.get("kernel") != "linear":  # whose centre is that of all rows
            assert found[i] == fresh.decision_function(X[[i]])[0]


@settings(max_examples=6)
@given(st.data())
def test_any_history(data):
    X, y = IRIS[0][::3], IRIS[1][::3]
    options = data.draw(st.sampled_from(KINDS))
    order = np.array(data.draw(st.permutations(range(50))))
    cut = data.draw(st.integers(5, 45))
    model = svc(**options).fit(X[order[:cut]], y[order[:cut]])
    if data.draw(st.booleans()):
        model.predict_proba(X)  # and what it has computed is no part of what follows
    gone = data.draw(st.sets(st.integers(0, 49), min_size=1, max_size=6))
    model.partial_fit(X[order[cut:]], y[order[cut:]])
    model.forget(X[sorted(gone)], y[sorted(gone)])
    kept = np.delete(np.arange(50), sorted(gone))
    fresh = svc(**options).fit(X[kept], y[kept])
    if not model.ambiguous_:
        assert model.predict_proba(X).tobytes() == fresh.predict_proba(X).tobytes()


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_probabilities(moons, options):
    for X, y in (moons, IRIS):
        model = svc(**options).fit(X, y)
        p = model.predict_proba(X)
        assert p.shape == (len(X), len(model.classes_))
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
        assert (p > 0.0).all()
        np.testing.assert_allclose(model.predict_log_proba(X), np.log(p), rtol=1e-12)
        assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).mean() > 0.9
        assert (model.predict_proba(X[3:5]) == p[3:5]).all()


def test_there_only_if_asked_for(moons):
    model = PathSVC(gamma=0.4).fit(*moons)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_log_proba'"):
        model.predict_log_proba(moons[0])
    before = model.digest()
    assert model.set_params(probability=True).predict_proba(moons[0]).shape == (160, 2)
    assert model.digest() == before  # nor does the file depend on it


def test_files_and_copies_compute_it_again(moons, tmp_path):
    X, y = moons
    model = svc(random_state=3).fit(X, y)
    before = model.save(tmp_path / "before")
    p = model.predict_proba(X)
    assert model.save(tmp_path / "after") == before
    for other in (load(tmp_path / "after"), pickle.loads(pickle.dumps(model))):
        assert "sigmoids" not in vars(other._model)
        assert (other.predict_proba(X) == p).all()
    assert "sigmoids" in vars(copy.copy(model)._model)


def test_windows(moons):
    X, y = moons
    window = SlidingWindow(svc(), size=60)
    for start in range(0, 160, 40):
        window.partial_fit(X[start : start + 40], y[start : start + 40])
    assert (window.predict_proba(X) == svc().fit(X[-60:], y[-60:]).predict_proba(X)).all()
    assert not hasattr(SlidingWindow(PathSVC()), "predict_proba")


def test_folds(moons):
    X, y = moons[0][:50], moons[1][:50]
    ours = cross_val_predict(svc(), X, y, cv=3, method="predict_proba")
    fresh = svc().fit(X[17:], y[17:]).predict_proba(X[:17])
    assert ours.shape == (50, 2)
    np.testing.assert_allclose(np.sort(ours[:3]), np.sort(fresh[:3]), atol=0.2)


def test_classes_of_one_row_and_one_class():
    X = np.array([[0.0], [1.0], [2.0], [5.0]])
    p = svc().fit(X, [0, 0, 0, 1]).predict_proba(X)
    assert np.isfinite(p).all()
    assert svc().fit(X, [0, 0, 1, 2]).predict_proba(X).shape == (4, 3)
    assert (svc().fit(X, [3, 3, 3, 3]).predict_proba(X) == np.ones((4, 1))).all()


def test_kernel_matrices(moons):
    X, y = moons[0][:60], moons[1][:60]
    K = X @ X.T
    given, own = svc(kernel="precomputed").fit(K, y), svc(kernel="linear").fit(X, y)
    np.testing.assert_allclose(given.predict_proba(K), own.predict_proba(X), atol=1e-6)


def test_parameters_without_effect(moons):
    X, y = moons
    plain = svc().fit(X, y)
    other = svc(shrinking=False, max_iter=1, random_state=5, cache_size=200).fit(X, y)
    assert other.digest() == plain.digest()
    assert (other.predict_proba(X) == plain.predict_proba(X)).all()
    svc(random_state=np.random.RandomState(0)).fit(X, y)
    for wrong in ({"max_iter": -2}, {"random_state": "a"}, {"shrinking": "no"}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            svc(**wrong).fit(X, y)
