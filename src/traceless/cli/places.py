"""Names of columns and lines of files in messages of the library, which has numbers only.

``Feature 0`` is the first feature of the model and ``Column 0`` the first that the table gives to
it; rows of a change are ``number 3 (counted from 0)``. The command's context knows the table that
was read, and the store.
"""

from __future__ import annotations

import re
from typing import Any

import click

_COLUMNS = re.compile(
    r"\b(Feature|Target|Column|column) (\d+(?:, \d+)*)(?=(?:, \.\.\.)? (?:takes|varies) |\); every)"
)
_ROWS = re.compile(r"number (\d+(?:, \d+)*)(, …)? \(counted from 0\)")


def keep(**what: Any) -> None:
    """Keep the table, or the store, of this command for its messages."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta.update({f"traceless {name}": value for name, value in what.items()})


def by_name(message: str) -> str:
    """A message with names of columns, and places of rows, where the command has read a table."""
    context = click.get_current_context(silent=True)
    table = None if context is None else context.meta.get("traceless table")
    if context is None or table is None:
        return message
    store: Any = context.meta.get("traceless store")

    def named(found: re.Match[str]) -> str:
        names = table.schema.table.names
        if found[1] == "Feature":
            names = store.model().feature_map.feature_names(names)
        elif found[1] == "Target":
            names = table.schema.target
        numbers = list(map(int, found[2].split(", ")))
        if max(numbers) >= len(names):
            return found[0]
        return f"{found[1]} " + ", ".join([repr(names[k]) for k in numbers])

    def placed(found: re.Match[str]) -> str:
        places = [table.place_of(int(row)) for row in found[1].split(", ")]
        return "; ".join(places) + ("; …" if found[2] else "")

    try:
        return _ROWS.sub(placed, _COLUMNS.sub(named, message))
    except Exception:  # better the message with numbers than none
        return message
