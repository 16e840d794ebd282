"""Sparse rows: the same bits as dense ones, and products of what is not zero only."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from cases import examples
from traceless import LSSVC, LSSVR, Knowledge, RangeError
from traceless.arithmetic.gram import GramSum, is_faster
from traceless.arithmetic.products import Coefficients
from traceless.estimators import scoring
from traceless.features import Linear, Polynomial
from traceless.knowledge import gathering


def as_it_comes(X, rng, how):
    """A sparse matrix of these rows, in one of the forms that SciPy allows."""
    found = sparse.csr_matrix(X)
    if how == "zeros":  # written out
        found.data[::3] = 0.0
    if how == "unsorted":
        for i in range(found.shape[0]):
            own = slice(found.indptr[i], found.indptr[i + 1])
            order = rng.permutation(own.stop - own.start)
            found.indices[own], found.data[own] = found.indices[own][order], found.data[own][order]
        found.has_sorted_indices = False
    if how == "twice":  # several numbers for one place, which are added up before they are rounded
        double = sparse.coo_matrix(X)
        rows, columns = np.tile(double.row, 2), np.tile(double.col, 2)
        n, at = X.shape[0], np.argsort(rows, kind="stable")
        ends = np.append(0, np.cumsum(np.bincount(rows, minlength=n)))
        found = sparse.csr_matrix((np.tile(double.data, 2)[at], columns[at], ends), shape=X.shape)
    return sparse.csr_array(found) if how == "array" else found


@pytest.fixture
def always(monkeypatch):
    """All sparse rows are multiplied as they are; counts how often they were."""
    used, way = [], GramSum.add_sparse
    monkeypatch.setattr(gathering, "is_faster", lambda *_: True)
    monkeypatch.setattr(gathering.Gathering, "are_few", False)
    monkeypatch.setattr(GramSum, "add_sparse", lambda *args: (used.append(True), way(*args))[1])
    return used


@examples(40)
@given(
    st.integers(0, 2**32),
    st.sampled_from(["plain", "array", "zeros", "unsorted", "twice"]),
    st.sampled_from(["classification", "by class", "regression", "multilabel"]),
    st.sampled_from([None, "whole", "fractions"]),
    st.sampled_from([2**-14, 2**-30, [2.0**-k for k in range(12)]]),
    st.booleans(),
)
def test_knowledge_has_the_same_bits(seed, how, task, weighted, resolution, bias):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    X = np.where(rng.random((n, 12)) < 0.2, rng.normal(size=(n, 12)) * 3, 0.0)
    rows = as_it_comes(X, rng, how)
    y = {"regression": rng.normal(size=n), "multilabel": rng.integers(0, 2, (n, 3))}
    weights = {
        None: None,
        "whole": rng.integers(0, 9, n),
        "fractions": rng.random(n) * 2.0 ** rng.integers(-8, 8, n),
    }[weighted]
    options = {
        "task": "classification" if task == "by class" else task,
        "classwise": task == "by class",
        "fingerprint": True,
    }
    phi, y = Linear(bias, resolution), y.get(task, rng.integers(0, 3, n))
    dense = Knowledge.of(phi, rows.toarray(), y, weights, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gathering, "is_faster", lambda *_: True)
        patch.setattr(gathering, "_ENTRIES", 5)
        assert Knowledge.of(phi, rows, y, weights, **options).digest() == dense.digest()


def test_zeros_are_not_multiplied(always, rng):
    X = sparse.random(300, 200, 0.02, "csr", random_state=0)
    y = rng.integers(0, 3, 300)
    known = Knowledge.of(Linear(), X, y)
    assert always == [True]
    assert known == Knowledge.of(Linear(), X.toarray(), y)
    Knowledge.of(Polynomial(), X[:, :4], y)  # whose zeros may have other codes
    assert always == [True]


def test_the_rule(monkeypatch, rng):
    asked = []
    way = gathering.is_faster
    monkeypatch.setattr(
        gathering, "is_faster", lambda *args: (asked.append(way(*args)), asked[-1])[1]
    )
    y = rng.integers(0, 2, 100)
    for density in (0.005, 0.5):
        Knowledge.of(Linear(), sparse.random(100, 900, density, "csr", random_state=0), y)
    assert asked == [True, False]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_what_cannot_be_coded_is_refused_as_in_dense_rows(always, value):
    X = sparse.eye(50, format="csr")
    y = np.arange(50) % 2
    model = LSSVC().fit(X, y)
    bad = X.copy()
    bad.data[7] = value
    said = set()
    for rows in (bad, bad.toarray()):
        for job in (
            lambda rows=rows: Knowledge.of(Linear(), rows, y),
            lambda rows=rows: model.predict(rows),
        ):
            with pytest.raises(RangeError) as caught:
                job()
            said.add(str(caught.value))
    assert len(said) == 1


@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
def test_sums_beyond_int64_are_those_of_dense_rows(always):
    X = sparse.random(60, 30, 0.1, "csr", random_state=0)
    X.data *= 1e9
    y = np.arange(60.0)
    assert Knowledge.of(Linear(), X, y, task="regression") == Knowledge.of(
        Linear(), X.toarray(), y, task="regression"
    )
    assert always == [True]


@pytest.mark.parametrize("size", [1.0, 1e3, 1e9])
@pytest.mark.parametrize("how", ["plain", "unsorted", "twice"])
@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
def test_scores_have_the_same_bits(size, how, rng, monkeypatch):
    X = np.where(rng.random((90, 40)) < 0.1, rng.normal(size=(90, 40)) + 2, 0.0)
    X[:, 3] *= size
    rows, y = as_it_comes(X, rng, how), rng.integers(0, 3, 90)
    for name, value in (("_SPARSE_ROWS", 32), ("_NUMBER", 0), ("_ROW", 0)):
        monkeypatch.setattr(scoring, name, value)
    seen, score = [], Coefficients.score
    monkeypatch.setattr(
        Coefficients, "score", lambda self, X, *a: (seen.append(type(X)), score(self, X, *a))[1]
    )
    model = LSSVC().fit(rows.toarray(), y)
    found = model.decision_function(rows)
    assert (seen[0] is sparse.csr_matrix) == (how != "twice")
    assert (found == model.decision_function(rows.toarray())).all()


def test_a_history_of_sparse_rows(always, rng):
    X = sparse.random(120, 60, 0.05, "csr", random_state=1)
    y = rng.normal(size=120)
    ours = LSSVR(rho=0.1).fit(X[:100], y[:100]).forget(X[:20], y[:20])
    ours.partial_fit(X[100:], y[100:])
    theirs = LSSVR(rho=0.1).fit(X[20:].toarray(), y[20:])
    assert ours.digest() == theirs.digest()
    assert (ours.predict(X) == theirs.predict(X.toarray())).all()
    assert always == [True] * 3


def test_the_rule_counts_products():
    numbers = np.full(100, 5)
    assert is_faster(numbers, 500)
    assert not is_faster(numbers, 20)
    assert not is_faster(numbers[:10], 500)  # what a call costs
