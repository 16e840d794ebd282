"""Requests that wait: listed, cancelled, and each with a receipt."""

import re
from datetime import date

import pytest
from people import table

from traceless import Store
from traceless.cli.queue import due, waiting


def test_requests_are_listed_with_their_receipts(call, shop, tmp_path):
    assert call("queue", "list", "shop").out == "Nothing waits.\n"
    table(tmp_path / "one.csv", shop[:1])
    table(tmp_path / "two.csv", shop[1:3])
    first = call("forget", "shop", "one.csv", "--batch", "--request", "letter")
    assert "traceless receipt shop 2" in first.out
    told = call("forget", "shop", "two.csv", "--batch", "--json").json
    assert told["queued"]["sequence"] == told["receipt"]["sequence"] == 3
    rows = call("queue", "list", "shop", "--json").json["requests"]
    assert [(r["number"], r["request"], r["rows"]) for r in rows] == [
        (2, "letter", 1),
        (3, None, 2),
    ]
    assert sum(rows[1]["classes"].values()) == 2
    assert rows[0]["receipt"] == Store("shop").receipt(2).hash
    shown = call("queue", "list", "shop").out
    assert "traceless receipt shop 3" in shown
    assert re.search(r"(2[89]|3[01]) days", shown)
    again = call("forget", "shop", "one.csv", "--batch", "--request", "letter")
    assert "answered before" in again.out


def test_a_request_is_cancelled_by_number_or_key(call, shop, tmp_path):
    for k, key in enumerate(("letter", "4", "last", "5")):
        table(tmp_path / f"{k}.csv", shop[k : k + 1])
        call("forget", "shop", f"{k}.csv", "--batch", "--request", key)  # entries 2, 3, 4 and 5
    assert "name of another" in call("queue cancel shop 4", code=2).err
    told = call("queue cancel shop letter --json").json["receipt"]
    assert (told["kind"], told["subject"], told["rows"]) == ("cancel", "entry 2", 1)
    for name in ("last", "3", "5"):  # the last is a number and a key of one request
        call("queue", "cancel", "shop", name)
    assert "No request 'letter' waits" in call("queue cancel shop letter", code=2).err
    call("forget shop 0.csv")  # the row is free again


@pytest.mark.parametrize(
    ("came", "day"),
    [
        ("2026-03-04T23:59:59Z", date(2026, 4, 4)),
        ("2026-01-31T08:00:00Z", date(2026, 2, 28)),
        ("2028-01-31T08:00:00Z", date(2028, 2, 29)),
        ("2026-12-31T08:00:00Z", date(2027, 1, 31)),
        ("2026-05-31T08:00:00Z", date(2026, 6, 30)),
    ],
)
def test_a_request_is_due_a_month_after_it_came(came, day):
    assert due(came) == day


def test_the_days_left_are_counted(call, shop, tmp_path):
    table(tmp_path / "one.csv", shop[:1])
    call("forget", "shop", "one.csv", "--batch")
    last = due(Store("shop").pending()[0].time)
    for days in (5, 0, -3):
        (one,) = waiting(Store("shop"), date.fromordinal(last.toordinal() - days))
        assert one["days_left"] == days
