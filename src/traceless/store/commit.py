"""The commit of a change, and the state of the store after a commit that failed.

If the sync of a commit fails, its pages may be in SQLite's log all the same, and the next process
that opens the ledger would find the change made. So after any error the ledger is opened again: if
the change is not there, what is left of it in the log is made unreadable.
"""

from __future__ import annotations

import sqlite3

from traceless.exceptions import StoreError
from traceless.store import keys
from traceless.store.entries import Entry
from traceless.store.folder import Folder
from traceless.store.ledger import Ledger
from traceless.store.opening import VERSION, open_ledger, os_error

_UNSAFE = ". A power cut could still undo it: free the disk, then flush"
_UNSAFE = ". A power cut could still undo it: free the disk, then flush"
_PATIENCE = 1.0  # seconds
_NOT_MADE = "Nothing was changed"
_UNSURE = (
    "It could not be seen whether the change was made: look at the latest entry (traceless status) "
    "before you try again, or try again with the same key"
)


def commit(folder: Folder, ledger: Ledger, entry: Entry) -> None:
    """Commit a transaction whose latest entry is this one, and remove what it replaced.

    An error says whether the change was made; if it is made and on the disk, there is none.
    """
    try:
        ledger.commit()
        folder.tidy(ledger, entry, committed=True)
    except BaseException as error:
        ledger.sql.close()
        made, safe = _look(folder, entry)
        if not (made and safe and isinstance(error, Exception)):
            said = _UNSURE if made is None else _NOT_MADE
            if made:
                said = f"The change was made (entry {entry.sequence}); do not repeat it"
                said += "" if safe else _UNSAFE
            found: Exception | None = os_error(error, folder.ledger, said)
            if found is None and isinstance(error, sqlite3.Error):
                message = f"The ledger {folder.ledger} could not be committed: {error}. {said}."
                found = StoreError(message)
            if found is not None:
                raise found from error
            error.add_note(f"{said}.")
            raise
    keys.settle(folder, entry.next_signer)


def _look(folder: Folder, entry: Entry) -> tuple[bool | None, bool]:
    """Whether an entry is in the ledger (None: unknown), and whether the log was emptied."""
    try:
        with open_ledger(folder.ledger, "", _PATIENCE) as ledger:
            emptied, last = ledger.empty_log(), ledger.last()
            if not emptied and last != entry:  # writing a page invalidates what is in the log
                ledger.sql.execute("BEGIN IMMEDIATE")
                ledger.sql.execute(f"PRAGMA user_version = {VERSION}")
                ledger.sql.execute("COMMIT")
            folder.tidy(ledger, last)
            return last == entry, emptied
    except (OSError, sqlite3.Error, StoreError):
        return None, False
