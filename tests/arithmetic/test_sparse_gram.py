"""Sums of products of sparse integer rows, against Python's integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.sparse import csr_matrix

from cases import exact_gram, examples
from traceless.arithmetic import sparse_gram
from traceless.arithmetic.sparse_gram import SparseGramSum


@st.composite
def sparse_rows(draw):
    """Few numbers, some of them as large as int64 has room for, in many columns."""
    n, width = draw(st.integers(0, 6)), draw(st.integers(1, 9))
    size = 2 ** draw(st.sampled_from([1, 14, 29]))
    codes = draw(npst.arrays(np.int64, (n, width), elements=st.integers(-size, size)))
    there = draw(npst.arrays(bool, (n, width)))
    return codes * there


@examples(100)
@given(
    sparse_rows(),
    st.sampled_from([None, 3, 2**31]),
    st.integers(1, 7),
    st.integers(1, 4),
)
def test_sums_are_those_of_python_integers(codes, weight, cut, strip):
    weights = None if weight is None else np.arange(len(codes)) * float(weight)
    total = SparseGramSum(codes.shape[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_gram, "_STRIP", strip)
        added = [
            total.add(
                csr_matrix(codes[some].astype(float)), None if weights is None else weights[some]
            )
            for some in (slice(0, cut), slice(cut, None))
        ]
    if all(added):
        whole = None if weights is None else weights.astype(np.int64)
        assert (total.total() == exact_gram(codes, whole)).all()
    else:
        heavy = codes.astype(object) ** 2 * (1 if weights is None else weights.astype(int)[:, None])
        assert sum(heavy.sum(axis=0)) > 2**61  # there was a reason


def test_what_may_wrap_is_not_added():
    total = SparseGramSum(2)
    assert total.add(csr_matrix([[2.0**30, 3.0]]))
    assert not total.add(csr_matrix([[2.0**31, 1.0]]))
    assert not total.add(csr_matrix([[2.0**30, 1.0]]), np.array([4.0]))
    for value in (np.nan, np.inf):
        assert not total.add(csr_matrix([[1.0, value]]))
    assert (total.total() == [[2**60, 3 * 2**30], [3 * 2**30, 9]]).all()


def test_the_rule_counts_products():
    numbers = np.full(100, 5)
    assert sparse_gram.is_faster(numbers, 500)
    assert not sparse_gram.is_faster(numbers, 20)
    assert not sparse_gram.is_faster(numbers[:10], 500)  # what a call costs
