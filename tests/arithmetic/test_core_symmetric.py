"""One pass over a triangle: what NumPy's product of the whole matrix gives, but for rounding."""

import numpy as np
import pytest

from traceless.arithmetic.core import core


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("K", [1, 2, 4, 5, 12, 13, 30])
@pytest.mark.parametrize("J", [1, 3, 4, 7, 65])
def test_a_product_reads_one_triangle(rng, J, K, threads):
    A, X = rng.normal(size=(J, J)), rng.normal(size=(J, K))
    whole = A + A.T
    lower = np.where(np.tri(J) > 0, whole, np.nan)
    Y = np.full((J, K), np.nan)
    core.symmetric_times(lower, X, Y, threads)
    np.testing.assert_allclose(Y, whole @ X, rtol=0, atol=1e-13 * J)
