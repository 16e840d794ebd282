"""The rows held: how often each row was learned, under each id, and not yet forgotten.

A row is a digest and an id (`row_digests`), which is empty for a row without one. A request names a
row by both: then only a row under that id is taken. Or it names the digest alone: then a row with
that digest is taken under any id, the smallest first (no id is the smallest of all), so that the
choice depends on the rows held and on nothing else.

Rows of requests that wait in the queue are still held. They are reserved: no other request can
forget them, until they are removed by their own or it is cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from sqlite3 import Connection
from typing import NamedTuple

import numpy as np

from traceless.exceptions import StoreError
from traceless.knowledge.fingerprint import Lanes, from_bytes, to_bytes
from traceless.store.row_digests import SIZE, Counted, chunks, counted_lanes
from traceless.store.row_lanes import no_lanes

_CHUNK = 2**14  # digests in one statement
_ADD = "ON CONFLICT(digest, id) DO UPDATE SET count = count + excluded.count"
_THIS = "digest = ? AND id = ?"
_FREE, _QUEUED = "count > queued", "queued BETWEEN 1 AND count"
_KEEP = "ON CONFLICT(name) DO UPDATE SET content = excluded.content"


def _each_of(n: int) -> str:
    """A query for the pieces of a text, of n bytes each: a digest, and an id if there is room."""
    return f"""WITH RECURSIVE places(i) AS
        (SELECT 1 UNION ALL SELECT i + {n} FROM places WHERE i + {n} < length(:text))
        SELECT substr(:text, i, {SIZE}), substr(:text, i + {SIZE}, {n - SIZE})"""


class Taken(NamedTuple):
    """The result of taking rows.

    Attributes
    ----------
    missed : list of int
        Positions of the rows that are not available.
    ids : list of bytes
        The id that each row was held under; empty for those that are not available.
    """

    missed: list[int]
    ids: list[bytes]


@dataclass(frozen=True)
class RowCounts:
    """Row digests and ids with counts, in a transaction of the ledger."""

    _sql: Connection

    # --- changes --------------------------------------------------------------------------

    def add(self, digests: list[bytes], ids: list[bytes]) -> None:
        """Count rows that are learned."""
        for size, rows in _by_size(digests, ids):
            insert = f"INSERT INTO alive {_each_of(size)}, 1, 0 FROM places WHERE true {_ADD}"
            self._in_chunks(insert, rows)

    def add_counted(self, counted: Iterable[Counted]) -> None:
        """Count the rows of another store, each as often as it is held there."""
        self._sql.executemany(f"INSERT INTO alive VALUES (?, ?, ?, 0) {_ADD}", counted)

    def remove(self, digests: list[bytes], ids: list[bytes]) -> Taken:
        """Remove rows that are held and not reserved."""
        self._sql.execute("SAVEPOINT at_once")
        at_once = self._delete_many(digests, ids) == len(digests)
        if not at_once:  # some rows are equal, not held, or held under an id that was not given
            self._sql.execute("ROLLBACK TO at_once")
        self._sql.execute("RELEASE at_once")
        if at_once:
            return Taken([], ids)
        return self._take(digests, ids, _FREE, "count = count - 1")

    def reserve(self, digests: list[bytes], ids: list[bytes]) -> Taken:
        """Reserve rows that are held and not reserved already."""
        return self._take(digests, ids, _FREE, "queued = queued + 1")

    def remove_reserved(self, digests: list[bytes], ids: list[bytes]) -> Taken:
        """Remove rows that are reserved."""
        return self._take(digests, ids, _QUEUED, "count = count - 1, queued = queued - 1")

    def release(self, digests: list[bytes], ids: list[bytes]) -> Taken:
        """Give back rows that are reserved: their request was cancelled."""
        return self._take(digests, ids, _QUEUED, "queued = queued - 1")

    def clear(self) -> None:
        """Delete all digests and ids."""
        self._sql.execute("DELETE FROM alive")

    # --- what is held ---------------------------------------------------------------------

    def counted(self) -> Iterator[Counted]:
        """All rows: digest, id and count, in this order."""
        yield from self._sql.execute("SELECT digest, id, count FROM alive ORDER BY 1, 2")

    def reserved(self) -> dict[tuple[bytes, bytes], int]:
        """The reserved rows, as (digest, id), with their counts."""
        query = "SELECT digest, id, queued FROM alive WHERE queued > 0"
        return {(digest, one): n for digest, one, n in self._sql.execute(query)}

    def count_reserved(self, digests: Iterable[bytes]) -> int:
        """How many of these digests are reserved."""
        query = "SELECT 1 FROM alive WHERE digest = ? AND queued > 0"
        return sum(self._sql.execute(query, (d,)).fetchone() is not None for d in set(digests))

    def totals(self) -> tuple[int, Lanes]:
        """Number of rows and their lanes, recomputed; raises if the table has an impossible row."""
        rows, lanes = 0, no_lanes()
        query = "SELECT digest, id, count, queued FROM alive"
        for some in chunks(self._sql.execute(query)):
            for row in some:
                _check_row(*row)
            part, n = counted_lanes([row[:3] for row in some])
            rows, lanes = rows + n, lanes + part
        return rows, lanes

    def lanes_without_ids(self) -> Lanes:
        """The lanes that the rows held would have if none of them had an id."""
        total = no_lanes()
        for some in chunks(self.counted()):
            total += counted_lanes([(digest, b"", n) for digest, _, n in some])[0]
        return total

    # --- the running sum ------------------------------------------------------------------

    def kept_lanes(self) -> Lanes:
        """The lanes of the rows held, as they were kept by the last change."""
        found = self._sql.execute("SELECT content FROM sums WHERE name = 'alive'").fetchone()
        return no_lanes() if found is None else from_bytes(found[0])

    def keep_lanes(self, lanes: Lanes) -> None:
        """Keep the lanes of the rows held for the next change."""
        self._sql.execute(f"INSERT INTO sums VALUES ('alive', ?) {_KEEP}", (to_bytes(lanes),))

    # --- inside ---------------------------------------------------------------------------

    def _delete_many(self, digests: list[bytes], ids: list[bytes]) -> int:
        """Delete rows that are held once, and not reserved; returns how many there were."""
        delete = "DELETE FROM alive WHERE count = 1 AND queued = 0 AND (digest, id) IN"
        return sum(
            self._in_chunks(f"{delete} ({_each_of(size)} FROM places)", rows)
            for size, rows in _by_size(digests, ids)
        )

    def _in_chunks(self, statement: str, rows: list[bytes]) -> int:
        """Pass many rows as one text, in the order of the table: faster than single rows."""
        if not rows:
            return 0
        table = np.frombuffer(b"".join(rows), dtype=f"V{len(rows[0])}")
        ordered = table[np.argsort(np.frombuffer(table, dtype=">u8")[:: len(rows[0]) // 8])]
        parts = (ordered[i : i + _CHUNK].tobytes() for i in range(0, len(rows), _CHUNK))
        return sum(self._sql.execute(statement, {"text": text}).rowcount for text in parts)

    def _take(self, digests: list[bytes], ids: list[bytes], which: str, change: str) -> Taken:
        """Change the counts of rows, one by one."""
        missed, found = [], []
        for i, (digest, one) in enumerate(zip(digests, ids, strict=True)):
            held_as = self._find(digest, one, which)
            if held_as is None:
                missed.append(i)
            else:
                row = digest, held_as
                self._sql.execute(f"UPDATE alive SET {change} WHERE {_THIS}", row)
                self._sql.execute(f"DELETE FROM alive WHERE {_THIS} AND count = 0", row)
            found.append(held_as or b"")
        return Taken(missed, found)

    def _find(self, digest: bytes, one: bytes, which: str) -> bytes | None:
        """The id under which a row is held; of several the smallest."""
        # what waits is kept with the id that it is held under, which may be none
        row, named = (_THIS, (digest, one)) if one or which != _FREE else ("digest = ?", (digest,))
        query = f"SELECT id FROM alive WHERE {row} AND {which} ORDER BY id LIMIT 1"
        found = self._sql.execute(query, named).fetchone()
        return None if found is None else bytes(found[0])


def _by_size(digests: list[bytes], ids: list[bytes]) -> list[tuple[int, list[bytes]]]:
    """Digests, each with its id behind it, by the length of both together."""
    if not any(ids):
        return [(SIZE, digests)]
    joined = [digest + one for digest, one in zip(digests, ids, strict=True)]
    return [(n, [row for row in joined if len(row) == n]) for n in (SIZE, 2 * SIZE)]


def _check_row(digest: bytes, one: bytes, count: int, queued: int) -> None:
    """Raise if no change could have left such a row."""
    texts = type(digest) is type(one) is bytes and len(digest) == SIZE and len(one) in (0, SIZE)
    numbers = type(count) is type(queued) is int and 0 <= queued <= count and count > 0
    if not (texts and numbers):
        raise StoreError(
            f"a row that no change could leave: {digest!r}, {one!r}, {count}, {queued}"
        )
