"""The ledger: one SQLite file whose commit is the only moment at which a store changes.

Entries are append-only (triggers refuse anything else) and chained by their hashes. The digests
of the rows held, the counts and the queue of requests change in the same transaction. A
connection lasts for one operation: threads and forked processes share none.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from traceless.exceptions import StoreError
from traceless.files.container import canonical_json, parsed_json
from traceless.store.entries import Entry
from traceless.store.lock import busy
from traceless.store.queue import Queue
from traceless.store.row_counts import ROW_TABLES, RowCounts

VERSION = 2  # 1: entries of version 1 only, and the labels of rows written by `repr`
_APPLICATION = 0x74524143
_PATIENCE = 30.0  # seconds: others hold SQLite's own locks for moments only
_SCHEMA = f"""
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
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {VERSION};
"""
# fullfsync is for macOS, as in `container.bring_to_disk`; secure_delete overwrites with zeros
_SET_UP = """
PRAGMA synchronous = FULL;
PRAGMA fullfsync = ON;
PRAGMA secure_delete = ON;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
PRAGMA cache_size = -65536;
"""
_OS_ERRORS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_TOOBIG: errno.EFBIG,
}


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
        self.rows, self.queue = RowCounts(connection), Queue(connection)

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


def create(path: Path, origin: dict[str, Any], first: Entry) -> None:
    """Make the file of a new ledger."""
    with _errors(path), closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"{_SET_UP} BEGIN; {_SCHEMA}")
        connection.execute("INSERT INTO origin VALUES (?)", (canonical_json(origin),))
        Ledger(connection).append(first)
        connection.execute("COMMIT")


@contextmanager
def open_ledger(path: Path, begin: str = "BEGIN", patience: float = _PATIENCE) -> Iterator[Ledger]:
    """One state of the ledger, whatever other processes write meanwhile.

    Parameters
    ----------
    path : Path
    begin : {"BEGIN", "BEGIN IMMEDIATE", ""}
        A transaction that reads; one that writes, of which nothing is left unless
        `Ledger.commit` ends it; or none.
    patience : float
        Seconds to wait for other connections.
    """
    address = f"{path.resolve().as_uri()}?mode=rw"
    connect = sqlite3.connect
    with (
        _errors(path, patience),
        closing(connect(address, timeout=patience, isolation_level=None, uri=True)) as connection,
    ):
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            raise StoreError(f"{path.parent} is not a store: {path.name} is not a ledger.")
        if version > VERSION:
            raise StoreError(
                f"{path.parent} was written by a newer version of traceless (store format "
                f"{version}, and this one knows {VERSION}). Install the newer version."
            )
        connection.executescript(_SET_UP + begin)
        ledger = Ledger(connection)
        if (
            begin == "BEGIN IMMEDIATE"
        ):  # a store of version 1 or 2; nothing is left without a commit
            ledger.rows.upgrade()
        yield ledger


@contextmanager
def _errors(path: Path, patience: float = 0.0) -> Iterator[None]:
    """Turn SQLite's errors into `StoreError`, `StoreBusyError` and `OSError`."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise busy("it holds the ledger", patience) from error
        if code in _OS_ERRORS:
            raise OSError(_OS_ERRORS[code], f"{error}. Nothing was changed", str(path)) from error
        raise StoreError(f"The ledger {path} is damaged: {error}.") from error
