"""PathSVR and PathOneClass as estimators: scikit-learn, files, windows, folds, stores."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVR, OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

from traceless import PathOneClass, PathSVR, SlidingWindow, Store
from traceless.store import verify_receipt

LINEAR = [PathSVR(kernel="linear", epsilon=0.0), PathOneClass(nu=0.5, kernel="linear")]


@parametrize_with_checks(
    [
        PathSVR(),
        PathSVR(kernel="linear"),
        PathOneClass(),
        PathOneClass(kernel="linear"),
        SlidingWindow(PathOneClass(), size=1000),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(90, 2)) + 2.0
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=90)


def asked(model, X):
    return getattr(model, "decision_function", model.predict)(X)


def test_precomputed_kernels(rows):
    X, y = rows
    K = rbf_kernel(X, gamma=0.5)
    svr = PathSVR(kernel="precomputed").fit(K[:60, :60], y[:60]).partial_fit(K[60:], y[60:])
    np.testing.assert_allclose(svr.predict(K), PathSVR(gamma=0.5).fit(X, y).predict(X), atol=1e-9)
    one = PathOneClass(kernel="precomputed").fit(K).forget(ids=[0, 4])
    kept = np.delete(np.arange(90), [0, 4])
    expected = PathOneClass(gamma=0.5).fit(X[kept]).decision_function(X)
    np.testing.assert_allclose(one.decision_function(K[:, kept]), expected, atol=1e-9)


def test_attributes_are_those_of_scikit_learn(rows):
    X, y = rows
    for ours, theirs in (
        (PathSVR(kernel="linear"), SVR(kernel="linear", tol=1e-10)),
        (PathOneClass(nu=0.32, kernel="linear"), OneClassSVM(nu=0.32, kernel="linear", tol=1e-10)),
    ):
        ours.fit(X, y)
        theirs.fit(X, y)
        for name in (
            "coef_",
            "dual_coef_",
            "intercept_",
            "support_",
            "support_vectors_",
            "n_support_",
        ):
            a, b = getattr(ours, name), getattr(theirs, name)
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, atol=1e-4)


@pytest.mark.parametrize("model", LINEAR, ids=repr)
def test_sparse_rows_have_the_weights_of_dense_ones(model, rows):
    X, y = np.where(rows[0] > 2.0, rows[0], 0.0), rows[1]
    fitted, again = clone(model).fit(X, y), clone(model).fit(csr_matrix(X), y)
    assert (fitted.coef_ == again.coef_).all()
    np.testing.assert_allclose(
        X @ fitted.coef_[0] + fitted.intercept_, asked(again, csr_matrix(X)), atol=1e-12
    )
    with pytest.raises(ValueError, match="read-only"):
        fitted.coef_[0, 0] = 1.0


def test_parameters_and_rows_that_are_refused(rows):
    X, y = rows
    for model in (
        PathSVR(epsilon=-1.0),
        PathSVR(C=0.0),
        PathOneClass(nu=0.0),
        PathOneClass(nu=1.1),
    ):
        with pytest.raises(ValueError, match="must be a"):
            model.fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        PathSVR().fit(X, np.where(y > 0, np.nan, y))
    with pytest.raises(ValueError, match="tuple"):
        PathSVR().fit(X, y).update(add=(X,))


@pytest.mark.filterwarnings("ignore::traceless.RevealingWarning")
def test_a_store_of_one_class_needs_no_labels(rows, tmp_path):
    X, model = rows[0], PathOneClass(nu=0.2, gamma=0.5)
    store = Store.new(tmp_path / "store", model)
    store.learn(X[:60])
    store.learn([(X[60:], np.zeros(30, int))])  # the same as none
    receipt = store.forget(X[50:70], ids=None)
    kept = np.delete(X, np.s_[50:70], axis=0)
    assert store.model().digest() == clone(model).fit(kept).digest()
    assert store.verify(kept).ok
    assert verify_receipt(receipt, kept).ok
    assert not store.verify(X).ok
    store.learn(X[50:55])
    store.undo(X[50:55])
    other = Store.new(tmp_path / "other", PathSVR())
    with pytest.raises(ValueError, match="Rows need labels or targets"):
        other.learn(X)
