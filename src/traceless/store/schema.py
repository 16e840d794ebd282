"""The tables of a ledger, which are compared word for word whenever one is opened.

Whoever may write the file could add a trigger that keeps what is forgotten, or a view in place of
a table; such a ledger is refused.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from functools import cache

from traceless.exceptions import StoreError

VERSION = 3
APPLICATION = 0x74524143
ROW_TABLES = (
    """CREATE TABLE alive (digest BLOB NOT NULL, id BLOB NOT NULL, count INTEGER NOT NULL,
    queued INTEGER NOT NULL, PRIMARY KEY (digest, id)) WITHOUT ROWID""",
    "CREATE TABLE sums (name TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID",
)
_ORIGIN = "CREATE TABLE origin (document TEXT NOT NULL)"
_CLASSES = "CREATE TABLE classes (label TEXT PRIMARY KEY, rows INTEGER NOT NULL) WITHOUT ROWID"
_TRIGGERS = tuple(
    f"CREATE TRIGGER no_{verb.lower()}_of_{table} BEFORE {verb} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} are kept as they are'); END"
    for table in ("origin", "entries")
    for verb in ("UPDATE", "DELETE")
)
SCHEMA = (
    _ORIGIN,
    """CREATE TABLE entries (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL,
    signature TEXT NOT NULL)""",
    *ROW_TABLES,
    """CREATE TABLE ids (id BLOB NOT NULL, sequence INTEGER NOT NULL, added INTEGER NOT NULL,
    removed INTEGER NOT NULL, waiting INTEGER NOT NULL, PRIMARY KEY (id, sequence))
    WITHOUT ROWID""",
    _CLASSES,
    """CREATE TABLE requests (key TEXT PRIMARY KEY, kind TEXT NOT NULL, rows INTEGER NOT NULL,
    request TEXT, sequence INTEGER NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE queue (sequence INTEGER PRIMARY KEY, time TEXT NOT NULL, key TEXT,
    rows INTEGER NOT NULL, classes TEXT NOT NULL, content BLOB NOT NULL)""",
    *_TRIGGERS,
)


class ForeignTablesError(StoreError):
    """The ledger has other tables than those of its version."""


def _old(request: str) -> tuple[str, ...]:
    """The tables of versions 1 and 2, which called the hash of a request by different names."""
    return (
        _ORIGIN,
        "CREATE TABLE entries (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, "
        "hash TEXT NOT NULL)",
        "CREATE TABLE alive (digest BLOB PRIMARY KEY, count INTEGER NOT NULL, "
        "queued INTEGER NOT NULL)\n    WITHOUT ROWID",
        _CLASSES,
        f"""CREATE TABLE requests (key TEXT PRIMARY KEY, kind TEXT NOT NULL, rows INTEGER NOT NULL,
    {request} TEXT, sequence INTEGER) WITHOUT ROWID""",
        """CREATE TABLE queue (number INTEGER PRIMARY KEY, time TEXT NOT NULL, key TEXT,
    rows INTEGER NOT NULL, classes TEXT NOT NULL, content BLOB NOT NULL)""",
        *_TRIGGERS,
    )


# a store of version 1 that version 2 wrote to has the tables of version 1
_KNOWN = {1: (_old("fingerprint"),), 2: (_old("request"), _old("fingerprint")), VERSION: (SCHEMA,)}


def check_schema(connection: sqlite3.Connection, version: int) -> None:
    """Raise, with its name, if there is anything but the tables of this version."""
    found = _described(connection)
    known = [_made(statements) for statements in _KNOWN.get(version, ())]
    if found in known:
        return
    expected = known[0] if known else Counter()
    names = sorted({str(name) for name, *_ in [*(found - expected), *(expected - found)]})
    raise ForeignTablesError(
        f"The ledger is damaged: its tables are not those of version {version}. Added, changed or "
        f"missing: {', '.join(names[:5])!r}. Restore the store from a backup."
    )


@cache
def _made(statements: tuple[str, ...]) -> Counter[tuple[str | None, ...]]:
    """What SQLite says of a schema."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements:
            connection.execute(statement)
        return _described(connection)


def _described(connection: sqlite3.Connection) -> Counter[tuple[str | None, ...]]:
    """All tables, indexes, triggers and views; a trigger may have the name of a table."""
    return Counter(connection.execute("SELECT name, type, tbl_name, sql FROM sqlite_master"))
