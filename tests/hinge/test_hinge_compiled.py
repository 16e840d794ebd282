"""What numba keeps on disk: found again by later processes, and never after an edit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import traceless

INNER = "from traceless.hinge.compiled import inner\n\n\n@inner\ndef part(x):\n    return x + {}\n"
OUTER = (
    "from traceless.hinge.compiled import compiled\n"
    "from traceless.hinge.probe_inner import part\n\n\n"
    "@compiled\ndef whole(x):\n    return 10.0 * part(x)\n"
)
ASK = (
    "from traceless.hinge.probe_outer import whole\n"
    "print(whole(1.0), sum(whole.stats.cache_hits.values()))"
)


@pytest.fixture
def package(tmp_path):
    """A copy of the package with one compiled function that calls another."""
    source = Path(traceless.__file__).parent
    shutil.copytree(source, tmp_path / "traceless", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "traceless/hinge/probe_inner.py").write_text(INNER.format("1.0"))
    (tmp_path / "traceless/hinge/probe_outer.py").write_text(OUTER)
    return tmp_path


def ask(package, **environment):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA")}
    environment = kept | {"PYTHONPATH": str(package)} | environment
    command = [sys.executable, "-c", ASK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [float(v) for v in done.stdout.split()]


def test_what_is_kept_is_used_until_any_file_is_edited(package):
    assert ask(package) == [20.0, 0]
    assert ask(package) == [20.0, 1]
    (package / "traceless/hinge/probe_inner.py").write_text(INNER.format("2.0"))
    assert ask(package) == [30.0, 0]
    with (package / "traceless/arithmetic/elementary.py").open("a") as file:
        file.write("# edited\n")  # constants that are compiled in come from there
    assert ask(package) == [30.0, 0]


def test_where_nothing_can_be_kept_it_is_compiled_each_time(package):
    (package / "traceless/hinge/__pycache__").write_text("not a folder")
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME"), "/dev/null/nowhere")
    assert ask(package, **nowhere) == [20.0, 0]
