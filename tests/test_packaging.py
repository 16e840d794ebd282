"""What is installed: version, types, and extras that say what they are for."""

import os
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


def test_type_checkers_know_the_public_names_and_no_others(tmp_path):
    pytest.importorskip("mypy")
    public = "\n".join(f"from traceless import {name}" for name in traceless.__all__)
    (tmp_path / "right.py").write_text(
        f"{public}\nimport traceless\nv: str = traceless.__version__\n"
    )
    (tmp_path / "wrong.py").write_text(
        "from traceless import Nonexistent\nimport traceless\ntraceless.nonexistent\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += ["--ignore-missing-imports", "--allow-subclassing-any", "right.py", "wrong.py"]
    environment = os.environ | {"MYPYPATH": str(ROOT / "src")}
    shown = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    found = re.findall(r"^(\S+?):(\d+): error: (.*)$", shown.stdout, flags=re.MULTILINE)
    assert [(file, line) for file, line, _ in found] == [("wrong.py", "1"), ("wrong.py", "3")]
    assert all("Nonexistent" in said or "nonexistent" in said for _, _, said in found)


def test_the_core_needs_four_libraries():
    core = [line for line in requires("traceless") if "extra ==" not in line]
    assert sorted(line.split(">=")[0] for line in core) == [
        "narwhals",
        "numpy",
        "scikit-learn",
        "scipy",
    ]


def test_every_extra_has_a_use():
    assert set(extras()) <= set(USES)


@pytest.mark.parametrize("extra", [name for name in extras() if USES[name].without])
def test_what_is_missing_says_which_extra_has_it(extra):
    absent = f"import sys; sys.modules.update(dict.fromkeys({USES[extra].without}))\n"
    command = [sys.executable, "-c", absent + USES[extra].code]
    shown = subprocess.run(command, capture_output=True, text=True)
    assert shown.returncode
    assert f"pip install 'traceless[{extra}]'" in shown.stderr


@pytest.mark.skipif(not (ROOT / ".github").exists(), reason="an sdist has no workflows")
def test_what_is_said_to_be_supported_is_what_is_tested():
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    (versions,) = re.findall(r"^ +python: \[(.*)\]$", workflow, flags=re.MULTILINE)
    assert [line for line in said if re.search(r":: 3\.\d+$", line)] == [
        f"Programming Language :: Python :: {version}"
        for version in re.findall(r"3\.\d+", versions)
    ]
    systems = {"ubuntu": "POSIX :: Linux", "macos": "MacOS", "windows": "Microsoft :: Windows"}
    tested = {systems[found] for found in re.findall(r"\b(\w+)-latest", workflow)}
    assert tested == {line.split(" :: ", 1)[1] for line in said if line.startswith("Operating")}


def test_the_architecture_names_every_module():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    modules = re.findall(r"\b[a-z]\w*", " ".join(contracts["contracts"][0]["layers"]))
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert [name for name in modules if not re.search(rf"\b{name}\b", text)] == []
