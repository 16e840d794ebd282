"""Pages for people: one file of HTML that loads nothing, prints well and runs no script.

Labels, names of columns and keys come from anywhere. They are put on a page by `text` and `named`
only, which leave nothing in them that a browser could obey.
"""

from __future__ import annotations

from html import escape
from typing import Any

MOST = 80  # characters of a name
# a browser that is told so refuses to load or run anything, whatever a page holds
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --soft: #5b6875; --line: #dde3e8;
  --paper: #fff; --shade: #f4f6f8; --good: #0a7c66; --bad: #b3261e; --warn: #9a6700 }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ee; --soft: #9aa7b3; --line: #34404b;
  --paper: #14191f; --shade: #1d242c; --good: #4cc9ae; --bad: #ff8a80; --warn: #e3b341 } }
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  color: var(--ink); background: var(--paper); max-width: 60rem; margin: 2.5rem auto;
  padding: 0 1.5rem; overflow-wrap: break-word }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0; letter-spacing: -.01em }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem }
p { margin: .5rem 0 }
header { border-bottom: 3px solid var(--good); padding-bottom: .8rem; margin-bottom: 1.2rem }
header p, footer, .soft { color: var(--soft) }
footer { border-top: 1px solid var(--line); margin-top: 2rem; padding-top: .6rem;
  font-size: .85rem }
table { border-collapse: collapse; width: 100%; font-size: .93rem }
th { text-align: left; font-weight: 600; color: var(--soft); vertical-align: top }
th, td { padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line) }
.number { text-align: right; font-variant-numeric: tabular-nums }
code { font: .86em/1.45 ui-monospace, "SF Mono", Menlo, Consolas, monospace;
  overflow-wrap: anywhere }
li { margin: .15rem 0 }
.bad { color: var(--bad); font-weight: 600 }
.warn { color: var(--warn) }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --line: #ccc;
  --paper: #fff; --shade: #f4f6f8; --good: #0a7c66; --bad: #b3261e; --warn: #9a6700 }
  body { font-size: 9.5pt; margin: 0; padding: 0; max-width: none }
  tr, figure, li { break-inside: avoid } h2 { break-after: avoid } }
@page { size: A4; margin: 14mm 15mm }
"""


def text(value: Any, most: int = MOST) -> str:
    """Any text for a page: escaped, shortened, and without characters that are not to be seen."""
    said = str(value)
    said = said if len(said) <= most else f"{said[: most - 1]}…"
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in said))


def named(value: Any, most: int = MOST) -> str:
    """A name in quotation marks, whose direction of writing does not touch what is around it."""
    return f"“<bdi>{text(value, most)}</bdi>”"


def code(value: Any) -> str:
    """A command or a hash; nothing for nothing."""
    return f"<code>{text(value, 400)}</code>" if value else ""


def document(title: str, body: str, style: str = "") -> str:
    """A page with this title, which is escaped here; the body is not."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{text(title, 200)}</title>
<style>{_STYLE}{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
