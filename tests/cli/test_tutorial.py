"""The tutorial, run as it stands: its blocks in order, in one empty folder; then README's."""

import doctest
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from pages import blocks
from traceless.cli.group import root

ROOT = Path(__file__).parents[2]
SAME = doctest.OutputChecker().check_output
TRACELESS = re.compile(r"(cd \w+ && )?traceless (.*?)(?=\||\d?>|$)")


def steps(block):
    """Lines after a $, and what is shown below each."""
    for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        yield re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*)\n(.*)", step, re.DOTALL).groups()


@pytest.fixture
def bash(tmp_path, tmp_path_factory, monkeypatch):
    """Run a line in a shell; `traceless` runs in this process, which has its libraries already."""
    said = tmp_path_factory.mktemp("said")
    monkeypatch.chdir(tmp_path)

    def traceless(called):
        os.chdir(tmp_path / (called[1] or "cd . && ").split()[1])
        result = CliRunner().invoke(root, shlex.split(called[2]))
        os.chdir(tmp_path)
        (said / "out").write_text(result.stdout)
        (said / "err").write_text(result.stderr)
        return f"{{ cat {said}/out; cat {said}/err >&2; }} "

    def run(line):
        line = TRACELESS.sub(traceless, line.replace("\\\n", ""), count=1)
        done = subprocess.run(
            ["bash", "-c", line], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        return done.stdout

    return run


def test_the_tutorial_prints_what_it_says(bash):
    assert len(blocks(ROOT / "docs/tutorial.md")) >= 10
    for kind, block in blocks(ROOT / "docs/tutorial.md"):
        if kind == "python":
            exec(block, {})
            continue
        for line, expected in steps(block):
            got = bash(line)
            assert SAME(expected, got, doctest.ELLIPSIS), f"{line}\n{got}"


def test_the_stores_of_the_readme_work_on_the_table_of_the_tutorial(bash):
    exec(dict(blocks(ROOT / "docs/tutorial.md")[:1])["python"], {})
    (block,) = [block for kind, block in blocks(ROOT / "README.md") if "$ traceless new" in block]
    for line, expected in steps(block):
        got = bash(line)
        assert "error:" not in got, got
        assert expected in ("", got)
