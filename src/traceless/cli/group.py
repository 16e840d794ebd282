"""The group of all commands. A command imports its libraries when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from traceless.cli import INTERRUPTED, audit, changes, models
from traceless.cli.command import Group
from traceless.cli.doctor import doctor
from traceless.cli.follow import follow
from traceless.cli.new import new
from traceless.cli.output import to_json
from traceless.cli.queue import queue
from traceless.cli.report import report
from traceless.cli.suggest import suggest
from traceless.cli.verify import verify
from traceless.serve.command import serve


class Root(Group):
    """All commands, and ``--version``, which takes the options of a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Answer ``--version``."""
        if args[:1] == ["--version"]:
            with doctor.make_context("traceless --version", args[1:], parent=ctx) as inner:
                doctor.invoke(inner)
        return super().parse_args(ctx, args)


SECTIONS = {
    "Every day": (
        *(changes.learn, changes.forget, audit.find, changes.correct, changes.undo, queue),
        *(audit.receipt, audit.status, audit.history, models.predict, verify),
    ),
    "For administrators": (
        *(suggest, new, follow, changes.merge, changes.destroy, audit.key),
        *(models.export, report, serve),
    ),
}


@click.group(cls=Root, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    help="Show what is installed, and test that results are exact here.",
)
def root() -> None:
    """Machine learning that can be taken back.

    Models that learn, forget and merge, exactly, in a store that keeps a ledger and gives a
    receipt for every change. "traceless COMMAND --help" has examples. Start with "traceless
    suggest" and a file of yours. If TRACELESS_STORE names a store, STORE may be left out.

    Exit codes: 0 done; 1 a check failed; 2 bad input or usage, nothing was changed; 3 another
    process is writing.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):  # an odd terminal must not turn text into an error
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        code = root.main(list(arguments), prog_name="traceless", standalone_mode=False)
    except click.ClickException as error:
        if "--json" in arguments:
            click.echo(to_json({"ok": False, "error": error.format_message()}))
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    return code if isinstance(code, int) else 0
