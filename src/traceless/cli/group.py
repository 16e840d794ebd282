"""The group of all commands; the module of a command is imported when it is called."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from traceless.cli import INTERRUPTED
from traceless.cli.command import command
from traceless.cli.output import Result, to_json

COMMANDS = {
    "new": ("new", "Make a store: declare the table and the model."),
    "learn": ("changes", "Learn the rows of files."),
    "forget": ("changes", "Forget rows, exactly, with a receipt."),
    "flush": ("changes", "Apply the forgetting that waits in the queue."),
    "relabel": ("changes", "Give learned rows another label."),
    "merge": ("changes", "Take in another model or store."),
    "seal": ("changes", "Make the exact model of all rows, now."),
    "destroy": ("changes", "Destroy the secret, or the model."),
    "predict": ("prediction", "Answer for the rows of files."),
    "score": ("prediction", "Compare answers with the target."),
    "cv": ("prediction", "Cross-validate, exactly, by unlearning."),
    "status": ("audit", "What the store holds now."),
    "history": ("audit", "What happened to it."),
    "receipt": ("audit", "The receipt of a change, as JSON or a page."),
    "verify": ("audit", "Recompute chain, files and model, and compare."),
    "export": ("export", "Write the model to a file, or as ONNX."),
    "demo": ("demo", "Learn, forget and prove it on a small data set."),
    "doctor": ("doctor", "What is installed, and whether it is exact here."),
    "completion": ("group", "The script that completes commands in a shell."),
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
        found = getattr(module, name)
        assert isinstance(found, click.Command)
        return found

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


@command('eval "$(traceless completion bash)"', "traceless completion fish")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> Result:
    """Print the script that completes commands and options in a SHELL.

    For bash and zsh, put  eval "$(traceless completion bash)"  into ~/.bashrc (or zsh into
    ~/.zshrc); for fish, write it to ~/.config/fish/completions/traceless.fish.
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    script = found(root, {}, "traceless", "_TRACELESS_COMPLETE").source()
    return Result({"script": script}, [script])


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
