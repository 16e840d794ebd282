"""Sums counted from whole numbers near the means, against sums of shifted rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cases import exact_gram, examples, narrow, whole
from traceless.solvers.centring import shifted, whole_means


@st.composite
def rows(draw):
    """Rows of codes with a constant 1, near zero or far from it, and whole targets."""
    n, J = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    size = draw(st.sampled_from([3, 2**20, 2**40, 2**51]))
    F = whole(draw(npst.arrays(np.int64, (n, J), elements=st.integers(-size, size))))
    far = st.sampled_from([0, 7, 2**20 + 1, -(2**36), 2**50])
    F = F + whole(draw(st.lists(far, min_size=J, max_size=J)))
    Y = whole(draw(npst.arrays(np.int64, (n, 2), elements=st.integers(-(2**40), 2**40))))
    return np.column_stack([F, whole(np.ones(n))]), Y


@examples(200)
@given(rows())
def test_shifted_sums_are_those_of_shifted_rows(given_rows):
    F, Y = given_rows
    S = narrow(exact_gram(F))
    m = whole_means(S)
    assert m[-1] == 0
    moved = F - whole(m)
    found, right = shifted(S, narrow(F.T @ Y), m)
    assert (whole(found) == exact_gram(moved)).all()
    assert found.dtype == narrow(exact_gram(moved)).dtype or found.dtype == np.int64
    assert (whole(right) == moved.T @ Y).all()


@examples(100)
@given(rows())
def test_shifts_are_near_the_means(given_rows):
    F, _ = given_rows
    m = whole_means(narrow(exact_gram(F)))
    means = [sum(int(v) for v in F[:, j]) / len(F) for j in range(F.shape[1] - 1)]
    for found, mean in zip(m, means, strict=False):
        if abs(mean) > 2.0**51 + 1:
            assert found == 0
        elif abs(mean) < 2.0**51 - 1:
            assert abs(int(found) - mean) <= 0.5 + 2.0**-50 * abs(mean)


def test_sums_beyond_int64_that_fit_once_they_are_centred():
    F = np.column_stack([whole([2**40 - 1, 2**40 + 1]), whole([1, 1])])
    S = narrow(exact_gram(F))
    assert S.dtype == object
    found, _ = shifted(S, S, whole_means(S))
    assert found.dtype == np.int64
    assert found.tolist() == [[2, 0], [0, 2]]


def test_no_rows_have_no_means():
    assert whole_means(np.zeros((3, 3), dtype=np.int64)).tolist() == [0, 0, 0]
