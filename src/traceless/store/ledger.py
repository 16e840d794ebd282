"""The ledger: one SQLite file whose commit is the only moment at which a store changes.

Entries are append-only (triggers refuse anything else), and the leaves of a Merkle tree whose root
is signed (`checkpoint`). The digests of the rows held, the counts and the queue of requests change
in the same transaction. `opening` opens it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from traceless.exceptions import StoreError
from traceless.store.checkpoint import Head, hashes_text, proof_text
from traceless.store.entries import Entry, hash_of
from traceless.store.ids import Event, Found, Ids, Line
from traceless.store.merkle import Tree, is_included
from traceless.store.queue import Queue, Queued
from traceless.store.receipts import Receipt, described

if TYPE_CHECKING:
    from traceless.store.keys import SigningKey
    from traceless.store.row_counts import RowCounts


class Nodes:
    """The nodes of the tree of entries, in a transaction of the ledger."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._sql = connection

    def __getitem__(self, where: tuple[int, int]) -> bytes:
        query = "SELECT hash FROM nodes WHERE level = ? AND place = ?"
        row = self._sql.execute(query, where).fetchone()
        if row is None or type(row[0]) is not bytes:
            raise StoreError(f"its tree has no node {where}")
        return row[0]

    def __setitem__(self, where: tuple[int, int], node: bytes) -> None:
        self._sql.execute("INSERT INTO nodes VALUES (?, ?, ?)", (*where, node))


class Request(NamedTuple):
    """A request that came with a key, and the latest entry about it."""

    key: str
    kind: str
    rows: int
    request: str | None
    sequence: int

    @classmethod
    def of(cls, key: str, entry: Entry) -> Self:
        """The request with this key that an entry answers, or says to have arrived."""
        kind = "forget" if entry.kind == "queue" else entry.kind
        return cls(key, kind, entry.rows, entry.request, entry.sequence)


