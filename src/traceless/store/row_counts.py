"""The rows held: how often each row digest was learned and not yet forgotten.

Rows of requests that wait in the queue are still held. They are reserved: no other request can
forget them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from sqlite3 import Connection

from traceless.store.row_digests import SIZE

_CHUNK = 2**14  # digests in one statement
_ADD = "ON CONFLICT(digest) DO UPDATE SET count = count + excluded.count"
_EACH_OF_TEXT = f"""WITH RECURSIVE places(i) AS
    (SELECT 1 UNION ALL SELECT i + {SIZE} FROM places WHERE i + {SIZE} < length(:text))
    SELECT substr(:text, i, {SIZE})"""
_ADD_MANY = f"INSERT INTO alive {_EACH_OF_TEXT}, 1, 0 FROM places WHERE true {_ADD}"
_DELETE_MANY = f"""DELETE FROM alive
    WHERE digest IN ({_EACH_OF_TEXT} FROM places) AND count = 1 AND queued = 0"""
_REMOVE = "UPDATE alive SET count = count - 1 WHERE digest = ? AND count > queued"
_RESERVE = "UPDATE alive SET queued = queued + 1 WHERE digest = ? AND count > queued"
_REMOVE_RESERVED = """UPDATE alive SET count = count - 1, queued = queued - 1
    WHERE digest = ? AND queued BETWEEN 1 AND count"""
_DELETE_EMPTY = "DELETE FROM alive WHERE digest = ? AND count = 0"


@dataclass(frozen=True)
class RowCounts:
    """Row digests with counts, in a transaction of the ledger."""

    _sql: Connection

    def add(self, digests: Iterable[bytes]) -> None:
        """Count rows that are learned."""
        self._in_chunks(_ADD_MANY, digests)

    def add_counted(self, counted: Iterable[tuple[bytes, int]]) -> None:
        """Count the rows of another store, each as often as it is held there."""
        self._sql.executemany(f"INSERT INTO alive VALUES (?, ?, 0) {_ADD}", counted)

    def remove(self, digests: list[bytes]) -> list[int]:
        """Remove rows; returns the positions of those that are not held, or are reserved."""
        self._sql.execute("SAVEPOINT at_once")
        at_once = self._in_chunks(_DELETE_MANY, digests) == len(digests)
        if not at_once:  # some rows are equal, or not held
            self._sql.execute("ROLLBACK TO at_once")
        self._sql.execute("RELEASE at_once")
        return [] if at_once else self._remove_each(_REMOVE, digests)

    def reserve(self, digests: list[bytes]) -> list[int]:
        """Reserve rows; returns the positions of those that are not held, or reserved already."""
        return self._missed(_RESERVE, digests)

    def remove_reserved(self, digests: list[bytes]) -> list[int]:
        """Remove reserved rows; returns the positions of those that were not reserved."""
        return self._remove_each(_REMOVE_RESERVED, digests)

    def count_reserved(self, digests: Iterable[bytes]) -> int:
        """How many of these digests are reserved."""
        query = "SELECT 1 FROM alive WHERE digest = ? AND queued > 0"
        return sum(self._sql.execute(query, (d,)).fetchone() is not None for d in set(digests))

    def counted(self) -> Iterator[tuple[bytes, int]]:
        """All digests with their counts."""
        yield from self._sql.execute("SELECT digest, count FROM alive")

    def reserved(self) -> dict[bytes, int]:
        """The reserved digests with their counts."""
        return dict(self._sql.execute("SELECT digest, queued FROM alive WHERE queued > 0"))

    def totals(self) -> tuple[int, int]:
        """Number of rows and the sum of their digests, recomputed."""
        rows = checksum = 0
        for digest, n in self.counted():
            rows += n
            checksum += n * int.from_bytes(digest, "little")
        return rows, checksum

    def clear(self) -> None:
        """Delete all digests."""
        self._sql.execute("DELETE FROM alive")

    def _in_chunks(self, statement: str, digests: Iterable[bytes]) -> int:
        """Pass many digests as one text: several times as fast as one by one."""
        ordered, changed = sorted(digests), 0
        for i in range(0, len(ordered), _CHUNK):
            text = b"".join(ordered[i : i + _CHUNK])
            changed += self._sql.execute(statement, {"text": text}).rowcount
        return changed

    def _remove_each(self, statement: str, digests: list[bytes]) -> list[int]:
        missed = self._missed(statement, digests)
        self._sql.executemany(_DELETE_EMPTY, ((digest,) for digest in digests))
        return missed

    def _missed(self, statement: str, digests: list[bytes]) -> list[int]:
        """Run a statement for each digest; returns the positions where it changed nothing."""
        run = self._sql.execute
        return [i for i, digest in enumerate(digests) if not run(statement, (digest,)).rowcount]
