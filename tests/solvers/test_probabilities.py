"""Probabilities from the sums, against what the rows themselves say."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_t
from sklearn.datasets import load_breast_cancer, make_classification
from threadpoolctl import threadpool_limits

from cases import PENALTIES
from traceless import LPSVM, LSSVC, Knowledge
from traceless.features import Linear, RandomFourier
from traceless.solvers import probabilities
from traceless.solvers.probabilities import NU, Discriminant, _agreeing, contrasts


def data(n_classes, n=150, seed=0):
    """Rows on the grid, classes of different sizes and spreads."""
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, size=n, p=np.arange(1, n_classes + 1) / sum(range(n_classes + 1)))
    X = rng.normal(size=(n, 6)) * (0.5 + y[:, None] / n_classes) + rng.normal(size=(9, 6))[y] + 3.0
    return np.round(X * 2**14) / 2**14, y


def from_rows(clf, X, y, weight=None, exact=False):
    """Means and covariances of left-out scores by the hat matrix of the rows themselves."""
    rho, classes = clf.rho, clf.classes_
    weight = np.ones(len(y)) if weight is None else weight
    all_weights = weight.copy()
    own = np.ones(len(classes))
    if clf.class_weight == "balanced":
        totals = np.array([weight[y == c].sum() for c in classes])
        own = totals.sum() / (len(classes) * totals)
        all_weights = weight * own[np.searchsorted(classes, y)]
    bias = clf.feature_map is None
    F = np.column_stack([X, np.ones(len(X))]) if bias else X
    D = np.full(F.shape[1], rho)
    if bias and clf.standardize is not False:
        mean = np.average(X, axis=0, weights=weight)
        D[:-1] *= np.average((X - mean) ** 2, axis=0, weights=weight)
    if clf.free_intercept and bias:
        D[-1] = 0.0
    P = np.linalg.inv(F.T @ (F * all_weights[:, None]) + np.diag(D))
    hat = (F @ P @ F.T) * all_weights
    indicators = (y[:, None] == classes) * 2.0 - 1.0
    indicators = indicators[:, 1:] if len(classes) == 2 else indicators
    z = contrasts(hat @ indicators)
    Y = contrasts(indicators)
    d, K = np.trace(hat), len(classes)
    rows = [y == c for c in classes]
    size = np.array([max(r.sum(), weight[r].sum()) for r in rows])
    totals = np.array([all_weights[r].sum() for r in rows])
    if exact:
        h = np.array([hat.diagonal()[r].sum() for r in rows]) / size
    else:
        middles = [np.average(F[r], axis=0, weights=all_weights[r]) for r in rows]
        between = totals * [m @ P @ m for m in middles]
        share = totals * (1 - 1 / size)
        h = (between + (d - between.sum()) * share / share.sum()) / size
    means, T, parts = [], 0.0, []
    for r, h_c in zip(rows, h, strict=True):
        mean = np.average(z[r], axis=0, weights=all_weights[r])
        means.append(Y[r][0] - (Y[r][0] - mean) / (1 - h_c))
        part = (z[r] - mean).T @ ((z[r] - mean) * all_weights[r][:, None])
        T, parts = T + part, [*parts, part / all_weights[r].sum() / (1 - h_c) ** 2]
    shares = totals / totals.sum()
    pooled = T / totals.sum() / (1 - shares @ h) ** 2 + size.sum() ** -1.5 * np.eye(z.shape[1])
    each = [(n * S + 10 * K * pooled) / (n + 10 * K) for n, S in zip(size, parts, strict=True)]
    return np.array(means), np.array(each if exact else [pooled]), shares


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"class_weight": "balanced"}, {"classwise": True}], ids=str
)
def test_the_numbers_are_those_of_the_rows(n_classes, penalty, weighted, options):
    """Class-wise knowledge has a covariance for each of many classes."""
    X, y = data(n_classes)
    weight = np.random.default_rng(1).choice([0.25, 1.0, 3.0], size=len(y)) if weighted else None
    clf = LSSVC(rho=0.5, **options, **penalty).fit(X, y, weight)
    found = clf._discriminant()
    exact = bool(options) and n_classes > 2
    means, covariances, priors = from_rows(clf, X, y, weight, exact)
    assert found.is_informative
    assert len(found.covariances) == (n_classes if exact else 1)
    assert np.allclose(found.means, means, rtol=0, atol=1e-5)
    assert np.allclose(found.covariances, covariances, rtol=1e-5, atol=1e-6)
    assert np.allclose(found.priors, priors)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("classwise", [False, True])
def test_models_without_an_intercept(n_classes, standardize, classwise):
    X, y = data(n_classes)
    clf = LSSVC(Linear(bias=False), standardize=standardize, classwise=classwise).fit(X, y)
    found = clf._discriminant()
    means, covariances, _ = from_rows(clf, X, y, exact=classwise and n_classes > 2)
    assert np.allclose(found.means, means, rtol=0, atol=1e-5)
    assert np.allclose(found.covariances, covariances, rtol=1e-5, atol=1e-6)


def test_class_wise_knowledge_changes_nothing_for_two_classes():
    X, y = data(2)
    apart, pooled = (LSSVC(classwise=kept).fit(X, y) for kept in (True, False))
    assert np.array_equal(apart.predict_proba(X), pooled.predict_proba(X))


def test_many_classes_share_a_covariance(monkeypatch):
    X, y = data(5)
    apart, pooled = (LSSVC(classwise=kept).fit(X, y)._discriminant() for kept in (True, False))
    monkeypatch.setattr(probabilities, "_MOST", 4)
    found = LSSVC(classwise=True).fit(X, y)._discriminant()
    assert np.array_equal(found.means, apart.means)
    assert np.allclose(found.covariances, pooled.covariances, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("classwise", [False, True])
@pytest.mark.parametrize("n_classes", [3, 6])
def test_the_formula_is_that_of_student(n_classes, classwise):
    X, y = data(n_classes)
    clf = LSSVC(classwise=classwise, decision="posterior").fit(X, y)
    found, T = clf._discriminant(), 3.0 * X[:60] - 5.0
    z = contrasts(clf.decision_function(T))
    shapes = np.broadcast_to(found.covariances, (n_classes, *found.covariances.shape[1:]))
    L = np.column_stack(
        [
            np.log(prior) + multivariate_t(mean, shape, df=NU).logpdf(z)
            for prior, mean, shape in zip(found.priors, found.means, shapes, strict=True)
        ]
    )
    expected = L - np.logaddexp.reduce(L, axis=1)[:, None]
    assert np.allclose(clf.predict_log_proba(T), expected, rtol=1e-9, atol=1e-10)
    assert np.allclose(clf.predict_proba(T), np.exp(expected), rtol=1e-9, atol=1e-10)


def test_of_two_classes_p_rises_with_the_score_and_is_student_between_the_extremes():
    found = Discriminant(np.array([[-0.8], [0.6]]), np.full((1, 1, 1), 0.2), np.full(2, 0.5), True)
    z = np.unique(np.concatenate([np.linspace(-2, 2, 4001), np.linspace(-1e6, 1e6, 41)]))
    p = found.probabilities(z[:, None])[:, 1]
    assert (np.diff(p) > 0).all()
    middle, _, _, reach = found.of_two
    odds = multivariate_t(0.6, 0.2, df=NU).logpdf(z) - multivariate_t(-0.8, 0.2, df=NU).logpdf(z)
    within = np.abs(z - middle) <= reach
    assert np.allclose(np.log(p / (1 - p))[within], odds[within], atol=2.0**-10)
    peak = z[np.abs(z) < 2][odds[np.abs(z) < 2].argmax()]
    assert abs(peak - (middle + reach)) <= 1e-3  # beyond, Student's odds would fall


def test_means_in_the_wrong_order_say_nothing():
    found = Discriminant(
        np.array([[0.3], [-0.3]]), np.full((1, 1, 1), 0.2), np.array([0.2, 0.8]), True
    )
    p = found.probabilities(np.linspace(-2, 2, 9)[:, None])[:, 1]
    assert np.allclose(p, 0.8, atol=1e-3)
    assert (np.diff(p) > 0).all()


def test_agreeing_probabilities_are_the_nearest_ones():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(5, 0.7), size=40)
    winners = rng.integers(5, size=40)
    q = _agreeing(p, winners)
    assert np.allclose(q.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    assert np.array_equal(q.argmax(axis=1), winners)
    right = p.argmax(axis=1) == winners
    assert right.any()
    assert np.array_equal(q[right], p[right])
    for one, w, found in zip(p, winners, q, strict=True):
        rules = [{"type": "eq", "fun": lambda v: v.sum() - 1.0}]
        rules += [{"type": "ineq", "fun": lambda v, c=c, w=w: v[w] - v[c]} for c in range(5)]
        loss = lambda v, one=one: -(one * np.log(v)).sum()  # noqa: E731
        best = minimize(
            loss, np.full(5, 0.2), bounds=[(1e-9, 1)] * 5, constraints=rules, method="SLSQP"
        )
        assert loss(found) <= best.fun + 1e-6


# --- the same bits ----------------------------------------------------------------------------


def wide():
    X, y = make_classification(
        600, 120, n_informative=30, n_classes=4, random_state=0, shift=5.0, scale=30.0
    )
    return X, y


@pytest.mark.parametrize(
    "parameters", [{}, {"classwise": True}, {"free_intercept": False}], ids=str
)
def test_threads_do_not_show(parameters):
    X, y = wide()
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            clf = LSSVC(RandomFourier(300, gamma=1e-5), **parameters).fit(X, y)
            found.append(clf.predict_log_proba(X))
    assert np.array_equal(*found)


def test_kernels_of_blas_do_not_show():
    code = """
