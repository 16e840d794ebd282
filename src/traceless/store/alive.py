"""The rows alive: how often each digest was learned and not yet forgotten.

Rows that wait in the queue are still alive, and spoken for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from sqlite3 import Connection

from traceless.store.rows import SIZE, digest_sum

_MANY = 2**14  # digests in one statement
_MORE = "ON CONFLICT(digest) DO UPDATE SET count = count + excluded.count"
_LEARN = f"INSERT INTO alive VALUES (?, ?, 0) {_MORE}"
_EACH = f"""WITH RECURSIVE places(i) AS
    (SELECT 1 UNION ALL SELECT i + {SIZE} FROM places WHERE i + {SIZE} < length(:text))
    SELECT substr(:text, i, {SIZE})"""
_LEARN_MANY = f"INSERT INTO alive {_EACH}, 1, 0 FROM places WHERE true {_MORE}"
_LAST_OF_MANY = f"""DELETE FROM alive
    WHERE digest IN ({_EACH} FROM places) AND count = 1 AND queued = 0"""
_LAST = "DELETE FROM alive WHERE digest = ? AND count = 1 AND queued = 0"
_LESS = "UPDATE alive SET count = count - 1 WHERE digest = ? AND count > max(queued, 1)"
_RESERVE = "UPDATE alive SET queued = queued + 1 WHERE digest = ? AND count > queued"
_LAST_QUEUED = "DELETE FROM alive WHERE digest = ? AND count = 1 AND queued = 1"
_LESS_QUEUED = """UPDATE alive SET count = count - 1, queued = queued - 1
    WHERE digest = ? AND count > 1 AND queued > 0"""


class Alive:
    """Digests with counts, in a transaction of the ledger."""

    def __init__(self, sql: Connection) -> None:
        self._sql = sql

    def learn(self, digests: Iterable[bytes]) -> None:
        """Rows that come."""
        self._many(_LEARN_MANY, digests)

    def learn_counted(self, counted: Iterable[tuple[bytes, int]]) -> None:
        """Rows that come from another store."""
        self._sql.executemany(_LEARN, counted)

    def forget(self, digests: Iterable[bytes]) -> list[int]:
        """Rows that go; returns the places of those that are not alive, or spoken for."""
        digests = list(digests)
        self._sql.execute("SAVEPOINT at_once")
        at_once = self._many(_LAST_OF_MANY, digests) == len(digests)
        if not at_once:  # some are equal, or not alive
            self._sql.execute("ROLLBACK TO at_once")
        self._sql.execute("RELEASE at_once")
        return [] if at_once else self._each(digests, _LAST, _LESS)

    def reserve(self, digests: Iterable[bytes]) -> list[int]:
        """Rows that are to go; returns the places of those that are not alive, or spoken for."""
        return self._each(digests, _RESERVE)

    def forget_queued(self, digests: Iterable[bytes]) -> list[int]:
        """Reserved rows that go; returns the places of those that were not reserved."""
        return self._each(digests, _LAST_QUEUED, _LESS_QUEUED)

    def queued_among(self, digests: Iterable[bytes]) -> int:
        """How many of these digests are spoken for by the queue."""
        query = "SELECT 1 FROM alive WHERE digest = ? AND queued > 0"
        return sum(self._sql.execute(query, (d,)).fetchone() is not None for d in set(digests))

    def counted(self) -> Iterator[tuple[bytes, int]]:
        """All digests with their counts."""
        yield from self._sql.execute("SELECT digest, count FROM alive")

    def queued(self) -> Iterator[tuple[bytes, int]]:
        """All digests that are spoken for, and how often."""
        yield from self._sql.execute("SELECT digest, queued FROM alive WHERE queued > 0")

    def totals(self) -> tuple[int, int]:
        """Number of rows and the checksum over them, recomputed."""
        rows = checksum = 0
        found = self._sql.execute("SELECT digest, count FROM alive")
        while part := found.fetchmany(2**14):
            rows += sum(n for _, n in part)
            checksum += digest_sum(d for d, _ in part)
            checksum += sum((n - 1) * int.from_bytes(d, "little") for d, n in part if n != 1)
        return rows, checksum

    def clear(self) -> None:
        """Drop all digests."""
        self._sql.execute("DELETE FROM alive")

    def _many(self, statement: str, digests: Iterable[bytes]) -> int:
        """Many digests in one text, several times as fast as one by one; rows affected."""
        ordered = sorted(digests)
        texts = (b"".join(ordered[i : i + _MANY]) for i in range(0, len(ordered), _MANY))
        return sum(self._sql.execute(statement, {"text": text}).rowcount for text in texts)

    def _each(self, digests: Iterable[bytes], *statements: str) -> list[int]:
        """Run the first statement that finds the digest; returns the places where none does."""
        run = self._sql.execute
        return [
            place
            for place, digest in enumerate(digests)
            if not any(run(statement, (digest,)).rowcount for statement in statements)
        ]
