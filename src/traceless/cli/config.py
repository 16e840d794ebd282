"""``traceless config``: which defaults are set, and in which file."""

from __future__ import annotations

from typing import Any

import click

from traceless.cli.command import command
from traceless.cli.defaults import settings
from traceless.cli.output import Grid, Result


@command("traceless config", "traceless config --config clinic.toml")
def config() -> Result:
    """Show the defaults that files set.

    Options that are always the same can be written in a file: config.toml in the folder of your
    settings, or traceless.toml in the folder where a command is called, which wins. A line such as
    "folds = 10" below the heading "[cv]" is --folds 10 of the command cv; above all headings it is
    for every command that has the option. What is given on the command line wins.
    """
    ctx = click.get_current_context()
    root, several = ctx.find_root().command, ctx.meta["config"]
    assert isinstance(root, click.Group)
    found = settings(root, several)
    last = {(line.command, line.option): line for line in found}
    read = [{"file": str(file), "exists": file.is_file()} for file in several]
    lines = list[dict[str, Any]]()
    for line in found:
        said = {"command": line.command or None, "option": line.option, "value": line.value}
        used = last[line.command, line.option] is line
        lines.append(said | {"file": str(line.file), "used": used})
    there = {True: "read", False: "not there"}
    shown = [Grid([[one["file"], there[one["exists"]]] for one in read], ["file", ""])]
    if lines:
        words = {True: "yes", False: "no, a later file has another"}
        rows = [
            [command or "all", option, str(value), file, words[used]]
            for command, option, value, file, used in map(dict.values, lines)
        ]
        shown.append(Grid(rows, ["command", "option", "value", "file", "used"]))
    return Result({"files": read, "settings": lines}, shown)
