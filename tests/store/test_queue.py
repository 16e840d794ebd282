"""The queue: rows come back as they were put in, whatever form they had."""

import sqlite3
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from traceless.store import queue as queues
from traceless.store.queue import Queue, are_enough, packed, plain_arrays
from traceless.store.row_digests import RowHasher, Tally
from traceless.store.schema import SCHEMA


@pytest.fixture
def queue():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(next(text for text in SCHEMA if text.startswith("CREATE TABLE queue")))
    yield Queue(connection)
    connection.close()


def put(queue, key, batches, said):
    """Add a request under the next number."""
    number = len(queue.pending()) + 1
    entry = SimpleNamespace(
        sequence=number, time="2026-01-01T00:00:00Z", keys=(key,) if key else (), rows=said.rows
    )
    queue.put(entry, said.classes, packed(batches))


def tally(*batches):
    found = Tally()
    for batch in batches:
        found.add(RowHasher(bytes(32), True)(batch))
    return found


def test_rows_come_back_with_the_same_digests(queue):
    X = np.array([[1.0, -0.0], [0.5, 2.0], [3.0, 4.0]])
    batches = [
        (sparse.csr_matrix(X), np.array(["a", "bb", "a"], dtype=object), [1.0, 0.0, 2.0]),
        (X.tolist(), [True, False, True], None),
    ]
    for key, batch in zip(("first", None), batches, strict=True):
        put(queue, key, [plain_arrays(batch)], tally(batch))
    assert str(tally(*queue.batches())) == str(tally(*batches))
    assert [(q.key, q.rows, dict(q.classes)) for q in queue.pending()] == [
        ("first", 2, {"a": 2}),
        (None, 3, {"True": 2, "False": 1}),
    ]
    assert [len(X) for X, *_ in queue.batches(2)] == [3]
    queue.clear(1)
    assert [q.sequence for q in queue.pending()] == [2]
    queue.clear()
    assert queue.pending() == []


def test_each_class_must_have_enough_rows(queue, monkeypatch):
    monkeypatch.setattr(queues, "SAFE_ROWS", 3)
    assert are_enough(3, {})  # a regression has no classes
    assert are_enough(6, {"a": 3, "b": 3})
    assert not are_enough(100, {"a": 98, "b": 2})
    for _ in range(2):
        assert not queue.is_safe()
        batch = np.ones((3, 1)), np.array(["a", "b", "b"]), None
        put(queue, None, [plain_arrays(batch)], tally(batch))
    put(queue, None, [plain_arrays(batch)], tally(batch))
    assert queue.is_safe()
