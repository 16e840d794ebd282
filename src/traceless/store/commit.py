"""The commit of a change, and the state of the store after a commit that failed.

If the sync of a commit fails, its pages may be in SQLite's log all the same, and the next process
that opens the ledger would find the change made. So after any error the ledger is opened again: if
the change is not there, what is left of it in the log is made unreadable.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from traceless.exceptions import StoreError
from traceless.store.entries import Entry
from traceless.store.ledger import Ledger
from traceless.store.opening import open_ledger, os_error
from traceless.store.schema import VERSION

_PATIENCE = 1.0  # seconds
_NOT_MADE = "Nothing was changed"
_UNSURE = (
    "It could not be seen whether the change was made: look at the latest entry (traceless status) "
    "before you try again, or try again with the same key"
)


def commit(path: Path, ledger: Ledger, entry: Entry) -> bool:
    """Commit a transaction whose latest entry is this one; an error says whether it was made.

    Returns whether the ledger is still open: if not, SQLite had an error, but the change is made.
    """
    try:
        ledger.commit()
        return True
    except BaseException as error:
        ledger.sql.close()
        made, safe = _look(path, entry)
        if made and safe and isinstance(error, Exception):
            return False  # despite the error the change is made, and on the disk
        said = _UNSURE if made is None else _NOT_MADE
        if made:
            said = f"The change was made (entry {entry.sequence}); do not repeat it"
            said += "" if safe else ". A power cut could still undo it: free the disk, then flush"
        found: Exception | None = os_error(error, path, said)
        if found is None and isinstance(error, sqlite3.Error):
            found = StoreError(f"The ledger {path} could not be committed: {error}. {said}.")
        if found is not None:
            raise found from error
        error.add_note(f"{said}.")
        raise


def _look(path: Path, entry: Entry) -> tuple[bool | None, bool]:
    """Whether an entry is in the ledger (None: unknown), and whether the log was emptied."""
    try:
        with open_ledger(path, "", _PATIENCE) as ledger:
            emptied = ledger.empty_log()
            made = ledger.last() == entry
            if not emptied and not made:  # writing a page invalidates what is left in the log
                ledger.sql.execute("BEGIN IMMEDIATE")
                ledger.sql.execute(f"PRAGMA user_version = {VERSION}")
                ledger.sql.execute("COMMIT")
            return made, emptied
    except (OSError, sqlite3.Error, StoreError):
        return None, False
