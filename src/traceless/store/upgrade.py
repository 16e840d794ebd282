"""Bring a store of version 1 or 2 to version 3, in place and in one commit.

The old entries stay as they are, without signatures. An entry of the kind "upgrade" follows them:
it has the hash of the last one, and is signed, so that none of them can be changed from then on. It
proves nothing about changes made before. Waiting requests get entries of their own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from traceless.exceptions import StoreError
from traceless.store import keys
from traceless.store.change import make
from traceless.store.entries import Entry, ModelState
from traceless.store.folder import Folder
from traceless.store.ledger import Ledger
from traceless.store.queue import CAME
from traceless.store.receipts import Receipt
from traceless.store.row_digests import RowBatch, RowHasher, Tally
from traceless.store.row_lanes import lanes_text
from traceless.store.schema import SCHEMA, VERSION
from traceless.store.verification import Auditor, Verification

_COPIED = {
    "origin": "document",
    "entries": "sequence, body, hash, ''",
    "alive": "digest, x'', count, queued",
    "classes": "label, rows",
}


def upgrade(folder: Folder, old: Ledger, signing_key: Any, dry_run: bool = False) -> Receipt:
    """Upgrade the store whose ledger this is, in a transaction that writes, or only try."""
    if old.version == VERSION:
        raise StoreError(f"{folder.path} is of version {VERSION} already. Nothing was changed.")
    last = old.last()
    model = None if last.generation is None else folder.load(last)
    _check(folder, old, model)
    key, inside = keys.chosen(signing_key)
    signs = None if dry_run else key
    if dry_run:
        old.sql.execute("PRAGMA cache_spill = OFF")  # nothing goes into the log
    elif inside:
        folder.write_private("key.new", key.pem())
    waiting = [(queued, *_content(old, queued.sequence)) for queued in old.queue.pending()]
    _, lanes = old.rows.totals()
    ledger = _rebuilt(old)
    ledger.rows.keep_lanes(lanes)
    state, rows = ModelState.of(model), 0
    said = {"kind": "upgrade", "subject": f"version {old.version}", "waiting": 0}
    said |= {"alive": None if last.alive is None else lanes_text(lanes), "signer": key.public}
    entry = Entry.after(last, state, signs, **said)
    ledger.append(entry)
    receipt = Receipt.of(entry, ledger.origin)
    hasher = RowHasher.of(folder.secret(last), ledger.origin)
    for queued, content, batches in waiting:
        rows += queued.rows
        came = {"kind": "queue", "rows": queued.rows, "waiting": rows}
        came |= {"keys": () if queued.key is None else (queued.key,)}
        came |= {"request": hasher.request(hasher.tally(batches), Tally())}
        entry = Entry.after(entry, state, signs, subject=f"{CAME}{queued.time}", **came)
        ledger.append(entry)
        row = entry.sequence, *content
        ledger.sql.execute("INSERT INTO queue VALUES (?, ?, ?, ?, ?, ?)", row)
    if dry_run:
        return replace(receipt, dry_run=True, tried=model)
    make(folder, ledger, entry)
    return receipt


def _check(folder: Folder, old: Ledger, model: Any) -> None:
    """Raise if the store is damaged: only a sound history is signed."""
    found = Verification(tuple(Auditor(folder, old, model).checks(None)))
    if not found.ok:
        bad = "; ".join(f"{check.name}: {check.said}" for check in found.checks if not check.ok)
        raise StoreError(
            f"{folder.path} is damaged, and cannot be signed as it is ({bad}). Restore it from a "
            "backup. Nothing was changed."
        )


def _content(old: Ledger, number: int) -> tuple[tuple[Any, ...], list[RowBatch]]:
    """A request that waits: its columns, and its rows."""
    query = "SELECT time, key, rows, classes, content FROM queue WHERE number = ?"
    return old.sql.execute(query, (number,)).fetchone(), list(old.queue.batches(number))


def _rebuilt(old: Ledger) -> Ledger:
    """Make the tables of today, with what is in the old ones."""
    sql = old.sql
    for kind, name in sql.execute("SELECT type, name FROM sqlite_master").fetchall():
        if kind == "trigger":
            sql.execute(f"DROP TRIGGER {name}")
        elif kind == "table":
            sql.execute(f"ALTER TABLE {name} RENAME TO old_{name}")
    for statement in SCHEMA:
        sql.execute(statement)
    for table, columns in _COPIED.items():
        sql.execute(f"INSERT INTO {table} SELECT {columns} FROM old_{table}")
    sql.execute("INSERT INTO requests SELECT * FROM old_requests WHERE sequence NOT NULL")
    for table in (*_COPIED, "requests", "queue"):
        sql.execute(f"DROP TABLE old_{table}")
    sql.execute(f"PRAGMA user_version = {VERSION}")
    return Ledger(sql)
