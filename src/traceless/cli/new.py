"""``traceless new``: declare a table and a model, and make a store for them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from traceless.cli.command import command
from traceless.cli.inputs import path_option, split_names
from traceless.cli.model_options import (
    REGRESSORS,
    UNLABELLED,
    build,
    described,
    model_options,
    value_of,
)
from traceless.cli.output import Result, fields
from traceless.cli.table_options import declared_schema, number, pair, table_options, whole

if TYPE_CHECKING:
    from traceless.sources import Schema

MOST_PROBLEMS = 20  # that --check lists


@command(
    "traceless new shop --target bought --columns age,income",
    "traceless new shop --target bought --like customers.csv --drop name,email",
    "traceless new shop --target bought --columns age --scale age=40:12 "
    "--category color=red,green --hash city=64",
    "traceless new clinic --target ill --columns age,weight --missing age=40 --date visited "
    "--id patient --delimiter ';' --decimal ,",
    "traceless new shop --target bought --columns age,income --check january.csv",
    "traceless new digits --target digit --like digits.parquet --map fourier --components 300",
    "traceless new prices --target price --columns rooms,area --regression --rho 0.1",
    "traceless new sensors --columns heat,noise --model pathoneclass --set nu=0.05",
)
@click.argument("store", type=click.Path())
@table_options
@click.option("--labels", type=click.Choice(["text", "int"]), help="Type of labels [text].")
@click.option("--classes", metavar="A,B", help="The labels that may occur; by default any.")
@click.option("--regression", is_flag=True, help="Predict numbers (--model lssvr).")
@model_options
@click.option("--organisation", metavar="NAME", help="Who keeps the store, for its receipts.")
@path_option(
    "--secret", help="Share the secret of another store, to merge with it row by row: OTHER/secret."
)
@path_option(
    "--check",
    multiple=True,
    help="Make nothing; try this file against the declarations, and list what does not fit.",
)
@click.option(
    "--suppress",
    default="24 months",
    show_default=True,
    metavar="PERIOD",
    help="How long forgotten ids are not learned again: as 24 months, never (to end), or none.",
)
@click.option("--shared", is_flag=True, help="Let the group of the folder read and change it.")
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
    check: tuple[str, ...],
    suppress: str,
    shared: bool,
    **options: Any,
) -> Result:
    """Make a store: declare its table and its model.

    Nothing is computed from rows, so that nothing of them stays: --like reads the names of columns
    only, categories and scales are declared. "traceless suggest FILE" proposes a declaration, and
    --check FILE tests it.
    """
    if regression and model not in (None, *REGRESSORS):
        raise click.UsageError(f"--regression is --model lssvr, and --model {model} is another.")
    model = model or ("lssvr" if regression else "lssvc")
    if model in REGRESSORS and (labels or options["classes"]):
        raise click.UsageError("--labels and --classes are for classes, and this is a regression.")
    if options["target"] is None and model not in UNLABELLED:
        raise click.UsageError("Say which column to predict: --target NAME.")
    if options["target"] is None and (labels or options["classes"]):
        raise click.UsageError("--labels and --classes are of --target, and there is none.")
    labels = "number" if model in REGRESSORS else labels or "text"
    labels = "none" if options["target"] is None else labels
    format_ = options["format_"]
    schema = declared_schema(options, labels)
    chosen = {name: options[name] for name in ("rho", "C", "components", "gamma")}
    chosen |= {"class_weight": _weights(class_weight, labels)}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    chosen |= {name: value_of(value) for name, value in [pair(s, "--set") for s in options["set_"]]}
    estimator = build(model, map_, chosen)
    _try(estimator, schema)
    if check:
        return _checked(check, schema, format_)
    from traceless.files import saving
    from traceless.store import Store
    from traceless.store.regular import read_outside

    period = None if suppress == "none" else suppress
    theirs = None if secret is None else read_outside(secret, 1000, private=True)
    about = {"table": schema.facts()} | ({"organisation": organisation} if organisation else {})
    Store.new(store, estimator, about=about, secret=theirs, shared=shared, suppress=period)
    declared = described(saving.described(estimator))
    kind = ", map ".join(declared[name] for name in ("model", "map") if name in declared)
    facts = {"store": store, "model": kind, "features": schema.width}
    facts |= {"target": ", ".join(schema.target) or "none"}
    data = {"store": store, "options": declared, "table": schema.facts()}
    return Result(data, [fields(facts), f"Next: traceless learn {store} FILES"])


def _checked(files: Sequence[str], schema: Schema, format_: str | None) -> Result:
    """Rows of files that do not fit the declarations; the exit code is 1 if there are any."""
    from traceless.sources import Table
    from traceless.sources.checking import check_table

    found = check_table(Table(files, schema, format_), MOST_PROBLEMS)
    facts = {"rows": found.rows, "columns": len(schema.columns), "features": schema.width}
    labels = {f"label {label}": count for label, count in found.labels.items()}
    few = len(found.problems) < MOST_PROBLEMS
    said = "All rows fit. Nothing was made: leave out --check to make the store."
    if found.problems:
        end = "" if few else " Reading stopped there: there may be more."
        said = f"{len(found.problems)} problems were found.{end} Nothing was made."
    return Result(
        {**facts, "labels": found.labels, "problems": found.problems, "all_read": few},
        [fields({**facts, **({} if len(labels) > 20 else labels)}), *found.problems, said],
        ok=not found.problems,
    )


def _weights(text: str | None, labels: str) -> Any:
    """Class weights: a name, or numbers by label."""
    if text is None or "=" not in text:
        return text
    pairs = [pair(one, "--class-weight") for one in split_names(text)]
    return {whole(n, text) if labels == "int" else n: number(v, text) for n, v in pairs}


def _try(estimator: Any, schema: Schema) -> None:
    """Let a copy learn two made-up rows, so that a bad parameter is found now."""
    import numpy as np
    from sklearn.base import clone

    X = np.array([[0.0], [1.0]]).repeat(schema.width, axis=1)
    y = np.array([0, 1]) if len(schema.target) < 2 else np.zeros((2, len(schema.target)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(estimator).fit(X, y).predict(X)
