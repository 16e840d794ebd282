"""The folder of a store: the ledger, the file of the model, the secret and the lock.

    ledger.sqlite                           all changes, and the digests of the rows held
    generations/<sequence>-<random>.traceless   the model: one file, never changed in place
    secret                                  the key of the row digests
    lock                                    held by the one process that is changing the store

The latest entry of the ledger names the file of the model. Every other file of such a name is left
over, from a change that was not committed or from a model that was replaced, and the next change
removes it. Nothing else is ever removed, and reading removes nothing.

All files have the permissions of the ledger: they are for their owner alone, or for a group too.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traceless.exceptions import FileError, StoreError
from traceless.files import container
from traceless.store.entries import LIST, Entry
from traceless.store.ledger import Ledger
from traceless.store.opening import APPLICATION, open_ledger, os_error
from traceless.store.regular import found_at, open_folder, read_regular, warn_if_public

if TYPE_CHECKING:
    from traceless.store.row_digests import RowHasher
    from traceless.store.suppression import Suppression

_GENERATION = r"[0-9]{1,18}-[0-9a-f]{16}\.(traceless|suppression)"
# models and lists, and unfinished files of `container.replace`, which cuts long names
_OURS = re.compile(
    rf"{_GENERATION}|\.([0-9]{{1,18}}-[0-9a-f]{{9,16}}[.a-z]*|secret|key(\.new)?)\.[0-9a-f]{{16}}\.part"
)
_LARGEST_PRIVATE = 65_536  # bytes
SECRET_BYTES = 32


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
        try:
            found_at(self.ledger)
        except (FileNotFoundError, NotADirectoryError):
            what = "there is no such folder"
            if self.path.is_dir():
                what = "it has no ledger.sqlite"
            elif self.path.exists():
                what = "it is a file, and a store is a folder"
            raise StoreError(
                f"{self.path} is not a store: {what}. Store.new (or traceless new) makes one."
            ) from None

    # --- small files ----------------------------------------------------------------------

    def read_private(self, name: str) -> bytes:
        """A small file of the store, such as the secret; raises `FileNotFoundError`."""
        path = self.path / name
        warn_if_public(path, found_at(path))
        return read_regular(path, _LARGEST_PRIVATE)

    def write_private(self, name: str, content: bytes) -> None:
        """Write a small file, all or nothing, readable by those who may change the store.

        `left_over` knows the names of the small files there are.
        """
        like = self.permissions()
        most = 0o660 if like.mode & stat.S_IWGRP else 0o600
        container.replace(self.path / name, [content], like._replace(mode=like.mode & most))

    def permissions(self) -> container.Permissions:
        """The permissions of the ledger, which all files have."""
        found = found_at(self.ledger)
        return container.Permissions(found.st_mode & 0o666, found.st_uid, found.st_gid)

    # --- the model ------------------------------------------------------------------------

    def write(self, estimator: Any, sequence: int) -> tuple[str, str]:
        """Write a new generation of the model; returns its name and its SHA-256."""
        from traceless.files import saving

        return self._beside_others(sequence, ".traceless", partial(saving.save, estimator))

    def write_suppression(self, suppression: Suppression, sequence: int) -> tuple[str, str]:
        """Write a new suppression list beside the model; returns its name and its SHA-256."""
        return self._beside_others(sequence, LIST, suppression.write)

    def _beside_others(
        self, sequence: int, end: str, write: Callable[[Path, container.Permissions], str]
    ) -> tuple[str, str]:
        name = f"{sequence}-{secrets.token_hex(8)}{end}"
        with open_folder(self.generations):
            return name, write(self.generations / name, self.permissions())

    def suppression(self, entry: Entry) -> Suppression:
        """The suppression list of an entry, which must be the latest one."""
        from traceless.store.suppression import Suppression

        with _damaged():
            if entry.suppression is None:
                return Suppression()
            return Suppression.read(self._contents(entry.suppression, entry.suppression_sha256))

    def load(self, entry: Entry) -> Any:
        """The model of an entry, which must be the latest one."""
        if entry.generation is None:
            raise StoreError(f"The model of {self.path} was destroyed; only its ledger is left.")
        with _damaged():
            return self.read(entry.generation, entry.sha256)

    def read(self, name: str, sha256: str | None) -> Any:
        """The model of a generation, whose file must have this SHA-256."""
        from traceless.estimators import loading

        return loading.constructed(self._contents(name, sha256))

    def _contents(self, name: str, sha256: str | None) -> container.Contents:
        """What is in a file beside the model that must have this SHA-256."""
        if not re.fullmatch(_GENERATION, name):
            raise FileError(f"{name[:80]!r} is not the name of a generation.")
        path = self.generations / name
        with open_folder(self.generations) as folder:
            contents = container.parsed(read_regular(path, within=folder), path)
        if contents.sha256 != sha256:
            raise FileError(f"{name} is not the file that the ledger names.")
        return contents

    @contextmanager
    def snapshot(self) -> Iterator[tuple[Ledger, Entry, Any]]:
        """The ledger, its latest entry and its model, which is None if it was destroyed.

        A writer may remove the file between reading the ledger and opening the file; the ledger
        then names another one. If it still names the same file, that file is missing.
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
        """Files of the store that the latest entry does not name any more."""
        named = (
            entry.generation,
            entry.suppression,
            *([] if entry.records is None else ["secret"]),
        )
        left = [path for path in self._all() if path.name not in named]
        return [path for path in left if path == self._secret or _OURS.fullmatch(path.name)]

    def strangers(self) -> list[Path]:
        """Files beside the model that do not belong to the store; they are never removed."""
        models = self.generations
        beside = [path for path in self._all() if path.parent == models]
        return [path for path in beside if not _OURS.fullmatch(path.name)]

    def _all(self) -> list[Path]:
        """Everything in the folder and in that of the model."""
        found = list[Path]()
        for folder in (self.path, self.generations):
            with suppress(FileNotFoundError), self._open(folder) as handle:
                found += [folder / name for name in os.listdir(handle)]
        return found

    def _open(self, folder: Path) -> AbstractContextManager[int]:
        """Open a folder; that of the store may be reached by a link."""
        return open_folder(folder.resolve() if folder == self.path else folder)

    def tidy(self, ledger: Ledger, latest: Entry, committed: bool = False) -> None:
        """Empty SQLite's log, and remove the files that the latest entry does not name any more.

        The caller holds the lock, and no transaction. Errors are ignored: the next change removes
        what is left. Unless the entry was just committed, files are removed only once the log is
        empty, since a failed commit in it could still come back.
        """
        with suppress(OSError, StoreError, sqlite3.Error):
            if ledger.empty_log() or committed:
                for path in self.left_over(latest):
                    self.remove(path)

    def remove(self, path: Path) -> None:
        """Remove a file of the store; failures are ignored."""
        with suppress(OSError, StoreError), self._open(path.parent) as folder:
            os.unlink(path.name, dir_fd=folder)
            container.bring_to_disk(folder)  # or it could come back after a power cut

    def secret(self, entry: Entry) -> bytes | None:
        """The key of the row digests; None if it was destroyed."""
        if entry.records is None:
            return None
        found = b""
        with suppress(FileNotFoundError):
            found = self.read_private("secret")
        if len(found) != SECRET_BYTES:
            raise StoreError(
                f"The store is damaged: {self._secret} is missing or not {SECRET_BYTES} bytes "
                "long. Restore it from a backup; without it rows cannot be recognised."
            )
        return found

    def hasher(self, ledger: Ledger) -> RowHasher:
        """What makes the digests of rows; it has no secret if that was destroyed."""
        from traceless.store.row_digests import RowHasher

        return RowHasher.of(self.secret(ledger.last()), ledger.origin)

    def size(self) -> int:
        """Bytes of all files; a file that vanishes meanwhile counts as empty."""
        total = 0
        for path in self._all():
            with suppress(FileNotFoundError):
                found = path.lstat()
                total += found.st_size if stat.S_ISREG(found.st_mode) else 0
        return total


