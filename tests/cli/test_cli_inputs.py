import io
import sys

import pytest

from traceless.cli.inputs import with_progress
from traceless.progress import progress


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


class Reading:
    part = 0.5


@pytest.mark.parametrize(("after", "shown"), [(0.0, True), (60.0, False)])
@pytest.mark.parametrize("part", [0.5, None])
def test_long_reading_has_a_bar_on_standard_error(monkeypatch, after, shown, part, capsys):
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "__defaults__", (after,))
    monkeypatch.setattr(Reading, "part", part)
    batches = [([1, 2, 3], "y"), ([4], "z")]
    assert list(with_progress(Reading(), iter(batches), "learning")) == batches
    assert ("learning" in terminal.getvalue()) is shown
    assert capsys.readouterr().out == ""


def test_there_is_no_bar_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(progress, "__defaults__", (0.0,))
    assert list(with_progress(Reading(), iter([([1], "y")]), "learning")) == [([1], "y")]
    assert capsys.readouterr() == ("", "")
