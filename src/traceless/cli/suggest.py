"""``traceless suggest``: propose the declaration of a table."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from traceless.cli.command import command
from traceless.cli.inputs import format_option, split_names
from traceless.cli.output import Grid, Result

if TYPE_CHECKING:
    from traceless.sources.suggestion import Suggestion


@command(
    "traceless suggest patients.csv --target ill",
    "traceless suggest patients.csv --target ill --id patient --store clinic",
    "traceless suggest prices.parquet --target price --scales --json",
)
@click.argument("file", type=click.Path())
@click.option("--target", required=True, help="Column to predict; several as a,b.")
@click.option("--id", "ids", metavar="NAME", help="Column of ids; by default one is looked for.")
@click.option("--store", default="STORE", help="Name of the store in the command.")
@click.option("--scales", is_flag=True, help="Also scales of numbers, for maps other than linear.")
@format_option
def suggest(
    file: str,
    target: str,
    ids: str | None,
    store: str,
    scales: bool,
    format_: str | None,
) -> Result:
    """Propose a "traceless new" command for a file.

    Each column gets a declaration, with a reason. Proposals are computed from rows, so they are a
    trace of them: replace them by what you know without the rows.
    """
    from traceless.sources.suggestion import REMARK, suggest

    targets = split_names(target)
    found = suggest(file, targets, ids, format_, scales)
    words = _command(found, store, targets)
    lines = " \\\n  ".join([" ".join(map(shlex.quote, part)) for part in words])
    columns = [
        {"name": one.column, "declared": _declared(one.options), "reason": one.reason}
        for one in found.proposals
    ]
    grid = Grid([list(one.values()) for one in columns], ["column", "declared", "reason"])
    looked = f"{found.rows} rows were looked at. {REMARK}"
    check = f"Try it first with --check {shlex.quote(file)} at its end."
    said = {"columns": columns, "rows": found.rows, "remark": REMARK}
    data = {"command": [word for part in words for word in part], **said}
    return Result(data, [lines, "", grid, "", looked, check])


def _command(found: Suggestion, store: str, targets: list[str]) -> list[list[str]]:
    """The words of the command, in parts that belong together."""
    from traceless.sources import TextFormat
    from traceless.sources.suggestion import listed_names

    parts = [["traceless", "new", store, "--target", listed_names(targets)]]
    words = [word for one in found.proposals for word in one.options]
    pairs = list(zip(words[::2], words[1::2], strict=True))
    plain = [value for option, value in pairs if option == "--columns"]
    if plain:
        parts.append(["--columns", listed_names(plain)])
    for option, value in pairs:
        if option == "--regression" and [option] not in parts:
            parts.append([option])
        elif option not in ("--columns", "--regression"):
            parts.append([option, value])
    usual, text = TextFormat(), found.text
    if text.delimiter != usual.delimiter:
        parts.append(["--delimiter", "tab" if text.delimiter == "\t" else text.delimiter])
    if text.decimal != usual.decimal:
        parts.append(["--decimal", text.decimal])
    if text.nulls:
        parts.append(["--null", listed_names(text.nulls)])
    return parts


def _declared(options: tuple[str, ...]) -> str:
    return " ".join([shlex.quote(word) for word in options if word]) or "-"
