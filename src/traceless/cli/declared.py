"""From the options of ``traceless new`` to the schema of a table."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from traceless.sources import Schema
    from traceless.sources.schema import Column


def declared(
    *,
    target: str,
    columns: str | None,
    like: str | None,
    drop: str | None,
    category: Sequence[str],
    hashed: Sequence[str],
    scale: Sequence[str],
    weight: str | None,
    labels: Any,
    classes: str | None,
    format_: str | None,
) -> Schema:
    """The schema that options of these names declare."""
    from traceless.sources import Number, Schema

    targets = listed(target)
    single = _one_by_one({"--category": category, "--hash": hashed, "--scale": scale})
    names = list(single)
    if like is not None or columns is not None:
        names = _names(columns, like, drop, [*targets, *([weight] if weight else [])], format_)
    elif not single or drop:
        raise click.UsageError("Say which columns to learn from: --columns a,b or --like FILE.")
    more = [name for name in single if name not in names]
    if like is not None and more:
        raise click.UsageError(f"{more[0]!r} is declared, but is not among the columns of {like}.")
    known: Any = [whole(c, c) if labels == "int" else c for c in listed(classes or "")]
    chosen = [single.get(name) or Number(name) for name in [*names, *more]]
    return Schema(tuple(chosen), tuple(targets), labels, weight, tuple(known))


def listed(text: str) -> list[str]:
    """Names between commas; quotes keep a comma in a name."""
    return next(csv.reader([text]), []) if text else []


def named(text: str, option: str) -> tuple[str, str]:
    """NAME and what is said of it, of NAME=..."""
    name, sign, said = text.partition("=")
    if not sign or not name:
        raise click.UsageError(f"{option} {text}: NAME=... is needed.")
    return name, said


def number(text: str, where: str) -> float:
    """The number in a part of an option."""
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"{where}: {text!r} is not a number.") from None


def whole(text: str, where: str) -> int:
    """The whole number in a part of an option."""
    if not number(text, where).is_integer():
        raise click.UsageError(f"{where}: {text!r} is not a whole number.")
    return int(number(text, where))


def _names(
    columns: str | None, like: str | None, drop: str | None, others: list[str], format_: str | None
) -> list[str]:
    """The columns to learn from, in order."""
    if (columns and like) or (drop and not like):
        raise click.UsageError("Give --columns, or --like FILE and what to --drop of it.")
    if like is None:
        return listed(columns or "")
    from traceless.sources import column_names

    found, left_out = column_names(like, format_), [*others, *listed(drop or "")]
    missing = [name for name in left_out if name not in found]
    if missing:
        raise ValueError(f"{like} has no column {missing[0]!r}; it has {', '.join(found[:20])}.")
    return [name for name in found if name not in left_out]


def _one_by_one(options: dict[str, Sequence[str]]) -> dict[str, Column]:
    """The columns of which more is said than their name."""
    found: dict[str, Column] = {}
    for option, texts in options.items():
        for text in texts:
            column = _column(option, text)
            if column.name in found:
                raise click.UsageError(f"{option} {text}: {column.name!r} is declared twice.")
            found[column.name] = column
    return found


def _column(option: str, text: str) -> Column:
    from traceless.sources import Category, Hashed, Number

    name, said = named(text, option)
    if option == "--category":
        return Category(name, tuple(listed(said)))
    if option == "--hash":
        return Hashed(name, whole(said, text))
    shift, _, spread = said.partition(":")
    return Number(name, number(shift, text), number(spread, text))
