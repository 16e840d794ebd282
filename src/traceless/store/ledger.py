"""The ledger: one SQLite file whose commit is the only moment at which a store changes.

Entries are append-only (triggers refuse anything else), chained by their hashes, and signed. The
digests of the rows held, the counts and the queue of requests change in the same transaction.
`opening` opens it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from traceless.exceptions import StoreError
from traceless.files.container import parsed_json
from traceless.store.entries import Entry, hash_of
from traceless.store.ids import Event, Found, Ids, Line
from traceless.store.queue import Queue, Queued
from traceless.store.receipts import Receipt

if TYPE_CHECKING:
    from traceless.store.row_counts import RowCounts

_FACTS = {"store": str, "created": str, "task": str, "secret": str, "model": dict, "about": dict}


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

    @cached_property
    def rows(self) -> RowCounts:
        """The digests of the rows held; imported late, since reading commands need none."""
        from traceless.store.row_counts import RowCounts

        return RowCounts(self.sql)

    @cached_property
    def origin(self) -> dict[str, Any]:
        """The description of the store: its model and what it is about."""
        found: Any = None
        with suppress(ValueError, TypeError, RecursionError):
            ((document,),) = self.sql.execute("SELECT document FROM origin")
            found = parsed_json(document)
        facts = found if isinstance(found, dict) else {}
        known = {name: type(facts.get(name)) for name in _FACTS} == _FACTS
        if not known or type(facts["model"].get("kind")) is not str:
            raise StoreError("The ledger is damaged: it has no description of the store.")
        return facts

    def entries(self, which: str = "ORDER BY sequence", *given: Any) -> Iterator[Entry]:
        """Entries, by default all of them, the first one first."""
        query = f"SELECT sequence, body, hash, signature FROM entries {which}"
        for place, *row in self.sql.execute(query, given):
            entry = Entry.from_body(*row)
            # spaces or repeated names could hide something, and another place the entries after it
            if (entry.sequence, entry.body) != (place, row[0]):
                raise StoreError(f"entry {entry.sequence} was changed after it was written")
            yield entry

    def last(self) -> Entry:
        """The latest entry."""
        ((first,),) = self.sql.execute("SELECT min(sequence) FROM entries")
        if first != 0:  # none, or one that was moved from its end
            raise StoreError("The ledger is damaged: it does not begin with entry 0.")
        return next(self.entries("ORDER BY sequence DESC LIMIT 1"))

    def entry(self, sequence: int) -> Entry:
        """One entry; raises `LookupError` if there is none of that number."""
        found = [*self.entries("WHERE sequence = ?", sequence)]
        if not found:
            raise LookupError(
                f"The ledger has no entry {sequence}: they are 0 to {self.last().sequence}."
            )
        return found[0]

    def check_from(self, sequence: int) -> None:
        """Raise unless each entry from this one on continues the one before, to the last one.

        The last one is signed, so none of them was changed.
        """
        found = [*self.entries("WHERE sequence >= ? ORDER BY sequence", sequence)]
        links = [entry.previous for entry in found[1:]]
        if links != [hash_of(entry.facts()) for entry in found[:-1]]:
            raise StoreError(
                f"The ledger is damaged: an entry from {sequence} on was changed after it was "
                "written. Restore the store from a backup. Nothing was changed."
            )

    def receipt(self, sequence: int, replayed: bool = False) -> Receipt:
        """The receipt of an entry that another table names."""
        return Receipt.of(self._named(sequence), self.origin, replayed)

    def _named(self, sequence: int) -> Entry:
        try:
            return self.entry(sequence)
        except LookupError as error:
            raise StoreError(f"The ledger is damaged: it names an entry. {error}") from None

    def append(self, entry: Entry, lines: Iterable[Line] = ()) -> None:
        """Write an entry, the counts that it changes, and the requests that it answers."""
        row = entry.sequence, entry.body, entry.hash, entry.signature
        self.sql.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", row)
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
