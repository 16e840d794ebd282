"""The group of all commands. A command imports its libraries when it is called."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence

import click

from traceless.cli import INTERRUPTED, audit, changes, models
from traceless.cli.command import command
from traceless.cli.demo import demo
from traceless.cli.doctor import doctor
from traceless.cli.new import new
from traceless.cli.output import Result, to_json
from traceless.cli.show import show


class Group(click.Group):
    """Commands in the order in which one meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names, in the order in which they were added."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; one that does not exist is refused with the names nearest to it."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            near = difflib.get_close_matches(name.lower(), self.commands, n=3, cutoff=0.5)
            asked = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f'No such command {name!r}.{asked} "traceless --help" lists all.')
        return super().resolve_command(ctx, args)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
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
    """Print the script that completes commands in a shell.

    For bash and zsh, put  eval "$(traceless completion bash)"  into ~/.bashrc (or zsh into
    ~/.zshrc); for fish, write it to ~/.config/fish/completions/traceless.fish.
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    script = found(root, {}, "traceless", "_TRACELESS_COMPLETE").source()
    return Result({"script": script}, [script])


for _command in (
    *(new, changes.learn, changes.forget, changes.flush, changes.relabel, changes.merge),
    *(changes.seal, changes.destroy, models.predict, models.score, models.cv, show),
    *(audit.status, audit.history, audit.receipt, audit.verify, models.export),
    *(demo, doctor, completion),
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
