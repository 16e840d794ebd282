"""Cross-validation of PathSVC by forgetting: scikit-learn's functions are the oracle."""

import tracemalloc

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.base import clone
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from traceless import NotLearnedError, PathOneClass, PathSVC, PathSVR
from traceless.model_selection import (
    cross_val_predict,
    cross_val_score,
    cross_validate,
    influence,
    leave_one_out,
)

CLOSE = {"rtol": 1e-8, "atol": 1e-8}
MODELS = [
    PathSVC(C=2.0, gamma=0.4),
    PathSVC(kernel="linear", class_weight="balanced"),
    PathSVC(gamma="scale", decision_function_shape="ovo"),
    PathSVC(kernel="poly", degree=2, coef0=1.0, strategy="ovr"),
]
OTHERS = [
    PathSVR(C=3.0, gamma=0.5),
    PathSVR(kernel="linear", epsilon=0.0),
    PathOneClass(nu=0.2, gamma=0.5),
]
SPLITS = [
    3,
    KFold(7, shuffle=True, random_state=0),
    RepeatedKFold(n_splits=4, n_repeats=2, random_state=0),
    ShuffleSplit(4, test_size=0.7, random_state=0),
    TimeSeriesSplit(4),
    LeaveOneOut(),
    [(np.r_[0:30, 0:30], np.arange(30, 60)), (np.arange(20, 60), np.arange(20))],
]


@pytest.fixture(scope="module", params=[2, 3], ids=["two", "three"])
def data(request):
    rng = np.random.default_rng(3)
    y = rng.integers(request.param, size=60)
    return rng.normal(size=(60, 2)) + np.array([[0, 0], [1, 0.5], [0, 1.5]])[y], y


@pytest.mark.parametrize("model", MODELS[::2], ids=repr)
@pytest.mark.parametrize("cv", SPLITS, ids=lambda cv: type(cv).__name__)
def test_scores(model, cv, data):
    X, y = data
    ours = cross_val_score(model, X, y, cv=cv)
    assert np.array_equal(ours, model_selection.cross_val_score(model, X, y, cv=cv))
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize("model", [*MODELS, *OTHERS], ids=repr)
@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_predictions(model, method, data):
    X, y = data
    y = None if isinstance(model, PathOneClass) else y
    for cv in (KFold(5, shuffle=True, random_state=1), LeaveOneOut()):
        if hasattr(model, method):
            ours = cross_val_predict(model, X, y, cv=cv, method=method)
            theirs = model_selection.cross_val_predict(model, X, y, cv=cv, method=method)
            np.testing.assert_allclose(ours, theirs, **CLOSE)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_models_of_their_own_to_the_bit(model, data, rng):
    X, y = data
    options = {"cv": 4, "return_estimator": True, "return_train_score": True}
    options |= {"params": {"sample_weight": rng.choice([0.0, 1.0, 2.0], size=60)}}
    ours = cross_validate(model, X, y, **options)
    theirs = model_selection.cross_validate(model, X, y, **options)
    for name in ("test_score", "train_score"):
        assert np.array_equal(ours[name], theirs[name])
    for a, b in zip(ours["estimator"], theirs["estimator"], strict=True):
        assert a.ambiguous_ or a.digest() == b.digest()
        a.partial_fit(X[:3], y[:3])  # no other model knows
    other = ours["estimator"]
    assert len({id(m._model) for m in other}) == 4


@pytest.mark.parametrize("model", [*MODELS, *OTHERS], ids=repr)
def test_leave_one_out(model, data, rng):
    X, y = data
    weight = rng.choice([0.0, 0.5, 1.0], size=60)
    for w in (None, weight):
        ours = leave_one_out(model, X, y, w)
        for i in range(0, 60, 5):
            rest = np.arange(60) != i
            fresh = clone(model).fit(X[rest], y[rest], None if w is None else w[rest])
            asked = getattr(fresh, "decision_function", fresh.predict)
            np.testing.assert_allclose(ours[i], asked(X[[i]])[0], **CLOSE)


def test_rows_that_are_no_support_vectors_take_no_path(data, monkeypatch):
    X, y = data
    model = PathSVC(C=10.0, gamma=0.5)
    whole = PathSVC(C=10.0, gamma=0.5).fit(X, y)
    assert not whole.ambiguous_
    calls = []
    without = PathSVC._without
    monkeypatch.setattr(
        PathSVC, "_without", lambda self, ids: (calls.append(ids), without(self, ids))[1]
    )
    leave_one_out(model, X, y)
    assert len(calls) == len(whole.support_) < 60
    others = np.setdiff1d(whole.ids_, whole.support_)
    ahead = without(whole, others)
    np.testing.assert_allclose(ahead.decision_function(X), whole.decision_function(X), **CLOSE)


