"""What is installed: version, types, and extras that say what they are for."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires, version
from importlib.resources import files
from pathlib import Path

import pytest

import traceless
from extras import USES, extras

ROOT = Path(__file__).parent.parent


def test_the_version_is_that_of_the_installed_package():
    assert traceless.__version__ == version("traceless")


def test_types_are_shipped():
    assert files("traceless").joinpath("py.typed").is_file()


def test_the_core_needs_three_libraries():
    core = [line for line in requires("traceless") if "extra ==" not in line]
    assert sorted(line.split(">=")[0] for line in core) == ["numpy", "scikit-learn", "scipy"]


def test_every_extra_has_a_use():
    assert set(extras()) <= set(USES)


@pytest.mark.parametrize("extra", [name for name in extras() if USES[name].without])
def test_what_is_missing_says_which_extra_has_it(extra):
    absent = f"import sys; sys.modules.update(dict.fromkeys({USES[extra].without}))\n"
    command = [sys.executable, "-c", absent + USES[extra].code]
    shown = subprocess.run(command, capture_output=True, text=True)
    assert shown.returncode
    assert f"pip install 'traceless[{extra}]'" in shown.stderr


def test_the_architecture_names_every_module():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    modules = re.findall(r"\b[a-z]\w*", " ".join(contracts["contracts"][0]["layers"]))
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert [name for name in modules if not re.search(rf"\b{name}\b", text)] == []