import hashlib
from sklearn.datasets import make_classification
from traceless import LSSVC
from traceless.features import RandomFourier
X, y = make_classification(300, 120, n_informative=30, n_classes=4, random_state=0)
for rho in (1.0, 1e-3):
    p = LSSVC(RandomFourier(100, gamma=0.01), rho=rho).fit(X, y).predict_log_proba(X)
    print(hashlib.sha256(p.tobytes()).hexdigest())
"""
    found = set()
    for kernel in ("Prescott", "Haswell"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"OPENBLAS_CORETYPE": kernel},
        )
        found.add(run.stdout)
    assert len(found) == 1


@pytest.mark.parametrize("solver", ["cholesky", "woodbury"])
def test_histories_orders_and_batches_do_not_show(solver):
    X, y = wide()
    whole = LSSVC().fit(X, y)
    expected = whole.predict_proba(X)
    order = np.random.default_rng(0).permutation(len(X))
    other = LSSVC(solver=solver).fit(X[order[:400]], y[order[:400]])
    other.partial_fit(X[order[350:]], y[order[350:]]).forget(X[order[350:400]], y[order[350:400]])
    merged = LSSVC().merge(Knowledge.of(Linear(), X[:200], y[:200]))
    merged.merge(Knowledge.of(Linear(), X[200:], y[200:]))
    for clf in (other.seal(), merged):
        assert np.array_equal(clf.predict_proba(X), expected)
    rows = [whole.predict_proba(X[i : i + 1]) for i in range(50)]
    assert np.array_equal(np.concatenate(rows), expected[:50])
    assert np.array_equal(whole.predict_proba(X[order])[order.argsort()], expected)


def test_a_row_of_weight_two_counts_as_two():
    X, y = data(3)
    twice = np.concatenate([X, X[:40]]), np.concatenate([y, y[:40]])
    weight = np.where(np.arange(len(y)) < 40, 2.0, 1.0)
    assert np.array_equal(
        LSSVC().fit(X, y, weight).predict_proba(X), LSSVC().fit(*twice).predict_proba(X)
    )


def test_small_weights_are_rows_all_the_same():
    X, y = data(3)
    small = LSSVC(rho=2**-10).fit(X, y, np.full(len(y), 2**-10)).predict_proba(X)
    assert np.allclose(small, LSSVC().fit(X, y).predict_proba(X), atol=1e-5)


def test_columns_far_from_zero_and_their_units_do_not_matter():
    X, y = data(3)
    far = LSSVC().fit(X * 1024.0 + 1e6, y).predict_proba(X * 1024.0 + 1e6)
    assert np.allclose(far, LSSVC().fit(X, y).predict_proba(X), atol=1e-5)


def test_a_penalised_intercept_that_no_row_needs_is_like_a_free_one():
    X, y = load_breast_cancer(return_X_y=True)
    X = np.round((X - X.mean(axis=0)) / X.std(axis=0) * 2**14) / 2**14
    free = LSSVC(rho=2**-10, standardize=False).fit(X, y).predict_proba(X)
    assert np.allclose(LPSVM(C=2**10).fit(X, y).predict_proba(X), free, atol=1e-4)
