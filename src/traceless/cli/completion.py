"""``traceless completion``: commands and options complete themselves in a shell."""

from __future__ import annotations

import click

from traceless.cli.answer import Answer
from traceless.cli.command import command

PLACES = {
    "bash": 'eval "$(traceless completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(traceless completion zsh)"   in ~/.zshrc',
    "fish": "traceless completion fish > ~/.config/fish/completions/traceless.fish",
}


@command('eval "$(traceless completion bash)"', "traceless completion fish")
@click.argument("shell", type=click.Choice(list(PLACES)))
def completion(shell: str) -> Answer:
    """Print the script that completes commands and options in a SHELL.

    For bash and zsh, put  eval "$(traceless completion bash)"  into ~/.bashrc (or zsh into
    ~/.zshrc); for fish, write it to ~/.config/fish/completions/traceless.fish.
    """
    from click.shell_completion import get_completion_class

    from traceless.cli.frame import root

    found = get_completion_class(shell)
    assert found is not None
    script = found(root, {}, "traceless", "_TRACELESS_COMPLETE").source()
    return Answer({"script": script}, [script])
