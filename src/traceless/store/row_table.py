"""The table of the rows held: what each record of it is, and the multiset hash over all of them.

    record = digest, id, entry, request       and how often it is held
    Σ h(record)  mod 2^16 in 1024 lanes        h: 2048 bytes of BLAKE3 (LtHash, as `fingerprint`)

`id` stands for the person that the row is about, if any (`people`), `entry` is the number of the
change that learned it, and `request` of that in which a request for it came that waits in the
queue, or 0. Rows that wait are still held; no other request can take them.

A request to forget names a row by digest and id: then only a row of that person is taken. Or it
names the digest alone: then any row with that digest, that of the smallest id first (no id is the
smallest of all) and of the earliest entry, so that the choice depends on the rows held alone.

The hash has no secret: to find other records with the same sum is as hard as a lattice problem of
more than 200 bits, while no record is held tens of thousands of times (see `fingerprint`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, starmap
from sqlite3 import Connection
from struct import pack
from typing import Any, NamedTuple

import numpy as np

from traceless.exceptions import StoreError
from traceless.knowledge.fingerprint import LANES, Lanes, from_bytes, hashed, to_bytes
from traceless.store.people import SIZE

_CHUNK = 2**14  # rows in one statement
_KEY = hashlib.sha256(b"traceless records 1").digest()
_ADD = "ON CONFLICT DO UPDATE SET count = count + excluded.count"
_THIS = "digest = ? AND id = ? AND entry = ? AND request = ?"


class Record(NamedTuple):
    """A row of the table, without its count."""

    digest: bytes
    id: bytes
    entry: int
    request: int = 0


def lanes_of(records: Iterable[Record], counts: Sequence[int] | None = None) -> Lanes:
    """The sum of the hashes of records."""
    return hashed([d + one + pack("<qq", *numbers) for d, one, *numbers in records], _KEY, counts)


def lanes_of_new(digests: list[bytes], ids: list[bytes], entry: int) -> Lanes:
    """The lanes of rows that an entry learns."""
    end = pack("<qq", entry, 0)
    items = [digest + end for digest in digests]
    if any(ids):
        items = [digest + one + end for digest, one in zip(digests, ids, strict=True)]
    return hashed(items, _KEY)


def lanes_of_pairs(pairs: Iterable[tuple[bytes, bytes]]) -> Lanes:
    """The sum of the hashes of the records of people: the keyed hash of an id, and what it has."""
    return hashed([name + one + b"person" for name, one in pairs], _KEY)


def no_lanes() -> Lanes:
    """The lanes of nothing."""
    return np.zeros(LANES, dtype=np.uint16)


def lanes_text(lanes: Lanes) -> str:
    """SHA-256 of the lanes, in hexadecimal: what entries say of the records."""
    return hashlib.sha256(to_bytes(lanes)).hexdigest()


@dataclass(frozen=True)
class RowTable:
    """The rows held, in a transaction of the ledger."""

    _sql: Connection

    def add(self, digests: list[bytes], ids: list[bytes], entry: int) -> None:
        """Count rows that an entry learns."""
        for size, texts in _by_size(digests, ids):
            insert = f"INSERT INTO rows {_each(size)}, {int(entry)}, 0, 1 FROM places WHERE true"
            self._in_chunks(f"{insert} {_ADD}", texts)

    def put(self, records: Iterable[Record], counts: Iterable[int] | None = None) -> None:
        """Count rows, each by itself."""
        records = list(records)
        each = zip(records, counts or [1] * len(records), strict=True)
        rows = [(*record, count) for record, count in each]
        self._sql.executemany(f"INSERT INTO rows VALUES (?, ?, ?, ?, ?) {_ADD}", rows)

    def take(
        self, digests: list[bytes], ids: list[bytes], request: int = 0, entry: int | None = None
    ) -> tuple[list[int], list[Record], list[bytes]]:
        """Remove rows of a request that waits, or of none: positions of those that are not there.

        Returns also the records of the others, and in the order of the rows the ids of these.
        """
        wanted = list(zip(digests, ids, strict=True))
        if len(set(wanted)) == len(wanted):
            self._sql.execute("SAVEPOINT at_once")
            found = self._delete_many(digests, ids, request, entry)
            if len(wanted) == len(found) == len({(digest, one) for digest, one, *_ in found}):
                self._sql.execute("RELEASE at_once")
                return [], found, ids
            self._sql.execute("ROLLBACK TO at_once")  # held twice, or not, or under another id
            self._sql.execute("RELEASE at_once")
        missed, taken = [], []
        for i, (digest, one) in enumerate(wanted):
            record = self._take_one(digest, one, request, entry)
            if record is None:
                missed.append(i)
            else:
                taken.append(record)
        return missed, taken, [record.id for record in taken]

    def held(self, digests: list[bytes], ids: list[bytes], before: int) -> set[tuple[bytes, bytes]]:
        """Digest and id of those rows that have an id, and were learned before an entry."""
        query = f"SELECT digest, id FROM rows WHERE entry < {int(before)} AND (digest, id) IN"
        found = set[tuple[bytes, bytes]]()
        for size, texts in _by_size(digests, ids) if any(ids) else ():
            for rows in self._each_chunk(f"{query} ({_each(size)} FROM places)", texts):
                found.update(row for row in rows if row[1])
        return found

    def clear(self) -> None:
        """Delete all rows and people."""
        self._sql.execute("DELETE FROM rows")
        self._sql.execute("DELETE FROM people")

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

    # --- the hash -------------------------------------------------------------------------

    def totals(self) -> tuple[int, Lanes]:
        """Number of rows, and the lanes of all records; raises if one is impossible."""
        rows, lanes = 0, no_lanes()
        for some in chunks(self._sql.execute("SELECT * FROM rows")):
            for row in some:
                _check_row(*row)
            counts = [row[-1] for row in some]
            lanes += lanes_of((Record(*row[:-1]) for row in some), counts)
            rows += sum(counts)
        for pairs in chunks(self._sql.execute("SELECT name, id FROM people")):
            if any(len(name) != SIZE or len(one) != SIZE for name, one in pairs):
                raise StoreError("a person that no change could leave")
            lanes += lanes_of_pairs(pairs)
        query = "SELECT id, sum(count) FROM rows WHERE id <> x'' GROUP BY id"
        people = dict(self._sql.execute("SELECT id, rows FROM people"))
        if people != dict(self._sql.execute(query)):
            raise StoreError("the numbers of rows of people are not those of the rows")
        return rows, lanes

    def kept_lanes(self) -> Lanes:
        """The lanes of all records, as they were kept by the last change."""
        found = self._sql.execute("SELECT content FROM sums").fetchone()
        return no_lanes() if found is None else from_bytes(found[0])

    def keep_lanes(self, lanes: Lanes) -> None:
        """Keep the lanes of all records for the next change."""
        self._sql.execute("DELETE FROM sums")
        self._sql.execute("INSERT INTO sums VALUES (?)", (to_bytes(lanes),))

    # --- inside ---------------------------------------------------------------------------

    def _delete_many(
        self, digests: list[bytes], ids: list[bytes], request: int, entry: int | None
    ) -> list[Record]:
        """Delete the rows that are held once."""
        of = "" if entry is None else f" AND entry = {entry}"
        delete = f"DELETE FROM rows WHERE count = 1 AND request = {request}{of} AND (digest, id) IN"
        back, found = "RETURNING digest, id, entry, request", list[Record]()
        for size, texts in _by_size(digests, ids):
            for rows in self._each_chunk(f"{delete} ({_each(size)} FROM places) {back}", texts):
                found += starmap(Record, rows)
        return found

    def _in_chunks(self, statement: str, texts: list[bytes]) -> None:
        for _ in self._each_chunk(statement, texts):
            pass

    def _each_chunk(self, statement: str, texts: list[bytes]) -> Iterator[list[Any]]:
        """Pass many rows as one text, in the order of the table: faster than single rows."""
        if texts:
            table = np.frombuffer(b"".join(texts), dtype=f"V{len(texts[0])}")
            ordered = table[np.argsort(np.frombuffer(table, dtype=">u8")[:: len(texts[0]) // 8])]
            for i in range(0, len(texts), _CHUNK):
                text = ordered[i : i + _CHUNK].tobytes()
                yield self._sql.execute(statement, {"text": text}).fetchall()

    def _take_one(
        self, digest: bytes, one: bytes, request: int, entry: int | None
    ) -> Record | None:
        # what waits is kept with the id that it is held under, which may be none
        exact = one or request
        row, given = ("digest = ? AND id = ?", [digest, one]) if exact else ("digest = ?", [digest])
        row += "" if entry is None else f" AND entry = {entry}"
        query = f"SELECT digest, id, entry, request FROM rows WHERE {row} AND request = {request}"
        found = self._sql.execute(f"{query} ORDER BY id, entry LIMIT 1", given).fetchone()
        if found is None:
            return None
        self._sql.execute(f"UPDATE rows SET count = count - 1 WHERE {_THIS}", found)
        self._sql.execute(f"DELETE FROM rows WHERE {_THIS} AND count = 0", found)
        return Record(*found)


def chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """Rows in lists of a moderate length."""
    left = iter(rows)
    while some := list(islice(left, _CHUNK)):
        yield some


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


def _check_row(digest: bytes, one: bytes, entry: int, request: int, count: int) -> None:
    """Raise if no change could have left such a row."""
    texts = type(digest) is type(one) is bytes and len(digest) == SIZE and len(one) in (0, SIZE)
    numbers = {type(entry), type(request), type(count)} == {int}
    if not (texts and numbers and entry > 0 and request >= 0 and count > 0):
        raise StoreError(
            f"a row that no change could leave: {digest!r}, {one!r}, {entry}, {request}, {count}"
        )
