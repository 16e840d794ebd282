"""The report shows what the ledger says, and obeys nothing that is written in it."""

import html
import re
import shlex
import sqlite3
from dataclasses import MISSING, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from people import table

from pages import Page
from traceless import LSSVC, Store
from traceless.cli import report, report_page
from traceless.cli.group import root
from traceless.sources import Number, Schema
from traceless.store.entries import Entry

HOSTILE = '"></title></svg><script>alert(1)</script><img src=x onerror=y>\u202e\x1b[31m'


@pytest.fixture
def forgot(call, shop, tmp_path):
    table(tmp_path / "gone.csv", shop[:50])
    table(tmp_path / "few.csv", shop[50:52])
    call("forget", "shop", "gone.csv", "--key", "letter 7")
    call("forget", "shop", "few.csv", "--key", "letter 8", "--batch")
    return shop


def page_of(path="page.html"):
    with open(path, encoding="utf-8") as file:
        said = file.read()
    assert {c for c in said if not c.isprintable()} <= {"\n", "\N{NARROW NO-BREAK SPACE}"}
    page = Page(said)
    page.check()
    return page


def test_the_report_says_what_the_store_says(call, forgot):
    told = call("report", "shop", "--html", "page.html", "--json").json
    assert told["verified"] is True
    text = page_of().text
    now = call("status", "shop", "--json").json
    assert "rows heldrows learned in allrows forgotten in allchanges" in text
    assert "7012050" in text
    assert now["hash"] in text
    for said in ("letter 7", "letter 8", "yes", "no", "All is as it should be."):
        assert said in text
    for entry in call("history", "shop", "--json").json["entries"]:
        assert entry["hash"][:16] in text
    assert "Scores on" not in text


def test_commands_on_pages_can_be_called(call, forgot):
    """What people are told to type must be taken by the command, on the report and on receipts."""
    call("report", "shop", "--html", "page.html")
    with open("page.html", encoding="utf-8") as file:
        pages = [file.read(), *(Store("shop").receipt(k).to_html() for k in range(4))]
    pages.append(replace(Store("shop").receipt(), version=2, signer=None).to_html())
    found = {
        line for page in pages for line in re.findall("<code>(traceless [a-z].*?)</code>", page)
    }
    assert len(found) >= 8
    for line in found:
        _, name, *arguments = shlex.split(html.unescape(line))
        root.commands[name].make_context(name, arguments)


def test_scores_are_those_of_the_command(call, forgot):
    told = call("report shop --html page.html --on people.csv --json").json
    score = call("score shop people.csv --json").json
    assert told["written"] == "page.html"
    assert told["scores"] == {name: score[name] for name in told["scores"]}
    text = page_of().text
    assert f"{score['accuracy']:.4g}" in text
    told = call("predict", "shop", "people.csv", "--keep", "bought", "--json").json["predictions"]
    wrong = sum(row["bought"] == "yes" and row["prediction"] == "no" for row in told)
    assert re.search(rf"true \\ predictednoyesno[0-9]+yes{wrong}[0-9]", text.replace("\n", ""))


def test_scores_of_a_regression(call, prices):
    call("report prices --html page.html --on sold.csv")
    assert f"{call('score prices sold.csv --json').json['r2']:.4g}" in page_of().text


def test_names_from_anywhere_are_only_text(call, tmp_path):
    store = Store.new(
        tmp_path / "s",
        LSSVC(),
        about={"organisation": HOSTILE, "table": Schema([Number("a")], [HOSTILE]).facts()},
    )
    X = np.arange(120.0).reshape(60, 2)
    y = np.array([f"{HOSTILE}{k}" for k in range(3)]).repeat(20)
    store.learn(X, y, key=HOSTILE)
    store.forget(X[:1], y[:1], key=f"{HOSTILE}2", batch=True)
    call("report", "s", "--html", "page.html")
    assert "<script>alert(1)</script>" in page_of().text


@pytest.mark.parametrize("about", [{}, {"table": {"target": 3}, "organisation": 3}])
def test_descriptions_of_any_form_have_a_report(call, tmp_path, about):
    Store.new(tmp_path / "s", LSSVC(), about=about)
    call("report", "s", "--html", "page.html")
    assert "LSSVC. 2" in page_of().text
    assert ("not the schema" in call("show", "s", code=2 if about else 0).err) is bool(about)


