import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner
from people import declared

from traceless.cli.command import command
from traceless.cli.output import Declined, Result
from traceless.exceptions import ConditionError, StoreBusyError, TableError
from traceless.store.lock import write_lock


def outcome(act, *arguments):
    @command("traceless one")
    def one():
        """One."""
        return act()

    return CliRunner().invoke(one, list(arguments))


def failing(error):
    def act():
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ValueError("A is needed."), 2, "error: A is needed.\n"),
        (TableError("two\nlines"), 2, "error: two lines\n"),
        (StoreBusyError("Process 7 writes."), 3, "error: Process 7 writes.\n"),
        (ConditionError("too ill"), 2, "error: too ill\n"),
        (FileNotFoundError(2, "No such file", "x.csv"), 2, "error: x.csv: No such file.\n"),
        (OSError(28, "No space left on device"), 2, "error: No space left on device.\n"),
        (MemoryError(), 2, "error: There is not enough memory.\n"),
        (ImportError("pip install 'traceless[onnx]'"), 2, "error: pip install 'traceless[onnx]'\n"),
        (ValueError(), 2, "error: ValueError\n"),
        (ValueError("\x1b[31mred"), 2, "error: \\x1b[31mred\n"),
        (Declined(), 1, "Nothing was changed.\n"),
        (
            KeyboardInterrupt(),
            130,
            "error: Interrupted. A change is made whole or not at all; see traceless status.\n",
        ),
    ],
)
def test_errors_are_one_line_and_a_code(error, code, said):
    result = outcome(failing(error))
    assert (result.exit_code, result.stderr, result.stdout) == (code, said, "")


def test_no_is_an_answer_and_not_an_error(call, shop):
    before = call("history", "shop", "--json").out
    said = call("destroy", "shop", "secret", code=1, stdin="n\n").err
    assert said.endswith("Nothing was changed.\n")
    assert "error" not in said
    assert call("destroy", "shop", "secret", "--json", code=1, stdin="n\n").json == {
        "ok": False,
        "declined": True,
    }
    nobody = call("destroy", "shop", "secret", code=2, stdin="").err
    assert "error: Nobody answered the question. Give --yes to answer yes." in nobody
    assert call("history", "shop", "--json").out == before
    assert call("destroy", "shop", "secret", stdin="y\n").code == 0


def test_messages_are_in_the_words_of_commands():
    result = outcome(failing(ValueError("s is not one. Store.new (or traceless new) makes one.")))
    assert result.stderr == "error: s is not one. traceless new makes one.\n"

    def act():
        warnings.warn("Collect requests with batch=True (--batch).", UserWarning, stacklevel=1)
        return Result({})

    assert outcome(act).stderr == "warning: Collect requests with --batch.\n"


def test_a_long_word_takes_no_time():
    """A store that somebody made up can put one into a message: square time would be minutes."""
    began = time.perf_counter()
    for long in ("x" * 10**6, "a=" + "b" * 10**6, "a(" * 10**5):
        outcome(failing(ValueError(long)))
    assert time.perf_counter() - began < 20.0


def test_defects_ask_for_a_report():
    result = outcome(failing(KeyError("x")))
    assert result.exit_code == 70
    assert result.stderr.startswith("error: KeyError: 'x' This is a defect of traceless")
    assert "Traceback" not in result.output


def test_json_says_errors_and_failed_checks_too_and_debug_shows_the_traceback():
    result = outcome(failing(TableError("why")), "--json", "--debug")
    assert json.loads(result.stdout) == {"ok": False, "error": "why", "kind": "TableError"}
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert result.stderr.endswith("error: why\n")
    result = outcome(lambda: Result({"a": 1}, ["said"], ok=False), "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["ok"] is False


def test_warnings_are_lines_of_their_own_and_data():
    def act():
        for _ in range(2):
            warnings.warn("Few\nrows.", UserWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return Result({}, ["done"])

    assert outcome(act).stderr == "warning: Few rows.\n"
    assert '"warnings": [\n    "Few rows."\n  ]' in outcome(act, "--json").stdout


def test_a_closed_pipe_is_no_error_and_a_full_disk_is_said(tmp_path):
    program = (
        "import sys\n"
        "from traceless.cli.command import command\n"
        "from traceless.cli.output import Result\n"
        "@command('traceless x')\n"
        "def x():\n"
        "    return Result({}, ['line ' * 10] * 100_000)\n"
        "x()\n"
    )
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "$0" | head -1; echo ${{PIPESTATUS[0]}}', program],
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines()[1] == "141"
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 74
    said = (
        "error: The command is done, but its output could not be written: No space left on "
        "device.\n"
    )
    assert done.stderr.decode() == said


def test_an_interrupt_leaves_quietly_and_changes_nothing(call, tmp_path):
    call("new", "s", declared("a"))
    before = call("history", "s", "--json").out
    process = subprocess.Popen(
        [sys.executable, "-m", "traceless", "learn", "s", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(b"a,y\n" + b"1,u\n2,v\n" * 1000)
    process.stdin.flush()
    while not _is_locked(tmp_path / "s" / "lock"):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.2)  # it waits for more rows by now
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == b""
    assert err.startswith(b"error: Interrupted.")
    assert b"Traceback" not in err
    assert call("history", "s", "--json").out == before


def _is_locked(path):
    try:
        with write_lock(path, 0.0):
            return False
    except StoreBusyError:
        return True


PROGRAM = """
from traceless.cli.command import command
from traceless.cli.output import Result
from traceless.exceptions import StoreBusyError
@command("traceless x")
def x():
    {}
x()
"""
EXITS = {
    0: "return Result({'a': 1}, ['said'])",
    1: "return Result({'a': 1}, ['said'], ok=False)",
    2: "raise ValueError('why')",
    3: "raise StoreBusyError('busy')",
    70: "raise KeyError('x')",
    74: "return Result({}, ['said'])",
    130: "raise KeyboardInterrupt",
    141: "return Result({}, ['line ' * 10] * 100_000)",
}


def test_a_refused_table_ends_the_command_though_arrow_reads_ahead(call, tmp_path):
    """Python's exit aborted, or hung, in two of five runs."""
    call("new", "s", declared("a"))
    (tmp_path / "bad.csv").write_text("a,y\nforty,u\n" + "1,u\n2,v\n" * 1_000_000)
    for _ in range(4):
        command = [sys.executable, "-m", "traceless", "learn", "s", "bad.csv"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("error: bad.csv, line 2, column 'a'")
        assert done.stderr.count("\n") == 1


def test_each_exit_code_is_documented():
    text = (Path(__file__).parents[2] / "docs/command-line.md").read_text()
    table = text.partition("| exit code |")[2].partition("\n\n")[0]
    assert list(map(int, re.findall(r"^\| (\d+) \|", table, re.MULTILINE))) == list(EXITS)


@pytest.mark.parametrize("code", EXITS)
def test_an_exit_code_means_what_the_table_says(code):
    ends = {74: "> /dev/full", 141: "| head -1 > /dev/null; exit ${PIPESTATUS[0]}"}
    for option in ("", "--json"):
        line = f'"{sys.executable}" -c "$0" {option} {ends.get(code, "")}'
        done = subprocess.run(
            ["bash", "-c", line, PROGRAM.format(EXITS[code])],
            capture_output=True,
            text=True,
        )
        if (code, option) != (141, "--json"):  # whose output is short enough for the pipe
            assert done.returncode == code, done.stderr
    if code in (0, 1, 2, 3, 70):
        told = json.loads(done.stdout)
        assert told["ok"] is (code == 0)
        assert ("error" in told) is (code > 1)
    else:
        assert done.stdout == ""
