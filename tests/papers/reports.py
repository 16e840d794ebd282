"""What the tests of all papers share: a quick run, and the tables it leaves."""

import csv
import io
import re
import sys

import joblib
import pytest

from papers import timing
from papers.__main__ import main


def quick_run(name, where, plan, *arguments):
    """Exit code, standard output and standard error of a run with a plan of its own.

    `where` is the module and the name of the plan that it replaces.
    """
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*where, plan)
        patch.setattr(timing, "SETTLE", 0.0)  # times are there to be written, not to be right
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        with joblib.parallel_config(backend="threading"):  # processes take seconds to start
            code = main([name, "--quick", *map(str, arguments)])
    return code, out.getvalue(), err.getvalue()


def run_without_mnist(name, where, plan, folder):
    """Folder and terminal output of such a run, where MNIST cannot be found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TRACELESS_DATA", raising=False)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        code, out, err = quick_run(name, where, plan, "--out", folder / "out")
    assert code == 0
    return folder / "out", out, err


def table(folder, name):
    """The rows of a figure's CSV file."""
    with (folder / f"figure_{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def check_figures(folder, shown, bars, names):
    """Every figure is there as PNG and CSV and in the page, with a verdict and a progress bar."""
    for name in names:
        assert (folder / f"figure_{name}.png").read_bytes().startswith(b"\x89PNG")
        assert table(folder, name)
        assert re.search(rf"^{name} .*(reproduces|does not reproduce)", shown, re.MULTILINE)
        assert f"({name.strip('0123456789')}) " in bars
    assert str(folder / "report.html") in shown
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert len(re.findall(r'src="data:image/png;base64,', text)) == len(names)


def rows_of(columns, values):
    """Rows of a table: columns named in one string, and a tuple of values for each row."""
    names = columns.split()
    return [dict(zip(names, row, strict=True)) for row in values]
