"""The history of the rows of each id, under the keyed hash of the id.

For each change and each id with rows in it, the ledger keeps how many rows were learned (`added`)
and forgotten (`removed`), and the change in the number that wait (`waiting`). So:

    rows held = Σ added - Σ removed        rows that wait = Σ waiting        forgotten = Σ removed

The entry of a change has the SHA-256 of all its lines, in the order of the ids: 16 bytes of each
id, and its three numbers in 8 bytes each, little-endian.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from sqlite3 import Connection
from struct import pack
from typing import NamedTuple

from traceless.exceptions import StoreError

_SIZE = 16  # bytes of the hash of an id

Line = tuple[bytes, int, int, int]  # an id, and its rows: added, removed, waiting


class Event(NamedTuple):
    """A change with rows of an id; the numbers count rows of this id only."""

    sequence: int
    time: str
    kind: str
    added: int
    removed: int
    waiting: int


@dataclass(frozen=True)
class Found:
    """What a store knows of an id.

    Attributes
    ----------
    held : int
        Rows that the model holds, including those that wait.
    waiting : int
        Rows that wait in the queue to be forgotten.
    forgotten : int
        Rows that were forgotten. Relabelling a row counts as forgetting and learning.
    events : tuple of Event
        The changes with rows of this id, the first one first.
    """

    held: int
    waiting: int
    forgotten: int
    events: tuple[Event, ...]


def lines_of(added: Counter[bytes], removed: Counter[bytes], waiting: Counter[bytes]) -> list[Line]:
    """The rows of each id in a change, in the order of the ids; the empty id does not count."""
    ids = sorted({*added, *removed, *waiting} - {b""})
    return [(one, added[one], removed[one], waiting[one]) for one in ids]


def hash_of_lines(lines: Iterable[Line]) -> str | None:
    """The hash of the lines of a change, for its entry; None if there are none."""
    said = b"".join(one + pack("<qqq", *numbers) for one, *numbers in lines)
    return hashlib.sha256(said).hexdigest() if said else None


@dataclass(frozen=True)
class Ids:
    """The lines of all changes, in a transaction of the ledger."""

    _sql: Connection

    def note(self, sequence: int, lines: Iterable[Line]) -> None:
        """Keep the lines of a change."""
        self._sql.executemany(f"INSERT INTO ids VALUES (?, {int(sequence)}, ?, ?, ?)", lines)

    def lines(self) -> Iterator[tuple[int, list[Line]]]:
        """The lines of each change that has any, by its number."""
        query = "SELECT sequence, id, added, removed, waiting FROM ids ORDER BY sequence, id"
        for sequence, several in groupby(self._sql.execute(query), itemgetter(0)):
            found = list[Line]()
            for _, one, *numbers in several:
                if type(one) is not bytes or len(one) != _SIZE or {*map(type, numbers)} != {int}:
                    raise StoreError(f"an id that no change could leave: {[one, *numbers]!r}")
                found.append((one, *numbers))
            yield sequence, found

    def of(self, one: bytes) -> list[tuple[int, int, int, int]]:
        """The changes of an id: number, rows added, removed and waiting."""
        query = "SELECT sequence, added, removed, waiting FROM ids WHERE id = ? ORDER BY sequence"
        return list(self._sql.execute(query, (one,)))

    def held(self, one: bytes) -> tuple[int, int]:
        """How many rows of an id are held, and how many of them wait to be forgotten."""
        query = "SELECT total(added) - total(removed), total(waiting) FROM ids WHERE id = ?"
        held, waiting = self._sql.execute(query, (one,)).fetchone()
        return int(held), int(waiting)

    def are_any_gone(self) -> bool:
        """Whether any rows with ids were forgotten, or wait to be."""
        query = "SELECT EXISTS(SELECT 1 FROM ids WHERE removed > 0 OR waiting > 0)"
        return bool(self._sql.execute(query).fetchone()[0])

    def clear(self) -> None:
        """Delete all lines."""
        self._sql.execute("DELETE FROM ids")
