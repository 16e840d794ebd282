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

STYLE = """
:root { --blue: #1b6ca8; --orange: #d95f0e; --ink: #222; --grey: #6b6b6b; --line: #e3e3e3; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem 1rem 4rem; max-width: 46rem; color: var(--ink);
  background: #fff; font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  -webkit-text-size-adjust: 100%; overflow-wrap: break-word; }
h1 { font-size: 1.65rem; line-height: 1.25; margin: .6rem 0 .4rem; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 0 0 .6rem; }
h3 { font-size: .8rem; letter-spacing: .05em; text-transform: uppercase; color: var(--grey);
  margin: 1.1rem 0 .2rem; }
p { margin: .3rem 0 .7rem; }
a { color: var(--blue); text-decoration: none; }
code { background: #f3f3f3; padding: 0 .2em; }
section { border-top: 1px solid var(--line); margin-top: 2.2rem; padding-top: 1.6rem; }
img { display: block; width: 100%; height: auto; margin: .8rem 0; }
.grey { color: var(--grey); }
.notice { border-left: 4px solid var(--orange); background: #fdf3ec; padding: .6rem .9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; line-height: 1.4; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem .45rem 0;
  border-bottom: 1px solid var(--line); }
.numbers th + th, .numbers td + td { text-align: right; }
th { font-weight: 600; color: var(--grey); font-size: .82rem; }
td:last-child, th:last-child { padding-right: 0; }
.badge { display: inline-block; white-space: nowrap; border-radius: 1rem; padding: .05rem .65rem;
  font-size: .85rem; font-weight: 600; }
.yes { color: #14507d; background: #e3eff7; }
.part { color: #7a5b00; background: #fbf1d0; }
.no { color: #9c3f05; background: #fce5d8; }
.holds::before { content: "✓ "; color: var(--blue); font-weight: 700; }
.fails::before { content: "✗ "; color: var(--orange); font-weight: 700; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; font-size: .9rem; }
dt { color: var(--grey); }
dd { margin: 0; }
@media (max-width: 34rem) {
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; }
  .badge { font-size: .78rem; padding: .05rem .5rem; }
}
"""


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