def test_without_leaves_the_model_as_it_is(data):
    X, y = data
    model = PathSVC(gamma=0.5).fit(X, y)
    before = model.digest()
    ahead = model._without(np.arange(20))
    fresh = PathSVC(gamma=0.5).fit(X[20:], y[20:])
    np.testing.assert_allclose(ahead.decision_function(X), fresh.decision_function(X), **CLOSE)
    assert np.array_equal(ahead.predict(X), fresh.predict(X))
    assert ahead.n_samples_ == 40
    with pytest.raises(NotLearnedError):
        model._without([99])
    assert model.digest() == before
    assert model.n_samples_ == 60


@pytest.mark.parametrize("model", [PathSVC(), PathSVC(kernel="linear"), PathSVR(), PathOneClass()])
def test_a_row_is_left_out_without_a_copy_of_all_others(model, rng):
    X = rng.normal(size=(60, 30_000))
    whole = clone(model).fit(X, np.arange(60) % 2)
    whole._decisive_ids()
    whole._without(np.array([3])).predict(X[:1])
    gone = np.array([whole.ids_[whole.support_[0]]])
    tracemalloc.start()
    ahead = whole._without(gone)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 4
    assert ahead.n_samples_ == 59


@pytest.mark.parametrize("model", [PathSVC(gamma=0.5), PathSVC(gamma="scale"), PathSVR()])
def test_influence_fits_all_rows_once(model, data, monkeypatch):
    X, y = data
    sizes = []
    fit = type(model).fit
    monkeypatch.setattr(
        type(model), "fit", lambda self, X, *rest: (sizes.append(len(X)), fit(self, X, *rest))[1]
    )
    influence(model, X, y)
    assert sizes.count(60) == 1


def test_a_class_that_a_fold_takes_away():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.repeat([0, 1, 2, 3], [12, 11, 6, 1])
    model = PathSVC(gamma=0.5)
    with pytest.warns(RuntimeWarning, match="3 of 4 classes"):
        values = leave_one_out(model, X, y)
    assert values.shape == (30, 4)
    assert values[-1, 3] == np.finfo(float).min
    kept = np.r_[0:23, 29]  # two classes and a single row of a third
    with pytest.raises(ValueError, match="too few for"):
        leave_one_out(model, X[kept], y[kept])


def test_what_cannot_be():
    X, y = np.eye(6), [0, 1] * 3
    with pytest.raises(ValueError, match="has no closed form"):
        cross_val_score(PathSVC(), X, y, cv=3, path="hat")
    with pytest.raises(ValueError, match="of the same name in sklearn"):
        cross_val_score(PathSVC(kernel="precomputed"), X, y, cv=3)
    with pytest.raises(TypeError, match="sample_weight only"):
        cross_val_score(PathSVC(), X, y, cv=3, params={"classes": [0, 1]})


@pytest.mark.parametrize("model", [PathSVC(C=2.0, gamma=0.4), PathSVC(strategy="ovr", gamma=0.4)])
def test_influence_finds_wrong_labels(data, model):
    X, y = data
    X = X + 4.0 * np.array([[0, 0], [1, 0.5], [0, 1.5]])[y]  # far apart
    y = y.copy()
    y[[3, 17]] = (y[[3, 17]] + 1) % (y.max() + 1)
    found = influence(model, X, y)
    assert sorted(found.suspicious(2).tolist()) == [3, 17]
    assert (found.margin[[3, 17]] < 0.0).all()
    left = clone(model).fit(np.delete(X, 3, axis=0), np.delete(y, 3))
    np.testing.assert_allclose(found.held_out[3], left.decision_function(X[[3]])[0], atol=1e-8)
    fitted = clone(model).fit(X, y).decision_function(X)
    np.testing.assert_allclose(found.held_out - found.change, fitted, atol=1e-12)


def test_influence_of_regressors_and_what_has_none(rng):
    X = rng.normal(size=(40, 2))
    y = X[:, 0].copy()
    y[7] += 3.0
    found = influence(PathSVR(C=1.0, gamma=0.5), X, y)
    assert found.suspicious(1).tolist() == [7]
    with pytest.raises(TypeError, match="has none"):
        influence(PathOneClass(), X, y)
    three = rng.integers(4, size=40)
    with pytest.raises(ValueError, match="set it to 'ovr'"):
        influence(PathSVC(decision_function_shape="ovo"), X, three)
