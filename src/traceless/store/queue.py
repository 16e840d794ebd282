"""Requests to forget that wait for others, so that no row is forgotten alone.

The rows of a request are kept in the ledger until they are forgotten, and are then
overwritten with zeros. They were alive when they came, and nobody else can forget them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from sqlite3 import Connection

import numpy as np
from scipy.sparse import issparse

from traceless.files.container import canonical_json
from traceless.store.entries import now
from traceless.store.rows import Batch, Tally

SAFE_ROWS = 20


@dataclass(frozen=True)
class Queued:
    """A request that waits.

    Attributes
    ----------
    time : str
        When it came, UTC.
    key : str or None
        Its idempotency key.
    rows : int
        How many rows it is about.
    classes : dict
        How many of each class; empty for regressions.
    replayed : bool
        Whether the same request was in the queue already.
    """

    time: str
    key: str | None
    rows: int
    classes: Mapping[str, int]
    replayed: bool = field(default=False, compare=False)


class Queue:
    """The requests that wait, in a transaction of the ledger."""

    def __init__(self, sql: Connection) -> None:
        self._sql = sql

    def put(self, key: str | None, batches: list[Batch], tally: Tally) -> None:
        """Add a request."""
        self._sql.execute(
            "INSERT INTO queue (time, key, rows, classes, content) VALUES (?, ?, ?, ?, ?)",
            (now(), key, tally.rows, canonical_json(tally.classes), _packed(batches)),
        )

    def pending(self, replayed: bool = False) -> list[Queued]:
        """All requests, the oldest first."""
        found = self._sql.execute("SELECT time, key, rows, classes FROM queue ORDER BY number")
        return [
            Queued(time, key, rows, json.loads(classes), replayed)
            for time, key, rows, classes in found
        ]

    def is_safe(self) -> bool:
        """Whether the rows of all requests hide among each other."""
        tally = Tally()
        for queued in self.pending():
            tally.rows += queued.rows
            tally.classes.update(queued.classes)
        return is_safe(tally)

    def batches(self) -> Iterator[Batch]:
        """The rows of all requests."""
        for (content,) in self._sql.execute("SELECT content FROM queue ORDER BY number"):
            yield from _unpacked(content)

    def clear(self) -> None:
        """Drop all requests."""
        self._sql.execute("DELETE FROM queue")


def is_safe(tally: Tally) -> bool:
    """Whether so many rows, by class, hide among each other."""
    return min(tally.classes.values(), default=tally.rows) >= SAFE_ROWS


def plain(batch: Batch) -> Batch:
    """Rows as arrays that can be kept, without what is no row."""
    X, y, weight = batch
    X = X.toarray() if issparse(X) else X
    y = np.asarray(y)
    if y.dtype == object:
        y = np.array(y.tolist())
    weights = np.ones(len(y)) if weight is None else np.broadcast_to(weight, len(y))
    kept = np.asarray(weights, dtype=np.float64) > 0
    return np.asarray(X, dtype=np.float64)[kept], y[kept], np.asarray(weights)[kept]


def _packed(batches: list[Batch]) -> bytes:
    file = io.BytesIO()
    arrays = {
        f"{i}{name}": a for i, b in enumerate(batches) for name, a in zip("Xyw", b, strict=True)
    }
    np.savez(file, **arrays, allow_pickle=False)
    return file.getvalue()


def _unpacked(content: bytes) -> Iterator[Batch]:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        for i in range(len(arrays.files) // 3):
            yield arrays[f"{i}X"], arrays[f"{i}y"], arrays[f"{i}w"]
