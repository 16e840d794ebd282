"""People as a user knows them: by an id, of which a store has a keyed hash, its name.

    name(id) = BLAKE3-128, keyed, of the text

Without NumPy, since what only looks for people needs none. In the table of rows somebody is a
random id (`row_table`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral  # NumPy's integers are of these
from sqlite3 import Connection
from typing import Any, NamedTuple

from traceless.files.hashing import blake3, hashes

SIZE = 16  # bytes of an id, of a name, and of the digest of a row
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


def keys_of(secret: bytes | None) -> dict[str, bytes]:
    """The keys of all purposes that a secret has."""
    root, purposes = secret or bytes(32), ("row", "start", "id", "request", "queue")
    return {p: blake3(root).update(b"traceless 1 " + p.encode()).digest() for p in purposes}


def names_of(ids: Iterable[Any], key: bytes) -> list[bytes]:
    """The keyed hashes of ids; nothing for None and the empty text.

    Parameters
    ----------
    ids : iterable of str, int or None
        A whole number is its decimal digits.
    key : bytes
        That for ids.
    """
    texts = [one if type(one) is str else _text_of(one) for one in ids]
    different = list(dict.fromkeys(texts))
    hashed = hashes((one.encode() for one in different), key, SIZE)
    named = {**dict(zip(different, hashed, strict=True)), "": b""}
    return [named[one] for one in texts]


def _text_of(given: Any) -> str:
    if isinstance(given, bool) or not isinstance(given, str | Integral | None):
        raise ValueError(
            "The id of a row must be a text or a whole number, or None for a row without one; "
            f"got {given!r}. Nothing was changed."
        )
    return "" if given is None else str(given)


def ids_of(sql: Connection, names: Iterable[bytes]) -> dict[bytes, bytes]:
    """The random ids of names of which rows are held."""
    found, left = dict[bytes, bytes](), list(set(names) - {b""})
    for i in range(0, len(left), _MOST):
        some = left[i : i + _MOST]
        query = f"SELECT name, id FROM people WHERE name IN ({', '.join('?' * len(some))})"
        found.update(sql.execute(query, some))
    return found


def numbers_of(sql: Connection, ids: Iterable[bytes]) -> dict[bytes, tuple[int, int]]:
    """How many rows of each id are held, and how many of them wait."""
    query = "SELECT id, sum(count) FROM rows WHERE request > 0 GROUP BY id"
    waiting, held = dict(sql.execute(query)), "SELECT rows FROM people WHERE id = ?"
    each = ((one, sql.execute(held, (one,)).fetchone() or (0,)) for one in set(ids))
    return {one: (rows, waiting.get(one, 0)) for one, (rows,) in each}


def events_of(sql: Connection, one: bytes) -> list[tuple[int, int]]:
    """Entries, and how many rows of an id came with each; and requests that wait, likewise."""
    query = "SELECT {0}, sum(count) FROM rows WHERE id = ? AND {0} > 0 GROUP BY 1"
    both = (sql.execute(query.format(of), (one,)) for of in ("entry", "request"))
    return sorted(row for rows in both for row in rows) if one else []
