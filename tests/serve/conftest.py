"""A desk over a small clinic, called as a browser calls it."""

import re

import numpy as np
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from traceless.cli.group import root
from traceless.serve.desk import Desk

PORT = 8123
HOME = f"http://127.0.0.1:{PORT}"
MODEL = """[table.columns]
age = { kind = "number" }
pressure = { kind = "number" }
[target]
column = "state"
[id]
column = "patient"
"""


def called(*words):
    result = CliRunner().invoke(root, list(map(str, words)))
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    """The folder of a store that has learned all.csv: five rows of each of 40 patients, 0010 on."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    lines = ["patient,age,pressure,state"]
    for k in range(200):
        age, pressure = rng.integers(18, 80), round(float(rng.normal(120, 15)), 1)
        lines.append(f"{10 + k % 40:04d},{age},{pressure},{'ill' if k % 3 else 'well'}")
    (tmp_path / "all.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "model.toml").write_text(MODEL)
    called("new", "clinic", "model.toml", "--organisation", "Clinic St. Anna")
    called("learn", "clinic", "all.csv")
    return tmp_path / "clinic"


@pytest.fixture
def desk(clinic):
    return Desk(clinic, [str(clinic.parent / "all.csv")], token="secret of the test", port=PORT)


class Clerk:
    """Somebody with a browser in which the desk is open."""

    def __init__(self, desk):
        self.browser = TestClient(desk.application(), base_url=HOME)
        self.page = self.browser.get("/", params={"token": desk.token}).text

    def get(self, path):
        self.page = self.browser.get(path).text
        return self.page

    def send(self, path, status=200, files=None, **fields):
        """Send the form of the page that is open."""
        hidden = dict(re.findall(r'type="hidden" name="(\w+)" value="(.*?)"', self.page))
        head = {"Origin": HOME}
        answer = self.browser.post(path, data={**hidden, **fields}, files=files, headers=head)
        assert answer.status_code == status, answer.text
        self.page = answer.text
        return self.page


@pytest.fixture
def clerk(desk):
    return Clerk(desk)
