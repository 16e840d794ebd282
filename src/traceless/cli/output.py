"""What a command says: its result (JSON for programs, tables for people), questions, errors."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click


@dataclass(frozen=True)
class Grid:
    """Rows under headings; without headings, names and their values."""

    rows: Sequence[Sequence[Any]]
    headings: Sequence[str] = ()


@dataclass(frozen=True)
class Result:
    """The result of a command.

    Attributes
    ----------
    data : dict
        What ``--json`` prints; "ok" is added.
    shown : sequence of str or Grid
        What people see.
    ok : bool
        False if a check failed: exit code 1.
    """

    data: Mapping[str, Any]
    shown: Sequence[str | Grid] = ()
    ok: bool = True


class Declined(Exception):  # noqa: N818  (an answer, not an error)
    """The user answered no: nothing was changed."""


def ask(question: str, flag: str) -> None:
    """Ask a question on the terminal; return if the answer is yes.

    Parameters
    ----------
    question : str
    flag : str
        The option that answers yes beforehand, such as ``--yes``.

    Raises
    ------
    Declined
        If the answer is no.
    click.UsageError
        If nobody can answer, because the input has ended.
    """
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        click.echo(err=True)
        raise click.UsageError(
            f"Nobody answered the question. Give {flag} to answer yes. Nothing was changed."
        ) from error
    if not agreed:
        raise Declined


def fields(pairs: Mapping[str, Any]) -> Grid:
    """Names and values, one below the other."""
    return Grid(list(pairs.items()))


def show(result: Result, as_json: bool) -> None:
    """Print a result: one JSON object, or tables (with colour in a terminal, else plain)."""
    if as_json:
        click.echo(to_json({"ok": result.ok, **result.data}))
    elif can_draw(sys.stdout) and importlib.util.find_spec("rich") is not None:
        _show_rich(result)
    else:
        for block in result.shown:
            click.echo(block if isinstance(block, str) else _aligned(block))


def can_draw(stream: Any) -> bool:
    """Whether this is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def to_json(data: Any) -> str:
    """JSON, with NumPy's numbers and arrays as their values, and null for NaN and infinity."""
    return json.dumps(_plain(data), indent=2, default=str)


def _plain(data: Any) -> Any:
    data = data.tolist() if hasattr(data, "tolist") else data
    if isinstance(data, Mapping):
        return {name: _plain(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def say(word: str, message: str) -> None:
    """Write a warning or an error as one line on standard error."""
    plain = not sys.stderr.isatty() or "NO_COLOR" in os.environ
    colour = {"warning": "yellow", "error": "red"}[word]
    head = f"{word}:" if plain else click.style(f"{word}:", fg=colour, bold=True)
    click.echo(f"{head} {_printable(' '.join(message.split()))}", err=True)


def _aligned(grid: Grid) -> str:
    rows = [grid.headings, *grid.rows] if grid.headings else [(f"{n}:", v) for n, v in grid.rows]
    texts = [list(map(_cell, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return "\n".join(["  ".join(map(str.ljust, row, widths)).rstrip() for row in texts])


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "ok" if value else "FAILED"
    return _printable(f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value))


def _printable(text: str) -> str:
    """The text with escapes for characters that would steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _show_rich(result: Result) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    def cell(value: Any) -> Text:
        style = ("bold green" if value else "bold red") if isinstance(value, bool) else ""
        return Text(_cell(value), style=style, overflow="fold")

    console = Console(highlight=False)
    for block in result.shown:
        if isinstance(block, str):
            console.print(Text(block), soft_wrap=True)
            continue
        if block.headings:
            table = Table(*block.headings, box=SIMPLE_HEAD, header_style="bold cyan")
        else:
            columns = Column(style="cyan"), Column()
            table = Table(*columns, box=None, show_header=False, padding=(0, 2, 0, 0))
        for row in block.rows:
            table.add_row(*map(cell, row))
        console.print(table)
