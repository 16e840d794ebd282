"""Sums in float64 against those in Python integers."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import examples
from traceless import LSSVC, LSSVR, Knowledge, NotLearnedError, load
from traceless.features import Linear
from traceless.knowledge.sums import Recipe
from traceless.knowledge.triangular import coded, triangular, with_blocks
from traceless.solvers.centring import shifted, shifted_right_side
from traceless.solvers.equations import Equations


def recipe(task, J, bias=True):
    return Recipe(Linear(bias=bias).bind(J), task, 2**-4)


def labels(rng, task, n):
    if task == "regression":
        return rng.normal(size=(n, 2)) * 10
    return rng.integers(0, 3, n) if task == "classification" else rng.integers(0, 2, (n, 3))


def counted(known, sign, other):
    return tuple(a + sign * b for a, b in zip(known.counts, other.counts, strict=True))


@pytest.mark.parametrize("task", ["regression", "classification", "multilabel"])
@pytest.mark.parametrize("bias", [True, False])
@examples(20)
@given(seed=st.integers(0, 2**32 - 1))
def test_rows_come_and_go_as_in_integers(task, bias, seed):
    rng = np.random.default_rng(seed)
    how = recipe(task, 5, bias)
    X, y = rng.normal(size=(60, 5)) * 10.0 ** rng.integers(-2, 3, 5), labels(rng, task, 60)
    X[:, rng.integers(5)] = 0.0
    known = how.knowledge((X[:40], y[:40], None))
    sums = triangular(known)
    more, less = how.knowledge((X[40:], y[40:], None)), how.knowledge((X[:9], y[:9], None))
    if not more.responses == less.responses == known.responses:
        return  # a class is missing among few rows
    counts = counted(known, 1, more)
    sums = with_blocks(sums, [(1, coded(how, (X[40:], y[40:], None), known.responses)[0])], counts)
    assert sums == known + more
    counts = tuple(a - b for a, b in zip(counts, less.counts, strict=True))
    sums = with_blocks(sums, [(-1, coded(how, (X[:9], y[:9], None), known.responses)[0])], counts)
    assert sums == known + more - less
    assert sums.digest() == (known + more - less).digest()
    sums.check_possible()
    m = np.append(rng.integers(-3000, 3000, 5), [0] * bias)
    m = m if bias else 0 * m  # without a constant feature nothing is shifted
    found = Equations.of(sums.triangle, how.phi.steps, m, len(sums.responses))
    S, Q = (known + more - less).normal_equations()
    steps = how.phi.steps
    S = np.triu(shifted(S, m) if bias else S)
    assert (np.triu(found.matrix()) == S * steps * steps[:, None]).all()
    assert ((shifted_right_side(Q, m) if bias else Q) * steps[:, None] == found.V).all()


def test_what_does_not_fit_is_left_to_integers(rng):
    how = recipe("regression", 3)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    sums = triangular(how.knowledge((X, y, None)))
    for much in (1e6, np.nan, np.inf):
        Z, _ = coded(how, (X * much, y, None), (0,))
        assert with_blocks(sums, [(1, Z)], (40,)) is None
    assert coded(how, (X, y, np.full(20, 0.5)), (0,)) is None
    assert coded(recipe("classification", 3), (X, [7] * 20, None), (0, 1)) is None
    for known in (
        how.knowledge((X, y, np.full(20, 0.5))),
        how.knowledge((X * 1e9, y, None)),
        Knowledge.of(Linear(), X, [0, 1] * 10, classwise=True),
        Knowledge.of(Linear(), X, [0, 1] * 10, fingerprint=True),
    ):
        assert triangular(known) is None


@pytest.mark.parametrize("model", [LSSVC, LSSVR])
def test_large_changes_of_a_live_model(rng, model):
    X, y = rng.normal(size=(300, 6)), rng.integers(0, 3, 300)
    live = model(solver="woodbury").fit(X[:100], y[:100])
    live.partial_fit(X[100:], y[100:])
    fresh = model().fit(X, y)
    np.testing.assert_allclose(live.coef_, fresh.coef_, rtol=1e-9, atol=1e-12)
    live.update(add=(X[:50], y[:50]), forget=(X[100:], y[100:]))
    rows = np.r_[:100, :50]
    fresh = model().fit(X[rows], y[rows])
    np.testing.assert_allclose(live.coef_, fresh.coef_, rtol=1e-9, atol=1e-12)
    assert live.digest() == fresh.digest()
    before = live.digest()
    with pytest.raises(NotLearnedError):
        live.forget(X[:120] * 2.0, y[:120])
    with pytest.raises(ValueError, match="NaN"):
        live.partial_fit(X * np.nan, y)
    assert live.digest() == before
    assert (live.seal().coef_ == fresh.coef_).all()


def test_strange_rows_are_refused_in_float64_too(rng):
    """More features than rows, so that every strange row shows in the sums."""
    how = recipe("regression", 30)
    X, y = rng.normal(size=(20, 30)), rng.normal(size=20)
    sums = triangular(how.knowledge((X, y, None)))
    strange = coded(how, (X[:3] + 1.0, y[:3], None), (0,))[0]
    with pytest.raises(NotLearnedError, match="negative eigenvalue"):
        with_blocks(sums, [(-1, strange)], (17,)).check_possible()
    own = coded(how, (X[:3], y[:3], None), (0,))[0]
    with_blocks(sums, [(-1, own)], (17,)).check_possible()


@pytest.mark.parametrize("task", ["regression", "classification", "multilabel"])
@examples(20)
@given(seed=st.integers(0, 2**32 - 1))
def test_few_rows_of_a_model_change_its_triangle(task, seed):
    """Digests and coefficients are those of a fit, and files and pickles know nothing of it."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 9)), labels(rng, task, 60)
    model = (LSSVR if task == "regression" else LSSVC)().fit(X[:50], y[:50])
    model.partial_fit(X[50:], y[50:]).forget(X[:5], y[:5]).update((X[:2], y[:2]), (X[5:9], y[5:9]))
    rows = np.r_[:2, 9:60]
    fresh = type(model)().fit(X[rows], y[rows])
    assert (model.coef_ == fresh.coef_).all()
    assert (model.intercept_ == fresh.intercept_).all()
    assert model.knowledge_.triangle is not None
    assert model.knowledge_ == fresh.knowledge_
    assert model.digest() == fresh.digest()
    assert pickle.loads(pickle.dumps(model)).knowledge_.triangle is None


