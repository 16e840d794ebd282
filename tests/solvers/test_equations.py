"""What live coefficients are held against is known to more digits than they have."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import cho_factor, cho_solve

from traceless import LSSVR
from traceless.features import Linear
from traceless.solvers.equations import Equations, Product, mended
from traceless.solvers.inverse import Inverse


def fraction(x):
    high = float(x)
    return Fraction(high) + Fraction(float(x - high))


@given(seed=st.integers(0, 2**32 - 1), bits=st.integers(1, 50), J=st.sampled_from([1, 7, 40]))
def test_products_have_the_digits_that_cancel(seed, bits, J):
    """Against rationals, where numbers of all sizes cancel to a millionth of a millionth."""
    rng = np.random.default_rng(seed)
    root = rng.integers(-(2**26), 2**26, size=(J, J)) >> rng.integers(0, 26, size=(J, 1))
    T = np.asfortranarray(np.triu(root + root.T).astype(float) * 2.0 ** (bits - 27))
    T[np.diag_indices(J)] = 2.0**bits  # no number is larger than the largest of the diagonal
    steps = 2.0 ** -rng.integers(0, 20, J)
    U = rng.normal(size=(J, 2)) * 10.0 ** rng.integers(-8, 8, (J, 1))
    first, rest = Product(Equations(T, steps, U)).times(U)
    whole = np.triu(T) + np.triu(T, 1).T
    S = np.vectorize(Fraction, otypes=[object])(whole * steps * steps[:, None])
    exact = S @ np.vectorize(Fraction, otypes=[object])(U)
    large = (whole.max() * np.abs(steps[:, None] * U).max()) * steps[:, None]
    sizes = np.repeat(large, 2)
    for high, low, right, size in zip(first.flat, rest.flat, exact.flat, sizes, strict=True):
        assert abs(Fraction(high) + Fraction(low) - right) <= Fraction(J * 2.0**-60 * size)


@pytest.mark.parametrize("rho", [1.0, 1e-6])
def test_coefficients_are_better_than_those_of_a_new_factor(rng, rho):
    J, n, step = 300, 700, 2.0**-14
    X, y = np.rint(rng.normal(size=(n, J)) / step) * step, np.rint(rng.normal(size=n) / step)
    settings = {"free_intercept": False, "standardize": False, "target_resolution": 1.0}
    exact = LSSVR(Linear(bias=False), rho, **settings).fit(X, y).coef_[:, None]
    codes = X / step
    equations = Equations(np.asfortranarray(codes.T @ codes), np.full(J, step), X.T @ y[:, None])
    inverse = Inverse.of(equations.matrix(), equations.V, rho)
    factored = cho_solve(cho_factor(equations.matrix() + rho * np.eye(J)), equations.V)
    inverse.U = inverse.U * (1.0 + 1e-9 * rng.normal(size=(J, 1)))
    residual, decay = mended(inverse, equations)
    ours, theirs = (np.linalg.norm(U - exact) for U in (inverse.U, factored))
    assert ours < theirs / 2
    assert residual < 1e-15
    assert decay < 1e-11
