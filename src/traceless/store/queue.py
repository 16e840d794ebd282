"""Requests to forget that wait for others, so that no row is forgotten alone.

The arrival of a request is an entry of the ledger, with a receipt. Its rows are reserved in the
table of rows, and kept here until they are forgotten; then they are overwritten with zeros. The
entry signs a keyed hash of the bytes in which they are kept, and of the records reserved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import TYPE_CHECKING

from traceless.exceptions import StoreError

if TYPE_CHECKING:
    from traceless.store.entries import Entry
    from traceless.store.receipts import Receipt
    from traceless.store.row_digests import RowBatch, RowHasher
    from traceless.store.row_table import RowTable

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
    sequence : int
        Number of the entry of its arrival.
    receipt : Receipt or None
        Of that entry: evidence that the request arrived.
    replayed : bool
        Whether the same request was in the queue already.
    """

    time: str
    key: str | None
    rows: int
    classes: Mapping[str, int]
    sequence: int
    receipt: Receipt | None = field(default=None, compare=False)
    replayed: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, receipt: Receipt, replayed: bool = False) -> Queued:
        """The request that came with an entry."""
        key, facts = next(iter(receipt.keys), None), dict(receipt.classes)
        return cls(receipt.time, key, receipt.rows, facts, receipt.sequence, receipt, replayed)


@dataclass(frozen=True)
class Queue:
    """The rows of the requests that wait, in a transaction of the ledger."""

    _sql: Connection

    def put(self, sequence: int, content: bytes) -> None:
        """Add the request that came with an entry, whose rows are in these bytes."""
        self._sql.execute("INSERT INTO queue VALUES (?, ?)", (sequence, content))

    def numbers(self) -> list[int]:
        """The entries of all requests, the oldest first."""
        return [n for (n,) in self._sql.execute("SELECT sequence FROM queue ORDER BY sequence")]

    def checked(self, entry: Entry, rows: RowTable, hasher: RowHasher) -> list[RowBatch]:
        """The rows of a request; raises unless they and their records are those of its entry."""
        from traceless.store.row_digests import unpacked

        query = "SELECT content FROM queue WHERE sequence = ?"
        (content,) = self._sql.execute(query, (entry.sequence,)).fetchone() or (None,)
        content, reserved = content if type(content) is bytes else b"", rows.waiting(entry.sequence)
        if entry.kind != "queue" or hasher.queued(content, reserved) != entry.queued:
            raise StoreError(
                f"The ledger is damaged: the request that waits since entry {entry.sequence} is "
                "not the one that came. Restore the store from a backup. Nothing was changed."
            )
        return list(unpacked(content))

    def clear(self, which: int | None = None) -> None:
        """Delete all requests, or the one with this number."""
        self._sql.execute("DELETE FROM queue WHERE ?1 IS NULL OR sequence = ?1", (which,))
