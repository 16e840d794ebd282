"""The folder of a store: the ledger, the file of the model, the secret and the lock.

    ledger.sqlite                           all changes, and the digests of the rows held
    generations/<sequence>-<random>.traceless   the model: one file, never changed in place
    secret                                  the key of the row digests
    lock                                    held by the one process that is changing the store

The latest entry of the ledger names the file of the model. Every other file in `generations` is
left over, from a change that was not committed or from a model that was replaced, and is removed.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from traceless.exceptions import FileError, StoreError
from traceless.files import container
from traceless.store.entries import Entry
from traceless.store.ledger import Ledger
from traceless.store.opening import open_ledger

_GENERATION = re.compile(r"[0-9]{1,18}-[0-9a-f]{16}\.traceless")


class Folder:
    """The files of a store."""

    def __init__(self, path: Any) -> None:
        self.path = Path(path)
        self.ledger = self.path / "ledger.sqlite"
        self.lock = self.path / "lock"
        self.generations = self.path / "generations"
        self._secret = self.path / "secret"

    def check(self) -> None:
        """Raise if there is no store here."""
        if not self.ledger.is_file():
            what = "there is no such folder"
            if self.path.is_dir():
                what = "it has no ledger.sqlite"
            elif self.path.exists():
                what = "it is a file, and a store is a folder"
            raise StoreError(
                f"{self.path} is not a store: {what}. Store.new (or traceless new) makes one."
            )

    def write(self, estimator: Any, sequence: int) -> tuple[str, str]:
        """Write a new generation of the model; returns its name and its SHA-256."""
        name = f"{sequence}-{secrets.token_hex(8)}.traceless"
        return name, str(estimator.save(self.generations / name))

    def load(self, entry: Entry) -> Any:
        """The model of an entry, which must be the latest one."""
        if entry.generation is None:
            raise StoreError(f"The model of {self.path} was destroyed; only its ledger is left.")
        try:
            return self.read(entry.generation, entry.sha256)
        except FileError as error:
            raise StoreError(f"The store is damaged: {error}") from error

    def read(self, name: str, sha256: str | None) -> Any:
        """The model of a generation, whose file must have this SHA-256."""
        from traceless.estimators import loading

        if not _GENERATION.fullmatch(name):
            raise FileError(f"{name[:80]!r} is not the name of a generation.")
        contents = container.read(self.generations / name)
        if contents.sha256 != sha256:
            raise FileError(f"{name} is not the file that the ledger names.")
        return loading.constructed(contents)

    @contextmanager
    def snapshot(self) -> Iterator[tuple[Ledger, Entry, Any]]:
        """The ledger, its latest entry and the model of it, which is None if it was destroyed.

        A writer may remove the file after the ledger was read and before the file is opened: the
        ledger then names another file. If it names the same one again, the file is missing.
        """
        missing: Entry | None = None
        while True:
            with open_ledger(self.ledger) as ledger:
                entry = ledger.last()
                try:
                    model = None if entry.generation is None else self.load(entry)
                except FileNotFoundError:
                    if missing == entry:
                        raise StoreError(
                            f"The store is damaged: generation {entry.generation} is missing. "
                            "Restore the whole folder from a backup."
                        ) from None
                    missing = entry
                    continue
                yield ledger, entry, model
                return

    def left_over(self, entry: Entry) -> list[Path]:
        """Files that should be gone, according to the latest entry."""
        folder = self.generations.iterdir() if self.generations.is_dir() else ()
        found = [path for path in folder if path.name != entry.generation]
        destroyed = entry.alive is None and self._secret.exists()
        return [*found, self._secret] if destroyed else found

    def tidy(self, ledger: Ledger, committed: Entry | None = None) -> None:
        """Empty SQLite's log, and remove the files that the ledger no longer names.

        After a commit, of the entry `committed`, the change is made, whatever happens here: the
        next process removes what cannot be removed now. Before one, files go only once the log is
        empty, since what a failed commit wrote into it could still come back.
        """
        with suppress(OSError, sqlite3.Error):
            if ledger.empty_log() or committed:
                ledger.sql.execute("BEGIN IMMEDIATE")  # nobody else writes until it is closed
                for path in self.left_over(committed or ledger.last()):
                    with suppress(OSError):
                        path.unlink(missing_ok=True)

    def secret(self, entry: Entry) -> bytes | None:
        """The key of the row digests; None if it was destroyed."""
        from traceless.store.row_digests import SECRET_BYTES

        if entry.alive is None:
            return None
        found = b""
        with suppress(FileNotFoundError):
            found = self._secret.read_bytes()
        if len(found) != SECRET_BYTES:
            raise StoreError(
                f"The store is damaged: {self._secret} is missing or not {SECRET_BYTES} bytes "
                "long. Restore it from a backup; without it rows cannot be recognised."
            )
        return found

    def keep_secret(self, secret: bytes) -> None:
        """Write the secret of a new store."""
        handle = os.open(self._secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secret)
            file.flush()
            container.bring_to_disk(handle)

    def size(self) -> int:
        """Bytes of all files; a file that vanishes meanwhile counts as empty."""
        total = 0
        for path in self.path.rglob("*"):
            with suppress(FileNotFoundError):
                total += path.stat().st_size if path.is_file() else 0
        return total


@contextmanager
def new_folder(path: Path) -> Iterator[Folder]:
    """A folder to fill, which then becomes `path` in one step; on any error nothing is left."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise StoreError(
            f"{path} exists already. Open it with Store(path), or choose another path."
        )
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    aside.mkdir(parents=True)
    try:
        folder = Folder(aside)
        folder.generations.mkdir()
        yield folder
        for synced in (folder.generations, aside):
            container.sync_folder(synced)
        os.rename(aside, path)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    container.sync_folder(path.parent)
