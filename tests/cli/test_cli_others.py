import io
import sys

import pytest

from traceless.cli import doctor as doctors
from traceless.cli import meter


def test_the_demo_proves_its_point(call):
    told = call("demo", "--json").json
    assert [step["rows"] for step in told["steps"]] == [1000, 1500, 1200]
    assert all(step["same"] for step in told["steps"])
    assert told["verified"]
    assert told["accuracy"] > 0.9
    assert "never saw the 300 rows" in call("demo").out


def test_the_doctor_finds_this_machine_sound(call):
    told = call("doctor", "--json").json
    assert [c["check"] for c in told["checks"]] == list(doctors.TESTS)
    assert told["machine"]["numpy"]
    assert told["extras"]["cli"]["missing"] == []
    assert {"installed", "missing"} == set(told["extras"]["dask"])
    assert "correctly rounded" in call("doctor").out


def test_the_doctor_finds_other_bits(call, monkeypatch):
    monkeypatch.setattr(doctors, "DIGEST", "0" * 64)
    told = call("doctor", "--json", code=1).json
    failed = {c["check"] for c in told["checks"] if not c["ok"]}
    assert failed == set(doctors.TESTS) - {"coefficients"}


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
    monkeypatch.setattr(meter, "AFTER", after)
    monkeypatch.setattr(Reading, "part", part)
    batches = [([1, 2, 3], "y"), ([4], "z")]
    assert list(meter.watched(Reading(), iter(batches), "learning")) == batches
    assert ("learning" in terminal.getvalue()) is shown
    assert capsys.readouterr().out == ""


def test_there_is_no_bar_without_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(meter, "AFTER", 0.0)
    assert list(meter.watched(Reading(), iter([([1], "y")]), "learning")) == [([1], "y")]
    assert capsys.readouterr() == ("", "")
