"""The command line, called as people call it."""

import json
import shlex

import numpy as np
import pytest
from click.testing import CliRunner
from people import declared, people, table

from traceless import Store
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
    """Call a command in an empty folder, in this process; check its exit code.

    It comes in words, or as one text.
    """
    monkeypatch.chdir(tmp_path)

    def called(*arguments, code=0, stdin=None):
        words = shlex.split(arguments[0]) if len(arguments) == 1 else list(map(str, arguments))
        result = CliRunner().invoke(root, words, input=stdin)
        assert code in (None, result.exit_code), (result.output, result.exception)
        if "--debug" not in arguments:
            assert "Traceback" not in result.output
        return Called(result.exit_code, result.stdout, result.stderr)

    return called


@pytest.fixture
def shop(call, tmp_path):
    """A store that has learned people.csv; its lines."""
    lines = people(tmp_path / "people.csv")
    columns = {
        "age": 'kind = "number", shift = 50, scale = 20',
        "income": 'kind = "number", shift = 40, scale = 12',
        "color": 'kind = "category", values = ["red", "green"]',
    }
    call("new", "shop", declared(columns, "bought"))
    call("learn", "shop", "people.csv")
    return lines


@pytest.fixture
def clinic(call, tmp_path):
    """A store with ids that has learned all.csv; its lines: eight rows or so of each patient."""
    rng = np.random.default_rng(2)
    patient, age = rng.integers(10, 30, 160), rng.integers(18, 80, 160)
    pressure = rng.normal(120, 15, 160).round(1)
    state = np.where(age + pressure + rng.normal(0, 10, 160) > 170, "ill", "well")
    columns = zip(patient, age, pressure, state, strict=True)
    lines = [",".join(map(str, line)) for line in columns]
    table(tmp_path / "all.csv", lines, "patient,age,pressure,state")
    call("new", "clinic", declared("age,pressure", "state", '[id]\ncolumn = "patient"'))
    call("learn", "clinic", "all.csv")
    return lines


@pytest.fixture
def prices(call, tmp_path):
    """A store of a regression, with what it has learned as arrays."""
    rng = np.random.default_rng(1)
    size, age = rng.integers(30, 200, 80), rng.integers(0, 60, 80)
    price = 50_000 + 3000 * size - 500 * age + rng.normal(0, 5000, 80).round()
    table(
        tmp_path / "sold.csv",
        [f"{a},{b},{c}" for a, b, c in zip(size, age, price, strict=True)],
        "size,age,price",
    )
    target = 'column = "price"\nkind = "number"'
    columns = dict.fromkeys(("size", "age"), 'kind = "number", required = true')
    call("new", "prices", declared(columns, target, '[model]\nrho = "evidence"'))
    call("learn", "prices", "sold.csv")
    return Store("prices").model()
