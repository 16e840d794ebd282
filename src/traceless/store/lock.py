"""One writer at a time: an advisory lock that a dead process cannot keep.

The kernel lets go of a `flock` when its process ends, however that happens. Windows has none, and
cannot remove a file that somebody reads: what is written here about old models would not be true.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from traceless.exceptions import StoreBusyError, StoreError
from traceless.store.entries import now

if sys.platform != "win32":
    import fcntl

_PAUSE = 0.02  # seconds between two attempts
_WIDTH = 80  # bytes: whoever holds the lock overwrites what the last one wrote


@contextmanager
def writing(path: Path, wait: float) -> Iterator[None]:
    """Hold the lock; raises `StoreBusyError` if another process still has it after `wait` s."""
    check_system()
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _acquire(lock, wait)
        holder = json.dumps({"pid": os.getpid(), "since": now()})
        os.pwrite(lock, holder.ljust(_WIDTH).encode(), 0)
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)  # also for processes that were forked meanwhile
        os.close(lock)


def check_system() -> None:
    """Raise where a store cannot keep what it promises."""
    if sys.platform == "win32":
        raise StoreError(
            "A store needs Linux or macOS: Windows has no lock that ends with its process, and "
            "does not remove the file of an old model while somebody reads it. Save the model to a "
            "file instead, or keep the store on another machine. Nothing was changed."
        )


def _acquire(lock: int, wait: float) -> None:
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise busy(_holder(lock), wait) from None
            time.sleep(_PAUSE)


def busy(who: str, wait: float) -> StoreBusyError:
    """What the second writer is told."""
    return StoreBusyError(
        f"Another process is changing the store ({who}) and was still at it after {wait:g} s. Try "
        "again, or open the store with a longer wait. Nothing was changed."
    )


def _holder(lock: int) -> str:
    try:
        said = json.loads(os.pread(lock, _WIDTH, 0))
        return f"pid {int(said['pid'])}, since {said['since']}"
    except (ValueError, TypeError, KeyError):  # it has only just taken the lock
        return "it has just begun"
