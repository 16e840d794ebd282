"""PathSVC and memory of others: arrays of the caller, mapped files, copies, pickles."""

import copy
import gc
import pickle
import types

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from traceless import PathSVC


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    y = rng.integers(3, size=120)
    return rng.normal(size=(120, 2)) + np.array([[0, 0], [1, 0], [0, 1.2]])[y], y


def given(X, y):
    return PathSVC(kernel="precomputed").fit(rbf_kernel(X[:100]), y[:100])


def changed(model, X, y):
    """Learn and forget; what is left is the rows 10 to 120."""
    return model.update(add=(rbf_kernel(X[100:], X), y[100:]), forget=model.ids_[:10])


def answers(model, X):
    return model.decision_function(rbf_kernel(X, X[10 : 10 + model.n_samples_])).tobytes()


# --- what others own -----------------------------------------------------------------------------


def test_what_is_handed_out_can_be_written_to(rows):
    X, y = rows
    for parameters in ({"gamma": 0.5}, {"kernel": "linear"}):
        model = PathSVC(**parameters).fit(X, y)
        before = model.digest(), model.decision_function(X).tobytes()
        for name in (
            "classes_",
            "ids_",
            "support_",
            "support_vectors_",
            "dual_coef_",
            "intercept_",
        ):
            getattr(model, name)[:] = 0
        assert "kernel" not in parameters or not model.coef_.flags.writeable  # as SVC's
        model.decision_function(X)[:] = 0
        assert (model.digest(), model.decision_function(X).tobytes()) == before


def test_a_given_kernel_matrix_is_copied(rows):
    X, y = rows
    K = rbf_kernel(X[:100])
    model = PathSVC(kernel="precomputed").fit(K, y[:100])
    K[:] = 0.0
    K = rbf_kernel(X[100:], X)
    changed(model, X, y)
    K[:] = 0.0
    assert answers(model, X) == answers(changed(given(X, y), X, y), X)


# --- copies and pickles --------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_a_pickle_has_no_kernel_matrix(kernel):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), np.arange(400) % 2
    model = PathSVC(kernel=kernel, gamma=0.5).fit(X if kernel == "rbf" else rbf_kernel(X), y)
    own = 0 if kernel == "rbf" else 8 * 400 * 401 // 2  # the triangle of what was given
    assert len(pickle.dumps(model)) < 400 * 200 + own


@pytest.mark.parametrize(
    "through",
    [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_of_a_given_matrix_go_their_own_ways(rows, through):
    X, y = rows
    model = given(X, y)
    expected = answers(changed(given(X, y), X, y), X)
    one, two = through(model), through(model)
    for each in (one, model, two):
        assert answers(changed(each, X, y), X) == expected


class _Squares:
    """A callable that is copied with the estimator, and not equal to its copy."""

    def __call__(self, A, B):
        return (A @ B.T) ** 2


def test_a_deep_copy_needs_no_new_solution(rows, monkeypatch):
    X, y = rows
    model = PathSVC(kernel=_Squares()).fit(X, y)
    other = copy.deepcopy(model)
    assert other.kernel is not model.kernel
    monkeypatch.setattr("traceless.hinge.model.HingeModel.solved", None)
    assert np.array_equal(other.dual_coef_, model.dual_coef_)
    other.forget(ids=[0])


def arrays_in(thing):
    """All arrays that can be reached from something."""
    seen, left, found = set(), [thing], []
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type | types.ModuleType | types.FunctionType):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            found.append(one)
            left.append(one.base)
        left += gc.get_referents(one)
    return found


def test_what_is_forgotten_is_nowhere_in_the_model(rows):
    X, y = rows
    X = X.copy()
    X[7] = 0.123456789, 9.87654321
    for parameters in ({"gamma": 0.5}, {"kernel": "linear"}, {"cache_size": 0.1}):
        model = PathSVC(**parameters).fit(X, y)
        assert any((array == 9.87654321).any() for array in arrays_in(model))
        model.forget(X[7:8], y[7:8])
        assert len(arrays_in(model)) > 10
        assert not any((array == 9.87654321).any() for array in arrays_in(model))
        assert X[7, 1].tobytes() not in pickle.dumps(model)


def test_the_first_change_of_a_loaded_model_computes_lines_and_not_the_matrix(rng):
    asked = []

    def kernel(A, B):
        asked.append(len(A) * len(B))
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=-1))

    n = 600
    X = rng.normal(size=(n, 2))
    y = np.sign(X[:, 0] + 0.3 * rng.normal(size=n))
    state = PathSVC(kernel=kernel).fit(X, y)._model.content()
    model = PathSVC(kernel=kernel).fit(X[:2], [-1.0, 1.0])
    model._model = type(model._model).restored(model._settings(), *state)
    asked.clear()
    model.update(add=(X[:1] + 0.01, y[:1]), forget=model.ids_[:1]).predict(X[:1])
    assert sum(asked) <= (len(model.support_) + 20) * n < n * n / 2
