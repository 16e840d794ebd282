"""The suppression list: whom not to learn back unasked after all rows of theirs were forgotten.

    digest = BLAKE3-128, with the key of the list, of the name (`people`)

Each comes with the day on which the last row was forgotten, and the one on which it expires.

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

from traceless.exceptions import FileError
from traceless.files import container
from traceless.files.hashing import blake3
from traceless.store.people import SIZE

_KIND = "suppression list"
_PERIOD = re.compile(r"([1-9][0-9]{0,3}) months?")
_NEVER = date.max.toordinal()


class Suppression:
    """Digests of names, each with the day of the forgetting and the day on which it expires.

    Parameters
    ----------
    key : bytes
    days : dict
        Both days by digest, in hexadecimal.
    """

    def __init__(
        self, key: bytes | None = None, days: dict[str, tuple[int, int]] | None = None
    ) -> None:
        today = _today().toordinal()
        self._key = os.urandom(32) if key is None else key
        self._days = {one: both for one, both in (days or {}).items() if both[1] > today}

    def __len__(self) -> int:
        return len(self._days)

    def until(self, name: bytes) -> str | None:
        """The day on which a name expires, "never", or None if it is not on the list."""
        return self.days(name)[1]

    def days(self, name: bytes) -> tuple[str | None, str | None]:
        """The day on which the last row of a name was forgotten, and that on which it expires."""
        both = self._days.get(self._digest(name)) if self._days else None
        if both is None:
            return None, None
        since, until = (date.fromordinal(day).isoformat() for day in both)
        return since, "never" if both[1] == _NEVER else until

    def add(self, names: Iterable[bytes], period: str) -> None:
        """Put names on the list for a period."""
        both = _today().toordinal(), expiry(period).toordinal()
        self._days |= {self._digest(name): both for name in names}

    def write(self, path: Path, like: container.Permissions) -> str:
        """Write the list; returns the SHA-256 of its file."""
        facts = {"key": self._key.hex(), "days": self._days}
        return container.write(path, _KIND, facts, {}, like)

    @classmethod
    def read(cls, contents: container.Contents) -> Suppression:
        """The list of a file."""
        try:
            if contents.kind != _KIND:
                raise ValueError(f"it is a {contents.kind}")
            days = {str(one): (int(a), int(b)) for one, (a, b) in contents.facts["days"].items()}
            return cls(bytes.fromhex(contents.facts["key"]), days)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileError(f"This is no suppression list ({error}).") from error

    def _digest(self, name: bytes) -> str:
        return str(blake3(self._key).update(name).hexdigest(SIZE))


def expiry(period: Any) -> date:
    """When what is put on a list today expires: after "24 months", say, or "never"."""
    if period == "never":
        return date.max
    found = _PERIOD.fullmatch(period) if isinstance(period, str) else None
    if found is None:
        raise ValueError(
            'suppress must be a number of months such as "24 months", "never" (they stay on the '
            f"list for ever), or None for no list; got {period!r}."
        )
    today = _today()
    years, month = divmod(today.month - 1 + int(found[1]), 12)
    return date(today.year + years, month + 1, min(today.day, 28))


def _today() -> date:
    return datetime.now(UTC).date()
