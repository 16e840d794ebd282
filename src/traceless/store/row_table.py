"""The rows held and the people they are of, with one multiset hash over the records of both.

    record = digest, id, entry, request       and how often it is held
    person = name, id                         the keyed hash of an id that a user gave, and
                                              16 random bytes that go with its last row
    Σ h(record) + Σ h(person)  mod 2^16 in 1024 lanes   h: 2048 bytes of BLAKE3 (LtHash)

`id` stands in the table of rows for the person that a row is about, if any. So a copy of the folder
tells of somebody only while rows of theirs are held; what remains in the record are hashes over
random bytes that nobody has any more. `entry` is the number of the change that learned the row, and
`request` that of the entry in which a request for it came that waits in the queue, or 0. Rows that
wait are still held; no other request can take them.

A request to forget names a row by digest and id: then only a row of that person is taken. Or it
names the digest alone: then any row with that digest, that of the smallest id first (no id is the
smallest of all) and of the earliest entry, so that the choice depends on the rows held alone.

The hash has no secret: to find other records with the same sum is as hard as a lattice problem of
more than 200 bits, while no record is held tens of thousands of times (see `fingerprint`).
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from sqlite3 import Connection
from struct import pack
from typing import Any, NamedTuple

import numpy as np

from traceless.exceptions import StoreError
from traceless.knowledge.fingerprint import LANES, Lanes, from_bytes, hashed, to_bytes
from traceless.store.people import SIZE, ids_of, numbers_of

_CHUNK = 2**14  # rows in one statement
_KEY = hashlib.sha256(b"traceless records 1").digest()
_ADD = "ON CONFLICT DO UPDATE SET count = count + excluded.count"
_IMPOSSIBLE = f"""SELECT 1 FROM rows WHERE typeof(digest) <> 'blob' OR length(digest) <> {SIZE}
    OR typeof(id) <> 'blob' OR length(id) NOT IN (0, {SIZE}) OR typeof(entry) <> 'integer'
    OR typeof(request) <> 'integer' OR typeof(count) <> 'integer'
    OR entry < 1 OR request < 0 OR count < 1
    UNION ALL SELECT 1 FROM people WHERE typeof(name) <> 'blob' OR length(name) <> {SIZE}
    OR typeof(id) <> 'blob' OR length(id) <> {SIZE}"""


class Record(NamedTuple):
    """A row of the table, without its count."""

    digest: bytes
    id: bytes
    entry: int
    request: int = 0


Counted = tuple[list[Record], list[int]]  # and how often each is held


def no_lanes() -> Lanes:
    """The lanes of nothing."""
    return np.zeros(LANES, dtype=np.uint16)


def lanes_text(lanes: Lanes) -> str:
    """SHA-256 of the lanes, in hexadecimal: what entries say of the records."""
    return hashlib.sha256(to_bytes(lanes)).hexdigest()


class RowTable:
    """The rows held, in a transaction of the ledger; what it changes, it changes in the sum too.

    Parameters
    ----------
    connection : sqlite3.Connection
    """

    def __init__(self, connection: Connection) -> None:
        self._sql = connection
        self._lanes = no_lanes()  # change in the sum
        self._numbers = Counter[bytes]()  # change in the number of rows of each id
        self._new = dict[bytes, bytes]()  # ids of names that this change has learned first
        self._cleared = False

    # --- rows -----------------------------------------------------------------------------

    def add(self, digests: list[bytes], ids: list[bytes], entry: int) -> None:
        """Count rows that an entry learns, each under an id or none."""
        for size, texts in _by_size(digests, ids):
            insert = f"INSERT INTO rows {_each(size)}, {int(entry)}, 0, 1 FROM places WHERE true"
            for _ in self._each_chunk(f"{insert} {_ADD}", texts):
                pass
        end = pack("<qq", entry, 0)
        self._lanes += hashed([d + one + end for d, one in zip(digests, ids, strict=True)], _KEY)
        self._numbers.update(filter(None, ids))

    def put(self, records: Sequence[Record], counts: Sequence[int] | None = None) -> None:
        """Count records, each so often."""
        counts = [1] * len(records) if counts is None else counts
        rows = [(*record, count) for record, count in zip(records, counts, strict=True)]
        self._sql.executemany(f"INSERT INTO rows VALUES (?, ?, ?, ?, ?) {_ADD}", rows)
        self._count(records, counts)

    def take(
        self, digests: list[bytes], ids: list[bytes], entry: int | None = None
    ) -> list[Record | None]:
        """Remove rows that do not wait; returns the record of each, or None if it is not there.

        Only rows of `entry` are taken, if it is given.
        """
        found = self._delete(digests, ids, entry)  # those of this id, of which some may go back
        taken = [_one_of(found.get(pair)) for pair in zip(digests, ids, strict=True)]
        rows = [(*record, count) for each in found.values() for record, count in each]
        self._sql.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", rows)
        for i, record in enumerate(taken):
            if record is None and not ids[i]:  # any id will do
                taken[i] = self._take_one(digests[i], entry)
        gone = [record for record in taken if record is not None]
        self._count(gone, [-1] * len(gone))
        return taken

    def waiting(self, request: int) -> Counted:
        """The records of a request that waits, in the order of the table, and their counts."""
        query = "SELECT * FROM rows WHERE request = ? ORDER BY digest, id, entry"
        rows = self._sql.execute(query, (request,)).fetchall()
        return [Record(*record) for *record, _ in rows], [row[-1] for row in rows]

    def take_waiting(self, request: int) -> Counted:
        """Remove the rows of a request that waits."""
        records, counts = self.waiting(request)
        self._sql.execute("DELETE FROM rows WHERE request = ?", (request,))
        self._count(records, [-n for n in counts])
        return records, counts

    def held(self, digests: list[bytes], ids: list[bytes], before: int) -> set[tuple[bytes, bytes]]:
        """Digest and id of those rows of earlier entries that have the same id, or none."""
        query = f"SELECT digest, id FROM rows WHERE entry < {int(before)} AND (digest, id) IN"
        found = set[tuple[bytes, bytes]]()
        for size, texts in _by_size(digests, ids):
            for rows in self._each_chunk(f"{query} ({_each(size)} FROM places)", texts):
                found.update(rows)
        return found

    def count_waiting(self, digests: Iterable[bytes]) -> int:
        """How many of these digests wait in the queue."""
        query = "SELECT 1 FROM rows WHERE digest = ? AND request > 0"
        return sum(self._sql.execute(query, (d,)).fetchone() is not None for d in set(digests))

    def named(self) -> Iterator[tuple[bytes, bytes, int]]:
        """Digest, keyed hash of the id, and count of all rows, for another store."""
        yield from self._sql.execute(
            "SELECT digest, coalesce(name, x''), sum(count) FROM rows LEFT JOIN people USING (id) "
            "GROUP BY 1, 2 ORDER BY 1, 2"
        )

    def clear(self) -> None:
        """Delete all rows and people."""
        for table in ("rows", "people", "sums"):
            self._sql.execute(f"DELETE FROM {table}")
        self._lanes, self._cleared = no_lanes(), True
        self._numbers.clear()
        self._new.clear()

    # --- people ---------------------------------------------------------------------------

    def ids(self, names: Iterable[bytes], new: bool = False) -> dict[bytes, bytes]:
        """The ids of names that are known; with `new` others get one."""
        asked = set(names) - {b""}
        found = {name: self._new[name] for name in asked & self._new.keys()}
        found |= ids_of(self._sql, asked - found.keys())
        if new:
            left = list(asked - found.keys())
            salt = os.urandom(SIZE * len(left))
            made = {name: salt[SIZE * i : SIZE * (i + 1)] for i, name in enumerate(left)}
            self._lanes += _lanes_of_people(made.items())
            self._new |= made
            found |= made
        return found

    def numbers(self, ids: Iterable[bytes]) -> dict[bytes, tuple[int, int]]:
        """How many rows of each id are held, before this change, and how many of them wait."""
        return numbers_of(self._sql, ids)

    def learned_now(self, one: bytes) -> bool:
        """Whether this change has learned rows of an id."""
        return one in self._numbers

    def settle(self) -> list[bytes]:
        """Settle the numbers of rows of people; returns the names of those whose last is gone."""
        new = sorted((name, one, self._numbers.pop(one)) for name, one in self._new.items())
        self._sql.executemany("INSERT INTO people VALUES (?, ?, ?)", new)
        moved = [(n, one) for one, n in self._numbers.items() if n]
        self._sql.executemany("UPDATE people SET rows = rows + ? WHERE id = ?", moved)
        query = "DELETE FROM people WHERE id = ? AND rows = 0 RETURNING name, id"
        fewer = [(one,) for one, n in self._numbers.items() if n <= 0]
        gone = [row for one in fewer for row in self._sql.execute(query, one).fetchall()]
        self._lanes -= _lanes_of_people(gone)
        self._new.clear()
        self._numbers.clear()
        return [name for name, _ in gone]

    # --- the hash -------------------------------------------------------------------------

    def totals(self) -> tuple[int, Lanes]:
        """Number of rows, and the lanes of all records; raises if one is impossible."""
        if self._sql.execute(_IMPOSSIBLE).fetchone():
            raise StoreError("there is a row, or a person, that no change could leave")
        rows, lanes = 0, no_lanes()
        for some in self._chunks("SELECT * FROM rows"):
            counts = [row[-1] for row in some]
            lanes += _lanes_of([Record(*row[:-1]) for row in some], counts)
            rows += sum(counts)
        for pairs in self._chunks("SELECT name, id FROM people"):
            lanes += _lanes_of_people(pairs)
        query = "SELECT id, sum(count) FROM rows WHERE id <> x'' GROUP BY id"
        people = dict(self._sql.execute("SELECT id, rows FROM people"))
        if people != dict(self._sql.execute(query)):
            raise StoreError("the numbers of rows of people are not those of the rows")
        return rows, lanes

    def kept_lanes(self) -> Lanes:
        """The lanes of all records, as they were kept by the last change."""
        found = self._sql.execute("SELECT content FROM sums").fetchone()
        return no_lanes() if found is None else from_bytes(found[0])

    def keep_lanes(self, before: str | None) -> str:
        """Keep the lanes of all records, whose hash was `before`, for the next change.

        Returns their hash.
        """
        kept = self.kept_lanes()
        if not self._cleared and lanes_text(kept) != before:
            raise StoreError(
                "The ledger is damaged: the sum over the rows held is not that of the latest "
                "entry. Restore the store from a backup. Nothing was changed."
            )
        lanes, self._lanes = kept + self._lanes, no_lanes()
        self._sql.execute("DELETE FROM sums")
        self._sql.execute("INSERT INTO sums VALUES (?)", (to_bytes(lanes),))
        return lanes_text(lanes)

    # --- inside ---------------------------------------------------------------------------

    def _count(self, records: Sequence[Record], counts: Sequence[int]) -> None:
        """Add records to the sum, and to the numbers of people."""
        self._lanes += _lanes_of(records, counts)
        for record, n in zip(records, counts, strict=True):
            if record.id:
                self._numbers[record.id] += n

    def _delete(
        self, digests: list[bytes], ids: list[bytes], entry: int | None
    ) -> dict[tuple[bytes, bytes], list[tuple[Record, int]]]:
        """Delete rows of these ids, however often they are held; the earliest comes last."""
        of = "" if entry is None else f" AND entry = {int(entry)}"
        delete = f"DELETE FROM rows WHERE request = 0{of} AND (digest, id) IN"
        found = defaultdict[tuple[bytes, bytes], list[tuple[Record, int]]](list)
        for size, texts in _by_size(digests, ids):
            for rows in self._each_chunk(
                f"{delete} ({_each(size)} FROM places) RETURNING *", texts
            ):
                for *record, count in sorted(rows, reverse=True):
                    found[record[0], record[1]].append((Record(*record), count))
        return found

    def _take_one(self, digest: bytes, entry: int | None) -> Record | None:
        """Remove a row of any id."""
        query = """SELECT digest, id, entry, request FROM rows WHERE digest = ?1 AND request = 0
            AND (?2 IS NULL OR entry = ?2) ORDER BY id, entry LIMIT 1"""
        found = self._sql.execute(query, (digest, entry)).fetchone()
        if found is None:
            return None
        this = "digest = ? AND id = ? AND entry = ? AND request = ?"
        self._sql.execute(f"UPDATE rows SET count = count - 1 WHERE {this}", found)
        self._sql.execute(f"DELETE FROM rows WHERE {this} AND count = 0", found)
        return Record(*found)

    def _chunks(self, query: str) -> Iterator[list[Any]]:
        return iter(partial(self._sql.execute(query).fetchmany, _CHUNK), [])

    def _each_chunk(self, statement: str, texts: list[bytes]) -> Iterator[list[Any]]:
        """Pass many rows as one text, in the order of the table: faster than single rows."""
        if texts:
            table = np.frombuffer(b"".join(texts), dtype=f"V{len(texts[0])}")
            ordered = table[np.argsort(np.frombuffer(table, dtype=">u8")[:: len(texts[0]) // 8])]
            for i in range(0, len(texts), _CHUNK):
                text = ordered[i : i + _CHUNK].tobytes()
                yield self._sql.execute(statement, {"text": text}).fetchall()


def _one_of(held: list[tuple[Record, int]] | None) -> Record | None:
    """Take one of some records, each of which is held so often, from their end."""
    if not held:
        return None
    record, count = held.pop()
    if count > 1:
        held.append((record, count - 1))
    return record


def _lanes_of(records: Sequence[Record], counts: Sequence[int] | None = None) -> Lanes:
    return hashed([d + one + pack("<qq", *numbers) for d, one, *numbers in records], _KEY, counts)


def _lanes_of_people(pairs: Iterable[tuple[bytes, bytes]]) -> Lanes:
    return hashed([name + one + b"person" for name, one in pairs], _KEY)


def _each(n: int) -> str:
    """A query for the pieces of a text, of n bytes each: a digest, and an id if there is room."""
    one = f"substr(:text, i + {SIZE}, {n - SIZE})" if n > SIZE else "x''"
    return f"""WITH RECURSIVE places(i) AS
        (SELECT 1 UNION ALL SELECT i + {n} FROM places WHERE i + {n} < length(:text))
        SELECT substr(:text, i, {SIZE}), {one}"""


def _by_size(digests: list[bytes], ids: list[bytes]) -> list[tuple[int, list[bytes]]]:
    """Digests, each with its id behind it, by the length of both together."""
    if not any(ids):
        return [(SIZE, digests)]
    joined = [digest + one for digest, one in zip(digests, ids, strict=True)]
    return [(n, [text for text in joined if len(text) == n]) for n in (SIZE, 2 * SIZE)]
