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

    Defaults of options can be set in files: config.toml in the folder of your settings, and
    traceless.toml in the current folder, which takes precedence. A line "folds = 10" in the section
    "[cv]" means --folds 10 for the command cv; before the first section it holds for every command
    that has the option. The command line takes precedence over both.
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
