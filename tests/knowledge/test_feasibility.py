from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from sklearn.datasets import load_iris

from cases import exact_gram, whole
from traceless import LSSVC, LSSVR, Knowledge, NotLearnedError
from traceless.arithmetic.integers import narrow
from traceless.features import Linear
from traceless.knowledge.feasibility import (
    can_be_semidefinite,
    check_sums,
    triangle_can_be_semidefinite,
)

PHI = Linear()
CODES = Linear(resolution=1.0, bias=False)


def least_eigenvalue_is_negative(G):
    """By Gauss elimination in fractions: whether some pivot of some minor is negative."""
    rows = [[Fraction(int(v)) for v in row] for row in G]
    while rows:
        if any(rows[k][k] < 0 for k in range(len(rows))):
            return True
        k = next((k for k in range(len(rows)) if rows[k][k]), None)
        if k is None:
            return any(any(row) for row in rows)
        pivot = rows.pop(k)
        d = pivot.pop(k)
        rows = [
            [v - row[k] * p / d for v, p in zip(row[:k] + row[k + 1 :], pivot, strict=True)]
            for row in rows
        ]
    return False


@st.composite
def integer_rows(draw, largest=2**53):
    """Duplicates, outliers, equal and dependent columns, fewer rows than columns."""
    n, m = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    bits = draw(st.integers(1, int(largest).bit_length() - 1))
    sizes = st.integers(-(2**bits), 2**bits) | st.integers(-3, 3)
    Z = whole(draw(npst.arrays(np.int64, (n, m), elements=sizes)))
    for _ in range(draw(st.integers(0, 3))):
        i, j = draw(st.integers(0, m - 1)), draw(st.integers(0, m - 1))
        kind = draw(st.sampled_from(["same", "sum", "constant", "outlier", "row"]))
        if kind == "same":
            Z[:, i] = Z[:, j]
        elif kind == "sum":
            Z[:, i] = Z[:, j] + Z[:, 0] if abs(Z).max() < 2**51 else Z[:, j]
        elif kind == "constant":
            Z[:, i] = 1
        elif kind == "outlier":
            Z[0, i] = largest
        else:
            Z[-1] = Z[0]
    return Z


@settings(max_examples=400)
@given(integer_rows(), st.integers(0, 60))
def test_what_rows_add_up_to_is_never_refused(Z, bits):
    weights = np.array([(k * 7919) % (1 << bits) + 1 for k in range(len(Z))], dtype=object)
    assert can_be_semidefinite(narrow(exact_gram(Z)))
    assert can_be_semidefinite(narrow(exact_gram(Z, weights)))


@settings(max_examples=400)
@given(integer_rows(2**20), integer_rows(2**20), st.integers(0, 5))
def test_a_refusal_is_proven(Z, others, i):
    m = min(Z.shape[1], others.shape[1])
    G = exact_gram(Z[:, :m]) - exact_gram(others[:1, :m])
    if not can_be_semidefinite(narrow(G)):
        assert least_eigenvalue_is_negative(G)
    near = Z[i % len(Z)].copy()
    near[0] += 1  # off by one step of the grid
    G = exact_gram(Z) - exact_gram(near[None])
    assert can_be_semidefinite(narrow(G)) == (not least_eigenvalue_is_negative(G))


@pytest.mark.parametrize("shape", [(30, 60), (200, 60), (40, 150), (300, 150), (150, 150)])
@pytest.mark.parametrize("kind", ["normal", "wide", "low rank", "scales", "one-hot", "weights"])
def test_larger_matrices_of_rows_are_not_refused(shape, kind, rng):
    n, m = shape
    F = rng.normal(size=shape) * 2**14
    weights = None
    if kind == "wide":
        F = F * 2**30
    elif kind == "low rank":
        F = np.rint(rng.normal(size=(n, 5)) * 2**6) @ np.rint(rng.normal(size=(5, m)) * 2**6)
    elif kind == "scales":
        F = F * 2.0 ** rng.integers(-14, 30, m)
    elif kind == "one-hot":
        F = np.hstack([np.eye(m - 1)[rng.integers(0, m - 1, n)], np.ones((n, 1))])
    elif kind == "weights":
        weights = 10 ** rng.uniform(-9, 9, n)
    y = rng.integers(0, 3, n)
    for classwise in (False, True):
        k = Knowledge.of(CODES, F, y, weights, classwise=classwise)
        assert k.check_possible() is k
        some = None if weights is None else weights[::2]
        rest = k - Knowledge.of(CODES, F[::2], y[::2], some, classwise=classwise)
        assert rest.check_possible() is rest


