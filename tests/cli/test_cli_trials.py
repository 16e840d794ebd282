"""What a trial tells, and questions where somebody can answer."""

import json

import pytest
from people import declared, people, table

from traceless.cli import trials


def test_scores_before_and_after(call, shop, tmp_path):
    """The same numbers as `score` gives before the change and after it."""
    people(tmp_path / "test.csv", seed=9)
    table(tmp_path / "gone.csv", [line for line in shop if line.endswith("yes")][:40])
    words = ("forget", "shop", "gone.csv")
    before = call("predict", "--compare", "shop", "test.csv", "--json").json
    tried = call(*words, "--dry-run", "--score", "test.csv", "--json").json["scores"]
    shown = call(*words, "--dry-run", "--score", "test.csv").out
    call(*words)
    after = call("predict", "--compare", "shop", "test.csv", "--json").json
    for name in ("accuracy", "balanced_accuracy"):
        assert tried["before"][name] == before[name]
        assert tried["after"][name] == after[name]
    assert before["accuracy"] != after["accuracy"]
    assert f"{after['accuracy'] - before['accuracy']:+.4f}" in shown
    assert "give --dry-run too" in call(*words, "--score", "test.csv", code=2).err


def test_scores_of_no_rows_and_of_requests_that_wait(call, shop, tmp_path):
    score = ("--dry-run", "--score", "people.csv", "--json")
    assert call("forget", "shop", "people.csv", *score).json["scores"]["after"] == {}
    table(tmp_path / "one.csv", shop[:1])
    waits = call("forget", "shop", "one.csv", "--batch", *score).json["scores"]
    assert waits["before"] == waits["after"] != {}
    assert call("queue", "flush", "shop", *score).json["scores"]["after"] == waits["after"]
    call("new", "empty", declared("age,income", "bought"))
    first = call("learn", "empty", "people.csv", *score).json["scores"]
    assert first["before"] == {}
    assert first["after"]["accuracy"] > 0.5


def test_scores_of_a_regression(call, prices):
    score = ("--dry-run", "--score", "sold.csv")
    tried = call("learn", "prices", "sold.csv", "--again", *score, "--json").json["scores"]
    assert set(tried["before"]) == {"r2", "rmse", "mae"}
    assert "r2" in call("learn", "prices", "sold.csv", "--again", *score).out


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(trials, "can_be_asked", lambda: True)


def test_a_large_change_is_asked_about(call, shop, tmp_path, terminal):
    table(tmp_path / "gone.csv", shop[:13])
    table(tmp_path / "few.csv", shop[:12])
    asked = call("forget", "shop", "gone.csv", stdin="n\n", code=1)
    assert "13 of the 120 rows held will be forgotten. Go on?" in asked.err
    assert call("status", "shop", "--json").json["rows"] == 120
    asked = call("correct shop --from gone.csv --label no", stdin="n\n", code=1)
    assert "will be replaced" in asked.err
    assert "Give --yes" in call("undo", "shop", "people.csv", stdin="", code=2).err
    assert call("status", "shop", "--json").json["rows"] == 120
    assert "Go on" not in call("forget", "shop", "few.csv", stdin="").err  # a tenth, not more
    table(tmp_path / "next.csv", shop[12:30])
    call("forget", "shop", "next.csv", stdin="y\n")
    table(tmp_path / "last.csv", shop[30:60])
    assert "Go on" not in call("forget", "shop", "last.csv", "--yes", stdin="").err
    assert call("status", "shop", "--json").json["rows"] == 60
    assert "Go on" not in call("learn", "shop", "people.csv", "--again", stdin="").err


def test_what_waits_is_asked_about_when_it_goes(call, shop, tmp_path, terminal):
    table(tmp_path / "gone.csv", shop[:19])
    assert "Go on" not in call("forget", "shop", "gone.csv", "--batch", stdin="").err
    call("queue", "flush", "shop", "--force", stdin="n\n", code=1)
    assert "Go on" not in call("queue", "flush", "shop", stdin="").err  # nothing would be done
    told = call("queue", "flush", "shop", "--force", "--yes", "--json", stdin="")
    assert json.loads(told.out)["receipt"]["rows"] == 19


def test_a_script_is_not_asked(call, shop):
    assert "Go on" not in call("forget", "shop", "people.csv").err