@contextmanager
def _damaged() -> Iterator[None]:
    """A file of the store that cannot be read is damage."""
    try:
        yield
    except FileError as error:
        raise StoreError(f"The store is damaged: {error}") from error


def is_store(path: Path) -> bool:
    """Whether a folder is a store, from the first bytes of its ledger alone."""
    with suppress(OSError, StoreError):
        head = read_regular(path / "ledger.sqlite", 72)
        return head.startswith(b"SQLite format 3\0") and head[68:] == APPLICATION.to_bytes(4)
    return False


@contextmanager
def new_folder(path: Path, shared: bool = False) -> Iterator[Folder]:
    """A folder to fill, which then becomes `path` in one step; on any error nothing is left.

    Its files are for their owner alone, whatever the umask, or with `shared` for their group too.
    The ledger is there, and empty.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise StoreError(
            f"{path} exists already. Open it with Store(path), or choose another path."
        )
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    new = [parent for parent in path.absolute().parents if not parent.exists()]
    aside.mkdir(mode=0o700, parents=True)
    try:
        folder = Folder(aside)
        folder.generations.mkdir()
        mode = stat.S_ISGID | 0o770 if shared else 0o700  # what is made in there has its group
        for made in (aside, folder.generations):
            made.chmod(mode)
            if stat.S_IMODE(made.stat().st_mode) != mode:
                raise StoreError(
                    f"The folder for {path} cannot be given the permissions {mode:o}: you are not "
                    "in its group, or the file system has none. Nothing was made."
                )
        handle = os.open(folder.ledger, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.fchmod(handle, 0o660 if shared else 0o600)
        os.close(handle)
        yield folder
        for synced in (folder.generations, aside):
            container.sync_folder(synced)
        os.rename(aside, path)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    try:
        for folder_ in [path.absolute().parent, *(parent.parent for parent in new)]:
            container.sync_folder(folder_)
    except OSError as error:
        said = "The store was made, but a power cut could still undo it"
        raise os_error(error, path, said) or error from error
