from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cases import PAPER, PENALTIES, whole
from traceless import LSSVC, Knowledge, RangeError
from traceless.features import Linear
from traceless.knowledge.sample_weights import FINEST, bits_of, rounded_weights

PHI = Linear(resolution=2**-4)

fractions = st.tuples(st.integers(2**19, 2**53 - 1), st.integers(-120, 40)).map(
    lambda v: float(np.ldexp(float(v[0]), v[1]))
)
weights_of_any_size = (
    st.just(0.0)
    | st.integers(0, 2**32).map(float)
    | st.integers(1, 64).map(lambda v: v / 8)
    | fractions
    | st.floats(2.0**-200, 2.0**100)
)

weights_of_like_size = (
    st.just(0.0)
    | st.integers(0, 2**20).map(float)
    | st.integers(1, 64).map(lambda v: v / 8)
    | st.tuples(st.integers(2**19, 2**53 - 1), st.integers(-45, -33)).map(
        lambda v: float(np.ldexp(float(v[0]), v[1]))
    )
)


@given(weights_of_any_size)
def test_a_weight_is_rounded_by_itself_and_by_less_than_a_millionth(w):
    alone = rounded_weights([w, 2.0], 2)[0]
    beside = rounded_weights([w, 1e-60, 1e30, 0.3], 4)[0]
    assert alone == beside
    assert abs(Fraction(alone) - Fraction(w)) <= Fraction(w) / 10**6
    assert (alone * 2.0**FINEST).is_integer()
    assert rounded_weights([alone, 2.0], 2)[0] == alone
    if w <= 2**32 and w == int(w):
        assert alone == w


@given(st.lists(weights_of_any_size, min_size=1, max_size=8))
def test_units_are_the_largest_that_make_weights_whole(weights):
    rounded = rounded_weights([*weights, 3.0], len(weights) + 1)
    found = [Fraction(w) / Fraction(2) ** -bits_of(rounded) for w in rounded]
    assert all(w.denominator == 1 for w in found)
    assert bits_of(rounded) == 0 or any(w.numerator % 2 for w in found)


@pytest.mark.parametrize("classwise", [False, True])
def test_weights_too_far_apart_are_refused_in_one_call_as_in_two(classwise):
    X, y, w = np.array([[1.0], [3.0]]), np.array([0, 0]), [1e-30, 1e10]
    with pytest.raises(RangeError, match="beyond 2\\^127"):
        Knowledge.of(PHI, X, y, w, classwise=classwise)
    one, two = (Knowledge.of(PHI, X[[i]], y[[i]], w[i], classwise=classwise) for i in (0, 1))
    with pytest.raises(RangeError, match="beyond 2\\^127"):
        one + two


@pytest.mark.parametrize("others", [[1.0, 2.0], [1e-30, 1e30]])
@pytest.mark.parametrize("classwise", [False, True])
def test_a_row_of_weight_zero_must_be_finite_whatever_comes_with_it(others, classwise):
    with pytest.raises(RangeError):
        Knowledge.of(PHI, [[np.nan], [1.0], [2.0]], [0, 0, 0], [0, *others], classwise=classwise)


def oracle(X, y, weights, classes):
    """Σ ω [φ; r][φ; r]ᵀ in fractions."""
    codes = whole(np.hstack([PHI.bind(X.shape[1]).codes(X), y[:, None] == np.array(classes)]))
    omega = np.array([Fraction(float(w)) for w in weights], dtype=object)
    return (codes.T * omega) @ codes


@st.composite
def batches(draw):
    n = draw(st.integers(1, 6))
    X = draw(npst.arrays(np.float64, (n, 2), elements=st.integers(-(2**24), 2**24).map(float)))
    y = draw(npst.arrays(np.int64, n, elements=st.integers(0, 2)))
    weights = draw(st.lists(weights_of_like_size, min_size=n, max_size=n))
    return X / 16, y, np.array(weights)


@given(st.lists(batches(), min_size=1, max_size=4), st.booleans(), st.data())
def test_sums_are_exact_whatever_the_weights_the_calls_and_their_order(several, classwise, data):
    X, y, w = (np.concatenate(part) for part in zip(*several, strict=True))
    at_once = Knowledge.of(PHI, X, y, w, classwise=classwise)
    alive = w > 0
    rounded = rounded_weights(np.append(w, 2.0), len(w) + 1)[:-1]
    exactly = oracle(X[alive], y[alive], rounded[alive], at_once.responses)
    unit = 1 << at_once.weight_bits
    assert (whole(at_once.gram) == exactly * unit).all()
    if at_once.weight_bits:  # no coarser unit would do
        assert any(int(v) % 2 for v in at_once.sums.flat)
    order = data.draw(st.permutations(several))
    one_by_one = sum(Knowledge.of(PHI, *batch, classwise=classwise) for batch in order)
    assert one_by_one == at_once
    assert one_by_one.digest() == at_once.digest()
    assert at_once.pooled() == Knowledge.of(PHI, X, y, w)
    rest = at_once - Knowledge.of(PHI, *several[0], classwise=classwise)
    others = [Knowledge.of(PHI, *batch, classwise=classwise) for batch in several[1:]]
    assert rest == (sum(others) if others else at_once - at_once)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -1.0], "not negative"),
        ([1.0, np.nan], "not negative"),
        ([1.0, np.inf], "not negative"),
        ([1.0], r"shape \(2,\)"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        rounded_weights(weights, 2)


@pytest.mark.parametrize("weight", [1e-61, 5e-324, 1.3e30, 1e300])
def test_a_weight_out_of_range_is_refused_whatever_comes_with_it(weight):
    for others in ([], [1.0], [1e-50, 1e20]):
        with pytest.raises(RangeError, match="Multiply all weights, and rho"):
            rounded_weights([weight, *others], 1 + len(others))


def test_one_weight_for_all():
    assert rounded_weights(1.0, 3) is None
    assert rounded_weights(0.5, 3).tolist() == [0.5] * 3
    assert rounded_weights(None, 3) is None


def test_weights_of_a_thousandth_keep_their_digits(rng):
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    w = rng.uniform(0.5e-3, 1.5e-3, 200)
    for penalty in (*PENALTIES[:3], PAPER):
        a, b = LSSVC(rho=1e-3, **penalty), LSSVC(rho=1e-3 * 2**40, **penalty)
        assert (a.fit(X, y, w).coef_ == b.fit(X, y, w * 2.0**40).coef_).all()
        assert (a.intercept_ == b.intercept_).all()
    F = Linear().transform(X)
    t = np.where(y == 1, 1.0, -1.0)
    exactly = np.linalg.solve(1e-3 * np.eye(4) + (F.T * w) @ F, F.T @ (w * t))
    np.testing.assert_allclose(a.coef_[0], exactly[:3], rtol=1e-5)
