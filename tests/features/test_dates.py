import datetime as dt
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceless.features import Date
from traceless.features.cells import Cells

UNITS = {"weeks": 604_800, "days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}


def encoded(column, array):
    return column.numbers(Cells(array, column.name, "t")).tolist()


def exact(time, nanoseconds, origin, unit):
    """The number of units between two times of UTC, from rational arithmetic."""
    between = time - origin
    seconds = between.days * 86_400 + between.seconds + Fraction(between.microseconds, 10**6)
    return float((seconds + Fraction(nanoseconds, 10**9)) / unit)


@given(
    st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2250, 1, 1)),
    st.integers(0, 999),
    st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),
    st.sampled_from(list(UNITS)),
)
def test_times_are_correctly_rounded_and_the_same_from_text_and_arrow(time, ns, origin, unit):
    column = Date("t", origin.isoformat(), unit)
    text = time.isoformat(timespec="microseconds") + f"{ns:03d}"
    ticks = np.datetime64(time, "ns") + np.timedelta64(ns, "ns")
    wanted = [exact(time, ns, origin, UNITS[unit])]
    assert encoded(column, pa.array([text])) == wanted
    assert encoded(column, pa.array([text])) == wanted
    assert encoded(column, pa.array([ticks])) == wanted
    assert encoded(column, pa.array([ticks]).cast(pa.timestamp("ns", "Asia/Tokyo"))) == wanted


@given(st.dates(), st.sampled_from(["s", "ms", "us"]))
def test_days_of_all_years(day, unit):
    wanted = [float((day - dt.date(2000, 1, 1)).days)]
    for array in (pa.array([day.isoformat()]), pa.array([day]), pa.array([day], pa.date64())):
        assert encoded(Date("d"), array) == wanted
    time = pa.array([dt.datetime.combine(day, dt.time())], pa.timestamp(unit))
    assert encoded(Date("d"), time) == wanted


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-03-01", "2024-03-01T00:00:00"),
        (" 2024-03-01 ", "2024-03-01T00:00:00"),
        ("2024-03-01 10:30", "2024-03-01T10:30:00"),
        ("2024-03-01T10:30:05Z", "2024-03-01T10:30:05"),
        ("2024-03-01T10:30:05+02:00", "2024-03-01T08:30:05"),
        ("2024-03-01 00:30:05.250 -0130", "2024-03-01T02:00:05.25"),
        ("2024-03-01T00:30:05,25+01", "2024-02-29T23:30:05.25"),
    ],
)
def test_iso_8601_with_and_without_a_zone(text, utc):
    time = dt.datetime.fromisoformat(utc)
    wanted = exact(time, 0, dt.datetime(2000, 1, 1), 3600)
    assert encoded(Date("t", unit="hours"), pa.array([text])) == [wanted]


@pytest.mark.parametrize(
    "text",
    ["01.03.2024", "2024-13-01", "2024-02-30", "2024-3-1", "20240301", "10:30", "2024-03-01T24:00",
     "2024-03-01T10", "2024-03-01T10:00.5", "0001-01-01T00:00+10:00", "today", "٢٠٢٤-03-01"],
)  # fmt: skip
def test_what_is_no_date_is_refused_with_its_row(text):
    with pytest.raises(ValueError, match=r"t, row 1, column 'd': a date as 2024-03-01 or .*got"):
        encoded(Date("d"), pa.array(["2024-03-01", text]))


def test_a_declared_format():
    column = Date("d", format="%d.%m.%Y %H:%M")
    assert encoded(column, pa.array(["02.01.2000 12:00"])) == [1.5]
    with pytest.raises(ValueError, match=r"a date as %d.%m.%Y %H:%M is needed, got '2000-01-02'"):
        encoded(column, pa.array(["2000-01-02"]))
    zone = Date("d", unit="hours", format="%Y%m%d %H%M%z")
    assert encoded(zone, pa.array(["20000101 0100+0100"])) == [0.0]


def test_an_absent_date_is_none_or_refused():
    for array in (
        pa.array(["2000-01-03", " "]),
        pa.array([dt.date(2000, 1, 3), None]),
        pa.array([dt.datetime(2000, 1, 3), None]),
        np.array(["2000-01-03", "NaT"], "M8[s]"),
        np.array([dt.date(2000, 1, 3), None]),
    ):
        with pytest.raises(ValueError, match=r"row 1, column 'd': a date is needed, .*Fill it in"):
            encoded(Date("d", required=True), array)
        assert np.array_equal(encoded(Date("d"), array), [2.0, np.nan], equal_nan=True)
    assert np.isnan(encoded(Date("d"), pa.nulls(1))).all()


def test_a_unit_can_be_a_number_of_days():
    day = pa.array([dt.date(2001, 1, 1)])
    assert encoded(Date("d", unit="365.25 days"), day) == [366 / 365.25]


@pytest.mark.parametrize(
    "declared",
    [{"origin": "2000"}, {"origin": 3}, {"unit": "years"}, {"unit": "0 days"}, {"unit": None},
     {"unit": "0.0000000015 seconds"},
     {"format": "%d. %B %Y"}, {"format": "%H:%M"},
     {"format": "%Y-%m-%d %Y"}, {"format": "%m/%d"}, {"format": "%Y-%m-%d%"},],
)  # fmt: skip
def test_bad_declarations_are_refused(declared):
    with pytest.raises(ValueError, match="Column 'd'"):
        Date("d", **declared)


def test_columns_of_numbers_are_no_dates():
    with pytest.raises(ValueError, match="must hold dates, or text that names them, but is of typ"):
        encoded(Date("d"), pa.array([20240301]))
