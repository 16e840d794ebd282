"""The ledger: one SQLite file whose commit is the only moment at which a store changes.

Entries are append-only (triggers refuse anything else), and the leaves of a Merkle tree whose root
is signed (`checkpoint`). The digests of the rows held, the counts and the queue of requests change
in the same transaction. `opening` opens it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from traceless.exceptions import StoreError
from traceless.store.checkpoint import Head, hashes_text, proof_text
from traceless.store.entries import FOLLOW, Entry, hash_of
from traceless.store.keys import SigningKey
from traceless.store.merkle import Tree, is_included
from traceless.store.people import Event, Found, events_of, ids_of, numbers_of
from traceless.store.queue import Queue, Queued
from traceless.store.receipts import Receipt, described

if TYPE_CHECKING:
    from traceless.store.row_table import RowTable


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


class Ledger:
    """The ledger within one transaction.

    Parameters
    ----------
    connection : sqlite3.Connection
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.sql, self.queue = connection, Queue(connection)
        self.tree = Tree(Nodes(connection))
        self._last: Entry | None = None
        self._fresh = dict[int, Entry]()  # entries of this transaction

    @cached_property
    def rows(self) -> RowTable:
        """The rows held; imported late, since reading commands need none."""
        from traceless.store.row_table import RowTable

        return RowTable(self.sql)

    @cached_property
    def document(self) -> str:
        """The description of the store, as its entries have its hash."""
        found = self.sql.execute("SELECT document FROM origin").fetchall()
        return found[0][0] if len(found) == 1 and type(found[0][0]) is str else ""

    @cached_property
    def origin(self) -> dict[str, Any]:
        """The description of the store: its model and what it is about."""
        return described(self.document)

    # --- entries --------------------------------------------------------------------------

    def entries(self) -> Iterator[Entry]:
        """All entries, the first one first; they are not checked, but `verify` does."""
        return map(_entry, self.sql.execute("SELECT * FROM entries ORDER BY sequence"))

    def last(self) -> Entry:
        """The latest entry; raises unless the log is one that the key of the store has signed."""
        if self._last is None:
            try:
                self._last = self._trusted()
            except (StoreError, ValueError, LookupError) as error:
                raise StoreError(
                    f"The ledger is damaged: {str(error).rstrip('.')}. Restore the store from a "
                    "backup. Nothing was changed."
                ) from error
        return self._last

    def _trusted(self) -> Entry:
        ((first, last),) = self.sql.execute(
            "SELECT (SELECT min(sequence) FROM entries), (SELECT max(sequence) FROM entries)"
        )
        if first != 0:  # none, or one that was moved from its end
            raise StoreError("it does not begin with entry 0")
        head, size = self.head(), last + 1
        if (head.origin, head.size) != (self.log, size) or head.root != self.tree.root(size):
            raise StoreError("its head is not that of its entries")
        entry = self.entry(last)
        if not entry.is_intact() or not head.is_signed(entry.next_signer):
            raise StoreError("its latest entry was changed after it was signed")
        key, since = entry.signer, entry.since
        while since:  # each key was named by the one before, and the first by the description
            by = self.entry(since)
            if (by.kind, by.subject) != ("key", key) or by.since >= since or not by.is_intact():
                raise StoreError(f"entry {last} is not signed with the key of this store")
            key, since = by.signer, by.since
        if key != self.origin.get("key") or hash_of(self.document.encode()) != entry.origin:
            raise StoreError(f"entry {last} is not signed with the key of this store")
        return entry

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
        entry, head = _entry(row), self.head()
        leaf, proof = bytes.fromhex(entry.hash), self._proof(sequence, head.size)
        if not is_included(leaf, sequence, head.size, proof, head.root):
            raise StoreError(
                f"The ledger is damaged: entry {sequence} was changed after it was written. "
                "Restore the store from a backup. Nothing was changed."
            )
        return entry

    def named(self, sequence: int) -> Entry:
        """An entry that another table names."""
        try:
            return self.entry(sequence)
        except LookupError as error:
            raise StoreError(f"The ledger is damaged: it names an entry. {error}") from None

    def backwards(self) -> Iterator[Entry]:
        """All entries, the latest first."""
        return map(self.entry, range(self.last().sequence, -1, -1))

    def requests(self, key: str) -> tuple[int, ...]:
        """The numbers of the entries that answer the request with this key."""
        query = "SELECT sequence FROM requests WHERE key = ? ORDER BY sequence"
        return tuple(number for (number,) in self.sql.execute(query, (key,)))

    def followed(self) -> Entry | None:
        """The latest change that followed a table."""
        query = "SELECT sequence FROM requests WHERE key > ?1 AND key < ?1 || '~' ORDER BY 1 DESC"
        entries = (self.named(number) for (number,) in self.sql.execute(query, (FOLLOW,)))
        return next((entry for entry in entries if entry.kind == "follow"), None)

    def answering(self, *requests: str) -> Iterator[Entry]:
        """The entries of requests with these hashes, the latest first."""
        query = "SELECT sequence FROM entries WHERE instr(payload, CAST(? AS BLOB))"
        found = {number for one in requests for (number,) in self.sql.execute(query, (one,))}
        return map(self.entry, sorted(found, reverse=True))

    def append(self, entry: Entry) -> None:
        """Write an entry, and which requests it answers."""
        row = entry.sequence, entry.payload, entry.signature
        self.sql.execute("INSERT INTO entries VALUES (?, ?, ?)", row)
        self.tree.append(entry.sequence, entry.payload)
        self._last = self._fresh[entry.sequence] = entry
        answered = [(key, entry.sequence) for key in entry.keys]
        self.sql.executemany("INSERT INTO requests VALUES (?, ?)", answered)

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
        last = self.last()
        size = last.sequence + 1
        head = Head.signed(self.log, size, self.tree.root(size), keys)
        self.sql.execute("DELETE FROM heads WHERE size > ?", (last.since + 1,))
        self.sql.execute("INSERT INTO heads VALUES (?, ?)", (size, str(head)))

    def consistency(self, old: Head) -> str:
        """The proof that the log continues that of a head, as lines of hashes."""
        size = self.head().size
        if old.origin != self.log or not 0 < old.size <= size:
            raise StoreError(f"This is no head of the {size} entries of this store.")
        return hashes_text(self.tree.consistency(old.size, size))

    def _proof(self, sequence: int, size: int) -> list[bytes]:
        return self.tree.inclusion(sequence, size) if sequence < size else []

    # --- what is read of it ---------------------------------------------------------------

    def receipt(self, sequence: int, replayed: bool = False) -> Receipt:
        """The receipt of an entry: the proof has a head that its own key has signed."""
        entry, proof = self.named(sequence), ""
        if sequence < self.head().size:  # or it is not signed yet
            head = self.head(after=sequence)
            proof = proof_text(sequence, self._proof(sequence, head.size), head)
        return Receipt.of(entry, self.document, proof, replayed)

    def pending(self) -> list[Queued]:
        """The requests to forget that wait, the oldest first, each with its receipt."""
        found = [Queued.of(self.receipt(number)) for number in self.queue.numbers()]
        rows = self.last().waiting
        if sum(queued.rows for queued in found) != rows:
            raise StoreError(f"The ledger is damaged: {rows} rows wait, not those in the queue.")
        return found

    def find(self, name: bytes, since: str | None, until: str | None) -> Found:
        """What is known of the rows of an id."""
        one = ids_of(self.sql, [name]).get(name, b"")
        ((held, waiting),) = numbers_of(self.sql, [one]).values()
        numbers = events_of(self.sql, one)
        events = [Event(n, (e := self.named(n)).time, e.kind, rows) for n, rows in numbers]
        return Found(held, waiting, since, until, tuple(events))

    # --- SQLite ---------------------------------------------------------------------------

    def commit(self) -> None:
        """Commit the transaction: at this moment the store changes."""
        self.sql.execute("COMMIT")

    def empty_log(self) -> bool:
        """Move SQLite's log into the main file and empty it; False if a reader is in the way."""
        self.sql.execute("PRAGMA busy_timeout = 200")
        return not self.sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]


def _entry(row: tuple[Any, Any, Any]) -> Entry:
    """The entry of a row of the table, which must be in its place."""
    place, payload, signature = row
    entry = Entry.from_payload(payload if type(payload) is bytes else b"", str(signature))
    if entry.sequence != place:
        raise StoreError(f"entry {entry.sequence} is in the place of entry {place}")
    return entry
