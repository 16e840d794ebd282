"""Dates and times as numbers: the time since a declared origin, in a declared unit.

    x = (t - origin) / unit,   correctly rounded

Times are whole nanoseconds: a day, counted from 1970-01-01, and the nanoseconds of that day. A
time with a zone is taken to UTC, and one without a zone counts as it stands, as if it were UTC.
Text is ISO 8601, or of a declared format; no format depends on the language of the machine.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

import numpy as np

from traceless.arithmetic.integers import Floats, Integers
from traceless.features.cells import Cells

DAY = 86_400 * 10**9  # nanoseconds
UNITS = {"weeks": 7 * DAY, "days": DAY, "hours": DAY // 24, "minutes": DAY // 1440}
UNITS |= {"seconds": 10**9}
EXACT = 2**53  # whole numbers up to here are float64
_EPOCH = date(1970, 1, 1).toordinal()
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ]((?:[01]\d|2[0-3]):\d\d)(?:(:\d\d)(?:[.,](\d{1,9}))?)?"
    r" ?(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_DIRECTIVES = set("YymdHMSfzj%")  # those that mean the same in every language
Moment = tuple[int, int]  # day since 1970-01-01, and nanoseconds of that day, in UTC
Moments = tuple[Integers, Integers, Any]  # days, nanoseconds, and what is absent


def moment_of(text: str, form: str | None = None) -> Moment | None:
    """The time that a text of a format, by default ISO 8601, names; None if it names none."""
    return _iso(text) if form is None else _formatted(text, form)


def moments(cells: Cells, form: str | None = None) -> Moments:
    """Days, nanoseconds and what is absent, of a column of times or of text that names them."""
    if cells.kind == "time":
        times = cells.array
        if cells.is_arrow:  # a zone is only how a time is shown
            times = times.to_numpy(zero_copy_only=False)
        days = times.astype("M8[D]")  # rounded down
        absent, rest = np.isnat(times), (times - days).astype("m8[ns]").astype(np.int64)
        return np.where(absent, 0, days.astype(np.int64)), np.where(absent, 0, rest), absent
    if cells.kind != "text":
        raise cells.unfit("dates, or text that names them")
    words, places = cells.words()  # each different text is read once
    known = [moment_of(word.strip(), form) for word in words]
    empty = np.array([not word.strip() for word in words])[places]
    wanted = "2024-03-01 or 2024-03-01T10:00:00" if form is None else form
    fits = np.array([moment is not None for moment in known])[places] | empty
    cells.check_each(fits, f"a date as {wanted} is needed")
    table = np.array([moment or (0, 0) for moment in known], np.int64).reshape(-1, 2)[places]
    return table[:, 0], table[:, 1], empty


def quotients(days: Integers, nanoseconds: Integers, unit: int) -> Floats:
    """(days · DAY + nanoseconds) / unit, correctly rounded: one division of exact numbers."""
    step = 1000 if unit % 1000 == 0 and not (nanoseconds % 1000).any() else 1
    per_day = DAY // step
    if abs(days).max(initial=0) < EXACT // per_day - 1 and unit // step <= EXACT:
        return np.asarray((days * per_day + nanoseconds // step) / float(unit // step))
    pairs = zip(days.tolist(), nanoseconds.tolist(), strict=True)
    return np.array([(day * DAY + rest) / unit for day, rest in pairs], dtype=np.float64)


def _iso(text: str) -> Moment | None:
    """The time that a text in ISO 8601 names; None if it names none."""
    found = _ISO.fullmatch(text)
    if not found:
        return None
    day, minute, second, fraction, zone = found.groups(default="")
    try:
        whole = datetime.fromisoformat(f"{day}T{minute or '00:00'}{second}{zone}")
    except ValueError:
        return None
    return _utc(whole, int(fraction.ljust(9, "0")))


def _formatted(text: str, form: str) -> Moment | None:
    """The time that a text of a format names; None if it is not of that format."""
    try:
        return _utc(datetime.strptime(text, form), None)
    except ValueError:
        return None


def _utc(time: datetime, fraction: int | None) -> Moment | None:
    if time.tzinfo is not None:
        try:
            time = time.astimezone(UTC)
        except OverflowError:
            return None
    seconds = (time.hour * 60 + time.minute) * 60 + time.second
    rest = time.microsecond * 1000 if fraction is None else fraction
    return time.toordinal() - _EPOCH, seconds * 10**9 + rest


def nanoseconds_of(unit: str) -> int | None:
    """A unit in nanoseconds, a whole number of them above 0."""
    found = re.fullmatch(r"(?:(\d{1,9}(?:\.\d{1,9})?) )?([a-z]+)", unit)
    if not found or found[2] not in UNITS:
        return None
    length = Fraction(found[1] or 1) * UNITS[found[2]]
    return int(length) if length > 0 and length.denominator == 1 else None


def is_format(form: Any) -> bool:
    """Whether a format gives a whole date, the same in every language."""
    if not isinstance(form, str):
        return False
    used = set(re.findall(r"%(.)", form, re.DOTALL))
    whole = used & {"Y", "y"} and (used >= {"m", "d"} or "j" in used)
    if not whole or not used <= _DIRECTIVES:
        return False
    some = datetime(2001, 2, 3, tzinfo=UTC)
    try:
        return datetime.strptime(some.strftime(form), form).date() == some.date()
    except (ValueError, re.error):
        return False
