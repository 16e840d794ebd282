"""Pages for people: one file of HTML that loads nothing, prints well and runs no script.

Labels, names of columns and keys are not trusted: only `text` and `named` put them on a page, and
both escape them.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

MOST = 80  # characters of a name
# forbids browsers to load or run anything, whatever a page holds
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def text(value: Any, most: int = MOST) -> str:
    """Any text for a page: escaped, shortened, and without characters that are not to be seen."""
    said = str(value)
    said = said if len(said) <= most else f"{said[: most - 1]}…"
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in said))


def named(value: Any, most: int = MOST) -> str:
    """A name in quotation marks; its writing direction does not affect the text around it."""
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
