"""``traceless new``: a table and a model are declared, and a store is made for them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceless.cli.answer import Answer, Facts
from traceless.cli.command import command
from traceless.cli.declared import declared, listed, named, number, whole
from traceless.cli.options import format_option, store_argument

if TYPE_CHECKING:
    from traceless.sources import Schema

TABLE = (
    *("target", "columns", "like", "drop", "category", "hashed", "scale", "weight", "classes"),
    "format_",
)
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
@click.option(
    "--weighting",
    type=click.Choice(["shared", "one_vs_rest"]),
    help="Whether all problems share the weights of classes [shared].",
)
@click.option(
    "--solver",
    type=click.Choice(["cholesky", "woodbury"]),
    help="Solve when asked, or keep the model ready after each change [cholesky].",
)
@click.option("--components", type=click.IntRange(min=1), help="Features of a map [100].")
@click.option("--gamma", type=float, help="Of fourier, landmarks, polynomial, pathsvc.")
@click.option("--degree", type=click.IntRange(min=1), help="Of polynomial, pathsvc.")
@click.option("--coef0", type=float, help="Of polynomial, pathsvc.")
@click.option(
    "--activation",
    type=click.Choice(["sigmoid", "tanh", "relu", "sine"]),
    help="Of a layer [sigmoid].",
)
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
    regression: bool,
    labels: str | None,
    model: str | None,
    map_: str | None,
    class_weight: str | None,
    secret: str | None,
    **options: Any,
) -> Answer:
    """Make a store: declare the table and the model.

    Nothing of the declaration is taken from rows, so nothing of rows stays in it: --like reads
    the names of columns only, categories are listed, scales are given.
    """
    from traceless.cli.models import built
    from traceless.store import Store

    model = _model(model, regression)
    if model == "lssvr" and (labels or options["classes"]):
        raise click.UsageError("--labels and --classes are for classes, and this is a regression.")
    labels = "number" if model == "lssvr" else labels or "text"
    schema = declared(labels=labels, **{name: options.pop(name) for name in TABLE})
    weights = _weights(class_weight, labels)
    estimator = built(model, map_, {**options, "class_weight": weights})
    _try(estimator, schema)
    shared = None if secret is None else Path(secret).read_bytes()
    Store.new(store, estimator, about={"table": schema.facts()}, secret=shared)
    said = {"store": store, "model": repr(estimator)}
    facts = Facts({**said, "features": schema.width, "target": ", ".join(schema.target)})
    return Answer(
        {**said, "table": schema.facts()}, [facts, f"Next: traceless learn {store} FILES"]
    )


def _model(model: str | None, regression: bool) -> str:
    if regression and model not in (None, "lssvr"):
        raise click.UsageError(f"--regression is --model lssvr, and --model {model} is another.")
    return "lssvr" if regression else model or "lssvc"


def _weights(text: str | None, labels: str) -> Any:
    """A name, or numbers by label."""
    if text is None or "=" not in text:
        return text
    pairs = [named(part, "--class-weight") for part in listed(text)]
    return {whole(n, text) if labels == "int" else n: number(v, text) for n, v in pairs}


def _try(estimator: Any, schema: Schema) -> None:
    """Let a copy learn two made-up rows, so that a bad parameter is found now."""
    import numpy as np
    from sklearn.base import clone

    X = np.array([[0.0], [1.0]]).repeat(schema.width, axis=1)
    y = np.array([0, 1]) if len(schema.target) == 1 else np.zeros((2, len(schema.target)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(estimator).fit(X, y).predict(X)
