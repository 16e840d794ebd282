"""The options of ``traceless new`` that declare a table, and the schema that they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from traceless.cli.inputs import format_option, split_names

if TYPE_CHECKING:
    from traceless.cli.inputs import Function
    from traceless.sources import Schema, TextFormat
    from traceless.sources.schema import Column

_SINGLE = ("category", "hash", "scale", "boolean", "date")  # declare one column each
_SIGNS = {"tab": "\t", "\\t": "\t", "space": " "}
_OPTIONS: dict[str, dict[str, Any]] = {
    "--target": {"help": "Column to predict; several with --regression, none for pathoneclass."},
    "--columns": {"help": "Columns to learn from, as a,b,c."},
    "--like": {"metavar": "FILE", "help": "Learn from all columns that this file names."},
    "--drop": {"help": "Columns of --like to leave out, as a,b,c."},
    "--category": {"metavar": "NAME=A,B", "help": "A column of these values."},
    "--hash": {"metavar": "NAME=N", "help": "A column of any values."},
    "--scale": {"metavar": "NAME=SHIFT:SCALE", "help": "(x - SHIFT) / SCALE."},
    "--boolean": {"metavar": "NAME[=A:B]", "help": "1 for A, 0 for B [true,yes,1:false,no,0]."},
    "--date": {
        "metavar": "NAME[=...]",
        "help": "Days since 2000-01-01, or as in NAME=2010-01-01,hours,%d.%m.%Y.",
    },
    "--missing": {
        "metavar": "NAME=VALUE",
        "help": "Value for missing numbers; an additional column marks them.",
    },
    "--id": {"metavar": "NAME", "help": "Column of ids, to find and forget rows; not a feature."},
    "--weight": {"help": "Column of weights."},
    "--delimiter": {"metavar": "SIGN", "default": ",", "help": "Between the cells of CSV [,]."},
    "--decimal": {"metavar": "SIGN", "default": ".", "help": "Of numbers in CSV [.]."},
    "--null": {"metavar": "A,B", "help": "Words in CSV for missing values, such as NA."},
}
_MANY = ("missing", *_SINGLE)


def table_options(function: Function) -> Function:
    """Add the options that declare a table; the function gets them under their names."""
    function = format_option(function)
    for name, settings in reversed(_OPTIONS.items()):
        several = name.removeprefix("--") in _MANY
        function = click.option(name, multiple=several, **settings)(function)
    return function


def declared_schema(options: dict[str, Any], labels: Any) -> Schema:
    """The schema that the options of a table declare; they are taken out of `options`."""
    from traceless.sources import Number, Schema, TextFormat

    targets, weight = split_names(options.pop("target")), options.pop("weight")
    columns, like, drop = options.pop("columns"), options.pop("like"), options.pop("drop")
    format_, classes, id_ = options.pop("format_"), options.pop("classes"), options.pop("id")
    delimiter, decimal = options.pop("delimiter"), options.pop("decimal")
    nulls = tuple(split_names(options.pop("null")))
    text = TextFormat(_SIGNS.get(delimiter, delimiter), decimal, nulls)
    single = _single_columns({name: options.pop(name) for name in _MANY})
    if columns is None and like is None and (drop or not single):
        raise click.UsageError("Say which columns to learn from: --columns a,b or --like FILE.")
    if (columns and like) or (drop and not like):
        raise click.UsageError("Give --columns, or --like FILE and what to --drop of it.")
    names = split_names(columns)
    if like is not None:
        others = [*targets, *(name for name in (weight, id_) if name), *split_names(drop)]
        names = _names_in(like, format_, text, without=others)
    more = [name for name in single if name not in names]
    if like is not None and more:
        raise click.UsageError(f"{more[0]!r} is declared, but is not among the columns of {like}.")
    known: Any = split_names(classes)
    known = [whole(c, c) for c in known] if labels == "int" else known
    chosen = [single.get(name) or Number(name) for name in [*names, *more]]
    return Schema(tuple(chosen), tuple(targets), labels, weight, tuple(known), id_, text)


def pair(text: str, option: str) -> tuple[str, str]:
    """NAME and the rest of NAME=..."""
    name, sign, rest = text.partition("=")
    if not sign or not name:
        raise click.UsageError(f"{option} {text}: NAME=... is needed.")
    return name, rest


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


def _names_in(file: str, format_: str | None, text: TextFormat, without: list[str]) -> list[str]:
    """The columns of a file, except some that must be among them."""
    from traceless.sources import column_names
    from traceless.sources.arrow import check_present

    found = column_names(file, format_, text)
    check_present(found, without, file)
    return [name for name in found if name not in without]


def _single_columns(options: Mapping[str, Sequence[str]]) -> dict[str, Column]:
    """The columns that options declare one by one."""
    from traceless.sources import Boolean, Category, Date, Hashed, Number

    missing = dict([pair(text, "--missing") for text in options["missing"]])
    if len(missing) < len(options["missing"]):
        raise click.UsageError("--missing is given twice for one column; give it once.")
    found: dict[str, Column] = {}
    for option, text in [(f"--{one}", text) for one in _SINGLE for text in options[one]]:
        bare = option in ("--boolean", "--date") and "=" not in text
        name, said = (text, "") if bare else pair(text, option)
        if name in found:
            raise click.UsageError(f"{option} {text}: {name!r} is declared twice.")
        stand_in = missing.pop(name, None)
        if option in ("--category", "--hash") and stand_in is not None:
            raise click.UsageError(
                f"--missing {name}={stand_in}: in a column of words a missing value is the empty "
                f"word. Declare it as a value: --category {name}=A,B,"
            )
        if option == "--category":
            found[name] = Category(name, tuple(split_names(said)))
        elif option == "--hash":
            found[name] = Hashed(name, whole(said, text))
        elif option == "--boolean":
            found[name] = Boolean(name, **_words(said, text), missing=stand_in)
        elif option == "--date":
            found[name] = Date(name, **_date_parts(said, text), missing=stand_in)
        else:
            shift, _, spread = said.partition(":")
            between = number(shift, text), number(spread, text)
            found[name] = Number(name, *between, _stand_in(name, stand_in))
    numbers = {name: Number(name, missing=_stand_in(name, said)) for name, said in missing.items()}
    return {**found, **numbers}


def _stand_in(name: str, text: str | None) -> float | None:
    return None if text is None else number(text, f"--missing {name}={text}")


def _words(said: str, text: str) -> dict[str, Any]:
    """The words for true and for false, if they are given."""
    if not said:
        return {}
    true, sign, false = said.partition(":")
    if not sign:
        raise click.UsageError(f"--boolean {text}: NAME=YES:NO is needed, as in smoker=ja:nein.")
    return {"true": tuple(split_names(true)), "false": tuple(split_names(false))}


def _date_parts(said: str, text: str) -> dict[str, Any]:
    """Origin, unit and format, in any order: only a format has %, and only a unit ends in s."""
    parts: dict[str, str] = {}
    for part in split_names(said):
        kind = "format" if "%" in part else "unit" if part.endswith("s") else "origin"
        if kind in parts:
            raise click.UsageError(f"--date {text}: it has two of the kind {kind}; give one.")
        parts[kind] = part
    return parts
