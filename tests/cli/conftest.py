"""The command line, called as people call it."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from people import people

from traceless.cli.group import root


class Called:
    """What a command answered."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Call a command in an empty folder, in this process; check its exit code."""
    monkeypatch.chdir(tmp_path)

    def called(*arguments, code=0, stdin=None):
        result = CliRunner().invoke(root, list(map(str, arguments)), input=stdin)
        assert result.exit_code == code, (result.output, result.exception)
        if "--debug" not in arguments:
            assert "Traceback" not in result.output
        return Called(result.exit_code, result.stdout, result.stderr)

    return called


@pytest.fixture
def shell(tmp_path):
    """Call a command in a process of its own."""

    def called(*arguments, code=0, stdin=None, env=None):
        done = subprocess.run(
            [sys.executable, "-m", "traceless", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
            timeout=120,
        )
        assert done.returncode == code, done.stderr.decode()
        return Called(done.returncode, done.stdout.decode(), done.stderr.decode())

    return called


@pytest.fixture
def shop(call, tmp_path):
    """A store that has learned people.csv; its lines."""
    lines = people(tmp_path / "people.csv")
    call(
        *("new", "shop", "--target", "bought", "--columns", "age,income,color"),
        *("--scale", "age=50:20", "--scale", "income=40:12", "--category", "color=red,green"),
    )
    call("learn", "shop", "people.csv")
    return lines
