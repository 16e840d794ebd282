"""Files as they were when they were listed: one that has changed since is refused.

A scan says which rows there are; they are read later, by other processes. If a file were
written anew in between, rows would be lost, or learned twice, and nobody would know.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from traceless.sources.files import File


@dataclass(frozen=True)
class Stamp:
    """A file, its size in bytes and the time of its last change.

    Copies on other machines must keep the time, as ``rsync -t`` and ``cp -p`` do.
    """

    file: File
    size: int
    changed: int | None  # nanoseconds since 1970; None where the storage does not say

    @classmethod
    def of(cls, file: File) -> Stamp:
        """As the file is now; raises FileNotFoundError if it is not there."""
        there = file.info
        if not there.is_file:
            raise FileNotFoundError(
                f"{file} is not there any more: it was deleted or moved after it was scanned, or "
                "this machine does not have it. Nothing was changed."
            )
        return cls(file, int(there.size), there.mtime_ns)

    def check(self) -> None:
        """Raise unless the file is as it was."""
        if Stamp.of(self.file) != self:
            raise ValueError(
                f"{self.file} has changed since it was scanned: its size or its time is another. "
                "Its rows are not those that were meant. Scan it again when nobody writes to it "
                "any more. Nothing was changed."
            )

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Check that the file is as it was, before it is read and after it."""
        self.check()
        yield
        self.check()

    def check_rows(self, found: int, expected: int) -> None:
        """Raise if a part of the file has not as many rows as it had."""
        if found != expected:
            raise ValueError(
                f"{self.file} has changed since it was scanned: {expected} rows were expected in a "
                f"part of it, and {found} were found. Scan it again. Nothing was changed."
            )
