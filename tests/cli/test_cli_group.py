import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

import traceless
from traceless.cli import inputs
from traceless.cli.group import root, run

DOCS = Path(__file__).parents[2] / "docs" / "command-line.md"
QUEUE = {f"queue {name}": one for name, one in root.commands["queue"].commands.items()}
COMMANDS = {**{name: one for name, one in root.commands.items() if name != "queue"}, **QUEUE}
HEAVY = ("numpy", "scipy", "sklearn", "pyarrow", "sqlite3", "numba", "onnx", "pandas")


def test_there_is_help_and_the_version(call):
    said = call("--help").out
    assert all(f"  {name} " in said for name in root.commands)
    assert said.index("Every day:") < said.index("  verify ") < said.index("For administrators:")
    assert traceless.__version__ in call("--version").out.splitlines()[0]
    assert "Exit codes" in call("-h").out


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_examples_and_documentation(call, name, monkeypatch):
    monkeypatch.setattr(inputs.os.path, "exists", lambda _: True)  # files of the examples
    command, text = COMMANDS[name], DOCS.read_text()
    assert "Examples:" in call(*name.split(), "--help").out
    assert len(command.get_short_help_str(100)) > 10
    assert f"`traceless {name}" in text
    for option in [one for one in command.params if isinstance(one, click.Option)]:
        assert option.help
        assert all(f"`{spelled}" in text for spelled in option.opts), option.opts
        assert all(f"`{word}`" in text for word in getattr(option.type, "choices", ()))
    for example in command.examples:
        words = shlex.split(example.rpartition("|")[2].partition(">")[0].partition("<")[0])
        depth = 1 + len(name.split())
        assert words[:depth] == ["traceless", *name.split()]
        command.make_context(name, words[depth:])


def test_a_shell_completes_words():
    asked = {"_TRACELESS_COMPLETE": "bash_complete", "COMP_CWORD": "4"}
    asked |= {"COMP_WORDS": "traceless learn s --format p"}
    program = Path(sys.executable).parent / "traceless"
    env = {**os.environ, **asked}
    done = subprocess.run([program], capture_output=True, text=True, env=env)
    assert "plain,parquet" in done.stdout.splitlines()


def test_help_imports_nothing_heavy():
    program = (
        "import sys; from traceless.cli.group import root, run\n"
        f"for name in {['', *COMMANDS]!r}: run([*name.split(), '--help'])\n"
        f"print('HEAVY', sorted(set(sys.modules) & {set(HEAVY)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []", done.stderr


def test_what_only_reads_the_ledger_starts_at_once(clinic, tmp_path):
    """A seventh of the time that scikit-learn takes; modules are counted, as times vary."""
    program = (
        "import sys; from traceless.cli.group import run\n"
        "calls = 'status', 'history', 'receipt', 'queue list'\n"
        "codes = [run([*name.split(), 'clinic']) for name in calls]\n"
        "codes.append(run(['find', 'clinic', '17']))\n"
        f"print('HEAVY', codes, sorted(set(sys.modules) & {set(HEAVY) - {'sqlite3'}!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1] == "HEAVY [0, 0, 0, 0, 0] []", done.stderr


def test_usage_errors_are_code_2(call, capsys):
    assert "No such command 'xyzzy'" in call("xyzzy", code=2).err
    assert "No such option" in call("status", "shop", "--jsn", code=2).err
    assert "Missing argument" in call("learn", "shop", code=2).err
    assert run(["status", "--json"]) == 2
    said = capsys.readouterr()
    assert json.loads(said.out)["ok"] is False
    assert "STORE" in said.err


def test_main_without_click_says_what_to_install():
    program = "import sys; sys.modules['click'] = None\nfrom traceless.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "The command line needs click: pip install 'traceless[cli]'\n"


def test_python_m_and_the_entry_point_are_the_same():
    ways = [sys.executable, "-m", "traceless"], [Path(sys.executable).parent / "traceless"]
    one, other = (subprocess.run([*way, "--help"], capture_output=True) for way in ways)
    assert one.stdout == other.stdout != b""


@pytest.mark.parametrize(
    "words",
    [
        "learn shop none.csv",
        "forget shop --from none.csv --where 17",
        "learn shop people.csv --dry-run --score none.csv",
        "predict shop none.csv",
        "verify none.json",
        "new other none.toml",
        "receipt shop 99",
        "find shop id=3",
        "status shopp",
        "lern shop people.csv",
        "learn shop people.csv --agin",
    ],
)
def test_what_is_not_there_is_said_before_anything_heavy_is_imported(shop, tmp_path, words):
    program = (
        f"import sys; from traceless.cli.group import run; code = run({words.split()!r})\n"
        f"print(code, sorted(set(sys.modules) & {set(HEAVY) - {'sqlite3'}!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout == "2 []\n", done.stderr


def test_the_store_may_be_named_once(call, clinic, monkeypatch, tmp_path):
    """TRACELESS_STORE takes the place of STORE, and a store that is named is that store."""
    call("new", "other", "model.toml")
    monkeypatch.setenv("TRACELESS_STORE", "clinic")
    assert call("status --json").json["rows"] == 160
    assert call("status other --json").json["rows"] == 0
    assert call("find 17 --json").json["found"][0]["held"] > 0
    assert call("receipt 1 --json").json["entry"]["kind"] == "learn"
    assert "learned exactly these" in call("learn all.csv", code=2).err
    assert call("learn other all.csv --json").json["receipt"]["held"] == 160
    assert "would count twice" in call("merge other", code=2).err  # it is clinic that is asked
    assert call("queue list").out == "Nothing waits.\n"
    with open("receipt.json", "w") as file:
        file.write(call("receipt").out)
    assert "kept receipt" in call("verify receipt.json").out
    assert call("new third model.toml").code == 0
    assert "unexpected extra argument" in call("status shopp", code=2).err
