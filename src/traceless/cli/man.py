"""``traceless man``: the manual page, made of the help of all commands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence

import click

from traceless.cli.command import Command, command
from traceless.cli.defaults import all_commands
from traceless.cli.output import Result

COMMON = ("--json", "--debug", "--config", "--help")


@command("traceless man > traceless.1", "traceless man > ~/.local/share/man/man1/traceless.1")
def man() -> Result:
    """Print the manual page of all commands.

    "traceless man | man -l -" shows it.
    """
    root = click.get_current_context().find_root().command
    assert isinstance(root, click.Group)
    text = page(root)
    return Result({"page": text}, [text])


def page(root: click.Group) -> str:
    """The manual page of a command and all that are in it, as troff."""
    from traceless import __version__

    lines = [
        f'.TH TRACELESS 1 "" "traceless {_plain(__version__)}" "User commands"',
        *(".SH NAME", r"traceless \- machine learning that can be taken back"),
        *(".SH SYNOPSIS", ".B traceless", r".I COMMAND [ARGUMENTS]... [\-\-help]"),
        *(".SH DESCRIPTION", *_prose(root)),
        *(".SH OPTIONS", "All commands have these.", *_options(man, COMMON)),
        ".SH COMMANDS",
    ]
    for path, one in all_commands(root):
        lines += _command(one, f"traceless {path}")
    return "\n".join(lines)


def _command(one: click.Command, path: str) -> Iterator[str]:
    ctx = click.Context(one, info_name=path)
    yield f".SS {_plain(' '.join([path, *one.collect_usage_pieces(ctx)]))}"
    yield from _prose(one)
    several = [option for option in one.params if isinstance(option, click.Option)]
    yield from _options(one, [o.opts[0] for o in several if o.opts[0] not in COMMON])
    if isinstance(one, Command):
        yield from (".PP", "Examples:", ".PP", ".nf")
        yield from (f"    {_plain(example)}" for example in one.examples)
        yield ".fi"


def _options(one: click.Command, wanted: Sequence[str]) -> Iterator[str]:
    ctx = click.Context(one)
    for option in one.get_params(ctx):
        said = option.get_help_record(ctx)
        if said is not None and option.opts[-1] in wanted:
            yield from (".TP", f".B {_plain(said[0])}", _plain(said[1]))


def _prose(one: click.Command) -> Iterator[str]:
    """The help of a command, its paragraphs apart."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(one.help or "")):
        yield from (".PP", _plain(" ".join(paragraph.split())))


def _plain(text: str) -> str:
    """Text in which troff finds nothing to obey, in ASCII: no backslash, no dot at the start."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    text = "".join(c if c.isascii() else rf"\[u{ord(c):04X}]" for c in text)
    return rf"\&{text}" if text.startswith((".", "'")) else text
