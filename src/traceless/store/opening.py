"""Open the file of a ledger, or make a new one.

A connection lasts for one operation: no two of them share one, in threads or forked processes.

SQLite opens its files by name, so they are checked before: see `regular`. A rollback
journal is refused as well, since SQLite would undo changes by it, and even delete a file that it
names; a ledger has a write-ahead log, and never a journal.

The tables are compared word for word: whoever may write the file could add a trigger that keeps
what is forgotten, or a view in place of a table. Such a ledger is refused.

Where nothing can be written (a backup, a read-only disk, another user's folder) SQLite can
read a ledger together with its log if it finds both of the log's files. Without them the ledger is
read as an immutable file, and checked afterwards for changes.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from pathlib import Path

from traceless.exceptions import StoreError
from traceless.store.entries import Entry
from traceless.store.keys import SigningKey
from traceless.store.ledger import Ledger
from traceless.store.lock import busy
from traceless.store.regular import found_at

VERSION = 1
APPLICATION = 0x74524143
SCHEMA = (
    "CREATE TABLE origin (document TEXT NOT NULL)",
    """CREATE TABLE entries (sequence INTEGER PRIMARY KEY, payload BLOB NOT NULL,
    signature TEXT NOT NULL)""",
    """CREATE TABLE nodes (level INTEGER NOT NULL, place INTEGER NOT NULL, hash BLOB NOT NULL,
    PRIMARY KEY (level, place)) WITHOUT ROWID""",
    "CREATE TABLE heads (size INTEGER PRIMARY KEY, note TEXT NOT NULL)",
    """CREATE TABLE rows (digest BLOB NOT NULL, id BLOB NOT NULL, entry INTEGER NOT NULL,
    request INTEGER NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (digest, id, entry, request)) WITHOUT ROWID""",
    "CREATE INDEX waiting ON rows (request) WHERE request > 0",
    """CREATE TABLE people (name BLOB PRIMARY KEY, id BLOB NOT NULL UNIQUE,
    rows INTEGER NOT NULL) WITHOUT ROWID""",
    "CREATE TABLE sums (content BLOB NOT NULL)",
    """CREATE TABLE requests (key TEXT NOT NULL, sequence INTEGER NOT NULL,
    PRIMARY KEY (key, sequence)) WITHOUT ROWID""",
    "CREATE TABLE queue (sequence INTEGER PRIMARY KEY, content BLOB NOT NULL)",
    *(
        f"CREATE TRIGGER no_{verb.lower()}_of_{table} BEFORE {verb} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} are kept as they are'); END"
        for table in ("origin", "entries")
        for verb in ("UPDATE", "DELETE")
    ),
)
_PATIENCE = 30.0  # seconds: others hold SQLite's own locks for moments only
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


def create(path: Path, document: str, first: Entry, key: SigningKey) -> None:
    """Make the file of a new ledger, of a store with this description."""
    with _errors(path), closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        tables = "; ".join(SCHEMA)
        numbers = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}"
        connection.executescript(f"{_SET_UP} BEGIN; {tables}; {numbers}")
        connection.execute("INSERT INTO origin VALUES (?)", (document,))
        ledger = Ledger(connection)
        ledger.append(first)
        ledger.seal([key])
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
    before = _check_files(path, to_change=begin != "BEGIN")
    how, alone = _how_to_open(path, begin)
    address = f"{(path.parent.resolve() / path.name).as_uri()}?{how}"
    opened = partial(sqlite3.connect, address, timeout=patience, isolation_level=None, uri=True)
    with _errors(path, patience), closing(opened()) as connection:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION:
            raise StoreError(f"{path.parent} is not a store: {path.name} is not a ledger.")
        if begin != "BEGIN":  # a copy by SQLite's own tools has none
            connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(_SET_UP + begin)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise StoreError(
                f"{path.parent} was written by a newer version of traceless (store format "
                f"{version}, and this one knows {VERSION}). Install the newer version."
            )
        strange = _described(connection).items() ^ _expected().items()
        if strange:
            names = sorted({str(name) for (name, *_), _ in strange})
            raise StoreError(
                "The ledger is damaged: its tables are not those of a store. Added, changed or "
                f"missing: {', '.join(names[:5])!r}. Restore the store from a backup."
            )
        if not os.path.samestat(found_at(path), before):
            raise StoreError(f"{path} was replaced while it was opened. Nothing was changed.")
        yield Ledger(connection)
        if alone and _state(found_at(path)) != _state(before):
            raise busy("it has changed the ledger", patience)


def _check_files(path: Path, to_change: bool) -> os.stat_result:
    """Raise unless SQLite's files are regular ones; returns the `stat` of the ledger."""
    for end in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            found_at(_beside(path, end), to_change=to_change)
    if os.path.lexists(journal := _beside(path, "-journal")):
        raise StoreError(
            f"{journal} does not belong to a store, and SQLite would change the ledger by it. Move "
            "it elsewhere. Nothing was changed."
        )
    return found_at(path, to_change=to_change)


def _how_to_open(path: Path, begin: str) -> tuple[str, bool]:
    """Parameters of the address, and whether SQLite will ignore other processes."""
    effective = os.access in os.supports_effective_ids
    writable = all(
        os.access(p, os.W_OK, effective_ids=effective) for p in (path, path.resolve().parent)
    )
    if begin != "BEGIN" or writable:
        return "mode=rw", False
    log, shared = (_beside(path, end) for end in ("-wal", "-shm"))
    if log.exists() and shared.exists():
        return "mode=ro", False
    if not log_is_empty(path):
        raise StoreError(
            f"{log} holds changes that are not in {path.name} yet, and SQLite cannot read it where "
            "nothing can be written. Copy the whole folder to a place that can be written, and "
            "read it there. Nothing was changed."
        )
    return "mode=ro&immutable=1", True


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@cache
def _expected() -> Counter[tuple[str | None, ...]]:
    """What SQLite says of the schema."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript("; ".join(SCHEMA))
        return _described(connection)


def _described(connection: sqlite3.Connection) -> Counter[tuple[str | None, ...]]:
    """All tables, indexes, triggers and views; a trigger may have the name of a table."""
    return Counter(connection.execute("SELECT name, type, tbl_name, sql FROM sqlite_master"))


@contextmanager
def _errors(path: Path, patience: float = 0.0) -> Iterator[None]:
    """Turn SQLite's errors into `StoreError`, `StoreBusyError` and `OSError`."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise busy("it holds the ledger", patience) from error
        found = os_error(error, path, "Nothing was changed")
        if found is not None:
            raise found from error
        raise StoreError(f"The ledger {path} is damaged: {error}.") from error


def os_error(error: BaseException, path: Path, said: str) -> OSError | None:
    """An error as an OSError with this addition; None if the system is not the cause."""
    code = getattr(error, "sqlite_errorcode", 0)
    number = error.errno if isinstance(error, OSError) else _OS_ERRORS.get(code & 0xFF)
    if number is None:
        return None
    what = error.strerror if isinstance(error, OSError) else str(error)
    if number == errno.ENOSPC:
        what = f"The disk is full ({what})"
    elif code == sqlite3.SQLITE_IOERR_SHMSIZE:
        what = f"The disk may be full ({what})"
    return OSError(number, f"{what}. {said}", str(path))


def log_is_empty(path: Path) -> bool:
    """Whether nothing is left in SQLite's log."""
    log = _beside(path, "-wal")
    return not log.exists() or not log.stat().st_size
