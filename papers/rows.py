"""Tables of measurements: lists of rows, each a mapping from columns to values."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
Rows = list[Row]


def select(rows: Rows, /, **where: Any) -> Rows:
    """The rows whose columns have these values.

    Examples
    --------
    >>> select([{"map": "Linear", "n": 1}, {"map": "Linear", "n": 2}], n=2)
    [{'map': 'Linear', 'n': 2}]
    """
    return [row for row in rows if all(row[k] == v for k, v in where.items())]


def column(rows: Rows, name: str) -> list[Any]:
    """One column of some rows."""
    return [row[name] for row in rows]


def values(rows: Rows, name: str) -> list[Any]:
    """The different values of a column, in order of appearance."""
    return list(dict.fromkeys(column(rows, name)))


def groups(rows: Rows, name: str) -> dict[Any, Rows]:
    """The rows of each value of a column.

    Examples
    --------
    >>> groups([{"n": 1}, {"n": 2}, {"n": 1}], "n")
    {1: [{'n': 1}, {'n': 1}], 2: [{'n': 2}]}
    """
    found: dict[Any, Rows] = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return found
