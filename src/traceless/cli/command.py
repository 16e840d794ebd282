"""How a function becomes a command: --json, --debug, examples, errors, exit codes."""

from __future__ import annotations

import functools
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import click

from traceless.cli import INTERRUPTED
from traceless.cli.answer import Answer, as_text, complain, show, warn
from traceless.exceptions import EngineError, StoreBusyError

FAILED, REFUSED, BUSY, DEFECT, UNWRITTEN, CLOSED_PIPE = 1, 2, 3, 70, 74, 141
EXPECTED = (
    *(ValueError, TypeError, ArithmeticError, OSError, MemoryError, ImportError),
    *(EngineError, click.ClickException),
)


class Told(click.Command):
    """A command whose help ends with examples."""

    examples: tuple[str, ...] = ()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the examples."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def command(*examples: str) -> Callable[[Callable[..., Answer]], Told]:
    """Make a function that returns an `Answer` a command of its name, with examples."""

    def made(function: Callable[..., Answer]) -> Told:
        @functools.wraps(function)
        def called(*args: Any, as_json: bool, debug: bool, **kwargs: Any) -> None:
            code = _outcome(lambda: function(*args, **kwargs), as_json, debug)
            click.get_current_context().exit(code)

        told: Told = click.command(cls=Told)(called)
        told.params += [
            click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object."),
            click.Option(["--debug"], is_flag=True, help="Show the traceback of an error."),
        ]
        told.examples = examples
        return told

    return made


def _outcome(answer: Callable[[], Answer], as_json: bool, debug: bool) -> int:
    """Run a command, show what it says; returns the exit code."""
    try:
        return _shown(_with_warnings(answer), as_json)
    except BrokenPipeError:
        return _silenced(CLOSED_PIPE)
    except KeyboardInterrupt:
        complain("Interrupted. A change is made whole or not at all; see traceless status.")
        return INTERRUPTED
    except click.Abort:
        complain("Nothing was changed.")
        return REFUSED
    except Exception as error:
        if debug:
            traceback.print_exc()
        return _refusal(error, as_json)


def _shown(given: Answer, as_json: bool) -> int:
    try:
        show(given, as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        complain(f"It is done, but what it said could not be written: {_message(error)}")
        return _silenced(UNWRITTEN)
    return 0 if given.ok else FAILED


def _silenced(code: int) -> int:
    """Nothing more can be written: keep Python from trying, and complaining, at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _with_warnings(answer: Callable[[], Answer]) -> Answer:
    """The answer; warnings go to standard error, one line each, and into its data."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for ignored in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", ignored)
        try:
            given = answer()
        finally:
            said = list(dict.fromkeys(" ".join(str(w.message).split()) for w in caught))
            for message in said:
                warn(message)
    return Answer({**given.data, "warnings": said}, given.shown, given.ok)


def _refusal(error: Exception, as_json: bool) -> int:
    expected = isinstance(error, EXPECTED)
    message = _message(error) if expected else f"{type(error).__name__}: {_message(error)}"
    if not expected:
        message += " This is a defect of traceless: please report it with the output of --debug."
    if as_json:
        data = {"ok": False, "error": message, "kind": type(error).__name__}
        sys.stdout.write(f"{as_text(data)}\n")
    complain(message)
    if not expected:
        return DEFECT
    return BUSY if isinstance(error, StoreBusyError) else REFUSED


def _message(error: Exception) -> str:
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return f"There is not enough memory. {error}".strip()
    return str(error) or type(error).__name__
