"""The tutorial, run as it stands: its blocks in order, in one empty folder."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()
BLOCKS = re.findall(r"^```(python|console)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
SAME = doctest.OutputChecker().check_output


@pytest.fixture
def bash(tmp_path):
    bin_ = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}

    def run(command):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return done.stdout

    return run


def test_the_tutorial_prints_what_it_says(bash, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(BLOCKS) >= 10
    for kind, block in BLOCKS:
        if kind == "python":
            exec(block, {})
            continue
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, expected = re.fullmatch(
                r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", step, re.DOTALL
            ).groups()
            got = bash(command)
            assert SAME(expected, got, doctest.ELLIPSIS), f"{command}\n{got}"
