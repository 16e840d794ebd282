"""The ledger: one SQLite file whose commit is the only moment at which a store changes.

Entries are append-only (triggers refuse anything else) and chained by their hashes. The digests
of the rows held, the counts and the queue of requests change in the same transaction. `opening`
opens it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from traceless.exceptions import StoreError
from traceless.files.container import parsed_json
from traceless.store.entries import Entry
from traceless.store.queue import Queue

if TYPE_CHECKING:
    from traceless.store.row_counts import RowCounts

VERSION = 2  # 1: entries of version 1 only, and the labels of rows written by `repr`
APPLICATION = 0x74524143
ROW_TABLES = """
CREATE TABLE alive (digest BLOB NOT NULL, id BLOB NOT NULL, count INTEGER NOT NULL,
    queued INTEGER NOT NULL, PRIMARY KEY (digest, id)) WITHOUT ROWID;
CREATE INDEX alive_by_id ON alive (id) WHERE id != x'';
CREATE TABLE sums (name TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
"""
SCHEMA = f"""
CREATE TABLE origin (document TEXT NOT NULL);
CREATE TABLE entries (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL);
{ROW_TABLES}
CREATE TABLE classes (label TEXT PRIMARY KEY, rows INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE requests (key TEXT PRIMARY KEY, kind TEXT NOT NULL, rows INTEGER NOT NULL,
    request TEXT, sequence INTEGER) WITHOUT ROWID;
CREATE TABLE queue (number INTEGER PRIMARY KEY, time TEXT NOT NULL, key TEXT,
    rows INTEGER NOT NULL, classes TEXT NOT NULL, content BLOB NOT NULL);
{
    "".join(
        f"CREATE TRIGGER no_{verb.lower()}_of_{table} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} are kept as they are'); END;"
        for table in ("origin", "entries")
        for verb in ("UPDATE", "DELETE")
    )
}
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
"""


class Request(NamedTuple):
    """A request that came with a key; `sequence` is None while it waits in the queue."""

    key: str
    kind: str
    rows: int
    request: str | None
    sequence: int | None


class Ledger:
    """The ledger within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.sql = connection
        self.queue = Queue(connection)

    @cached_property
    def rows(self) -> RowCounts:
        """The digests of the rows held; reading commands need none, and start sooner."""
        from traceless.store.row_counts import RowCounts

        return RowCounts(self.sql)

    @cached_property
    def origin(self) -> dict[str, Any]:
        """The description of the store: its model and what it is about."""
        row = self.sql.execute("SELECT document FROM origin").fetchone()
        if row is None:
            raise StoreError("The ledger is damaged: it has no description of the store.")
        found: dict[str, Any] = parsed_json(row[0])
        return found

    def entries(self, which: str = "ORDER BY sequence", *given: Any) -> Iterator[Entry]:
        """Entries, by default all of them, the first one first."""
        for row in self.sql.execute(f"SELECT body, hash FROM entries {which}", given):
            yield Entry.from_body(*row)

    def last(self) -> Entry:
        """The latest entry."""
        found = [*self.entries("ORDER BY sequence DESC LIMIT 1")]
        if not found:
            raise StoreError("The ledger is damaged: it has no entries.")
        return found[0]

    def entry(self, sequence: int) -> Entry:
        """One entry; raises `LookupError` if there is none of that number."""
        found = [*self.entries("WHERE sequence = ?", sequence)]
        if not found:
            raise LookupError(
                f"The ledger has no entry {sequence}: they are 0 to {self.last().sequence}."
            )
        return found[0]

    def append(self, entry: Entry) -> None:
        """Write an entry, the counts that it changes, and the requests that it answers."""
        self.sql.execute(f"PRAGMA user_version = {VERSION}")  # older versions can no longer read it
        self.sql.execute(
            "INSERT INTO entries VALUES (?, ?, ?)", (entry.sequence, entry.body, entry.hash)
        )
        self.sql.executemany(
            "INSERT INTO classes VALUES (?, ?) "
            "ON CONFLICT(label) DO UPDATE SET rows = rows + excluded.rows",
            entry.classes.items(),
        )
        self.sql.execute("DELETE FROM classes WHERE rows = 0")
        for key in entry.keys:
            self.note(Request(key, entry.kind, entry.rows, entry.request, entry.sequence))

    def class_counts(self) -> dict[str, int]:
        """Rows of each class held now."""
        return dict(self.sql.execute("SELECT label, rows FROM classes ORDER BY label"))

    def request(self, key: str) -> Request | None:
        """The request that came with this key."""
        row = self.sql.execute("SELECT * FROM requests WHERE key = ?", (key,)).fetchone()
        return None if row is None else Request(*row)

    def note(self, request: Request) -> None:
        """Remember a request, or the entry that answers it."""
        self.sql.execute(
            "INSERT INTO requests VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT(key) DO UPDATE SET sequence = excluded.sequence",
            request,
        )

    def commit(self) -> None:
        """The moment at which a store changes."""
        self.sql.execute("COMMIT")

    def empty_log(self) -> bool:
        """Move SQLite's log into the main file and empty it; False if a reader is in the way."""
        self.sql.execute("PRAGMA busy_timeout = 200")
        return not self.sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
