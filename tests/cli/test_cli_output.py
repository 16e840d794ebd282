import importlib.util
import io
import json
import sys

import numpy as np
import pytest

from traceless.cli.output import Grid, Result, fields, say, show

RESULT = Result(
    {"n": np.int64(3), "a": np.array([1.5])},
    [
        "A line.",
        fields({"rows": 12345, "digest": None}),
        Grid([["é\x1b[0m", True], ["b", False]], ["a", "good"]),
    ],
)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_json_is_one_object(capsys):
    show(RESULT, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"ok": True, "n": 3, "a": [1.5]}


def test_json_has_null_for_what_is_no_number(capsys):
    show(Result({"a": float("nan"), "b": [np.inf, 1.0], "c": np.array([np.nan])}), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told == {"ok": True, "a": None, "b": [None, 1.0], "c": [None]}


def test_piped_output_is_plain(capsys):
    show(RESULT, as_json=False)
    assert capsys.readouterr().out == (
        "A line.\nrows:    12 345\ndigest:  -\na         good\né\\x1b[0m  ok\nb         FAILED\n"
    )


@pytest.mark.parametrize("colour", [True, False])
def test_terminals_have_tables_and_colour_unless_it_is_not_wanted(monkeypatch, colour):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    show(RESULT, as_json=False)
    text = terminal.getvalue()
    assert "12 345" in text
    assert ("\x1b[1;32mok" in text) is colour
    assert "32m" not in text or colour


def test_terminals_without_rich_get_plain_text(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    show(RESULT, as_json=False)
    assert "\x1b" not in terminal.getvalue()


def test_dumb_terminals_get_plain_text(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "dumb")
    show(RESULT, as_json=False)
    assert "\x1b" not in terminal.getvalue()


@pytest.mark.parametrize("colour", [True, False])
def test_errors_are_red_in_a_terminal(monkeypatch, colour):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")
    say("error", "no")
    assert terminal.getvalue() == ("\x1b[31m\x1b[1merror:\x1b[0m no\n" if colour else "error: no\n")
