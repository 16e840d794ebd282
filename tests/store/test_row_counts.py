"""Counts of rows: what is held under which id, what is reserved, and what cannot be removed."""

import sqlite3
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceless.exceptions import StoreError
from traceless.store import row_counts
from traceless.store.row_counts import RowCounts
from traceless.store.row_lanes import lanes_of
from traceless.store.schema import ROW_TABLES

A, B, C = (bytes([k]) * 16 for k in range(3))
P, Q, NONE = b"p" * 16, b"q" * 16, b""
rows_with_ids = st.lists(
    st.tuples(st.sampled_from([A, B, C]), st.sampled_from([NONE, P, Q])), max_size=6
)


def new_counts():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(";".join(ROW_TABLES))
    return RowCounts(connection)


@pytest.fixture
def counts():
    counts = new_counts()
    yield counts
    counts._sql.close()


def held(counts):
    return {(digest, one): n for digest, one, n in counts.counted()}


@given(rows_with_ids, rows_with_ids, rows_with_ids, st.sampled_from([2, 2**14]))
def test_counts_are_those_of_a_multiset(first, second, gone, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_counts, "_CHUNK", chunk)
        check_multiset(first, second, gone)


def check_multiset(first, second, gone):
    counts, here = new_counts(), Counter(first + second)
    counts.add([d for d, _ in first], [one for _, one in first])
    counts.add_counted([(*row, n) for row, n in Counter(second).items()])
    rows, lanes = counts.totals()
    assert rows == here.total()
    each = list(here.elements())
    assert np.array_equal(lanes, lanes_of([d for d, _ in each], [one for _, one in each]))
    missed, ids = [], []
    for i, (digest, one) in enumerate(gone):
        under = sorted(
            row for row in here if row[0] == digest and one in (NONE, row[1]) and here[row]
        )
        if under:
            here[under[0]] -= 1
        else:
            missed.append(i)
        ids.append(under[0][1] if under else NONE)
    assert counts.remove([d for d, _ in gone], [one for _, one in gone]) == (missed, ids)
    assert held(counts) == dict(+here)
    counts._sql.close()


@pytest.mark.parametrize(
    "row",
    [
        (A, P, -3, 0),
        (A, P, 1, 2),
        (A, P, 1, -1),
        (A[:4], P, 1, 0),
        (A, b"p", 1, 0),
        ("text of a digest", P, 1, 0),
        (A, P, "many", 0),
    ],
)
def test_rows_that_no_change_could_leave_are_found(counts, row):
    counts.add([B], [NONE])
    counts._sql.execute("INSERT INTO alive VALUES (?, ?, ?, ?)", row)
    with pytest.raises(StoreError, match="no change could leave"):
        counts.totals()
