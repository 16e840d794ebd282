"""People: an id that the user gives stands in the table of rows as 16 random bytes.

    name = BLAKE3-128, keyed, of the id       id = random bytes, deleted with the last row of a name

So a copy of the folder tells of somebody only while rows of his are held. What remains of him in
the record are hashes over random bytes that nobody has any more. Whether he is not to be learned
again is the matter of a list of its own (`suppression`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral  # NumPy's integers are of these
from sqlite3 import Connection
from typing import Any, NamedTuple

from traceless.files.hashing import blake3

SIZE = 16  # bytes of an id, and of a name
_MOST = 500  # names in one statement


class Event(NamedTuple):
    """A change that learned rows of an id which are held, or a request for them that waits."""

    sequence: int
    time: str
    kind: str
    rows: int


@dataclass(frozen=True)
class Found:
    """What a store knows of an id.

    Attributes
    ----------
    held : int
        Rows that the model holds, including those that wait.
    waiting : int
        Rows that wait in the queue to be forgotten.
    forgotten, suppressed : str or None
        When its last row was forgotten, and until when it is on the list of those that are not to
        be learned again: a date, or "never" if it stays for ever. None if it is not there.
    events : tuple of Event
        The changes that these rows came with, and the requests that they wait for.
    """

    held: int
    waiting: int
    forgotten: str | None
    suppressed: str | None
    events: tuple[Event, ...]


class HeldId(bytes):
    """The id of a row as the table has it."""


def keys_of(secret: bytes | None) -> dict[str, bytes]:
    """The keys of all purposes that a secret has."""
    root, purposes = secret or bytes(32), ("row", "start", "id", "request", "queue")
    return {p: blake3(root).update(b"traceless 1 " + p.encode()).digest() for p in purposes}


def name_of(given: Any, key: bytes) -> bytes:
    """The keyed hash of an id; nothing for None and the empty text.

    Parameters
    ----------
    given : str, int, HeldId or None
        A whole number is its decimal digits.
    key : bytes
        That for ids.
    """
    if isinstance(given, HeldId):
        return given
    if given is None or given == "":
        return b""
    if isinstance(given, bool) or not isinstance(given, str | Integral):
        raise ValueError(
            "The id of a row must be a text or a whole number, or None for a row without one; "
            f"got {given!r}. Nothing was changed."
        )
    return bytes(blake3(key).update(str(given).encode()).digest(SIZE))


@dataclass(frozen=True)
class People:
    """The people of whom rows are held, in a transaction of the ledger."""

    _sql: Connection

    def ids(self, names: Iterable[bytes]) -> dict[bytes, bytes]:
        """The ids of names that are known; what is an id already stays."""
        found: dict[bytes, bytes] = {
            name: bytes(name) for name in set(names) if isinstance(name, HeldId) and name
        }
        left = list(set(names) - found.keys() - {b""})
        for i in range(0, len(left), _MOST):
            some = left[i : i + _MOST]
            query = f"SELECT name, id FROM people WHERE name IN ({', '.join('?' * len(some))})"
            found.update(self._sql.execute(query, some))
        return found

    def add(self, names: Iterable[bytes]) -> dict[bytes, bytes]:
        """Give ids to names that have none."""
        new = [name for name in set(names) - {b""} if not isinstance(name, HeldId)]
        salt = os.urandom(SIZE * len(new))
        made = {name: salt[SIZE * i : SIZE * (i + 1)] for i, name in enumerate(new)}
        self._sql.executemany("INSERT INTO people VALUES (?, ?, 0)", made.items())
        return made

    def count(self, changes: Mapping[bytes, int]) -> list[tuple[bytes, bytes]]:
        """Change the numbers of rows of ids; forgets and returns those whose last row is gone."""
        moved = [(n, one) for one, n in changes.items() if n and one]
        self._sql.executemany("UPDATE people SET rows = rows + ? WHERE id = ?", moved)
        gone = "DELETE FROM people WHERE id = ? AND rows = 0 RETURNING name, id"
        fewer = [one for one, n in changes.items() if n <= 0 and one]
        return [row for one in fewer for row in self._sql.execute(gone, (one,)).fetchall()]

    def held(self, one: bytes) -> int:
        """How many rows of an id are held."""
        row = self._sql.execute("SELECT rows FROM people WHERE id = ?", (one,)).fetchone()
        return int(row[0]) if row else 0

    def waiting(self) -> dict[bytes, int]:
        """How many rows of each id wait in the queue."""
        query = "SELECT id, sum(count) FROM rows WHERE request > 0 GROUP BY id"
        return dict(self._sql.execute(query))

    def events(self, one: bytes) -> list[tuple[int, int]]:
        """Entries, and how many rows of an id came with each; and requests that wait, likewise."""
        query = "SELECT {0}, sum(count) FROM rows WHERE id = ? AND {0} > 0 GROUP BY 1"
        both = (self._sql.execute(query.format(of), (one,)) for of in ("entry", "request"))
        return sorted(row for rows in both for row in rows)
