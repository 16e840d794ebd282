"""Make a function a command: --json, --debug, examples, errors, exit codes."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

from traceless.cli import INTERRUPTED
from traceless.cli.output import Declined, Result, say, show, to_json
from traceless.cli.places import by_name
from traceless.exceptions import EngineError, StoreBusyError

FAILED, REFUSED, BUSY, DEFECT, UNWRITTEN, CLOSED_PIPE = 1, 2, 3, 70, 74, 141
EXPECTED = (
    *(ValueError, TypeError, ArithmeticError, OSError, MemoryError, ImportError),
    *(EngineError, click.ClickException),
)
_BOTH = re.compile(  # only from where a word begins: a text of one long word takes no longer
    r"(?<![A-Za-z_.])[A-Za-z_.]+(?:\([^()]*\)|=[\w']+)? \((?:or )?((?:traceless |--)[^()]+)\)"
)


class Command(click.Command):
    """A command whose function returns a `Result`, and whose help ends with examples."""

    def __init__(self, *args: Any, examples: tuple[str, ...], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self.params += [
            click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object."),
            click.Option(["--debug"], is_flag=True, help="Show the traceback of an error."),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the store that TRACELESS_STORE names first, where no other is given."""
        path, takes = os.environ.get("TRACELESS_STORE"), [p.name for p in self.get_params(ctx)]
        if path and "store" in takes and not ctx.resilient_parsing:
            from traceless.store.folder import is_store

            given, _, _ = self.make_parser(ctx).parse_args(list(args))
            named = given.get("store")
            needed = [given.get(p.name or "") for p in self.params if p.required]
            whole = all(isinstance(one, str | tuple) and one for one in needed)  # click has UNSET
            if not whole or not isinstance(named, str) or not is_store(Path(named)):
                args = [path, *args]
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the examples."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")

    def invoke(self, ctx: click.Context) -> None:
        """Run the function, print its result or its error, and exit."""
        as_json, debug = ctx.params.pop("as_json"), ctx.params.pop("debug")
        ctx.meta["as_json"] = as_json
        try:
            code = _print(self.result(ctx), as_json)
        except BrokenPipeError:
            code = _silence(CLOSED_PIPE)
        except KeyboardInterrupt:
            say("error", "Interrupted. A change is made whole or not at all; see traceless status.")
            code = INTERRUPTED
        except Declined:
            if as_json:  # not an error, but scripts must see that nothing was done
                click.echo(to_json({"ok": False, "declined": True}))
            click.echo("Nothing was changed.", err=True)
            code = FAILED
        except Exception as error:
            if debug:
                traceback.print_exc()
            code = _refuse(error, as_json)
        ctx.exit(code)

    def result(self, ctx: click.Context) -> Result:
        """The result; warnings go to standard error, one line each, and into its data."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for ignored in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
                warnings.simplefilter("ignore", ignored)
            try:
                result = super().invoke(ctx)
            finally:
                said: list[str] = []
                for warning in caught:
                    message = _in_commands(" ".join(str(warning.message).split()))
                    if message not in said:
                        said.append(message)
                        say("warning", message)
        return Result({**result.data, "warnings": said}, result.shown, result.ok)


class Group(click.Group):
    """Commands under headings, in their order.

    Parameters
    ----------
    sections : dict
        Commands by heading.
    """

    def __init__(
        self, *args: Any, sections: Mapping[str, Sequence[click.Command]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.sections = {head: [str(one.name) for one in some] for head, some in sections.items()}
        for one in chain.from_iterable(sections.values()):
            self.add_command(one)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names, in the order in which they were added."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the commands, each under its heading."""
        room = formatter.width - 6 - max(map(len, self.commands))
        for heading, names in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(n, self.commands[n].get_short_help_str(room)) for n in names])


def command(*examples: str, name: str | None = None) -> Callable[..., Command]:
    """Make a function a command of its name, or this one, with examples."""
    return click.command(name, cls=Command, examples=examples)


def _print(result: Result, as_json: bool) -> int:
    try:
        show(result, as_json)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        say("error", f"The command is done, but its output could not be written: {text_of(error)}")
        return _silence(UNWRITTEN)
    return 0 if result.ok else FAILED


def _silence(code: int) -> int:
    """Nothing more can be written: keep Python from trying again at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _refuse(error: Exception, as_json: bool) -> int:
    """Print an error as one line, and as JSON; returns the exit code."""
    expected, kind, message = isinstance(error, EXPECTED), type(error).__name__, text_of(error)
    if not expected:
        message = (
            f"{kind}: {message} This is a defect of traceless: please report it with the output of "
            "--debug."
        )
    if as_json:
        click.echo(to_json({"ok": False, "error": message, "kind": kind}))
    say("error", message)
    return (BUSY if isinstance(error, StoreBusyError) else REFUSED) if expected else DEFECT


def text_of(error: Exception) -> str:
    """What an error says, for people."""
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return f"There is not enough memory. {error}".strip()
    return _in_commands(str(error)) or type(error).__name__


def _in_commands(message: str) -> str:
    """A message of the library for the command line.

    Where it gives both, as ``Store.new (or traceless new)`` or ``batch=True (--batch)``, only the
    second is kept; columns and rows that it counts get their names and lines.
    """
    return by_name(_BOTH.sub(r"\1", message))
