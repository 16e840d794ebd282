import re
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages import DRAWN, Page
from traceless.cli import drawings
from traceless.cli.drawings import Bin


def drawn(html):
    page = Page(html)
    page.check(frozenset(DRAWN))
    return page


def test_areas_stand_on_each_other_and_bars_on_the_line():
    start = datetime(2026, 1, 1, tzinfo=UTC)
    bins = [Bin(10, 0, [6, 4]), Bin(0, 5, [5, 0]), Bin(0, 0, [5, 0])]
    html = drawings.history(bins, ["a", "b"], start, start + timedelta(days=3))
    page = drawn(html)
    paths = [value for name, value in page.attributes if name == "d"]
    points = [[tuple(map(float, p.split(","))) for p in d[1:-2].split(" L")] for d in paths]
    floor, top = 250.0, 10.0
    height = [{y for x, y in own if x == min(own)[0]} for own in points]
    assert height == [{floor, floor - 240 * 0.6}, {floor - 240 * 0.6, top}]  # 6 of 10, then 4 more
    assert max(y for y in {y for x, y in points[0] if x == max(points[0])[0]}) == floor
    assert "10 learned" in page.text
    assert "5 forgotten" in page.text
    assert "a: 5 rows now" in page.text
    assert "2026-01-02" in page.text


@given(st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)), st.integers(1, 40 * 365 * 86400))
def test_times_are_round_few_and_inside(start, seconds):
    start = start.replace(microsecond=0, tzinfo=UTC)
    end = start + timedelta(seconds=seconds)
    found = list(drawings.times(start, end))
    assert len(found) <= 8
    assert all(start <= at <= end for at, _ in found)
    if seconds > 7:
        assert len(found) >= 1


@given(st.integers(1, 10**12))
def test_rules_are_few_and_round(most):
    page = drawn(f"<svg>{drawings._rules(most, 10, 250)}</svg>")
    lines = sum(name == "y1" for name, _ in page.attributes)
    assert 2 <= lines <= 6


def test_a_matrix_has_every_count():
    page = drawn(drawings.confusion(["cat", "<dog>"], [[9, 1], [2, 1234]]))
    for said in ("cat taken for <dog>: 1 (10%)", "<dog> taken for cat: 2 (0%)", "predicted"):
        assert said in page.text
    shares = [float(value) for name, value in page.attributes if name == "fill-opacity"]
    assert shares == pytest.approx([0.9, 0.1, 2 / 1236, 1234 / 1236], abs=1e-3)


def test_residuals_are_counted():
    rng = np.random.default_rng(0)
    predicted, rest = rng.normal(size=500), rng.normal(size=500)
    page = drawn(drawings.residuals(predicted, rest, "<price>"))
    assert "Residuals of <price>" in page.text
    assert sum(map(int, re.findall(r"(\d+) rows", page.text.partition("less predicted")[2]))) == 500
    for same in (np.zeros(3), np.ones(3) * 5):
        drawn(drawings.residuals(same, same * 0, "x"))


def test_small_classes_are_drawn_together():
    assert drawings.grouped({"b": 1, "a": 2}, 2) == {"a": "a", "b": "b"}
    found = drawings.grouped({"b": 5, "a": 2, "c": 9, "d": 1}, 3)
    assert found == {"a": "other classes", "b": "b", "c": "c", "d": "other classes"}


def test_numbers_are_written_for_people():
    space = "\N{NARROW NO-BREAK SPACE}"
    assert drawings.number(1234567) == f"1{space}234{space}567"
    assert drawings.decimal(0.123456) == "0.1235"
    assert drawings.decimal(-76200.4) == f"-76{space}200"
    assert drawings.decimal(1e12) == "1e+12"
