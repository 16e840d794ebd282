"""Pages for people: receipts, reports and the desk share one base, stylesheet and catalogue.

Pages are Jinja2 templates, which escape whatever they are given: labels and names of columns and
requests come from anywhere. A page is one file that loads and runs nothing. Messages are
gettext's: ``locale/*/LC_MESSAGES/traceless.po``, compiled beside it by ``make messages``.
"""

from __future__ import annotations

import gettext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
LANGUAGES = ("en", "de")
_MOST, _SEVERAL = 400, 3  # characters of a text; things that are named one by one
_NAME = 40  # characters of a name in a sentence: all must be on one page


@cache
def environment(language: str = "en", folder: Path = HERE) -> Environment:
    """The templates of this folder and of another one, in a language."""
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("Pages need the package jinja2: pip install 'traceless[cli]'") from error
    found = Environment(
        loader=FileSystemLoader([folder, HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    known = [] if language == "en" else [language]
    words = gettext.translation("traceless", HERE / "locale", known, fallback=language == "en")
    found.install_gettext_translations(words, newstyle=True)  # type: ignore[attr-defined]
    found.filters |= {f.__name__: f for f in (number, decimal, name, names, code)}
    found.globals |= {"language": language, "style": style()}
    return found


def render(template: str, language: str = "en", **values: Any) -> str:
    """A page of this room."""
    return environment(language).get_template(template).render(values)


def style() -> str:
    """The stylesheet."""
    return (HERE / "page.css").read_text("utf-8")


def clean(value: Any, most: int = _MOST) -> str:
    """Any text, shortened, and without characters that are not to be seen."""
    said = str(value)
    said = said if len(said) <= most else f"{said[: most - 1]}…"
    if said.isprintable():
        return said
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in said)


def name(value: Any) -> Any:
    """A name in quotation marks; its writing direction does not affect the text around it."""
    from markupsafe import Markup

    return Markup("“<bdi>{}</bdi>”").format(clean(value, _NAME).replace("\n", " "))


def names(values: Any) -> Any:
    """Some of several names, and how many more there are."""
    from markupsafe import Markup

    every = list(values)
    more = len(every) - _SEVERAL
    return Markup(", ").join(map(name, every[:_SEVERAL])) + (f" + {more}" if more > 0 else "")


def code(value: Any) -> Any:
    """A command or a hash; nothing for nothing."""
    from markupsafe import Markup

    return Markup("<code>{}</code>").format(clean(value)) if value else ""


def number(value: float) -> str:
    """A whole number with thin spaces between thousands."""
    return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def decimal(value: float) -> str:
    """A number with some four digits."""
    return number(value) if 1000 <= abs(value) < 1e9 else f"{value:.4g}"
