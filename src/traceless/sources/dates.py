"""Dates and times as numbers: the time since a declared origin, in a declared unit.

    x = (t - origin) / unit,   correctly rounded

Times are whole nanoseconds: a day, counted from 1970-01-01, and the nanoseconds of that day. A
time with a zone is taken to UTC, and one without a zone counts as it stands, as if it were UTC.
Text is ISO 8601, or of a declared format; no format depends on the language of the machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, ClassVar, cast

import numpy as np

from traceless.arithmetic.integers import Floats, Integers
from traceless.sources.cells import FILL_IN, TEXT, Cells, MayMiss

DAY = 86_400 * 10**9  # nanoseconds
UNITS = {"weeks": 7 * DAY, "days": DAY, "hours": DAY // 24, "minutes": DAY // 1440}
UNITS |= {"seconds": 10**9}
TICKS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}  # nanoseconds in Arrow's units of time
EXACT = 2**53  # whole numbers up to here are float64
_EPOCH = date(1970, 1, 1).toordinal()
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ]((?:[01]\d|2[0-3]):\d\d)(?:(:\d\d)(?:[.,](\d{1,9}))?)?"
    r" ?(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_DIRECTIVES = set("YymdHMSfzj%")  # those that mean the same in every language
Moment = tuple[int, int]  # day since 1970-01-01, and nanoseconds of that day, in UTC


@dataclass(frozen=True)
class Date(MayMiss):
    """A column of dates or times.

    Parameters
    ----------
    name : str
    origin : str, default="2000-01-01"
        The date or time that becomes 0, in ISO 8601.
    unit : str, default="days"
        The time that becomes 1: "weeks", "days", "hours", "minutes", "seconds", or a number of
        them, as in "365.25 days".
    format : str, optional
        How text is written, as in "%d.%m.%Y"; by default ISO 8601.
    missing : str, optional
        The date, in ISO 8601, that stands for missing ones; a second feature is then 1 where it
        does. By default a missing date is refused.

    Examples
    --------
    >>> Date("visited", unit="hours").moment("2024-03-01T12:00+02:00")
    (19783, 36000000000000)
    """

    name: str
    origin: str = "2000-01-01"
    unit: str = "days"
    format: str | None = None
    missing: str | None = None
    kind: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        where = f"Column {self.name!r}"
        for text in (self.origin, *([] if self.missing is None else [self.missing])):
            if not isinstance(text, str) or _iso(text) is None:
                raise ValueError(
                    f"{where}: a date in ISO 8601 is needed, such as 2000-01-01, got {text!r}."
                )
        if not isinstance(self.unit, str) or _nanoseconds(self.unit) is None:
            raise ValueError(
                f"{where}: the unit must be {', '.join(UNITS)} or a number of these, such as "
                f"'365.25 days', got {self.unit!r}."
            )
        if self.format is not None and not _is_format(self.format):
            raise ValueError(
                f"{where}: a format has year, month and day, and no names of days or months, as "
                f"in %d.%m.%Y %H:%M; got {self.format!r}."
            )

    def moment(self, text: str) -> Moment | None:
        """The time that a text names, if it is of the declared format."""
        return _iso(text) if self.format is None else _formatted(text, self.format)

    def encode(self, cells: Cells, out: Floats) -> None:
        """Fill one column of features, and the indicator of missing values."""
        days, nanoseconds, missing = self._moments(cells)
        if self.missing is None:
            mend = FILL_IN.format(self.name, "DATE")
            cells.check_each(~missing, f"a {self._wanted} is needed", mend)
        else:
            days[missing], nanoseconds[missing] = cast(Moment, _iso(self.missing))
            out[:, 1] = missing
        origin, unit = cast(Moment, _iso(self.origin)), cast(int, _nanoseconds(self.unit))
        out[:, 0] = _quotients(days - origin[0], nanoseconds - origin[1], unit)

    @property
    def _wanted(self) -> str:
        iso = "date as 2024-03-01 or 2024-03-01T10:00:00"
        return iso if self.format is None else f"date as {self.format}"

    def _moments(self, cells: Cells) -> tuple[Integers, Integers, Any]:
        """Days, nanoseconds and what is missing."""
        import pyarrow as pa

        array, kind = cells.array, cells.array.type
        if pa.types.is_dictionary(kind) or pa.types.is_null(kind) or str(kind) in TEXT:
            return self._from_text(cells)
        missing = array.is_null().to_numpy(zero_copy_only=False)
        if pa.types.is_date32(kind):
            days = array.cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64)
            return days, np.zeros_like(days), missing
        if not (pa.types.is_timestamp(kind) or pa.types.is_date64(kind)):
            raise cells.unfit("dates, or text that names them")
        tick = TICKS[getattr(kind, "unit", "ms")]
        ticks = array.cast(pa.int64()).fill_null(0).to_numpy()
        days, rest = np.divmod(ticks, DAY // tick)
        return days, rest * tick, missing

    def _from_text(self, cells: Cells) -> tuple[Integers, Integers, Any]:
        words = cells.words().dictionary_encode()  # each different text is read once
        texts = [text.strip() for text in words.dictionary.to_pylist()]
        known = [(0, 0) if text == "" else self.moment(text) for text in texts]
        places = words.indices.to_numpy(zero_copy_only=False)
        fits = np.array([moment is not None for moment in known], dtype=np.bool_)[places]
        cells.check_each(fits, f"a {self._wanted} is needed")
        table = np.array([moment or (0, 0) for moment in known], np.int64).reshape(-1, 2)[places]
        empty = np.array([text == "" for text in texts], dtype=np.bool_)[places]
        return table[:, 0], table[:, 1], empty


def _quotients(days: Integers, nanoseconds: Integers, unit: int) -> Floats:
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


def _nanoseconds(unit: str) -> int | None:
    """A unit in nanoseconds, a whole number of them above 0."""
    found = re.fullmatch(r"(?:(\d{1,9}(?:\.\d{1,9})?) )?([a-z]+)", unit)
    if not found or found[2] not in UNITS:
        return None
    length = Fraction(found[1] or 1) * UNITS[found[2]]
    return int(length) if length > 0 and length.denominator == 1 else None


def _is_format(form: Any) -> bool:
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
