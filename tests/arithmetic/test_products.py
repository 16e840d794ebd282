"""Products of codes and coefficients: to the bit, against fractions."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import sparse

from cases import PAPER, examples
from traceless import LSSVC, LSSVR, RangeError
from traceless.arithmetic import plain, products
from traceless.arithmetic.core import COMPILED, core
from traceless.arithmetic.products import Coefficients
from traceless.features import Linear

LARGE = 2**53


def exactly(codes, Z):
    """The float64 nearest to each sum."""

    def nearest(fraction):
        try:
            return fraction.numerator / fraction.denominator
        except OverflowError:
            return math.inf if fraction > 0 else -math.inf

    columns = [[Fraction(float(z)) for z in column] for column in Z.T]
    rows = [[int(c) for c in row] for row in codes]
    return np.array(
        [
            [nearest(sum(c * z for c, z in zip(row, column, strict=True))) for column in columns]
            for row in rows
        ]
    )


def check(codes, Z):
    codes, Z = np.asarray(codes, dtype=float), np.asarray(Z, dtype=float)
    expected = exactly(codes, Z).tolist()
    for times in (1, 4):  # a row by itself is left to fixed point
        found = Coefficients(Z).times(np.tile(codes, (times, 1)))
        assert found.tolist() == expected * times
        assert not np.signbit(found[found == 0]).any()


def sized(bits):
    """Integers of any number of bits, so that small and huge ones meet."""
    return st.integers(0, bits).flatmap(lambda b: st.integers(-(2**b), 2**b)).map(float)


floats = (
    st.floats(allow_nan=False, allow_infinity=False)  # of all magnitudes, subnormal too
    | st.floats(-10, 10)
    | st.sampled_from([0.0, -0.0, 1.0, 0.5, 2.0**-53, 1 + 2.0**-52, 5e-324, 1.7e308])
    | st.integers(-(2**53), 2**53).map(lambda v: math.ldexp(v, -60))
)


@st.composite
def factors(draw):
    n, J, K = draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    codes = draw(npst.arrays(float, (n, J), elements=sized(draw(st.sampled_from([3, 20, 53])))))
    Z = draw(npst.arrays(float, (J, K), elements=draw(st.sampled_from([floats, st.floats(-1, 1)]))))
    return codes, Z


@examples(500)
@given(factors())
@example((np.array([[1.0, 1.0]]), np.array([[1.0], [2.0**-53]])))  # ties
@example((np.array([[1.0, 1.0]]), np.array([[1 + 2.0**-52], [2.0**-53]])))
@example((np.array([[1.0, 1.0, 1.0]]), np.array([[1.0], [2.0**-53], [5e-324]])))  # nearly ties
@example((np.array([[1.0, 1.0, -1.0]]), np.array([[1.0], [2.0**-53], [5e-324]])))
@example((np.array([[1.0, 1.0]]), np.array([[1.7976931348623157e308], [2.0**969]])))  # not yet inf
@example((np.array([[1.0, 1.0]]), np.array([[1.7976931348623157e308], [2.0**970]])))
@example((np.array([[1.0, -1.0]]), np.array([[3e-310], [3e-310 - 5e-324]])))
@example((np.array([[2.0**53 - 1, 2.0**53]]), np.array([[5e-324], [5e-324]])))
def test_every_product_is_the_nearest_float(case):
    check(*case)


@examples(200)
@given(factors(), st.data())
def test_terms_that_cancel(case, data):
    """The last coefficient takes away what the others give to the first row, all but a little."""
    codes, Z = case
    Z = np.clip(Z, -1e200, 1e200)
    codes = np.hstack([codes, np.ones((len(codes), 1))])
    last = -exactly(codes[:1, :-1], Z) * data.draw(st.sampled_from([1.0, 1 + 2.0**-52]))
    check(codes, np.vstack([Z, last]))


@examples(10)
@given(st.integers(0, 2**32), st.sampled_from([7, 64, 65, 130, 1000]))
def test_many_columns(seed, K):
    rng = np.random.default_rng(seed)
    codes = np.rint(rng.normal(size=(2, 5)) * 2**14)
    check(codes, rng.normal(size=(5, K)) * 2.0 ** rng.integers(-60, 60, size=(5, K)))


def test_one_row_is_the_same_in_any_batch(rng):
    codes = np.rint(rng.normal(size=(300, 120)) * 2**14)
    codes[7] *= 2**30  # one row with large values must not disturb the others
    codes[8] = 0
    Z = rng.normal(size=(120, 3)) * 2.0 ** rng.integers(-30, 3, size=(120, 3))
    coefficients = Coefficients(Z)
    together = coefficients.times(codes)
    assert (together == np.vstack([coefficients.times(row[None]) for row in codes])).all()
    assert (together == exactly(codes, Z)).all()
    assert (together == Coefficients(Z[:, ::-1]).times(np.asfortranarray(codes))[:, ::-1]).all()


def test_sums_that_are_as_long_as_exactness_allows():
    """All codes at the limit, all coefficients of one sign: the largest partial sums."""
    for limit in (1, *(2**b + more for b in (17, 20, 22, 27, 32) for more in (0, 1)), 2**53):
        codes = np.full((1, 700), float(limit))
        check(codes, np.full((700, 1), 1 - 2.0**-53))
        check(codes, np.full((700, 1), -1 / 3))


@pytest.mark.skipif(not COMPILED, reason="the plain twin adds all in integers")
@pytest.mark.parametrize(("J", "large"), [(2, 1), (2, 1e7), (64, 1e5), (64, 1e7), (785, 1e5)])
def test_undecided_sums_are_few(J, large, rng, monkeypatch):
    """Else the slow way would be taken for everything, unseen."""
    undecided = []
    seen = SimpleNamespace(scores=lambda *a: undecided.append(core.scores(*a)) or undecided[-1])
    monkeypatch.setattr(products, "core", seen)
    codes = np.rint(rng.normal(size=(2000, J)) * 2**14)
    Z = rng.normal(size=(J, 10)) * 2.0 ** rng.integers(-20, 3, size=(J, 10))
    codes[:, 0] = np.rint(codes[:, 0] * large)
    Z[0] = rng.normal(size=10) / large
    out = Coefficients(Z).times(codes)
    assert undecided.pop() <= 1000  # of 20 000: a large column takes digits
    assert (out[:3] == exactly(codes[:3], Z)).all()
    codes[:, 0] /= large
    codes[:, 0] = np.rint(codes[:, 0])
    Coefficients(Z).times(codes)
    assert undecided.pop() <= 100
    Coefficients(np.zeros((J, 3))).times(codes)
    assert undecided.pop() == 0
    Coefficients(np.array([[1.0], [2.0**-200], [-1.0]])).times(np.ones((9, 3)))
    assert undecided.pop() == 9  # fixed point exists


@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
def test_a_wide_column_costs_no_digits(rng):
    X = np.column_stack([rng.normal(size=(50, 8)), 3e11 + rng.normal(size=50) * 1e9])
    y = rng.normal(size=50) + 10
    model = LSSVR(rho=0.1, **PAPER).fit(X, y)
    codes = np.column_stack([np.rint(X * 2**14), np.ones(50)])
    Z = np.append(model.coef_, model.intercept_ * 2**14)[:, None]
    assert model.predict(X).tolist() == (exactly(codes, Z)[:, 0] * 2**-14).tolist()
    model.set_params(free_intercept=True)
    solution = model._weights()[0]
    found = exactly(codes - solution.shift, solution.Z)[:, 0] * 2**-14
    assert model.predict(X).tolist() == found.tolist()


@pytest.mark.parametrize("solver", ["cholesky", "woodbury"])
def test_predictions_are_those_of_the_published_coefficients(rng, solver):
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, size=60)
    model = LSSVC(Linear(resolution=2**-10), rho=0.3, solver=solver, **PAPER).fit(X, y)
    model.forget(X[:5], y[:5])
    codes = np.column_stack([np.rint(X * 2**10), np.ones(60)])
    Z = np.column_stack([model.coef_ * 2.0**-10, model.intercept_]).T
    assert (model.decision_function(X) == exactly(codes, Z)).all()
    model.set_params(free_intercept=True, standardize=True)  # counted from near the means
    solution = model._weights()[0]  # what the intercept is there is used, and not published
    assert (np.abs(solution.shift - codes[5:].mean(axis=0)) <= 200)[:-1].all()
    assert (solution.Z[:-1] == model.coef_.T * 2.0**-10).all()
    assert (model.decision_function(X) == exactly(codes - solution.shift, solution.Z)).all()
    Z = np.column_stack([model.coef_ * 2.0**-10, model.intercept_]).T
    assert np.abs(model.decision_function(X) - exactly(codes, Z)).max() < 1e-14


def test_coefficients_that_are_no_numbers_are_refused():
    for value in (np.nan, np.inf):
        with pytest.raises(RangeError, match="finite"):
            Coefficients(np.array([[1.0], [value]])).times(np.ones((1, 2)))


def test_arguments_are_not_written_to(rng):
    codes, Z = np.rint(rng.normal(size=(9, 4)) * 2**30), rng.normal(size=(4, 2))
    before = codes.copy(), Z.copy()
    for a in (codes, Z):
        a.setflags(write=False)
    Coefficients(Z).times(codes)
    assert (before[0] == codes).all()
    assert (before[1] == Z).all()


@st.composite
def tasks(draw):
    """Arguments of the core: dense rows, with a shift, or sparse ones; with constants or not."""
    codes, Z = draw(factors())
    codes, J = np.tile(codes, (draw(st.integers(1, 6)), 1)), len(Z)
    n, K = len(codes), Z.shape[1]
    scale = np.ldexp(1.0, draw(npst.arrays(int, J, elements=st.integers(-60, 60))))
    shift = draw(npst.arrays(float, J, elements=sized(draw(st.sampled_from([2, 30, 51])))))
    X = codes / scale + draw(st.sampled_from([0.0, 0.25, 0.5])) / scale
    extra = draw(npst.arrays(float, (draw(st.integers(0, 2)), K), elements=floats))
    Z = np.pad(np.vstack([Z, extra]), ((0, 0), (0, -K % 4)))
    if draw(st.booleans()):
        bad = draw(st.sampled_from([np.nan, np.inf, -np.inf, 1e300, (2.0**53 + 2) / scale[-1]]))
        X[draw(st.integers(0, n - 1)), -1] = bad
    none = np.empty(0, dtype=np.int64)
    if draw(st.booleans()):
        return X, scale, shift, none, none, Z, (n, K)
    rows = sparse.csr_matrix(X)
    starts, columns = (a.astype(np.int64) for a in (rows.indptr, rows.indices))
    return rows.data[None], scale, np.zeros(J), starts, columns, Z, (n, K)


@examples(500)
@given(tasks())
def test_the_core_agrees_with_its_plain_twin(task):
    *task, shape = task
    ours, theirs = np.full(shape, 7.0), np.full(shape, 7.0)
    decided = [core.scores(*task, ours, 2), plain.scores(*task, theirs, 1)]
    assert (decided[0] < 0) == (decided[1] < 0)
    if decided[1] >= 0:
        assert ours.tobytes() == theirs.tobytes()


@examples(100)
@given(factors(), st.integers(0, 51))
def test_sparse_rows_have_the_scores_of_dense_ones(case, bits):
    codes, Z = case
    shift = np.rint(np.linspace(-1, 1, len(Z)) * 2**bits)
    Z = np.clip(Z, -1e280, 1e280)
    solution = Coefficients(Z, shift)
    found = solution.times(sparse.csr_matrix(codes))
    assert found.tobytes() == solution.times(codes).tobytes()


def test_codes_that_are_no_codes_are_refused():
    for value in (np.nan, np.inf, 2.0**53 + 2):
        with pytest.raises(RangeError, match="whole numbers"):
            Coefficients(np.ones((2, 1))).times(np.array([[1.0, value]]))
