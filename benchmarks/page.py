"""A page as a list of blocks, written as Markdown or as one HTML file that needs no other."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .2rem .8rem; border-bottom: 1px solid #ddd; text-align: right; }
th:first-child, td:first-child { text-align: left; }
code { background: #f3f3f3; padding: 0 .2em; }
img { max-width: 100%; }
"""


class Heading(NamedTuple):
    """A title of level 1 to 3."""

    text: str
    level: int = 2


class Text(NamedTuple):
    """A paragraph; `code` and **bold** are kept."""

    text: str


class Table(NamedTuple):
    """Head and rows; the first column is text, the others are numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


class Picture(NamedTuple):
    """A file that lies beside the page, and what it shows."""

    path: Path
    text: str


Block = Heading | Text | Table | Picture


def markdown(blocks: Sequence[Block], folder: Path) -> str:
    """The page for a file in `folder`."""
    return "\n\n".join(_markdown(block, folder) for block in blocks) + "\n"


def _markdown(block: Block, folder: Path) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Text(text):
            return text
        case Table(head, rows):
            rule = ["---", *["---:"] * (len(head) - 1)]
            return "\n".join(f"| {' | '.join(cells)} |" for cells in [head, rule, *rows])
        case Picture(path, text):
            return f"![{text}]({path.relative_to(folder).as_posix()})"


def html(blocks: Sequence[Block], title: str) -> str:
    """The page with its pictures inside."""
    body = "\n".join(map(_html, blocks))
    head = f"<meta charset='utf-8'><title>{escape(title)}</title><style>{STYLE}</style>"
    return f"<!doctype html>\n<html lang='en'><head>{head}</head>\n<body>\n{body}\n</body></html>\n"


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{_inline(text)}</h{level}>"
        case Text(text):
            return f"<p>{_inline(text)}</p>"
        case Table(head, rows):
            lines = [_row("th", head), *(_row("td", cells) for cells in rows)]
            return f"<table>{''.join(lines)}</table>"
        case Picture(path, text):
            data = base64.b64encode(path.read_bytes()).decode()
            return f"<img alt='{escape(text)}' src='data:image/png;base64,{data}'>"


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_inline(cell)}</{tag}>' for cell in cells)}</tr>\n"


def _inline(text: str) -> str:
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)
