"""Products of codes and coefficients: to the bit, against fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cases import PAPER, examples
from traceless import LSSVC, LSSVR, RangeError
from traceless.arithmetic import products
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
    found = Coefficients(Z).times(codes)
    assert found.tolist() == exactly(codes, Z).tolist()
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


def test_undecided_sums_are_few(rng, monkeypatch):
    """Else the slow way would be taken for everything, unseen."""
    redone = []
    way = products._Block._exactly
    monkeypatch.setattr(
        products._Block,
        "_exactly",
        lambda self, codes, k: (redone.append(len(codes)), way(self, codes, k))[1],
    )
    codes = np.rint(rng.normal(size=(500, 600)) * 2**14)
    Z = rng.normal(size=(600, 10)) * 2.0 ** rng.integers(-20, 3, size=(600, 10))
    Coefficients(Z).times(codes)
    assert sum(redone) <= 5  # of 5000
    codes[:] = 0
    Coefficients(Z).times(codes)
    assert sum(redone) <= 5  # zeros need no proof
    Coefficients(np.array([[1.0], [2.0**-200], [-1.0]])).times(np.ones((1, 3)))
    assert sum(redone) > 0  # the other way exists


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


@examples(300)
@given(factors(), st.booleans(), st.booleans(), st.integers(0, 2**40))
def test_what_a_quick_look_is_sure_of_is_right(case, constant, left_out, far):
    codes, Z = case
    shift = np.rint(np.linspace(-1, 1, len(Z)) * min(far, 2**14)) if far % 2 else None
    both = np.hstack([codes, np.ones((len(codes), 1))]) if constant else codes
    if constant:
        Z = np.vstack([Z, Z[:1] / 3])
        shift = None if shift is None else np.append(shift, 0.0)
    found = Coefficients(Z, shift).quick(codes if left_out else both, constant)
    if found is not None:
        out, certain = found
        exact = exactly(both if shift is None else both - shift, Z)
        assert out[certain].tolist() == exact[certain].tolist()
        assert not np.signbit(out[certain & (out == 0).all(axis=1)]).any()


@pytest.mark.parametrize("J", [2, 11, 65, 785])
def test_a_quick_look_decides_nearly_all(J, rng):  # else it would be a waste
    codes = np.rint(rng.normal(size=(2000, J)) * 2**13)
    Z = rng.normal(size=(J, 10))
    out, certain = Coefficients(Z, np.rint(codes.mean(axis=0))).quick(codes, False)
    assert (~certain).mean() < 0.1
    some = certain & (np.arange(2000) < 20)
    assert (out[some] == exactly((codes - np.rint(codes.mean(axis=0)))[some], Z)).all()


def test_a_quick_look_is_not_sure_of_what_is_no_number(rng):
    coefficients, codes = Coefficients(rng.normal(size=(8, 2))), np.ones((50, 8))
    codes[7, 3] = np.nan
    found = coefficients.quick(codes, False)
    assert found is None or found[1].tolist() == [i != 7 for i in range(50)]
    codes[7, 3] = np.inf
    assert coefficients.quick(codes, False) is None
