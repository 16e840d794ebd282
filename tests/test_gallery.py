"""Every example of the gallery runs as it stands, says what it is, and draws a picture."""

import re
import runpy
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples" / "gallery").glob("*.py"))


@pytest.fixture(autouse=True)
def _quiet_plots(monkeypatch):
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    with plt.rc_context():
        yield
    plt.close("all")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_draws(path, capsys):
    runpy.run_path(str(path))
    assert plt.get_fignums()
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    assert "False" not in capsys.readouterr().out  # what is claimed of digests holds


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_has_a_title(path):
    text = path.read_text()
    title, line = re.match(r'"""\n(.+)\n(=+)\n\n', text).groups()
    assert len(title) == len(line)
    assert len(text.splitlines()) <= 80
    assert "\n# %%\n# " in text
    assert "\nplt.show()\n" in text


def test_the_weather_is_drawn_where_there_is_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "vega_datasets", None)
    (path,) = (p for p in EXAMPLES if p.stem == "plot_sliding_window")
    assert runpy.run_path(str(path))["place"].startswith("nowhere")
