"""Ridges: ρ, or ρ times a variance, as exact numbers in the units of the sums."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cases import PENALTIES, examples, penalty_name
from traceless import Knowledge, RangeError
from traceless.features import Linear
from traceless.solvers.ridge import Penalty, Ridge


def fractions_of(ridge):
    numerators, denominator = ridge.fractions
    return [Fraction(int(v), denominator) for v in numerators]


@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
@examples(40)
@given(
    X=npst.arrays(np.int64, (5, 2), elements=st.integers(-99, 99)),
    weights=npst.arrays(np.int64, 5, elements=st.integers(1, 12)),
    rho=st.sampled_from([1.0, 0.1, 1e-9, 1e12]),
)
def test_ridges_are_rho_times_the_variance_exactly(penalty, X, weights, rho):
    phi, w = Linear(resolution=[0.5, 0.25]), weights / 4
    known = Knowledge.of(phi, X / 4, np.zeros(5), w, task="regression")
    ridge = Penalty(rho, **penalty).ridge(known.feature_gram, known, phi.bind(2))
    unit = Fraction(2) ** known.weight_bits
    codes = phi.bind(2).codes(X / 4)
    expected = []
    for j, step in enumerate((0.5, 0.25)):
        scale = 1 / Fraction(step) ** 2
        if penalty["standardize"]:
            values = [Fraction(int(v)) for v in codes[:, j]]
            own = [Fraction(int(v)) for v in weights]
            mean = sum(a * b for a, b in zip(own, values, strict=True)) / sum(own)
            scale = sum(a * (b - mean) ** 2 for a, b in zip(own, values, strict=True)) / sum(own)
        expected.append(Fraction(rho) * scale * unit)
    expected.append(Fraction(0) if penalty["free_intercept"] else Fraction(rho) * unit)
    assert fractions_of(ridge) == expected
    assert ridge.near.tolist() == [float(v) for v in expected]
    assert ridge.is_free == penalty["free_intercept"]


def test_some_of_the_features():
    ridge = Ridge.of_fractions(np.array([1, 2, 0], dtype=object), 3)
    assert fractions_of(ridge.of_features(np.array([0, 2]))) == [Fraction(1, 3), 0]
    assert ridge.of_features(np.array([0, 2])).is_free
    assert not ridge.of_features(np.array([0, 1])).is_free


def test_a_ridge_beyond_float64_is_refused():
    with pytest.raises(RangeError, match="Choose another rho"):
        Ridge.of_fractions(np.array([10**400], dtype=object), 1)
    with pytest.raises(RangeError, match="Choose another rho"):
        Ridge.of_fractions(np.array([1], dtype=object), 10**400)
    known = Knowledge.of(Linear(), np.array([[1e9], [0.0]]), [0, 1])
    with pytest.raises(RangeError, match="beyond float64"):
        Penalty(1e299, True, True).ridge(known.feature_gram, known, Linear().bind(1))


def test_a_constant_column_has_no_ridge_and_no_rows_have_one():
    phi = Linear().bind(2)
    X = np.array([[7.0, 1.0], [7.0, 2.0]])
    known = Knowledge.of(Linear(), X, [0, 1])
    ridge = Penalty(1.0, True, True).ridge(known.feature_gram, known, phi)
    assert (ridge.near == 0.0).tolist() == [True, False, True]
    none = known - known
    assert not Penalty(1.0, True, True).ridge(none.feature_gram, none, phi).near.any()
