"""The group of all commands, whose modules are imported when they are called."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence

import click

from traceless.cli import INTERRUPTED

COMMANDS = {
    "new": ("new", "Make a store: declare the table and the model."),
    "learn": ("changes", "Learn the rows of files."),
    "forget": ("changes", "Forget rows, exactly, with a receipt."),
    "flush": ("changes", "Apply the forgetting that waits in the queue."),
    "relabel": ("changes", "Give learned rows another label."),
    "merge": ("changes", "Take in another model or store."),
    "seal": ("changes", "Make the exact model of all rows, now."),
    "destroy": ("changes", "Destroy the secret, or the model."),
    "predict": ("answers", "Answer for the rows of files."),
    "score": ("answers", "Compare answers with the target."),
    "cv": ("answers", "Cross-validate, exactly, by unlearning."),
    "status": ("proof", "What the store holds now."),
    "history": ("proof", "What happened to it."),
    "receipt": ("proof", "The receipt of a change, as JSON or a page."),
    "verify": ("proof", "Recompute chain, files and model, and compare."),
    "export": ("export", "Write the model to a file, or as ONNX."),
    "demo": ("demo", "Learn, forget and prove it on a small data set."),
    "doctor": ("doctor", "What is installed, and whether it is exact here."),
    "completion": ("completion", "The script that completes commands in a shell."),
}


class Commands(click.Group):
    """All commands, known by name before they are imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names, in the order in which one meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name, imported now."""
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"traceless.cli.{COMMANDS[name][0]}")
        command = getattr(module, name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the names and what each is for."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="traceless", prog_name="traceless")
def root() -> None:
    """Machine learning that can be taken back.

    Models that learn, forget and merge, exactly, in a store that keeps a ledger and gives a
    receipt for every change. "traceless COMMAND --help" has examples. Start with "traceless
    demo", or with "traceless new".

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
            click.echo(json.dumps({"ok": False, "error": error.format_message()}))
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    return code if isinstance(code, int) else 0
