"""Reading: the ledger and the model at one moment, whatever others write meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from traceless.exceptions import StoreError
from traceless.store.entries import Entry
from traceless.store.folder import Folder
from traceless.store.ledger import Ledger, reading


@contextmanager
def snapshot(folder: Folder) -> Iterator[tuple[Ledger, Entry, Any]]:
    """The ledger, its latest entry and the model of it, which is None if it was destroyed.

    A writer may remove the file between the look at the ledger and the look at the file: the
    ledger then names another one. If it does not, the file is missing.
    """
    missing: Entry | None = None
    while True:
        with reading(folder.ledger) as ledger:
            entry = ledger.last()
            try:
                model = None if entry.generation is None else folder.load(entry)
            except FileNotFoundError:
                if missing == entry:
                    raise StoreError(
                        f"The store is damaged: generation {entry.generation} is missing. Take the "
                        "whole folder from a backup."
                    ) from None
                missing = entry
                continue
            yield ledger, entry, model
            return
