"""The output of a command: results (JSON or tables), questions, errors, files.

Labels and names come from untrusted tables: control characters are shown as escapes, and what a
spreadsheet would run as a formula is written as text.
"""

from __future__ import annotations

import csv
import errno
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

_STARTS = "=+\\-@\t\r\n＝＋－＠"  # spreadsheets know the wide ones too
_FORMULA = re.compile(rf"^(?=[{_STARTS}])|(?<=;)(?=\s*[{_STARTS}])")  # many split cells at ;


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
        agreed = click.confirm(printable(question), err=True)
    except click.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        click.echo(err=True)
        raise click.UsageError(
            f"Nobody answered the question. Give {flag} to answer yes. Nothing was changed."
        ) from error
    if not agreed:
        raise Declined


def target_of(path: str) -> Path:
    """The path that a command may write to; asks before a file is replaced.

    Parameters
    ----------
    path : str

    Raises
    ------
    Declined
        If the file is there, and the answer is no.
    click.UsageError
        If the path leads into a store; or the file is there, nobody can be asked, and --force
        was not given.
    """
    from traceless.store.folder import is_store

    target = Path(path).resolve()
    store = next((folder for folder in (target, *target.parents) if is_store(folder)), None)
    if store is not None:
        raise click.UsageError(
            f"{path} is in the store {store}, and the files there are its own. Choose another "
            "place. Nothing was written."
        )
    if target.is_dir():
        raise click.UsageError(f"{path} is a folder. Name a file in it. Nothing was written.")
    if not target.parent.is_dir():
        raise click.UsageError(f"{path}: there is no folder {Path(path).parent} to write it to.")
    if not os.access(target.parent, os.W_OK):
        raise click.UsageError(f"{path}: nothing can be written to its folder.")
    if target.is_file() and not click.get_current_context().meta.get("force"):
        if not can_be_asked():
            raise click.UsageError(
                f"{path} exists already. Choose another name, or give --force to replace it. "
                "Nothing was written."
            )
        ask(f"{path} exists already. Replace it?", "--force")
    return target


def can_be_asked() -> bool:
    """Whether a user can answer; standard input may be a pipe with rows."""
    return sys.stdin.isatty()


class Outputs:
    """The files that a command names, checked before it does anything else.

    Pipes and devices are written to, not replaced.

    Parameters
    ----------
    *paths : str or None
        None is an option that was not given.

    Raises
    ------
    Declined, click.UsageError
        As by `target_of`; or two of them are one file.
    """

    def __init__(self, *paths: str | None) -> None:
        self._targets: dict[str, Path | int] = {}
        for path in paths:
            if path is None:
                continue
            there = Path(path)
            special = there.exists() and not (there.is_file() or there.is_dir())
            target = _open_pipe(path) if special else target_of(path)
            if target in self._targets.values():
                raise click.UsageError(f"{path} is named twice. Nothing was written.")
            self._targets[path] = target

    def write(self, path: str | None, texts: Iterable[str], private: bool = False) -> None:
        """Write one of them, if it was given; it appears when it is complete.

        Parameters
        ----------
        path : str or None
        texts : iterable of str
            The pieces of its text.
        private : bool
            Only its owner may read it.
        """
        from traceless.files import container

        target = None if path is None else self._targets[path]
        if isinstance(target, Path):
            mode = container.Permissions(0o600, os.geteuid(), os.getegid()) if private else None
            container.replace(target, (text.encode() for text in texts), mode)
        elif target is not None:
            with open(target, "w", encoding="utf-8", newline="") as file:
                file.writelines(texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets)


def _open_pipe(path: str) -> int:
    """Open a pipe or a device; refuse a pipe without a reader, which would block for ever."""
    try:
        handle = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise click.UsageError(
            f"{path} is a pipe that nobody reads. Nothing was written."
        ) from error
    os.set_blocking(handle, True)
    return handle


def echo(texts: Iterable[str]) -> None:
    """Write to standard output; control characters are escaped for a terminal."""
    sys.stdout.writelines(map(_lines, texts) if sys.stdout.isatty() else texts)


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Lines of a CSV file, in which no text is a formula."""
    lines: list[str] = []
    file = SimpleNamespace(write=lines.append)  # one call for each row
    writer = csv.writer(file, lineterminator="\r\n")  # so that both are quoted
    writer.writerows([list(map(_no_formula, row)) for row in rows])
    return "".join([f"{line[:-2]}\n" for line in lines])


def _no_formula(cell: Any) -> Any:
    """The cell; text that a spreadsheet would run begins with an apostrophe, numbers stay."""
    if isinstance(cell, str) and _FORMULA.search(cell):
        try:
            float(cell)
        except ValueError:
            return _FORMULA.sub("'", cell)
    return cell


def fields(pairs: Mapping[str, Any]) -> Grid:
    """Names and values, one below the other."""
    return Grid(list(pairs.items()))


def show(result: Result, as_json: bool) -> None:
    """Print a result: one JSON object, or tables."""
    if as_json:
        click.echo(to_json({"ok": result.ok, **result.data}))
    else:
        for block in result.shown:
            click.echo(_lines(block) if isinstance(block, str) else _aligned(block))


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
    click.echo(f"{word}: {printable(' '.join(message.split()))}", err=True)


def _aligned(grid: Grid) -> str:
    rows = [grid.headings, *grid.rows] if grid.headings else [(f"{n}:", v) for n, v in grid.rows]
    texts = [list(map(cell, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return "\n".join(["  ".join(map(str.ljust, row, widths)).rstrip() for row in texts])


def cell(value: Any) -> str:
    """A value of a table as text."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "ok" if value else "FAILED"
    return printable(f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value))


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.split("\n")))


def printable(text: str) -> str:
    """The text with escapes in place of control characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
