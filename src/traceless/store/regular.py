"""How a store opens files in a folder from anybody: regular files only.

No link is followed, and a pipe or a device is refused before anything can wait for it. A file
that is changed in place (the ledger, the lock) must not have hard links either: the change would
reach a file elsewhere. Files with hard links can be read, since backups use them.
"""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from traceless.exceptions import StoreError, StoreWarning

_CAREFULLY = sum(
    getattr(os, name, 0)  # Windows has none of them
    for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY")
)
_MEND = "Somebody put it there: restore the store from a backup. Nothing was changed."
_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def found_at(path: Path, *, to_change: bool = False, within: int | None = None) -> os.stat_result:
    """The `stat` of a regular file.

    Parameters
    ----------
    path : Path
    to_change : bool, default=False
        Whether it will be changed in place.
    within : int, optional
        An open folder, in place of that of the path.

    Raises
    ------
    FileNotFoundError
    StoreError
        If it is a link, a pipe or anything else.
    """
    name = path if within is None else path.name
    found = os.stat(name, dir_fd=within, follow_symlinks=False)
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path} is {_kind(found)}, and a store has only regular files. {_MEND}")
    if to_change and found.st_nlink > 1:
        raise StoreError(
            f"{path} has {found.st_nlink} names (hard links), so that a change would also change "
            "a file elsewhere, such as a backup. Replace the folder by a true copy of itself "
            "(cp -r). Nothing was changed."
        )
    return found


def open_regular(path: Path, flags: int = os.O_RDONLY, within: int | None = None) -> int:
    """Open a regular file, as `os.open` does; see `found_at`."""
    try:
        found_at(path, to_change=bool(flags & (os.O_WRONLY | os.O_RDWR)), within=within)
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    # if it is replaced meanwhile, no link is followed, and no pipe is waited for
    return os.open(path if within is None else path.name, flags | _CAREFULLY, 0o600, dir_fd=within)


def read_regular(path: Path, most: int | None = None, within: int | None = None) -> bytes:
    """The bytes of a regular file, or the first of them."""
    with os.fdopen(open_regular(path, within=within), "rb") as file:
        return file.read(-1 if most is None else most)


def read_outside(path: Any, most: int, *, private: bool = False) -> bytes:
    """A small file that somebody names, which may be anywhere and be reached by a link.

    A pipe or a device is refused before anything can wait for it, and so is a file of more than
    `most` bytes. One that is to be private, and is not, gives a warning.
    """
    handle = os.open(path, os.O_RDONLY | _CAREFULLY & ~getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"it is {_kind(found)}, and no regular file")
        if private:
            warn_if_public(Path(path), found)
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most} bytes")
    return content


def warn_if_public(path: Path, found: os.stat_result) -> None:
    """Warn of a secret that everybody on the machine can read."""
    if found.st_mode & stat.S_IROTH:
        message = f"Everybody on this machine can read {path}, which is to be secret: chmod o= it."
        warnings.warn(message, StoreWarning, stacklevel=4)


@contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """Open a folder that is no link, for `dir_fd`."""
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise StoreError(f"{path} is {_kind(found)}, and a store has a folder there. {_MEND}")
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _CAREFULLY)
    try:
        yield handle
    finally:
        os.close(handle)


def _kind(found: os.stat_result) -> str:
    return _KINDS.get(stat.S_IFMT(found.st_mode), "no regular file")