class Ledger:
    """The ledger within one transaction.

    Parameters
    ----------
    connection : sqlite3.Connection
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.sql, self.queue, self.ids = connection, Queue(connection), Ids(connection)
        self._last: Entry | None = None
        self._fresh = dict[int, Entry]()  # entries of this transaction

    @cached_property
    def rows(self) -> RowCounts:
        """The digests of the rows held; imported late, since reading commands need none."""
        from traceless.store.row_counts import RowCounts

        return RowCounts(self.sql)

    @cached_property
    def document(self) -> str:
        """The description of the store, as its entries have its hash."""
        found = self.sql.execute("SELECT document FROM origin").fetchall()
        return found[0][0] if len(found) == 1 and type(found[0][0]) is str else ""

    @cached_property
    def origin(self) -> dict[str, Any]:
        """The description of the store: its model and what it is about."""
        return described(self.document)

    @cached_property
    def tree(self) -> Tree:
        """The Merkle tree of the entries."""
        return Tree(Nodes(self.sql))

    def entries(self) -> Iterator[Entry]:
        """All entries, the first one first; they are not checked, but `verify` does."""
        for place, *row in self.sql.execute("SELECT * FROM entries ORDER BY sequence"):
            yield _entry(place, row)

    def last(self) -> Entry:
        """The latest entry; raises unless the log is one that the key of the store has signed."""
        if self._last is None:
            self._last = self._trusted()
        return self._last

    def _trusted(self) -> Entry:
        ((first, last),) = self.sql.execute(
            "SELECT (SELECT min(sequence) FROM entries), (SELECT max(sequence) FROM entries)"
        )
        try:
            if first != 0:  # none, or one that was moved from its end
                raise StoreError("it does not begin with entry 0")
            head, size = self.head(), last + 1
            if (head.origin, head.size) != (self.log, size) or head.root != self.tree.root(size):
                raise StoreError("its head is not that of its entries")
            entry = self.entry(last)
            if not entry.is_intact() or not head.is_signed(entry.next_signer):
                raise StoreError("its latest entry was changed after it was signed")
            self.check_signer(entry)
        except (StoreError, ValueError, LookupError) as error:
            raise StoreError(
                f"The ledger is damaged: {str(error).rstrip('.')}. Restore the store from a "
                "backup. Nothing was changed."
            ) from error
        return entry

    def check_signer(self, entry: Entry) -> None:
        """Raise unless the key of the store has handed over to that of this entry."""
        key, since = entry.signer, entry.since
        while since:
            by = self.entry(since)
            if (by.kind, by.subject) != ("key", key) or by.since >= since or not by.is_intact():
                raise StoreError(f"entry {entry.sequence} is not signed with the key of this store")
            key, since = by.signer, by.since
        described_so = hash_of(self.document.encode()) == entry.origin
        if key != self.origin.get("key") or not described_so:
            raise StoreError(f"entry {entry.sequence} is not signed with the key of this store")

    def entry(self, sequence: int) -> Entry:
        """One entry, of which the tree shows that it is in the log.

        Raises `LookupError` if there is none of that number.
        """
        if sequence in self._fresh:
            return self._fresh[sequence]
        query = "SELECT * FROM entries WHERE sequence = ?"
        row = self.sql.execute(query, (sequence,)).fetchone()
        if row is None:
            raise LookupError(
                f"The ledger has no entry {sequence}: they are 0 to {self.last().sequence}."
            )
        entry, head = _entry(row[0], row[1:]), self.head()
        leaf, proof = bytes.fromhex(entry.hash), self._proof(sequence, head.size)
        if not is_included(leaf, sequence, head.size, proof, head.root):
            raise StoreError(
                f"The ledger is damaged: entry {sequence} was changed after it was written. "
                "Restore the store from a backup. Nothing was changed."
            )
        return entry

    def backwards(self) -> Iterator[Entry]:
        """All entries, the latest first."""
        return map(self.entry, range(self.last().sequence, -1, -1))

    def answering(self, *requests: str) -> Iterator[Entry]:
        """The entries of requests with these hashes, the latest first."""
        query = "SELECT sequence FROM entries WHERE instr(payload, CAST(? AS BLOB))"
        found = {number for one in requests for (number,) in self.sql.execute(query, (one,))}
        return map(self.entry, sorted(found, reverse=True))

    # --- the log --------------------------------------------------------------------------

    @property
    def log(self) -> str:
        """The name of the log."""
        return f"traceless/{self.origin['store']}"

    def head(self, after: int = -1) -> Head:
        """The latest head; or the first one after the entry of this number.

        Each key has signed the heads of its time, of which the last one is kept.
        """
        order = "size DESC" if after < 0 else "size"
        query = f"SELECT note FROM heads WHERE size > ? ORDER BY {order} LIMIT 1"
        row = self.sql.execute(query, (after,)).fetchone()
        return Head.parsed(str(row[0] if row else ""))

    def heads(self) -> list[tuple[int, str]]:
        """Sizes and texts of all heads that are kept."""
        return self.sql.execute("SELECT size, note FROM heads ORDER BY size").fetchall()

    def seal(self, keys: Iterable[SigningKey]) -> None:
        """Sign the head of the log, with the key of the next entry and that of the last one."""
        last = cast(Entry, self._last)
        size = last.sequence + 1
        head = Head.signed(self.log, size, self.tree.root(size), keys)
        self.sql.execute("DELETE FROM heads WHERE size > ?", (last.since + 1,))
        self.sql.execute("INSERT INTO heads VALUES (?, ?)", (size, str(head)))

    def proof(self, sequence: int) -> str:
        """The proof that an entry is in the log, with a head that its own key has signed."""
        if sequence >= self.head().size:  # not signed yet
            return ""
        head = self.head(after=sequence)
        return proof_text(sequence, self._proof(sequence, head.size), head)

    def consistency(self, old: Head) -> str:
        """The proof that the log continues that of a head, as lines of hashes."""
        size = self.head().size
        if old.origin != self.log or not 0 < old.size <= size:
            raise StoreError(f"This is no head of the {size} entries of this store.")
        return hashes_text(self.tree.consistency(old.size, size))

    def _proof(self, sequence: int, size: int) -> list[bytes]:
        return self.tree.inclusion(sequence, size) if sequence < size else []

    def receipt(self, sequence: int, replayed: bool = False) -> Receipt:
        """The receipt of an entry that another table names."""
        entry = self._named(sequence)
        return Receipt.of(entry, self.document, self.proof(sequence), replayed)

    def _named(self, sequence: int) -> Entry:
        try:
            return self.entry(sequence)
        except LookupError as error:
            raise StoreError(f"The ledger is damaged: it names an entry. {error}") from None

    def append(self, entry: Entry, lines: Iterable[Line] = ()) -> None:
        """Write an entry, the counts that it changes, and the requests that it answers."""
        row = entry.sequence, entry.payload, entry.signature
        self.sql.execute("INSERT INTO entries VALUES (?, ?, ?)", row)
        self.tree.append(entry.sequence, entry.payload)
        self._last = self._fresh[entry.sequence] = entry
        self.sql.executemany(
            "INSERT INTO classes VALUES (?, ?) "
            "ON CONFLICT(label) DO UPDATE SET rows = rows + excluded.rows",
            entry.classes.items(),
        )
        self.sql.execute("DELETE FROM classes WHERE rows = 0")
        self.ids.note(entry.sequence, lines)
        for key in entry.keys:
            self.note(Request.of(key, entry))

    def class_counts(self) -> dict[str, int]:
        """Rows of each class held now."""
        return dict(self.sql.execute("SELECT label, rows FROM classes ORDER BY label"))

    def request(self, key: str) -> Request | None:
        """The request that came with this key."""
        row = self.sql.execute("SELECT * FROM requests WHERE key = ?", (key,)).fetchone()
        return None if row is None else Request(*row)

    def requests(self) -> Iterator[Request]:
        """All requests that came with a key."""
        return map(Request._make, self.sql.execute("SELECT * FROM requests"))

    def note(self, request: Request) -> None:
        """Remember a request, or the entry that answers it."""
        self.sql.execute(
            "INSERT INTO requests VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT(key) DO UPDATE SET sequence = excluded.sequence",
            request,
        )

    def pending(self, replayed: bool = False) -> list[Queued]:
        """The requests to forget that wait, the oldest first, each with its receipt."""
        waiting, rows = self.queue.pending(), self.last().waiting
        if sum(queued.rows for queued in waiting) != rows:
            raise StoreError(f"The ledger is damaged: {rows} rows wait, not those in the queue.")
        return [replace(q, receipt=self.receipt(q.sequence), replayed=replayed) for q in waiting]

    def find(self, one: bytes) -> Found:
        """What happened to the rows of an id."""
        held, waiting = self.ids.held(one)
        events = []
        for sequence, *numbers in self.ids.of(one):
            entry = self._named(sequence)
            events.append(Event(sequence, entry.time, entry.kind, *numbers))
        return Found(held, waiting, sum(event.removed for event in events), tuple(events))

    def forgotten(self, ids: Iterable[bytes]) -> dict[bytes, Entry]:
        """Those of some ids whose last row was forgotten, or waits to be, and by which entry."""
        if not self.ids.are_any_gone():
            return {}
        named = cache(self._named)
        found = {one: self._forgotten_by(one, named) for one in set(ids) if one}
        return {one: entry for one, entry in found.items() if entry is not None}

    def _forgotten_by(self, one: bytes, named: Callable[[int], Entry]) -> Entry | None:
        """The request to forget with which the last row of an id went; undoing is no request."""
        free, by = 0, list[Entry]()
        for sequence, added, removed, waiting in self.ids.of(one):
            free += added - removed - waiting
            entry = named(sequence)
            if entry.kind == "cancel":
                by = [request for request in by if entry.subject != f"entry {request.sequence}"]
            elif not free and entry.undoes is None:
                by = [*by, entry] if entry.kind in ("forget", "queue") else []
        return by[-1] if by and not free else None

    def commit(self) -> None:
        """Commit the transaction: at this moment the store changes."""
        self.sql.execute("COMMIT")

    def empty_log(self) -> bool:
        """Move SQLite's log into the main file and empty it; False if a reader is in the way."""
        self.sql.execute("PRAGMA busy_timeout = 200")
        return not self.sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]


def _entry(place: int, row: Sequence[Any]) -> Entry:
    """The entry of a row of the table, which must be in its place."""
    payload, signature = row
    entry = Entry.from_payload(payload if type(payload) is bytes else b"", str(signature))
    if entry.sequence != place:
        raise StoreError(f"entry {entry.sequence} is in the place of entry {place}")
    return entry
