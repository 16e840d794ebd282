"""A round over Flower: `make test-flower`, in an environment of its own."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from socket import create_connection, socket

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make test-flower")

APP = Path(__file__).parents[2] / "examples" / "flower_round.py"
SOURCES = Path(__file__).parents[2] / "src"
SAME = "the total of 400 rows is the plain merge: True"
PROJECT = """
[project]
name = "round"
version = "1.0.0"
description = "A round"
license = "BSD-3-Clause"
dependencies = []
[tool.flwr.app]
publisher = "tests"
[tool.flwr.app.components]
serverapp = "flower_round:server"
clientapp = "flower_round:client"
[tool.flwr.app.config]
"""


@pytest.fixture
def surroundings(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ours = {"FLWR_HOME": str(tmp_path), "PYTHONPATH": str(SOURCES), "PATH": path}
    return os.environ | ours | {"FLWR_TELEMETRY_ENABLED": "0", "PYTHONUNBUFFERED": "1"}


def finished(command, env):
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=400)


@pytest.mark.timeout(600)
def test_in_its_simulation(surroundings):
    ran = finished([sys.executable, APP], surroundings)
    assert SAME in ran.stdout, ran.stdout + ran.stderr


def free_ports(n):
    sockets = [socket() for _ in range(n)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_for(port):
    for _ in range(600):
        try:
            create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"nobody listens at {port}")


@pytest.mark.timeout(600)
def test_in_processes_of_their_own_over_loopback(surroundings, tmp_path):
    link, *nodes = free_ports(5)
    app = tmp_path / "app"
    app.mkdir()
    shutil.copy(APP, app)
    (app / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "config.toml").write_text(
        '[superlink]\ndefault = "loopback"\n[superlink.loopback]\n'
        f'address = "127.0.0.1:{link}"\ninsecure = true\n'
    )
    place = ["--insecure", "--host", "127.0.0.1", "--port"]
    alone = "--disable-runtime-dependency-installation"
    commands = [["flower-superlink", *place, str(link), alone]]
    for k, port in enumerate(nodes):
        config = ["--superlink", f"127.0.0.1:{link}", "--node-config", f"partition-id={k}"]
        commands.append(["flower-supernode", *place, str(port), *config])
    processes = []
    try:
        for command in commands:
            with open(tmp_path / f"{len(processes)}.log", "w") as log:
                process = subprocess.Popen(command, env=surroundings, stdout=log, stderr=log)
            processes.append(process)
            if command is commands[0]:
                wait_for(link)
        run = ["flwr", "run", str(app), "loopback", "--stream"]
        ran = finished(run, surroundings)
        logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
        assert SAME in ran.stdout + logs, ran.stdout + ran.stderr + logs
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(30)
