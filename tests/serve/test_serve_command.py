"""``traceless serve``, before a browser comes."""

import json
import socket

import pytest
import uvicorn
from click.testing import CliRunner

from traceless.cli.group import root


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_the_address_is_printed_and_json_is_one_object(clinic, monkeypatch, words):
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: None)  # as if Ctrl-C came at once
    told = CliRunner().invoke(root, ["serve", "clinic", *words])
    address = told.stderr if words else told.stdout
    assert (told.exit_code, "Open http://127.0.0.1:" in address) == (0, True)
    if words:
        assert json.loads(told.stdout)["ok"]


def test_a_port_in_use_is_named(clinic):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        told = CliRunner().invoke(root, ["serve", "clinic", "--port", str(port)])
    assert (told.exit_code, told.stderr) == (2, f"error: Port {port}: Address already in use.\n")
