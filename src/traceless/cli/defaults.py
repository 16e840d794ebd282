"""Defaults of options, from files.

    wait = 10                  # for every command that has --wait

    [predict]
    probabilities = true

A key is an option without its dashes, a section is a command. Files are read in order, and the
later one wins: config.toml in the user's folder of settings, then traceless.toml in the folder
where the command is called. Options that belong to one call cannot be set in a file: a folder from
somebody else must not answer questions, choose keys, or decide what is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from traceless.cli.output import printable
from traceless.cli.words import did_you_mean

HERE = "traceless.toml"
NEVER = (
    *("yes", "force", "again", "key", "config"),  # answers, and the name of a request
    *("dry-run", "from", "to", "where"),  # the request itself
    *("out", "html", "public", "private"),  # files that are written
    *("secret", "signing-key", "replace", "replace-with"),  # what others must not know
    *("receipt", "head", "public-key"),  # what a verification trusts
)


@dataclass(frozen=True)
class Setting:
    """A line of a file.

    Attributes
    ----------
    command : str
        Its name, as in ``queue list``; empty for all commands.
    option : str
        Without dashes.
    value : object
    file : Path
    """

    command: str
    option: str
    value: Any
    file: Path


def all_commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """The commands of a group and of the groups in it, by names as in ``queue list``."""
    for name, command in group.commands.items():
        whole = f"{path} {name}".lstrip()
        if isinstance(command, click.Group):
            yield from all_commands(command, whole)
        else:
            yield whole, command


def files(chosen: str | None) -> list[Path]:
    """The files of settings, whether they are there or not: the one chosen, or the usual ones."""
    if chosen is not None:
        return [Path(chosen)]
    return [Path(click.get_app_dir("traceless"), "config.toml"), Path(HERE)]


def settings(root: click.Group, several: Sequence[Path]) -> list[Setting]:
    """All lines of files, checked against the commands; a file that is not there has none.

    Raises
    ------
    click.UsageError
        If a file is not TOML, or names an unknown command or option.
    """
    found: list[Setting] = []
    for file in several:
        if not file.is_file():
            continue
        import tomllib

        try:
            said = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise _refused(file, f"it cannot be read as TOML: {error}.") from error
        found += _lines(root, said, file)
    return found


def configure(ctx: click.Context, _: click.Parameter, chosen: str | None) -> None:
    """Give a command the defaults of files, as the callback of ``--config``."""
    root = ctx.find_root().command
    if not isinstance(root, click.Group):
        return
    if chosen is not None and not Path(chosen).exists():
        raise click.UsageError(f"--config {chosen}: there is no such file. Nothing was changed.")
    several = files(chosen)
    ctx.meta["config"] = several
    name = " ".join(ctx.command_path.split()[1:])
    options = _options(ctx.command)
    ctx.default_map = {
        str(options[line.option].name): line.value
        for line in settings(root, several)
        if line.command in ("", name) and line.option in options
    }


def _lines(root: click.Group, said: Mapping[str, Any], file: Path) -> Iterator[Setting]:
    """What a file says for all commands, and then what it says for each."""
    known: dict[str, click.Option] = {}
    for _, command in all_commands(root):
        known |= _options(command)
    for option, value in said.items():
        if not isinstance(value, dict):
            yield Setting("", option, _checked(file, "", option, value, known), file)
    yield from _sections(root, "", said, file)


def _sections(
    group: click.Group, path: str, said: Mapping[str, Any], file: Path
) -> Iterator[Setting]:
    for name, section in said.items():
        if not isinstance(section, dict):
            if path:
                raise _refused(file, f"[{path}] has sections only, such as [{path}.list].")
            continue
        command, inner = group.commands.get(name), f"{path}.{name}".lstrip(".")
        if command is None:
            near = did_you_mean(name, group.commands)
            raise _refused(file, f"[{inner}] is not a command.{near}")
        if isinstance(command, click.Group):
            yield from _sections(command, inner, section, file)
            continue
        for option, value in section.items():
            checked = _checked(file, f"[{inner}] ", option, value, _options(command))
            yield Setting(inner.replace(".", " "), option, checked, file)


def _checked(
    file: Path, where: str, option: str, value: Any, known: Mapping[str, click.Option]
) -> Any:
    """The value of an option, if it is one that a file may set and takes this value."""
    if option in NEVER:
        raise _refused(file, f"{where}{option} belongs to one call: give --{option} there.")
    if option not in known:
        whose = "the command has" if where else "a command has"
        near = did_you_mean(option, known)
        raise _refused(file, f"{where}{option} is not an option that {whose}.{near}")
    wrong = _unfit(known[option], value)
    if wrong:
        raise _refused(file, f"{where}{option} = {value!r}: {wrong}")
    return value


def _unfit(option: click.Option, value: Any) -> str:
    """Why a value does not suit an option; empty if it does."""
    if option.multiple and not isinstance(value, list):
        return "a list is needed."
    each = value if option.multiple else [value]
    if option.is_flag or option.type is click.BOOL:
        return "" if isinstance(value, bool) else "true or false is needed."
    for one in each:
        if isinstance(one, bool) or not isinstance(one, str | int | float):
            return "a text or a number is needed."
        try:
            option.type.convert(one, option, None)
        except click.BadParameter as error:
            return error.message
    return ""


def _options(command: click.Command) -> dict[str, click.Option]:
    """The options of a command by their long names, without dashes."""
    found = [option for option in command.params if isinstance(option, click.Option)]
    return {option.opts[0].lstrip("-"): option for option in found}


def _refused(file: Path, why: str) -> click.UsageError:
    return click.UsageError(printable(f"{file}: {why} Nothing was changed."))
