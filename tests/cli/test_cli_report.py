"""The report shows what the ledger says, and obeys nothing that is written in it."""

import csv
import html
import re
import shlex
import sqlite3
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from people import declared, table

from pages import Page
from traceless import LSSVC, Store
from traceless.cli import inputs, report
from traceless.cli.group import root
from traceless.features import Number, Table
from traceless.sources import Schema

HOSTILE = '"></title></svg><script>alert(1)</script><img src=x onerror=y>\u202e\x1b[31m'


@pytest.fixture
def forgot(call, shop, tmp_path):
    table(tmp_path / "gone.csv", shop[:50])
    table(tmp_path / "few.csv", shop[50:52])
    call("forget", "shop", "gone.csv", "--request", "letter 7")
    call("forget", "shop", "few.csv", "--request", "letter 8", "--batch")
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
    assert "rows heldrows learned in allrows forgotten in allchanges" in text
    assert "7012050" in text
    assert "".join(Store("shop").head().splitlines()) in text
    for said in ("letter 7", "letter 8", "yes", "no", "All is as it should be."):
        assert said in text
    for entry in call("history", "shop", "--json").json["entries"]:
        assert entry["hash"][:16] in text
    assert "Scores on" not in text


def test_commands_on_pages_can_be_called(call, forgot, monkeypatch):
    """What people are told to type must be taken by the command, on the report and on receipts."""
    call("report", "shop", "--html", "page.html")
    with open("page.html", encoding="utf-8") as file:
        pages = [file.read(), *(Store("shop").receipt(k).to_html() for k in range(4))]
    pages.append(replace(Store("shop").receipt(), sequence=2, signer=None).to_html())
    found = {
        line for page in pages for line in re.findall("<code>(traceless [a-z].*?)</code>", page)
    }
    assert len(found) >= 7
    monkeypatch.setattr(inputs.os.path, "exists", lambda _: True)
    for line in found:
        _, name, *arguments = shlex.split(html.unescape(line))
        root.commands[name].make_context(name, arguments)


def test_scores_are_those_of_the_command(call, forgot):
    told = call("report shop --html page.html --on people.csv --json").json
    score = call("predict --compare shop people.csv --json").json
    assert told["written"] == "page.html"
    assert told["scores"] == {name: score[name] for name in told["scores"]}
    text = page_of().text
    assert f"{score['accuracy']:.4g}" in text
    told = call("predict", "shop", "people.csv", "--keep", "bought", "--json").json["predictions"]
    wrong = sum(row["bought"] == "yes" and row["prediction"] == "no" for row in told)
    assert re.search(rf"true \\ predictednoyesno[0-9]+yes{wrong}[0-9]", text.replace("\n", ""))


def test_scores_of_a_regression(call, prices):
    call("report prices --html page.html --on sold.csv")
    assert f"{call('predict --compare prices sold.csv --json').json['r2']:.4g}" in page_of().text


def test_names_from_anywhere_are_only_text(call, tmp_path):
    about = {"organisation": HOSTILE, "table": Schema(Table([Number("a")]), [HOSTILE]).facts()}
    store = Store.new(tmp_path / "s", LSSVC(), about=about)
    X, y = np.arange(60.0)[:, None], [f"{HOSTILE}{k % 20}" for k in range(60)]
    store.learn(X, y, key=HOSTILE)
    store.forget(X[:1], y[:1], key=f"{HOSTILE}2", batch=True)
    with open("<b>.csv", "w", newline="") as file:
        csv.writer(file).writerows([["a", HOSTILE], *zip(range(60), y, strict=True)])
    call("report", "s", "--html", "page.html", "--on", "<b>.csv")
    text = page_of().text
    assert "<script>alert(1)</script>" in text
    assert "<b>.csv" in text
    assert "other classes" in text  # of 20 classes


@pytest.mark.parametrize("about", [{}, {"table": {"target": 3}, "organisation": 3}])
def test_descriptions_of_any_form_have_a_report(call, tmp_path, about):
    Store.new(tmp_path / "s", LSSVC(), about=about)
    call("report", "s", "--html", "page.html")
    assert "LSSVC. 2" in page_of().text
    assert ("not the schema" in call("status", "--model", "s", code=2 if about else 0).err) is bool(
        about
    )


def test_requests_that_wait_too_long_are_marked(call, forgot, monkeypatch):
    call("report", "shop", "--html", "page.html")
    assert "overdue" not in page_of().text
    later = datetime.now(UTC) + timedelta(days=32)

    class Clock(datetime):
        @classmethod
        def now(cls, zone):
            return later.astimezone(zone)

    monkeypatch.setattr(report, "datetime", Clock)
    call("report", "shop", "--html", "page.html", "--force")
    assert "1 request is overdue" in page_of().text


def test_a_failed_check_is_shown_and_is_code_1(call, shop, tmp_path):
    with sqlite3.connect(tmp_path / "shop" / "ledger.sqlite") as sql:
        sql.execute("DELETE FROM rows WHERE digest = (SELECT min(digest) FROM rows)")
    told = call("report", "shop", "--html", "page.html", "--json", code=1).json
    assert told["ok"] is told["verified"] is False
    assert "A check failed." in page_of().text


@pytest.mark.parametrize(("hours", "periods"), [(500, 22), (9000, 14), (90_000, 13)])
def test_every_change_is_in_one_line(call, shop, monkeypatch, hours, periods):
    """Rows of each class at the end, and all that was learned and forgotten, whatever the times."""
    rng = np.random.default_rng(0)
    now, totals, entries = datetime(2026, 5, 1, tzinfo=UTC), Counter(), []
    for k in range(700):
        label, n = f"c{rng.integers(12)}", int(rng.integers(1, 50))
        if rng.random() < 0.4 and totals[label]:
            n = -min(n, totals[label])
        totals[label] += n
        ago = timedelta(hours=hours * (700 - k) / 700 + 2 * (k % 9 == 0))  # some clocks run back
        facts = {"time": f"{now - ago:%Y-%m-%dT%H:%M:%SZ}", "held": totals.total(), "sequence": k}
        entries.append(replace(Store("shop").receipt(), **facts, classes={label: n}))
    monkeypatch.setattr(Store, "history", lambda _: entries)
    call("report", "shop", "--html", "page.html")
    page_of()
    with open("page.html", encoding="utf-8") as file:
        table = file.read().split("<table>")[2].partition("</table>")[0]
    lines = [re.findall("<td.*?>(.*?)</td>", line) for line in table.split("<tr>")[2:]]
    counts = [[int("".join(filter(str.isdecimal, cell))) for cell in line[1:]] for line in lines]
    assert periods - 2 <= len(lines) <= periods
    assert counts[-1][2] == totals.total() == sum(counts[-1][3:])
    assert sum(line[0] - line[1] for line in counts) == totals.total()
    assert sum(line[0] for line in counts) == sum(max(*e.classes.values(), 0) for e in entries)


def test_stores_without_rows_or_model_have_a_report(call, shop):
    call("new", "s", declared("a"))
    call("report", "s", "--html", "page.html")
    assert "All is as it should be." in page_of().text
    call("destroy", "shop", "model", "--yes")
    assert "exists already" in call("report", "shop", "--html", "page.html", code=2).err
    call("report", "shop", "--html", "page.html", "--force")
    assert "destroy" in page_of().text
    assert "--html" in call("report", "shop", code=2).err
