"""``traceless new``: a table and a model are declared, and a store is made for them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceless.cli.answer import Answer, Facts
from traceless.cli.command import command
from traceless.cli.options import format_option, store_argument

if TYPE_CHECKING:
    from traceless.tables import Schema

MODELS = ("lssvc", "lssvr", "pathsvc", "lpsvm", "esvm", "wesvm")
MAPS = ("linear", "polynomial", "fourier", "layer", "landmarks")


@command(
    "traceless new shop --target bought --columns age,income",
    "traceless new shop --target bought --like customers.csv --drop name,email",
    "traceless new shop --target bought --columns age --scale age=40:12 "
    "--category color=red,green --hash city=64",
    "traceless new digits --target digit --like digits.parquet --map fourier --components 300",
    "traceless new prices --target price --columns rooms,area --regression --rho 0.1",
)
@store_argument
@click.option("--target", required=True, help="Column to predict; several with --regression.")
@click.option("--columns", help="Columns to learn from, as a,b,c.")
@click.option("--like", metavar="FILE", help="Learn from all columns that this file names.")
@click.option("--drop", help="Columns of --like to leave out, as a,b,c.")
@click.option("--category", multiple=True, metavar="NAME=A,B", help="A column of these values.")
@click.option("--hash", "hashed", multiple=True, metavar="NAME=N", help="A column of any values.")
@click.option("--scale", multiple=True, metavar="NAME=SHIFT:SCALE", help="(x - SHIFT) / SCALE.")
@click.option("--weight", help="Column of weights.")
@click.option("--labels", type=click.Choice(["text", "int"]), help="Type of labels [text].")
@click.option("--classes", metavar="A,B", help="The labels that may occur; by default any.")
@click.option("--regression", is_flag=True, help="Predict numbers (--model lssvr).")
@click.option("--model", type=click.Choice(MODELS), help="The estimator [lssvc].")
@click.option("--map", "map_", type=click.Choice(MAPS), help="The feature map [linear].")
@click.option("--rho", type=float, help="Regularisation of lssvc and lssvr [1].")
@click.option("--C", "c", type=float, help="The same for the other models, 1/rho [1].")
@click.option("--class-weight", metavar="HOW", help="balanced, inverse, golden, or a=2,b=1.")
@click.option("--weighting", type=click.Choice(["shared", "one_vs_rest"]))
@click.option("--solver", type=click.Choice(["cholesky", "woodbury"]))
@click.option("--components", type=click.IntRange(min=1), help="Features of a map [100].")
@click.option("--gamma", type=float, help="Of fourier, landmarks, polynomial, pathsvc.")
@click.option("--degree", type=click.IntRange(min=1), help="Of polynomial, pathsvc.")
@click.option("--coef0", type=float, help="Of polynomial, pathsvc.")
@click.option("--activation", type=click.Choice(["sigmoid", "tanh", "relu", "sine"]))
@click.option("--spread", type=float, help="Weights of a layer are uniform in ±SPREAD.")
@click.option("--seed", type=int, help="Of random maps [0].")
@click.option("--kernel", type=click.Choice(["rbf", "linear", "poly"]), help="Of pathsvc.")
@click.option("--strategy", type=click.Choice(["ovo", "ovr"]), help="Of pathsvc.")
@click.option("--bias/--no-bias", default=None, help="With a constant feature [yes].")
@click.option("--resolution", type=float, help="Grid of the features, a power of two.")
@click.option("--input-resolution", type=float, help="Grid of the rows, for random maps.")
@click.option("--target-resolution", type=float, help="Grid of the targets of lssvr.")
@click.option(
    "--secret",
    type=click.Path(),
    metavar="FILE",
    help="Share the secret of another store, to merge with it row by row: OTHER/secret.",
)
@format_option
def new(
    store: str,
    *,
    target: str,
    columns: str | None,
    like: str | None,
    drop: str | None,
    category: Sequence[str],
    hashed: Sequence[str],
    scale: Sequence[str],
    weight: str | None,
    labels: str | None,
    classes: str | None,
    regression: bool,
    model: str | None,
    map_: str | None,
    class_weight: str | None,
    secret: str | None,
    format_: str | None,
    **options: Any,
) -> Answer:
    """Make a store: declare the table and the model.

    Nothing of the declaration is taken from rows, so nothing of rows stays in it: --like reads
    the names of columns only, categories are listed, scales are given.
    """
    from traceless.cli.models import built
    from traceless.store import Store
    from traceless.tables import Schema

    model = _model(model, regression)
    kind: Any = "number" if model == "lssvr" else labels or "text"
    if kind == "number" and (labels or classes):
        raise click.UsageError("--labels and --classes are for classes, and this is a regression.")
    labelled: Any = [_whole(c, c) if kind == "int" else c for c in _listed(classes or "")]
    names = _names(columns, like, drop, _listed(target), weight, format_)
    schema = Schema(
        tuple(_columns(names, category, hashed, scale)),
        tuple(_listed(target)),
        kind,
        weight,
        tuple(labelled),
    )
    options["class_weight"] = _weights(class_weight, kind)
    estimator = built(model, map_, options)
    _try(estimator, schema)
    shared = None if secret is None else Path(secret).read_bytes()
    Store.new(store, estimator, about={"table": schema.facts()}, secret=shared)
    shown = {"store": store, "model": repr(estimator), "features": schema.width}
    return Answer(
        {"store": store, "model": repr(estimator), "table": schema.facts()},
        [Facts({**shown, "target": target}), f"Next: traceless learn {store} FILES"],
    )


def _model(model: str | None, regression: bool) -> str:
    if regression and model not in (None, "lssvr"):
        raise click.UsageError(f"--regression is --model lssvr, and --model {model} is another.")
    return "lssvr" if regression else model or "lssvc"


def _names(
    columns: str | None,
    like: str | None,
    drop: str | None,
    target: list[str],
    weight: str | None,
    format_: str | None,
) -> list[str] | None:
    """Columns in order; None if only those count that are declared one by one."""
    if (columns and like) or (drop and not like):
        raise click.UsageError("Give --columns, or --like FILE and what to --drop of it.")
    if like is None:
        return None if columns is None else _listed(columns)
    from traceless.tables import column_names

    found = column_names(like, format_)
    dropped = _listed(drop or "")
    missing = [n for n in [*target, *dropped, *([weight] if weight else [])] if n not in found]
    if missing:
        raise ValueError(f"{like} has no column {missing[0]!r}; it has {', '.join(found[:20])}.")
    return [name for name in found if name not in (*target, *dropped, weight)]


def _columns(
    names: list[str] | None, category: Sequence[str], hashed: Sequence[str], scale: Sequence[str]
) -> list[Any]:
    """Each column with what was declared of it; a number if nothing was."""
    from traceless.tables import Category, Hashed, Number

    declared: dict[str, Any] = {}
    for option, texts in (("--category", category), ("--hash", hashed), ("--scale", scale)):
        for text in texts:
            name, said = _declared(text, option)
            if name in declared or (names is not None and name not in names):
                why = "is declared twice" if name in declared else "is not among the columns"
                raise click.UsageError(f"{option} {text}: column {name!r} {why}.")
            if option == "--category":
                declared[name] = Category(name, tuple(_listed(said)))
            elif option == "--hash":
                declared[name] = Hashed(name, _whole(said, text))
            else:
                shift, _, spread = said.partition(":")
                declared[name] = Number(name, _number(shift, text), _number(spread, text))
    if names is None:
        if not declared:
            raise click.UsageError("Say which columns to learn from: --columns a,b or --like FILE.")
        return list(declared.values())
    return [declared.get(name) or Number(name) for name in names]


def _declared(text: str, option: str) -> tuple[str, str]:
    name, sign, said = text.partition("=")
    if not sign or not name:
        raise click.UsageError(f"{option} {text}: NAME=... is needed.")
    return name, said


def _listed(text: str) -> list[str]:
    """Names between commas; quotes keep a comma in a name."""
    return next(csv.reader([text]), []) if text else []


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"{whole}: {text!r} is not a number.") from None


def _whole(text: str, whole: str) -> int:
    number = _number(text, whole)
    if not number.is_integer():
        raise click.UsageError(f"{whole}: {text!r} is not a whole number.")
    return int(number)


def _weights(text: str | None, labels: str) -> Any:
    """A name, or numbers by label."""
    if text is None or "=" not in text:
        return text
    pairs = [_declared(part, "--class-weight") for part in _listed(text)]
    return {_whole(n, text) if labels == "int" else n: _number(v, text) for n, v in pairs}


def _try(estimator: Any, schema: Schema) -> None:
    """Let a copy learn two made-up rows, so that a bad parameter is found now."""
    import warnings

    import numpy as np
    from sklearn.base import clone

    X = np.array([[0.0], [1.0]]).repeat(schema.width, axis=1)
    y: Any = np.zeros((2, len(schema.target)))
    if schema.labels != "number":
        y = np.array([0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(estimator).fit(X, y if y.ndim == 1 or y.shape[1] > 1 else y[:, 0]).predict(X)