def test_a_row_off_by_one_step_beside_a_duplicate_is_seen(rng):
    X = 100 * rng.normal(size=(1, 4)).repeat(2, axis=0)
    k = Knowledge.of(PHI, X, [0, 0])
    for j in range(4):
        off = X[:1].copy()
        off[0, j] += 2**-14
        with pytest.raises(NotLearnedError):
            (k - Knowledge.of(PHI, off, [0])).check_possible()


def test_a_foreign_row_beside_an_outlier_is_seen(rng):
    X = rng.normal(size=(4, 20))
    X[0] *= 1e7
    k = Knowledge.of(PHI, X, [0, 1, 0, 1])
    for label in (0, 1):
        with pytest.raises(NotLearnedError):
            (k - Knowledge.of(PHI, X[1:2] + 2**-14, [label])).check_possible()


def test_fewer_rows_than_features_in_twofold_precision(rng):
    """What float64 alone would let pass: relative to the diagonal it is 1e-13."""
    X = rng.normal(size=(30, 60))
    X[:, 0] *= 1e5
    y = rng.integers(0, 2, 30)
    k = Knowledge.of(PHI, X, y)
    off = X[:1].copy()
    off[0, 0] += 2**-14
    with pytest.raises(NotLearnedError, match="negative eigenvalue"):
        (k - Knowledge.of(PHI, off, y[:1])).check_possible()
    assert (k - Knowledge.of(PHI, X[:1], y[:1])).check_possible().n_samples == 29


@pytest.mark.parametrize("classwise", [False, True])
@pytest.mark.parametrize("weight", [1.0, 0.1, 1e-50, 1e20])
def test_rows_without_weight(classwise, weight):
    """Once a ZeroDivisionError, when class weights were asked for."""
    k = Knowledge.of(PHI, [[1.0], [1.0], [2.0]], ["a", "a", "b"], weight, classwise=classwise)
    both = Knowledge.of(PHI, [[1.0]], ["a"], [2 * weight], classwise=classwise)
    with pytest.raises(NotLearnedError, match="class 'a': 1 rows that weigh 0"):
        (k - both).check_possible()
    model = LSSVC(class_weight="balanced").fit([[1.0], [1.0], [2.0]], ["a", "a", "b"])
    with pytest.raises(NotLearnedError, match="1 rows that weigh 0"):
        model.forget([[1.0]], ["a"], [2.0])
    assert model.n_samples_ == 3


def test_rows_of_a_regression_without_weight():
    model = LSSVR().fit([[0.0], [0.0], [0.0]], [0.0, 0.0, 0.0])
    with pytest.raises(NotLearnedError, match="rows: 2 rows that weigh 0"):
        model.forget([[0.0]], [0.0], [3.0])
    assert model.n_samples_ == 3


def test_weights_beyond_what_a_row_can_have():
    def known(count, total):
        bits = total.denominator.bit_length() - 1
        sums = narrow(np.array([[0, 0], [0, total.numerator]], dtype=object))
        said = CODES.bind(1).describe()
        return Knowledge(said, "classification", ("x",), (count,), sums, bits)

    for count, total in ((1, Fraction(2) ** 101), (3, Fraction(1, 2**200)), (2, Fraction(0))):
        with pytest.raises(NotLearnedError, match=f"'x': {count} rows that weigh"):
            check_sums(known(count, total))
    check_sums(known(1, Fraction(2) ** 100))
    check_sums(known(4, Fraction(1, 2**198)))
    check_sums(LSSVR(Linear(bias=False)).fit([[0.0]] * 4, [0.0] * 4).knowledge_)  # of no total


def test_what_the_check_misses():
    """As the documentation says beside its first `forget`: sums do not know their rows."""
    X, y = load_iris(return_X_y=True)
    model = LSSVC().fit(X, y)
    model.forget(X[:1], y[:1]).forget(X[:1], y[:1])  # twice
    model.forget(X[60:61] + 0.1, y[60:61])  # invented
    model.forget(X[70:71], [2])  # of another class
    assert model.n_samples_ == 146


@given(integer_rows(2**20), integer_rows(2**20), st.booleans())
def test_a_triangle_of_floats_is_judged_like_integers(Z, strange, wrong):
    """Refused only where there is a negative eigenvalue; and a pair of columns exactly."""
    G = exact_gram(Z)
    if wrong:
        other = exact_gram(strange)
        m = min(len(G), len(other))
        G[:m, :m] -= other[:m, :m]
    used = np.flatnonzero(np.diag(G) > 0)
    G = G[np.ix_(used, used)]
    if not len(G):
        return
    A = np.asfortranarray(np.triu(G.astype(np.float64)))
    if not triangle_can_be_semidefinite(A):
        assert least_eigenvalue_is_negative(G)
    elif len(G) <= 2:
        assert not least_eigenvalue_is_negative(G)
