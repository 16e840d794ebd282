"""The suppression list: whom not to learn back unasked after all rows of theirs were forgotten.

    digest = BLAKE3-128, with the key of the list, of the name (`people`), and a date of expiry

The list is about people: whoever has the folder, secret included, can test whether somebody that
he guesses is on it. It is kept so that the next export of a table does not bring them back; it
ends with its dates, and can be destroyed. It is a file of its own with a key of its own, beside
the model, and like that is named by the latest entry, with its SHA-256.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from traceless.exceptions import FileError
from traceless.files import container
from traceless.knowledge.fingerprint import blake3
from traceless.store.people import SIZE

_KIND = "suppression list"
_PERIOD = re.compile(r"([1-9][0-9]{0,3}) months?")
_NEVER = date.max.toordinal()


class Suppression:
    """Digests of names, each with the day on which it expires.

    Parameters
    ----------
    key : bytes
    days : dict
        Days by digest.
    """

    def __init__(self, key: bytes | None = None, days: dict[bytes, int] | None = None) -> None:
        today = _today().toordinal()
        self._key = os.urandom(32) if key is None else key
        self._days = {one: day for one, day in (days or {}).items() if day > today}

    def __len__(self) -> int:
        return len(self._days)

    def until(self, name: bytes) -> str | None:
        """The day on which a name expires, "never", or None if it is not on the list."""
        day = self._days.get(self._digest(name)) if self._days else None
        if day is None:
            return None
        return "never" if day == _NEVER else date.fromordinal(day).isoformat()

    def add(self, names: Iterable[bytes], period: str) -> None:
        """Put names on the list for a period."""
        day = _expiry(period).toordinal()
        self._days |= {self._digest(name): day for name in names}

    def write(self, path: Path, like: container.Permissions) -> str:
        """Write the list; returns the SHA-256 of its file."""
        digests = np.frombuffer(b"".join(self._days), np.uint8).reshape(-1, SIZE)
        days = np.array(list(self._days.values()), dtype=np.int64)
        key = np.frombuffer(self._key, np.uint8)
        tensors: container.Tensors = {"days": days, "digests": digests, "key": key}
        return container.write(path, _KIND, {}, tensors, like)

    @classmethod
    def read(cls, contents: container.Contents) -> Suppression:
        """The list of a file."""
        try:
            if contents.kind != _KIND:
                raise ValueError(f"it is a {contents.kind}")
            found = contents.tensors
            digests = [row.tobytes() for row in found["digests"].reshape(-1, SIZE)]
            key, days = found["key"].tobytes(), found["days"].tolist()
            return cls(key, dict(zip(digests, days, strict=True)))
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(f"This is no suppression list ({error}).") from error

    def _digest(self, name: bytes) -> bytes:
        found: bytes = blake3(self._key).update(name).digest(SIZE)
        return found


def check_period(period: Any) -> None:
    """Raise unless this is a period for a list: "24 months", "never", or None for no list."""
    if period is not None and period != "never":
        if not isinstance(period, str) or not _PERIOD.fullmatch(period):
            raise ValueError(
                'suppress must be a number of months such as "24 months", "never" (they stay on '
                f"the list for ever), or None for no list; got {period!r}."
            )
        _expiry(period)


def _expiry(period: str) -> date:
    if period == "never":
        return date.max
    found = _PERIOD.fullmatch(period)
    today = _today()
    years, month = divmod(today.month - 1 + int(found[1] if found else 0), 12)
    return date(today.year + years, month + 1, min(today.day, 28))


def _today() -> date:
    return datetime.now(UTC).date()