def test_what_few_rows_cannot_do_is_done_or_refused_as_ever(rng, tmp_path):
    X, y = rng.normal(size=(60, 9)), rng.integers(0, 2, 60)
    model = LSSVC().fit(X, y).partial_fit(X[:3], [2, 2, 2])  # a class that is new, and leaves
    assert model.classes_.tolist() == [0, 1, 2]
    model.forget(X[:3], [2, 2, 2])
    assert model.digest() == LSSVC().fit(X, y).digest()
    half = (X[:3], y[:3], np.full(3, 0.5))
    model.update(add=half).update(forget=half)
    model.partial_fit(X[:3] * 1e10, y[:3]).forget(X[:3] * 1e10, y[:3])  # beyond float64, and back
    assert model.digest() == LSSVC().fit(X, y).digest()
    with pytest.raises(NotLearnedError, match="negative eigenvalue"):
        model.forget(X[:3] * 99.0, y[:3])
    with pytest.raises(ValueError, match="NaN"):
        model.forget(X[:3] * np.nan, y[:3])
    with pytest.raises(NotLearnedError, match="class 7"):
        model.forget(X[:1], [7])
    several = LSSVR().fit(X, X[:, :2])
    with pytest.raises(ValueError, match="target"):
        several.partial_fit(X[:2], y[:2])
    few = several.partial_fit(X[:2], X[:2, :2]).knowledge_
    few.save(tmp_path / "few")
    assert load(tmp_path / "few") == few
    assert (few + few - few).digest() == few.digest()
