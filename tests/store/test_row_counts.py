"""Counts of row digests: what is held, what is reserved, and what cannot be removed."""

import sqlite3
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceless.store import row_counts
from traceless.store.row_counts import RowCounts

TABLE = "CREATE TABLE alive (digest BLOB PRIMARY KEY, count INTEGER, queued INTEGER) WITHOUT ROWID"
A, B, C = (bytes([k]) * 16 for k in range(3))
several = st.lists(st.sampled_from([A, B, C]), max_size=6)


@pytest.fixture
def counts():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(TABLE)
    yield RowCounts(connection)
    connection.close()


def test_each_row_goes_as_often_as_it_came(counts):
    counts.add([A, B, A])
    assert counts.remove([A, C, A, A]) == [1, 3]
    assert dict(counts.counted()) == {B: 1}
    assert counts.remove([B]) == []
    assert counts.totals() == (0, 0)


def test_reserved_rows_go_only_by_their_own_request(counts):
    counts.add([A, A, B])
    assert counts.reserve([A, B, B]) == [2]
    assert counts.reserved() == {A: 1, B: 1}
    assert counts.count_reserved([A, B, C]) == 2
    assert counts.remove([A, A]) == [1]
    assert counts.remove([B]) == [0]
    assert counts.remove_reserved([A, B, A]) == [2]
    assert dict(counts.counted()) == {}


@given(several, several, several)
def test_counts_are_those_of_a_multiset(first, second, gone):
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(TABLE)
    counts, held = RowCounts(connection), Counter(first + second)
    counts.add(first)
    counts.add_counted(Counter(second).items())
    rows, checksum = counts.totals()
    assert rows == held.total()
    assert checksum == sum(n * int.from_bytes(d, "little") for d, n in held.items())
    assert len(counts.remove(gone)) == (Counter(gone) - held).total()
    assert dict(counts.counted()) == dict(held - Counter(gone))
    connection.close()


def test_many_digests_are_passed_in_chunks(counts, monkeypatch):
    monkeypatch.setattr(row_counts, "_CHUNK", 2)
    digests = [k.to_bytes(16, "little") for k in range(7)]
    counts.add(digests)
    assert counts.remove(digests[:5]) == []
    assert [digest for digest, _ in counts.counted()] == digests[5:]
    counts.clear()
    assert counts.totals() == (0, 0)
