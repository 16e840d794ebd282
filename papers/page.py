"""A page as a list of blocks, written as Markdown or as one HTML file that needs no other.

Images are embedded and nothing is loaded from elsewhere, so the HTML file can be sent by mail,
archived, and read on a phone.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


class Mark(NamedTuple):
    """Words with a style of their own, after some without."""

    text: str
    style: str
    before: str = ""


Words = str | Mark  # `code`, **bold** and [links](#there) are kept


class Heading(NamedTuple):
    """A title of level 1 to 3; level 2 begins a section."""

    text: str
    level: int = 2
    anchor: str = ""


class Text(NamedTuple):
    """A paragraph."""

    text: Words
    style: str = ""


class Table(NamedTuple):
    """Head and rows; in tables of numbers, all columns but the first are aligned right."""

    head: Sequence[Words]
    rows: Sequence[Sequence[Words]]
    style: str = "numbers"


class Facts(NamedTuple):
    """Names and what is said of them."""

    lines: Mapping[str, str]


class Picture(NamedTuple):
    """A file that lies beside the page, and what it shows."""

    path: Path
    text: str


Block = Heading | Text | Table | Facts | Picture


def markdown(blocks: Sequence[Block], folder: Path) -> str:
    """The page for a file in `folder`."""
    return "\n\n".join(_markdown(block, folder) for block in blocks) + "\n"


def _markdown(block: Block, folder: Path) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Text(words):
            return _plain(words)
        case Table(head, rows, style):
            rule = ["---", *["---:" if style == "numbers" else "---"] * (len(head) - 1)]
            lines = [head, rule, *rows]
            return "\n".join(f"| {' | '.join(map(_plain, cells))} |" for cells in lines)
        case Facts(lines):
            return "\n".join(f"- {name}: {said}" for name, said in lines.items())
        case Picture(path, text):
            return f"![{text}]({path.relative_to(folder).as_posix()})"


def _plain(words: Words) -> str:
    return words if isinstance(words, str) else words.before + words.text


def html(blocks: Sequence[Block], title: str) -> str:
    """The page with its pictures inside."""
    body, inside = "", False
    for block in blocks:
        if isinstance(block, Heading) and block.level == 2:
            anchor = f' id="{escape(block.anchor)}"' if block.anchor else ""
            body += f"{'</section>' * inside}\n<section{anchor}>\n"
            inside = True
        body += f"{_html(block)}\n"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"{body}{'</section>' * inside}\n</body>\n</html>\n"
    )


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{_inline(text)}</h{level}>"
        case Text(words, style):
            return f"<p{_class(style)}>{_inline(words)}</p>"
        case Table(head, rows, style):
            lines = _row("th", head) + "".join(_row("td", cells) for cells in rows)
            return f'<div class="scroll"><table{_class(style)}>\n{lines}</table></div>'
        case Facts(lines):
            said = "".join(f"<dt>{_inline(k)}</dt><dd>{_inline(v)}</dd>" for k, v in lines.items())
            return f"<dl>{said}</dl>"
        case Picture(path, text):
            data = base64.b64encode(path.read_bytes()).decode()
            return f'<img src="data:image/png;base64,{data}" alt="{escape(text)}">'


def _row(tag: str, cells: Sequence[Words]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_inline(cell)}</{tag}>' for cell in cells)}</tr>\n"


def _class(style: str) -> str:
    return f' class="{style}"' if style else ""


def _inline(words: Words) -> str:
    if isinstance(words, Mark):
        return f"{_inline(words.before)}<span{_class(words.style)}>{_inline(words.text)}</span>"
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words))
    text = re.sub(r"\[([^\]]+)\]\((#\w+)\)", r'<a href="\2">\1</a>', text)
    return re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", text)
