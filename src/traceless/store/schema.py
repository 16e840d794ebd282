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

VERSION = 1
APPLICATION = 0x74524143
_TRIGGERS = tuple(
    f"CREATE TRIGGER no_{verb.lower()}_of_{table} BEFORE {verb} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, '{table} are kept as they are'); END"
    for table in ("origin", "entries")
    for verb in ("UPDATE", "DELETE")
)
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
    """CREATE TABLE requests (key TEXT PRIMARY KEY, first INTEGER NOT NULL,
    latest INTEGER NOT NULL) WITHOUT ROWID""",
    "CREATE TABLE queue (sequence INTEGER PRIMARY KEY, content BLOB NOT NULL)",
    *_TRIGGERS,
)


class ForeignTablesError(StoreError):
    """The ledger has other tables than a ledger has."""


def check_schema(connection: sqlite3.Connection) -> None:
    """Raise, with its name, if there is anything but the tables of a ledger."""
    found, expected = _described(connection), _expected()
    if found == expected:
        return
    names = sorted({str(name) for name, *_ in [*(found - expected), *(expected - found)]})
    raise ForeignTablesError(
        "The ledger is damaged: its tables are not those of a store. Added, changed or missing: "
        f"{', '.join(names[:5])!r}. Restore the store from a backup."
    )


@cache
def _expected() -> Counter[tuple[str | None, ...]]:
    """What SQLite says of the schema."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in SCHEMA:
            connection.execute(statement)
        return _described(connection)


def _described(connection: sqlite3.Connection) -> Counter[tuple[str | None, ...]]:
    """All tables, indexes, triggers and views; a trigger may have the name of a table."""
    return Counter(connection.execute("SELECT name, type, tbl_name, sql FROM sqlite_master"))
