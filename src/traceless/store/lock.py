"""One writer at a time: an advisory lock that ends with its process.

The kernel releases a `flock` when its process ends, however that happens. Windows has none, and
cannot remove a file that somebody reads: there the store could not promise that old models go.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from traceless.exceptions import StoreBusyError, StoreError
from traceless.files.container import Permissions
from traceless.store.entries import now
from traceless.store.regular import open_regular

if sys.platform != "win32":
    import fcntl

_PAUSE = 0.02  # seconds between two attempts
_WIDTH = 80  # bytes of the note that says who holds the lock; blanks if nobody does


@contextmanager
def write_lock(
    path: Path, wait: float, like: Permissions | None = None, dry_run: bool = False
) -> Iterator[None]:
    """Hold the lock; raises `StoreBusyError` if another process still has it after `wait` s.

    A new file gets the permissions `like` those given. A dry run leaves no note in it.
    """
    check_system()
    lock = _opened(path, like)
    deadline = time.monotonic() + wait
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise busy(_holder(lock), wait) from None
                time.sleep(_PAUSE)
        holder = json.dumps({"pid": os.getpid(), "since": now()}).ljust(_WIDTH)
        note = b"" if dry_run else holder.encode()
        os.pwrite(lock, note, 0)
        try:
            yield
        finally:
            with suppress(OSError):
                os.pwrite(lock, b" " * len(note), 0)
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)  # also for processes that were forked meanwhile
        os.close(lock)


@contextmanager
def no_writer(path: Path) -> Iterator[bool]:
    """Whether there is no writer, and will be none in this block; nothing is written."""
    check_system()
    try:
        lock = open_regular(path)
    except FileNotFoundError:  # nobody ever has
        yield True
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(lock)


def check_system() -> None:
    """Raise on systems where a store cannot keep its promises."""
    if sys.platform == "win32":
        raise StoreError(
            "A store needs Linux or macOS: Windows has no lock that ends with its process, and "
            "does not remove the file of an old model while somebody reads it. Save the model to a "
            "file instead, or keep the store on another machine. Nothing was changed."
        )


def busy(holder: str, wait: float) -> StoreBusyError:
    """The error for the second writer."""
    return StoreBusyError(
        f"Another process is changing the store ({holder}) and had not finished after {wait:g} s. "
        "Try again, or open the store with a longer wait. Nothing was changed."
    )


def _opened(path: Path, like: Permissions | None) -> int:
    """The open file of the lock, which is made if there is none."""
    try:
        try:
            lock = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return open_regular(path, os.O_RDWR)
        if like is not None:
            like.apply(lock)
        return lock
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        raise StoreError(
            f"{path.parent} can be read here, but not changed ({error.strerror}). Change the store "
            "where its owner keeps it, or copy the folder and change the copy. Nothing was changed."
        ) from error


def _holder(lock: int) -> str:
    try:
        said = json.loads(os.pread(lock, _WIDTH, 0))
        return f"pid {int(said['pid'])}, since {said['since']}"
    except (ValueError, TypeError, KeyError):  # it has only just taken the lock
        return "it has just begun"