def test_names_in_scores_are_only_text(call, tmp_path):
    label = "<script>alert(1)</script>"
    lines = [f"{k},{label}{k % 20}" for k in range(60)]
    table(tmp_path / "<b>.csv", lines, "a,<i>")
    call("new", "s", "--target", "<i>", "--columns", "a")
    call("learn", "s", "<b>.csv")
    call("report", "s", "--html", "page.html", "--on", "<b>.csv")
    text = page_of().text
    assert f"{label}19" in text
    assert "other classes" in text  # of 20 classes


def test_requests_that_wait_too_long_are_marked(call, forgot, monkeypatch):
    call("report", "shop", "--html", "page.html")
    assert "for more than 30 days" not in page_of().text
    later = datetime.now(UTC) + timedelta(days=31, hours=1)

    class Clock(datetime):
        @classmethod
        def now(cls, zone):
            return later.astimezone(zone)

    monkeypatch.setattr(report, "datetime", Clock)
    call("report", "shop", "--html", "page.html", "--force")
    assert "1 request waits for more than 30 days." in page_of().text
    assert "the oldest 31 days" in page_of().text


def test_a_failed_check_is_shown_and_is_code_1(call, shop, tmp_path):
    with sqlite3.connect(tmp_path / "shop" / "ledger.sqlite") as sql:
        sql.execute("DELETE FROM alive WHERE digest = (SELECT min(digest) FROM alive)")
    told = call("report", "shop", "--html", "page.html", "--json", code=1).json
    assert told["ok"] is told["verified"] is False
    assert "A check failed." in page_of().text


def entry(k, time, held, classes):
    fields = Entry.__dataclass_fields__
    blank = {name: None for name in fields if fields[name].default is MISSING}
    blank |= {"version": 2, "sequence": k, "kind": "learn", "time": time, "held": held}
    return Entry(**blank | {"classes": classes, "keys": ()})


@pytest.mark.parametrize(("hours", "periods"), [(500, 22), (9000, 14), (90_000, 13)])
def test_every_change_is_in_one_line(hours, periods):
    """Rows of each class at the end, and all that was learned and forgotten, whatever the times."""
    rng = np.random.default_rng(0)
    now, held, totals, entries = datetime(2026, 5, 1, tzinfo=UTC), 0, {}, []
    for k in range(700):
        label, n = f"c{rng.integers(12)}", int(rng.integers(1, 50))
        if rng.random() < 0.4 and totals.get(label, 0):
            n = -min(n, totals[label])
        totals[label] = totals.get(label, 0) + n
        held += n
        ago = timedelta(hours=hours * (700 - k) / 700 + 2 * (k % 9 == 0))  # some clocks run back
        time = (now - ago).strftime("%Y-%m-%dT%H:%M:%SZ")
        entries.append(entry(k, time, held, {label: n}))
    page = report_page._history(entries)
    Page(page).check()
    lines = [re.findall("<td.*?>(.*?)</td>", line) for line in page.split("<tr>")[2:]]
    counts = [
        [int(cell.replace(report_page.number(1000)[1], "")) for cell in line[1:]] for line in lines
    ]
    assert periods - 2 <= len(lines) <= periods
    assert counts[-1][2] == held == sum(totals.values()) == sum(counts[-1][3:])
    assert sum(line[0] - line[1] for line in counts) == held
    assert sum(line[0] for line in counts) == sum(n for n, _ in report_page._changes(entries))


def test_stores_without_rows_or_model_have_a_report(call, shop):
    call("new", "s", "--target", "y", "--columns", "a")
    call("report", "s", "--html", "page.html")
    assert "All is as it should be." in page_of().text
    call("destroy", "shop", "model", "--yes")
    assert "exists already" in call("report", "shop", "--html", "page.html", code=2).err
    call("report", "shop", "--html", "page.html", "--force")
    assert "destroy" in page_of().text
    assert "--html" in call("report", "shop", code=2).err
