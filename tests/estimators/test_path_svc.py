"""PathSVC: scikit-learn's answers, any history, all or nothing."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from traceless import MismatchError, NotLearnedError, PathSVC

KERNELS = [
    {"kernel": "rbf", "gamma": 0.2},
    {"kernel": "linear"},
    {"kernel": "poly", "gamma": 0.1, "coef0": 1.0, "degree": 2},
]


@parametrize_with_checks(
    [
        PathSVC(),
        PathSVC(kernel="linear"),
        PathSVC(strategy="ovr"),
        PathSVC(class_weight="balanced"),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# rows around 100 make cubic kernel values of 1e12, of which rounding leaves 1e-2: that is warned of
@pytest.mark.filterwarnings("ignore:The solution has a KKT residual")
@parametrize_with_checks([PathSVC(kernel="poly", strategy="ovr")])
def test_scikit_learns_checks_with_values_that_are_not_scaled(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return StandardScaler().fit_transform(X)[order], y[order]


@pytest.fixture(scope="module")
def overlapping():
    """Three classes, of which none is separable."""
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=150)
    return rng.normal(size=(150, 2)) + np.array([[0, 0], [1, 0], [0, 1.2]])[y], y


def promise(model):
    """What KKT residual rounding may leave."""
    scale = max(float(np.abs(model.dual_coef_).sum()), 1.0)
    return max(1e-9, 10 * np.finfo(float).eps * scale * float((model.support_vectors_**2).max()))


def refitted(model, seed=0):
    """The same rows learned at once, in another order."""
    rows = model._model.rows
    order = np.random.default_rng(seed).permutation(len(rows))
    return clone(model).set_params(gamma=model.gamma_).fit(*rows.batch(order))


# --- scikit-learn's answers ----------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k["kernel"])
@pytest.mark.parametrize("data", ["wine", "overlapping"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_answers_of_svc(kernel, data, n_classes, request):
    X, y = request.getfixturevalue(data)
    X, y = X[y < n_classes], y[y < n_classes]
    ours = PathSVC(C=2.0, **kernel).fit(X, y)
    theirs = SVC(C=2.0, tol=1e-10, **kernel).fit(X, y)
    assert ours.kkt_residual_ <= promise(ours)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    for shape in ("ovr", "ovo"):
        ours.set_params(decision_function_shape=shape)
        theirs.set_params(decision_function_shape=shape)
        np.testing.assert_allclose(
            ours.decision_function(X), theirs.decision_function(X), atol=1e-4
        )
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    if kernel["kernel"] == "rbf":  # else α is not unique, and rows at α = 0 may or may not be in
        assert np.array_equal(ours.support_, theirs.support_)
        assert np.array_equal(ours.n_support_, theirs.n_support_)
        np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
        np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-3)


@pytest.mark.parametrize("class_weight", [None, {0: 3.0, 2: 0.25}, "balanced"])
def test_weights_of_classes_and_rows(class_weight, overlapping, rng):
    X, y = overlapping
    weight = rng.choice([0.5, 1.0, 3.0], size=len(y)) if class_weight != "balanced" else None
    ours = PathSVC(C=2.0, gamma=0.4, class_weight=class_weight).fit(X, y, weight)
    theirs = SVC(C=2.0, gamma=0.4, class_weight=class_weight, tol=1e-10).fit(X, y, weight)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


def test_gamma_scale_and_auto(wine):
    X, y = wine
    for gamma in ("scale", "auto"):
        ours, theirs = PathSVC(gamma=gamma).fit(3 * X, y), SVC(gamma=gamma).fit(3 * X, y)
        assert ours.gamma_ == pytest.approx(theirs._gamma, rel=1e-12)
    frozen = ours.gamma_
    assert ours.partial_fit(100 * X[:5], y[:5]).gamma_ == frozen
    assert PathSVC().fit(X, y).gamma_ == PathSVC().fit(X[::-1], y[::-1]).gamma_
    assert PathSVC().fit(np.ones((4, 2)), [0, 1, 0, 1]).gamma_ == 1.0


def test_one_against_the_rest_is_that_of_scikit_learn(overlapping):
    X, y = overlapping
    ours = PathSVC(C=3.0, gamma=0.5, strategy="ovr").fit(X, y)
    theirs = OneVsRestClassifier(SVC(C=3.0, gamma=0.5, tol=1e-10)).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert ours.dual_coef_.shape == (3, len(ours.support_))
    K = rbf_kernel(ours.support_vectors_, X, gamma=0.5)
    values = ours.dual_coef_ @ K + ours.intercept_[:, None]
    np.testing.assert_allclose(values.T, ours.decision_function(X), atol=1e-9)


def test_values_do_not_depend_on_the_batch(overlapping):
    X, y = overlapping
    model = PathSVC(C=3.0, gamma=0.5).fit(X, y)
    alone = np.vstack([model.decision_function(x[None]) for x in X])
    assert np.array_equal(alone, model.decision_function(X))


# --- any history ---------------------------------------------------------------------------


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["learn", "forget", "ids", "both", "C", "weights", "class"]),
        st.integers(0, 10**6),
    ),
    min_size=1,
    max_size=6,
)


def step(model, what, rng):
    """One random change of a model of up to four classes."""
    n = int(rng.integers(1, 12))
    y = rng.integers(4, size=n)
    X = np.round(rng.normal(size=(n, 2)) + y[:, None] % 2, 2)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=n)
    rows = model._model.rows
    gone = rng.choice(len(rows), size=min(n, len(rows)), replace=False)
    if what == "learn":
        model.partial_fit(X, y, sample_weight=weight)
    elif what == "forget":
        if len(gone):  # no rows are refused, as everywhere
            model.forget(*rows.batch(gone))
    elif what == "ids":
        model.forget(ids=rows.ids[gone])
    elif what == "both":
        model.update(add=(X, y, weight), forget=rows.batch(gone))
    elif what == "class":
        model.forget(ids=rows.ids[rows.y == y[0]])
    elif what == "C":
        model.set_params(C=float(rng.choice([0.3, 1.0, 20.0])))
    else:
        model.set_params(class_weight=[None, "balanced", {0: 2.0, 1: 0.5}][n % 3])
    assert model.n_breakpoints_ >= 0  # asked, so that other parameters are reached by themselves


@settings(max_examples=60)
@given(CALLS, st.sampled_from(["ovo", "ovr"]), st.sampled_from(KERNELS))
def test_any_history_ends_in_the_bits_of_a_fresh_fit(calls, strategy, kernel):
    rng = np.random.default_rng(5)
    y = rng.integers(3, size=40)
    X = np.round(rng.normal(size=(40, 2)) + y[:, None] % 2, 2)
    model = PathSVC(strategy=strategy, **kernel).fit(X, y)
    for what, seed in calls:
        step(model, what, np.random.default_rng(seed))
    if not model.n_samples_:
        with pytest.raises(NotFittedError):
            model.predict(X)
        return
    fresh = refitted(model)
    assert model.n_samples_ == fresh.n_samples_
    assert model.ids_.tolist() == sorted(set(model.ids_.tolist()))
    if len(model.classes_) > 1:
        assert model.kkt_residual_ <= promise(model)
    if not (model.ambiguous_ or fresh.ambiguous_):
        assert model.digest() == fresh.digest()
        assert np.array_equal(model.decision_function(X), fresh.decision_function(X))
    else:
        np.testing.assert_allclose(
            model.decision_function(X), fresh.decision_function(X), atol=1e-8
        )


def test_another_bound_is_reached_along_the_path_and_takes_effect_at_once(overlapping):
    X, y = overlapping
    model = PathSVC(C=1.0, gamma=0.5).fit(X, y)
    other = PathSVC(C=3.0, gamma=0.5).fit(X, y)
    assert model.set_params(C=3.0).digest() == other.digest()
    assert 0 < model.n_breakpoints_ < 300
    model.set_params(C=1.0)  # not refreshed by hand
    assert np.array_equal(
        model.decision_function(X), PathSVC(C=1.0, gamma=0.5).fit(X, y).decision_function(X)
    )
    model.set_params(kernel="linear", strategy="ovr")
    assert model.digest() == PathSVC(C=1.0, kernel="linear", strategy="ovr").fit(X, y).digest()


def test_classes_come_and_go(wine):
    X, y = wine
    names = np.array(["b", "a", "c"])[y]
    model = PathSVC(gamma=0.1).partial_fit(X[y == 0], names[y == 0])
    assert model.classes_.tolist() == ["b"]
    assert set(model.predict(X)) == {"b"}
    assert model.decision_function(X).tolist() == [1.0] * len(X)
    assert model.dual_coef_.shape == (1, 0)
    assert model.support_.size == 0
    model.partial_fit(X[y > 0], names[y > 0])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.digest() == PathSVC(gamma=0.1).fit(X, names).digest()
    model.forget(X[y == 1], names[y == 1])
    assert model.classes_.tolist() == ["b", "c"]
    assert model.digest() == PathSVC(gamma=0.1).fit(X[y != 1], names[y != 1]).digest()
    model.forget(X[y != 1], names[y != 1])
    assert model.n_samples_ == 0
    with pytest.raises(NotFittedError, match="holds no rows: all were forgotten"):
        model.predict(X)
    model.partial_fit(X, names)
    assert model.digest() == PathSVC(gamma=0.1).fit(X, names).digest()


def test_rows_of_weight_zero_are_no_rows(overlapping):
    X, y = overlapping
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 2.0)
    model = PathSVC(gamma=0.5).fit(X, y, weight)
    assert model.n_samples_ == 100
    assert (model.last_ids_[::3] == -1).all()
    assert sorted(model.last_ids_[weight > 0]) == list(range(100))
    used = weight > 0
    assert model.digest() == PathSVC(gamma=0.5).fit(X[used], y[used], weight[used]).digest()
    with pytest.raises(NotLearnedError):
        model.forget(X[1:2], y[1:2])  # held, but with weight 2
    assert model.forget(X, y, weight).n_samples_ == 0


def test_a_weight_of_two_is_the_same_model_as_two_rows(overlapping):
    X, y = overlapping
    once = PathSVC(gamma=0.5).fit(X, y, np.full(len(y), 2.0))
    twice = PathSVC(gamma=0.5).fit(np.vstack([X, X]), np.concatenate([y, y]))
    np.testing.assert_allclose(once.decision_function(X), twice.decision_function(X), atol=1e-9)
    assert once.digest() != twice.digest()  # the rows that can be forgotten are not the same


def test_classes_of_weight_zero(overlapping):
    X, y = overlapping
    model = PathSVC(gamma=0.5, class_weight={2: 0.0}).fit(X, y)
    assert not (model.predict(X) == 2).any()
    model.set_params(class_weight=None)
    assert model.digest() == PathSVC(gamma=0.5).fit(X, y).digest()


# --- ids -----------------------------------------------------------------------------------


def test_ids(overlapping):
    X, y = overlapping
    model = PathSVC(gamma=0.5).fit(X[:50], y[:50])
    assert model.ids_.tolist() == model.last_ids_.tolist() == list(range(50))
    ids = model.partial_fit(X[50:60], y[50:60]).last_ids_
    assert ids.tolist() == list(range(50, 60))
    model.forget(ids=ids[::2])
    assert model.set_params(C=2.0).last_ids_.tolist() == ids.tolist()
    model.set_params(C=1.0)
    assert model.partial_fit(X[:1], y[:1]).last_ids_.tolist() == [60]  # never used twice
    assert np.array_equal(model.support_vectors_, model._model.rows.X[model.support_])
    kept = np.r_[0:50, 51:60:2, 0]
    assert model.digest() == PathSVC(gamma=0.5).fit(X[kept], y[kept]).digest()


def test_of_equal_rows_the_oldest_goes_and_each_counts():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), [0, 0, 1, 1]
    model = PathSVC(gamma=1.0).fit(X, y)
    assert model.forget([[-0.0]], [0]).ids_.tolist() == [1, 2, 3]  # there is one zero
    with pytest.raises(NotLearnedError, match="1 of the 2 rows"):
        model.forget([[0.0], [0.0]], [0, 0])
    assert model.ids_.tolist() == [1, 2, 3]


# --- all or nothing ------------------------------------------------------------------------


def snapshot(model):
    digest = model.digest()  # first: the canonical solution is kept
    return pickle.dumps(model), digest


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda m, X, y: m.forget(X[:3] + 1, y[:3]), NotLearnedError, "3 of the 3 rows to forget"),
        (lambda m, X, y: m.forget(X[:2], 1 - y[:2]), NotLearnedError, "with this label"),
        (lambda m, X, y: m.forget(ids=[0, 999]), NotLearnedError, "the id 999 is not held"),
        (lambda m, X, y: m.forget(ids=[-1]), NotLearnedError, "the id -1"),
        (lambda m, X, y: m.forget(ids=[1, 1]), NotLearnedError, "given twice"),
        (lambda m, X, y: m.forget(ids=[0.5]), ValueError, "whole numbers"),
        (lambda m, X, y: m.forget(), ValueError, "rows .* or their ids"),
        (lambda m, X, y: m.forget(X[:1], y[:1], ids=[0]), ValueError, "not both"),
        (lambda m, X, y: m.update(), ValueError, "got neither"),
        (lambda m, X, y: m.update(add=X[:3]), ValueError, r"tuple \(X, y\)"),
        (lambda m, X, y: m.update(add=(X, y), forget=[999]), NotLearnedError, "999"),
        (lambda m, X, y: m.partial_fit(X, y / 2 + 0.1), ValueError, "label type"),
        (lambda m, X, y: m.partial_fit(X, y.astype(str)), MismatchError, "one type"),
        (lambda m, X, y: m.partial_fit(X, y, classes=[5]), ValueError, "not in classes"),
        (lambda m, X, y: m.partial_fit(X, y, sample_weight=[1.0]), ValueError, "shape"),
    ],
)
def test_what_is_refused_changes_nothing(call, error, sentence, overlapping):
    X, y = overlapping
    model = PathSVC(gamma=0.5).fit(X, y)
    before = snapshot(model)
    with pytest.raises(error, match=sentence):
        call(model, X, y)
    assert snapshot(model) == before


def test_what_cannot_be_asked(overlapping):
    X, y = overlapping
    for parameters in ({"break_ties": True}, {"strategy": "ovr"}):
        model = PathSVC(decision_function_shape="ovo", **parameters).fit(X, y)
        with pytest.raises(ValueError, match="when decision_function_shape is 'ovo'"):
            model.predict(X)
    with pytest.raises(ValueError, match="Class weights must be finite and not negative"):
        PathSVC(class_weight={0: -1.0}).fit(X, y)
    with pytest.raises(NotFittedError, match="not learned anything to forget"):
        PathSVC().forget(X, y)
    with pytest.raises(AttributeError, match="has not learned anything yet"):
        _ = PathSVC().classes_


# --- kernels that are given ----------------------------------------------------------------


def test_labels_of_a_precomputed_kernel_of_large_and_negative_values(overlapping):
    X, y = overlapping[0], overlapping[1] > 0
    K = 1e4 * X @ X.T
    model = PathSVC(kernel="precomputed", C=1e-4).fit(K, y).forget(ids=[0])
    labels = model.predict(K[:, 1:])
    assert np.array_equal(labels, model.decision_function(K[:, 1:]) >= 0)
    assert np.array_equal(labels, PathSVC(kernel="linear").fit(X[1:], y[1:]).predict(X))


def test_points_join_and_leave_a_precomputed_kernel(overlapping):
    X, y = overlapping
    model = PathSVC(kernel="precomputed").fit(rbf_kernel(X[:60], gamma=0.5), y[:60])
    model.forget(ids=np.arange(0, 20, 2))
    held = np.r_[1:20:2, 20:60]
    for new, gone in ((np.arange(60, 90), 3), (np.arange(90, 150), 7)):
        K = rbf_kernel(X[new], X[np.r_[held, new]], gamma=0.5)
        model.update(add=(K, y[new]), forget=model.ids_[:gone])
        held = np.r_[held[gone:], new]
    fresh = PathSVC(gamma=0.5).fit(X[held], y[held])
    values = model.decision_function(rbf_kernel(X, X[held], gamma=0.5))
    np.testing.assert_allclose(values, fresh.decision_function(X), atol=1e-8)
    assert model.n_features_in_ == len(held) == model.n_samples_
    assert len(model._model.kernel.gram) == 137  # numbers are used again: 150 points came


def test_what_a_precomputed_kernel_cannot_do(overlapping):
    X, y = overlapping
    K = rbf_kernel(X, gamma=0.5)
    model = PathSVC(kernel="precomputed").fit(K, y)
    for call, sentence in [
        (lambda: model.forget(K[:2], y[:2]), "forget them by their ids"),
        (lambda: model.fit(K - 0.9, y), "not positive semidefinite"),
        (lambda: model.partial_fit(K[:2], y[:2]), r"shape \(2, 152\)"),
        (lambda: model.fit(K + np.triu(K), y), "symmetric"),
        (lambda: model.predict(K[:, :9]), "features"),
        (lambda: clone(model).fit(X, y), r"shape \(150, 150\)"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            call()
    assert np.array_equal(model.predict(K), clone(model).fit(K, y).predict(K))
    with pytest.raises(MismatchError, match="fit it anew"):
        model.set_params(kernel="rbf").digest()


def test_the_digest_of_a_kernel_matrix_is_one_of_its_values(overlapping):
    X, y = overlapping
    K, order = rbf_kernel(X, gamma=0.5), np.random.default_rng(1).permutation(len(y))
    K = 0.5 * (K + K.T)
    model = PathSVC(kernel="precomputed").fit(K[:100, :100], y[:100]).partial_fit(K[100:], y[100:])
    fresh = clone(model).fit(K[np.ix_(order, order)], y[order])
    assert model.digest() == fresh.digest()
    assert model.forget(ids=[3]).digest() != fresh.digest()
    at = np.flatnonzero(order == 3)
    assert model.digest() == fresh.forget(ids=at).digest()
    before = model.digest()
    assert model.set_params(C=2.0).digest() != before
    K[5, 7] = K[7, 5] = K[5, 7] * 0.999
    assert clone(model).fit(K, y).forget(ids=[3]).digest() != model.digest()


SIGMOID = {"kernel": "sigmoid", "gamma": 1e-4, "coef0": 1e-3, "C": 1e3}


def test_a_sigmoid_where_it_is_a_kernel(wine):
    X, y = wine[0][:16], wine[1][:16]
    model = PathSVC(**SIGMOID).fit(X[:12], y[:12]).update(add=(X[12:], y[12:]), forget=[0, 1, 2, 3])
    fresh = PathSVC(**SIGMOID).fit(X[4:], y[4:])
    assert not model.ambiguous_
    assert model.digest() == fresh.digest()
    assert model.digest() != PathSVC(**SIGMOID | {"coef0": 2e-3}).fit(X[4:], y[4:]).digest()


def test_a_sigmoid_of_more_rows_than_columns_is_none_and_is_flagged(wine):
    X, y = wine
    model = PathSVC(**SIGMOID).fit(X[:150], y[:150])
    model.update(add=(X[150:], y[150:]), forget=(X[:30], y[:30]))
    assert model.ambiguous_
    assert model.kkt_residual_ <= 1e-9
    assert np.array_equal(model.predict(X), SVC(**SIGMOID, tol=1e-8).fit(X[30:], y[30:]).predict(X))


@pytest.mark.parametrize("cache_size", [1000.0, 0.1])
def test_kernels_are_refused_where_two_rows_show_that_they_are_none(overlapping, cache_size):
    for options in (
        {"kernel": "sigmoid", "gamma": 0.1, "coef0": -1.0},
        {"kernel": "poly", "gamma": 1.0, "coef0": -1.0},
        {"kernel": lambda A, B: np.abs(A[:, None, 0] - B[None, :, 0])},
    ):
        with pytest.raises(ValueError, match="not positive semidefinite"):
            PathSVC(**options, cache_size=cache_size).fit(*overlapping)


def one_bad_row(A, B):
    return np.where((A[:, None, 0] > 90) | (B[None, :, 0] > 90), 9.0, A @ B.T)


def test_a_row_that_was_refused_is_not_compared_with_later_ones(overlapping):
    X, y = overlapping
    model = PathSVC(kernel=one_bad_row).fit(X[:100], y[:100])
    bad = np.array([[0.0, 1.0], [99.0, 0.0]])
    for _ in range(2):
        with pytest.raises(ValueError, match="not positive semidefinite"):
            model.partial_fit(bad, [0, 1])
    model.partial_fit(X[100:101], y[100:101])
    assert model.digest() == PathSVC(kernel=one_bad_row).fit(X[:101], y[:101]).digest()


def not_seen_by_two_rows(A, B):
    """Rows of three kinds: no two of them show that this is no kernel."""
    values = np.array([[1.0, 0.9, 0.9], [0.9, 1.0, -0.9], [0.9, -0.9, 1.0]])
    first, second = (np.digitize(rows[:, 0], [0.0, 0.5]) for rows in (A, B))
    return values[first[:, None], second]


def test_kernels_that_more_than_two_rows_show_to_be_none_are_flagged(overlapping):
    X, y = overlapping
    model = PathSVC(kernel=not_seen_by_two_rows, C=0.1).fit(X, y)
    assert model.ambiguous_
    assert model._decisive_ids().tolist() == model.ids_.tolist()
    K = not_seen_by_two_rows(X, X)
    assert PathSVC(kernel="precomputed", C=0.1).fit(K, y).ambiguous_


def laplacian(A, B):
    return np.exp(-0.5 * np.abs(A[:, None] - B[None]).sum(axis=-1))


def test_callable(overlapping):
    X, y = overlapping
    X, y = X[:90], y[:90]
    model = PathSVC(kernel=laplacian).fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    model.forget(X[:5], y[:5])
    assert model.digest() == PathSVC(kernel=laplacian).fit(X[5:], y[5:]).digest()
    theirs = SVC(kernel=laplacian, tol=1e-10).fit(X[5:], y[5:])
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=1e-5)


# --- around it -----------------------------------------------------------------------------


def test_progress(overlapping, capsys, monkeypatch):
    X, y = overlapping
    monkeypatch.setattr("traceless.progress.progress.__defaults__", (0.0,))
    PathSVC(verbose=True).fit(X, y)
    assert "following paths" in capsys.readouterr().err
