import csv
import io
import json
import os
import sys

import numpy as np
import pytest
from people import declared, table

from traceless.cli import output
from traceless.cli.inputs import with_progress
from traceless.cli.output import Grid, Result, fields, say, show
from traceless.progress import progress

RESULT = Result(
    {},
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


def test_json_is_one_object_with_null_for_what_is_no_number(capsys):
    data = {"n": np.int64(3), "a": float("nan"), "b": [np.inf, 1.0], "c": np.array([np.nan, 1.5])}
    show(Result(data), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told == {"ok": True, "n": 3, "a": None, "b": [None, 1.0], "c": [None, 1.5]}


def test_piped_output_is_plain(capsys):
    show(RESULT, as_json=False)
    assert capsys.readouterr().out == (
        "A line.\nrows:    12 345\ndigest:  -\na         good\né\\x1b[0m  ok\nb         FAILED\n"
    )


@pytest.mark.parametrize("is_terminal", [True, False])
def test_long_reading_has_a_line_on_standard_error_of_a_terminal(monkeypatch, is_terminal, capsys):
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "__defaults__", (0.0,))
    if is_terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
    batches = [([1, 2, 3], "y"), ([4], "z")]
    assert list(with_progress(iter(batches), "learning")) == batches
    assert ("learning" in terminal.getvalue()) is is_terminal
    assert capsys.readouterr() == ("", "")


# --- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["ledger.sqlite", "new.json", "generations/x.json", "a/b.json"])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_nothing_is_written_into_a_store(call, shop, tmp_path, place, force):
    (tmp_path / "shop" / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "shop")
    before = call("status", "shop").out
    for folder in ("shop", "link", "a/../shop"):
        for option in ("--out", "--html"):
            (tmp_path / "a").mkdir(exist_ok=True)
            said = call("receipt", "shop", option, f"{folder}/{place}", *force, code=2)
            assert "is in the store" in said.err
        call("predict", "shop", "people.csv", "--out", f"{folder}/{place}", *force, code=2)
        call("export", "shop", f"{folder}/{place}.traceless", *force, code=2)
    assert call("status", "shop").out == before
    assert call("verify", "shop")


def test_a_folder_with_another_ledger_is_no_store(call, shop, tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "ledger.sqlite") as books:
        books.execute("CREATE TABLE accounts (name)")
    books.close()
    call("receipt", "shop", "--out", "receipt.json")


WRITING = {
    "a.json": ("receipt", "shop", "--out"),
    "a.html": ("receipt", "shop", "--html"),
    "a.csv": ("predict", "shop", "people.csv", "--out"),
    "a.traceless": ("export", "shop"),
    "a.onnx": ("export", "shop"),
}


@pytest.mark.parametrize("name", WRITING)
def test_files_are_not_replaced_without_asking(call, shop, tmp_path, monkeypatch, name):
    path = tmp_path / name
    path.write_text("ten years of work")
    said = call(*WRITING[name], name, code=2, stdin="y\n")
    assert "exists already" in said.err
    assert "--force" in said.err
    assert path.read_text() == "ten years of work"
    call(*WRITING[name], name, "--force")
    assert path.read_bytes() != b"ten years of work"
    assert not list(tmp_path.glob(".*.part"))


def test_both_files_or_none(call, shop, tmp_path):
    (tmp_path / "a.json").write_text("ten years of work")
    call("receipt", "shop", "--html", "a.html", "--out", "a.json", code=2)
    assert not (tmp_path / "a.html").exists()


def test_a_pipe_is_written_to_if_somebody_reads_it(call, shop, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "nobody reads" in call("receipt", "shop", "--out", "pipe", code=2).err
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    call("receipt", "shop", "--out", "pipe")
    assert b"traceless receipt" in os.read(reader, 65_536)
    os.close(reader)


@pytest.mark.parametrize("answer", ["y", "n"])
def test_somebody_is_asked(call, shop, tmp_path, monkeypatch, answer):
    monkeypatch.setattr(output, "can_be_asked", lambda: True)
    (tmp_path / "a.json").write_text("ten years of work")
    said = call(
        *("receipt", "shop", "--out", "a.json"), code=0 if answer == "y" else 1, stdin=f"{answer}\n"
    )
    assert "a.json exists already. Replace it?" in said.err
    assert ((tmp_path / "a.json").read_text() == "ten years of work") is (answer == "n")


# --- what is shown, and formulas ----------------------------------------------------------------

STEERING = "\x1b]0;owned\x07\x9b31m\x1b[2J\u202e\u2066\x00\r\x08no"


def test_no_text_steers_a_terminal(monkeypatch):
    result = Result(
        {"label": STEERING},
        [STEERING, fields({STEERING: STEERING}), Grid([[STEERING]], [STEERING])],
    )
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    show(result, as_json=False)
    show(result, as_json=True)
    output.echo([STEERING])
    say("error", STEERING)
    text = terminal.getvalue()
    assert text.count("owned") == 8
    assert [c for c in text.replace("\n", "") if not c.isprintable()] == []


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", "-"]
PLAIN = [
    "no",
    "a\r=1",
    "b\n=1",
    'c"=1',
    "-1",
    "+2.5",
    "-1e-3",
    "",
    " =1",
    "a=b",
    -1,
    2.5,
    None,
    True,
]


def test_formulas_are_text_in_csv_and_numbers_stay_numbers():
    lines = list(csv.reader(io.StringIO(output.csv_text([FORMULAS, PLAIN]), newline="")))
    assert lines[0] == [f"'{text}" for text in FORMULAS]
    assert lines[1] == ["" if cell is None else str(cell) for cell in PLAIN]


def test_a_formula_after_a_semicolon_is_text():
    """Spreadsheets of half of Europe split cells there, whatever the file says."""
    lines = list(csv.reader(io.StringIO(output.csv_text([["a;=1+1;b; @x;;-2", "a;1"]]))))
    assert lines == [["a;'=1+1;b;' @x;;'-2", "a;1"]]


def test_formulas_in_labels_and_kept_columns(call, tmp_path):
    table(tmp_path / "t.csv", ['=1+1,1,"=HYPERLINK(0)"', "no,-1,x"], "label,a,=b")
    call("new", "s", declared("a", "label"))
    call("learn", "s", "t.csv")
    said = call("predict", "s", "t.csv", "--keep", "=b,a").out
    assert said == "'=b,a,prediction\n'=HYPERLINK(0),1,'=1+1\nx,-1,no\n"
    told = call("predict", "s", "t.csv", "--keep", "=b", "--json").json["predictions"]
    assert told[0] == {"=b": "=HYPERLINK(0)", "prediction": "=1+1"}
