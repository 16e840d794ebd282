"""The ledger: one SQLite file whose commit is the only moment at which a store changes.

Entries are append-only (triggers refuse anything else) and chained by their hashes. The
digests of the rows alive, the counts and the queue of requests change in the same
transaction. Connections last for one operation: nothing is shared by threads or forks.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from traceless.exceptions import StoreError
from traceless.files.container import canonical_json, parsed_json
from traceless.store.entries import Entry
from traceless.store.lock import busy

VERSION = 2  # 1: entries of version 1 only, and the labels of rows written by `repr`
_APPLICATION = 0x74524143
_PATIENCE = 30.0  # seconds: others hold SQLite's own locks for moments only
_SCHEMA = f"""
CREATE TABLE origin (document TEXT NOT NULL);
CREATE TABLE entries (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TABLE alive (digest BLOB PRIMARY KEY, count INTEGER NOT NULL, queued INTEGER NOT NULL)
    WITHOUT ROWID;
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
    """What the ledger says, within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.sql = connection

    def origin(self) -> dict[str, Any]:
        """What the store is: its model and what it is about."""
        found: dict[str, Any] = parsed_json(self._one("SELECT document FROM origin")[0])
        return found

    def last(self) -> Entry:
        """The latest entry."""
        return Entry.from_body(
            *self._one("SELECT body, hash FROM entries ORDER BY sequence DESC LIMIT 1")
        )

    def entry(self, sequence: int) -> Entry:
        """One entry; raises `LookupError` if there is none of that number."""
        row = self.sql.execute(
            "SELECT body, hash FROM entries WHERE sequence = ?", (sequence,)
        ).fetchone()
        if row is None:
            raise LookupError(
                f"The ledger has no entry {sequence}: they are 0 to {self.last().sequence}."
            )
        return Entry.from_body(*row)

    def entries(self) -> Iterator[Entry]:
        """All entries, the first one first."""
        for row in self.sql.execute("SELECT body, hash FROM entries ORDER BY sequence"):
            yield Entry.from_body(*row)

    def append(self, entry: Entry) -> None:
        """Write an entry, and which requests it answers."""
        self.sql.execute(f"PRAGMA user_version = {VERSION}")  # from now on, older ones cannot read
        self.sql.execute(
            "INSERT INTO entries VALUES (?, ?, ?)",
            (entry.sequence, canonical_json(entry.facts()), entry.hash),
        )
        for label, n in entry.classes.items():
            self.sql.execute(
                "INSERT INTO classes VALUES (?, ?) "
                "ON CONFLICT(label) DO UPDATE SET rows = rows + excluded.rows",
                (label, n),
            )
        self.sql.execute("DELETE FROM classes WHERE rows = 0")
        for key in entry.keys:
            self.sql.execute(
                "INSERT INTO requests VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT(key) DO UPDATE SET sequence = excluded.sequence",
                (key, entry.kind, entry.rows, entry.request, entry.sequence),
            )

    def class_counts(self) -> dict[str, int]:
        """Rows of each class held now."""
        return dict(self.sql.execute("SELECT label, rows FROM classes ORDER BY label"))

    def times_merged(self, *requests: str | None) -> int:
        """How often a slice was merged, by any of these requests, and not taken out again."""
        sign = {"merge": 1, "forget": -1}
        return sum(sign.get(e.kind, 0) for e in self.entries() if e.request in requests)

    # --- requests that came with a key -----------------------------------------------------

    def request(self, key: str | None) -> Request | None:
        """What came with this key before."""
        row = self.sql.execute("SELECT * FROM requests WHERE key = ?", (key,)).fetchone()
        return None if row is None else Request(*row)

    def requests(self) -> list[Request]:
        """All that came with a key."""
        return [Request(*row) for row in self.sql.execute("SELECT * FROM requests")]

    def note(self, request: Request) -> None:
        """Remember a request that waits."""
        self.sql.execute("INSERT INTO requests VALUES (?, ?, ?, ?, ?)", request)

    # --- transactions ------------------------------------------------------------------------

    def commit(self) -> None:
        """The moment at which a store changes."""
        self.sql.execute("COMMIT")

    def empty_log(self) -> bool:
        """Move SQLite's log into the main file and empty it; False if a reader is in the way."""
        self.sql.execute("PRAGMA busy_timeout = 200")
        return not self._one("PRAGMA wal_checkpoint(TRUNCATE)")[0]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A transaction that changes nothing, during which nobody else writes."""
        self.sql.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self.sql.execute("ROLLBACK")

    def problems(self) -> list[str]:
        """What SQLite finds wrong with its file."""
        found = [row[0] for row in self.sql.execute("PRAGMA integrity_check(5)")]
        return [] if found == ["ok"] else found

    def _one(self, query: str) -> Any:
        row = self.sql.execute(query).fetchone()
        if row is None:
            raise StoreError("The ledger is damaged: it has no entries.")
        return row


def create(path: Path, origin: dict[str, Any], first: Entry) -> None:
    """Make the file of a new ledger."""
    with _errors(path), closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        _set_up(connection)
        connection.executescript(f"BEGIN; {_SCHEMA}")
        connection.execute("INSERT INTO origin VALUES (?)", (canonical_json(origin),))
        Ledger(connection).append(first)
        connection.execute("COMMIT")


@contextmanager
def reading(path: Path) -> Iterator[Ledger]:
    """One state of the ledger, whatever others write meanwhile."""
    with _opened(path, _PATIENCE) as connection:
        connection.execute("BEGIN")
        yield Ledger(connection)


@contextmanager
def changing(path: Path, wait: float) -> Iterator[Ledger]:
    """A transaction: `commit` ends it; anything else leaves all as it was."""
    with outside(path, wait) as ledger:
        ledger.sql.execute("BEGIN IMMEDIATE")
        yield ledger


@contextmanager
def outside(path: Path, wait: float) -> Iterator[Ledger]:
    """The ledger without a transaction."""
    with _opened(path, max(wait, 1.0)) as connection:
        yield Ledger(connection)


@contextmanager
def _opened(path: Path, patience: float) -> Iterator[sqlite3.Connection]:
    address = f"{path.resolve().as_uri()}?mode=rw"
    with (
        _errors(path, patience),
        closing(
            sqlite3.connect(address, timeout=patience, isolation_level=None, uri=True)
        ) as connection,
    ):
        _check_version(path, connection)
        _set_up(connection)
        yield connection


def _set_up(connection: sqlite3.Connection) -> None:
    for pragma in (
        "synchronous = FULL",
        "fullfsync = ON",  # macOS: as `container.bring_to_disk`
        "secure_delete = ON",  # what is deleted is overwritten with zeros
        "temp_store = MEMORY",
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "cache_size = -65536",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _check_version(path: Path, connection: sqlite3.Connection) -> None:
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version")
    )
    if application != _APPLICATION:
        raise StoreError(f"{path.parent} is not a store: {path.name} is not a ledger.")
    if version > VERSION:
        raise StoreError(
            f"{path.parent} was written by a newer version of traceless (store format {version}, "
            f"and this one knows {VERSION}). Install the newer version."
        )


@contextmanager
def _errors(path: Path, patience: float = 0.0) -> Iterator[None]:
    """SQLite's errors in our words."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise busy("it holds the ledger", patience) from error
        if code in _OS_ERRORS:
            raise OSError(_OS_ERRORS[code], f"{error}. Nothing was changed", str(path)) from error
        raise StoreError(f"The ledger {path} is damaged: {error}.") from error
