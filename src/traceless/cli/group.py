"""The group of all commands. A command imports its libraries when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from traceless.cli import INTERRUPTED, audit, changes, models
from traceless.cli.command import Group
from traceless.cli.doctor import doctor
from traceless.cli.new import new
from traceless.cli.output import to_json
from traceless.cli.queue import flush, queue
from traceless.cli.report import report
from traceless.cli.show import show
from traceless.cli.suggest import suggest


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="traceless", prog_name="traceless")
def root() -> None:
    """Machine learning that can be taken back.

    Models that learn, forget and merge, exactly, in a store that keeps a ledger and gives a
    receipt for every change. "traceless COMMAND --help" has examples. Start with "traceless
    suggest" and a file of yours.

    Exit codes: 0 done; 1 a check failed; 2 bad input or usage, nothing was changed; 3 another
    process is writing.
    """


for _command in (
    *(suggest, new, changes.learn, changes.undo, audit.find, changes.forget, queue, flush),
    *(changes.relabel, changes.correct, changes.merge, changes.destroy),
    *(models.predict, models.score, models.export, show, report),
    *(audit.status, audit.history, audit.receipt, audit.verify, audit.head, audit.key),
    doctor,
):
    root.add_command(_command)


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
