from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cases import exact_gram, narrow, whole
from traceless.features import Linear
from traceless.knowledge import feasibility
from traceless.knowledge.feasibility import can_be_semidefinite

PHI = Linear()
CODES = Linear(resolution=1.0, bias=False)


def least_eigenvalue_is_negative(G):
    """By Gauss elimination in fractions: whether some pivot of some minor is negative."""
    rows = [[Fraction(int(v)) for v in row] for row in G]
    while rows:
        if any(rows[k][k] < 0 for k in range(len(rows))):
            return True
        k = next((k for k in range(len(rows)) if rows[k][k]), None)
        if k is None:
            return any(any(row) for row in rows)
        pivot = rows.pop(k)
        d = pivot.pop(k)
        rows = [
            [v - row[k] * p / d for v, p in zip(row[:k] + row[k + 1 :], pivot, strict=True)]
            for row in rows
        ]
    return False


@st.composite
def integer_rows(draw, largest=2**53):
    """Duplicates, outliers, equal and dependent columns, fewer rows than columns."""
    n, m = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    bits = draw(st.integers(1, int(largest).bit_length() - 1))
    sizes = st.integers(-(2**bits), 2**bits) | st.integers(-3, 3)
    Z = whole(draw(npst.arrays(np.int64, (n, m), elements=sizes)))
    for _ in range(draw(st.integers(0, 3))):
        i, j = draw(st.integers(0, m - 1)), draw(st.integers(0, m - 1))
        kind = draw(st.sampled_from(["same", "sum", "constant", "outlier", "row"]))
        if kind == "same":
            Z[:, i] = Z[:, j]
        elif kind == "sum":
            Z[:, i] = Z[:, j] + Z[:, 0] if abs(Z).max() < 2**51 else Z[:, j]
        elif kind == "constant":
            Z[:, i] = 1
        elif kind == "outlier":
            Z[0, i] = largest
        else:
            Z[-1] = Z[0]
    return Z


@settings(max_examples=400)
@given(integer_rows(), st.integers(0, 60))
def test_what_rows_add_up_to_is_never_refused(Z, bits):
    weights = np.array([(k * 7919) % (1 << bits) + 1 for k in range(len(Z))], dtype=object)
    assert can_be_semidefinite(narrow(exact_gram(Z)))
    assert can_be_semidefinite(narrow(exact_gram(Z, weights)))


def test_one_blas_may_break_down_where_another_does_not(monkeypatch):
    """Beyond 100 rows, an eigenvalue so near to 0 refuses nothing, whatever BLAS says."""
    m = 120
    for times, possible in ((2, True), (40, False)):
        share = (1 + times * feasibility.tolerance(m)) / m
        G = np.rint(2.0**52 * (np.eye(m) - share)).astype(np.int64)
        assert can_be_semidefinite(G) == possible
        with monkeypatch.context() as patch:
            patch.setattr(feasibility, "_has_cholesky", lambda *_, **__: False)
            assert can_be_semidefinite(G) == possible
