"""``traceless new``: declare a table and a model, and make a store for them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceless.cli.command import command
from traceless.cli.inputs import format_option, split_names
from traceless.cli.model_options import build, model_options
from traceless.cli.output import Result, fields

if TYPE_CHECKING:
    from traceless.sources import Schema
    from traceless.sources.schema import Column


@command(
    "traceless new shop --target bought --columns age,income",
    "traceless new shop --target bought --like customers.csv --drop name,email",
    "traceless new shop --target bought --columns age --scale age=40:12 "
    "--category color=red,green --hash city=64",
    "traceless new digits --target digit --like digits.parquet --map fourier --components 300",
    "traceless new prices --target price --columns rooms,area --regression --rho 0.1",
)
@click.argument("store", type=click.Path())
@click.option("--target", required=True, help="Column to predict; several with --regression.")
@click.option("--columns", help="Columns to learn from, as a,b,c.")
@click.option("--like", metavar="FILE", help="Learn from all columns that this file names.")
@click.option("--drop", help="Columns of --like to leave out, as a,b,c.")
@click.option("--category", multiple=True, metavar="NAME=A,B", help="A column of these values.")
@click.option("--hash", multiple=True, metavar="NAME=N", help="A column of any values.")
@click.option("--scale", multiple=True, metavar="NAME=SHIFT:SCALE", help="(x - SHIFT) / SCALE.")
@click.option("--weight", help="Column of weights.")
@click.option("--labels", type=click.Choice(["text", "int"]), help="Type of labels [text].")
@click.option("--classes", metavar="A,B", help="The labels that may occur; by default any.")
@click.option("--regression", is_flag=True, help="Predict numbers (--model lssvr).")
@model_options
@click.option("--organisation", metavar="NAME", help="Who keeps the store, for its receipts.")
@click.option(
    "--secret",
    type=click.Path(),
    metavar="FILE",
    help="Share the secret of another store, to merge with it row by row: OTHER/secret.",
)
@click.option("--shared", is_flag=True, help="Let the group of the folder read and change it.")
@format_option
def new(
    store: str,
    *,
    regression: bool,
    labels: str | None,
    model: str | None,
    map_: str | None,
    class_weight: str | None,
    organisation: str | None,
    secret: str | None,
    shared: bool,
    **options: Any,
) -> Result:
    """Make a store: declare the table and the model.

    Nothing of the declaration is taken from rows, so nothing of rows stays in it: --like reads
    the names of columns only, categories are listed, scales are given.
    """
    from traceless.store import Store

    if regression and model not in (None, "lssvr"):
        raise click.UsageError(f"--regression is --model lssvr, and --model {model} is another.")
    model = "lssvr" if regression else model or "lssvc"
    if model == "lssvr" and (labels or options["classes"]):
        raise click.UsageError("--labels and --classes are for classes, and this is a regression.")
    labels = "number" if model == "lssvr" else labels or "text"
    schema = _schema(options, labels)
    estimator = build(model, map_, {**options, "class_weight": _weights(class_weight, labels)})
    _try(estimator, schema)
    theirs = None if secret is None else Path(secret).read_bytes()
    about = {"table": schema.facts()} | ({"organisation": organisation} if organisation else {})
    Store.new(store, estimator, about=about, secret=theirs, shared=shared)
    data = {"store": store, "model": " ".join(repr(estimator).split())}
    shown = fields({**data, "features": schema.width, "target": ", ".join(schema.target)})
    next_step = f"Next: traceless learn {store} FILES"
    return Result({**data, "table": schema.facts()}, [shown, next_step])


def _schema(options: dict[str, Any], labels: Any) -> Schema:
    """The schema that the options of a table declare; they are taken out of `options`."""
    from traceless.sources import Number, Schema

    targets, weight = split_names(options.pop("target")), options.pop("weight")
    columns, like, drop = options.pop("columns"), options.pop("like"), options.pop("drop")
    format_, classes = options.pop("format_"), split_names(options.pop("classes"))
    single = _single_columns({name: options.pop(name) for name in ("category", "hash", "scale")})
    if columns is None and like is None and (drop or not single):
        raise click.UsageError("Say which columns to learn from: --columns a,b or --like FILE.")
    if (columns and like) or (drop and not like):
        raise click.UsageError("Give --columns, or --like FILE and what to --drop of it.")
    names = split_names(columns)
    if like is not None:
        others = [*targets, *([weight] if weight else []), *split_names(drop)]
        names = _names_in(like, format_, without=others)
    more = [name for name in single if name not in names]
    if like is not None and more:
        raise click.UsageError(f"{more[0]!r} is declared, but is not among the columns of {like}.")
    known: Any = [_whole(c, c) for c in classes] if labels == "int" else classes
    chosen = [single.get(name) or Number(name) for name in [*names, *more]]
    return Schema(tuple(chosen), tuple(targets), labels, weight, tuple(known))


def _weights(text: str | None, labels: str) -> Any:
    """Class weights: a name, or numbers by label."""
    if text is None or "=" not in text:
        return text
    pairs = [_pair(pair, "--class-weight") for pair in split_names(text)]
    return {_whole(n, text) if labels == "int" else n: _number(v, text) for n, v in pairs}


def _try(estimator: Any, schema: Schema) -> None:
    """Let a copy learn two made-up rows, so that a bad parameter is found now."""
    import numpy as np
    from sklearn.base import clone

    X = np.array([[0.0], [1.0]]).repeat(schema.width, axis=1)
    y = np.array([0, 1]) if len(schema.target) == 1 else np.zeros((2, len(schema.target)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(estimator).fit(X, y).predict(X)


def _pair(text: str, option: str) -> tuple[str, str]:
    """NAME and the rest of NAME=..."""
    name, sign, rest = text.partition("=")
    if not sign or not name:
        raise click.UsageError(f"{option} {text}: NAME=... is needed.")
    return name, rest


def _number(text: str, where: str) -> float:
    """The number in a part of an option."""
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"{where}: {text!r} is not a number.") from None


def _whole(text: str, where: str) -> int:
    """The whole number in a part of an option."""
    if not _number(text, where).is_integer():
        raise click.UsageError(f"{where}: {text!r} is not a whole number.")
    return int(_number(text, where))


def _names_in(file: str, format_: str | None, without: list[str]) -> list[str]:
    """The columns of a file without some, which must be there."""
    from traceless.sources import column_names

    found = column_names(file, format_)
    missing = [name for name in without if name not in found]
    if missing:
        raise ValueError(f"{file} has no column {missing[0]!r}; it has {', '.join(found[:20])}.")
    return [name for name in found if name not in without]


def _single_columns(options: dict[str, Sequence[str]]) -> dict[str, Column]:
    """The columns that --category, --hash and --scale declare one by one."""
    from traceless.sources import Category, Hashed, Number

    found: dict[str, Column] = {}
    for option, text in ((f"--{name}", text) for name, texts in options.items() for text in texts):
        name, said = _pair(text, option)
        if name in found:
            raise click.UsageError(f"{option} {text}: {name!r} is declared twice.")
        if option == "--category":
            found[name] = Category(name, tuple(split_names(said)))
        elif option == "--hash":
            found[name] = Hashed(name, _whole(said, text))
        else:
            shift, _, spread = said.partition(":")
            found[name] = Number(name, _number(shift, text), _number(spread, text))
    return found
