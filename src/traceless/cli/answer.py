"""What a command answers: data for programs, and something for people to look at."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click


@dataclass(frozen=True)
class Facts:
    """Names and values, one under the other."""

    pairs: Mapping[str, Any]


@dataclass(frozen=True)
class Grid:
    """Rows under headings."""

    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Answer:
    """What a command has to say.

    Attributes
    ----------
    data : dict
        What ``--json`` prints; "ok" is added.
    shown : sequence of str, Facts or Grid
        What people see.
    ok : bool
        False if a check failed: exit code 1.
    """

    data: Mapping[str, Any]
    shown: Sequence[str | Facts | Grid] = field(default=())
    ok: bool = True


def show(answer: Answer, as_json: bool) -> None:
    """Print an answer: one JSON object, or tables (with colour in a terminal, else plain)."""
    if as_json:
        _print(as_text({"ok": answer.ok, **answer.data}))
    elif has_terminal(sys.stdout):
        _show_rich(answer)
    else:
        for block in answer.shown:
            _print(_plain(block))


def has_terminal(stream: Any) -> bool:
    """Whether tables and bars can be drawn: by rich, in a terminal that can move its cursor."""
    able = stream.isatty() and os.environ.get("TERM") != "dumb"
    return able and importlib.util.find_spec("rich") is not None


def as_text(data: Any) -> str:
    """JSON, with NumPy's numbers and arrays as their values, and null for what is no number."""
    return json.dumps(_finite(data), indent=2, default=_as_json)


def _as_json(value: Any) -> Any:
    return _finite(value.tolist()) if hasattr(value, "tolist") else str(value)


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def warn(message: str) -> None:
    """One line on standard error."""
    _say("warning", "yellow", message)


def complain(message: str) -> None:
    """One line on standard error, for what went wrong."""
    _say("error", "red", message)


def _say(word: str, colour: str, message: str) -> None:
    plain = not sys.stderr.isatty() or "NO_COLOR" in os.environ
    head = f"{word}:" if plain else click.style(f"{word}:", fg=colour, bold=True)
    click.echo(f"{head} {_clean(' '.join(message.split()))}", err=True)


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _plain(block: str | Facts | Grid) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, Facts):
        return _aligned([(f"{name}:", value) for name, value in block.pairs.items()])
    return _aligned([block.headings, *block.rows])


def _aligned(rows: Sequence[Sequence[Any]]) -> str:
    texts = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = ("  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)) for row in texts)
    return "\n".join(line.rstrip() for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "ok" if value else "FAILED"
    return _clean(f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value))


def _clean(text: str) -> str:
    """Without characters that would steer a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _show_rich(answer: Answer) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    def cell(value: Any) -> Text:
        marks = {True: "bold green", False: "bold red"}
        style = marks[value] if isinstance(value, bool) else ""
        return Text(_cell(value), style=style, overflow="fold")

    console = Console(highlight=False)
    for block in answer.shown:
        if isinstance(block, str):
            console.print(Text(block), soft_wrap=True)
        elif isinstance(block, Facts):
            table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
            for name, value in block.pairs.items():
                table.add_row(Text(name, style="cyan"), cell(value))
            console.print(table)
        else:
            table = Table(*block.headings, box=SIMPLE_HEAD, header_style="bold cyan")
            for row in block.rows:
                table.add_row(*map(cell, row))
            console.print(table)
