"""``traceless new``: make a store for the table and the model that a file declares."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from traceless.cli import declaration
from traceless.cli.command import command
from traceless.cli.inputs import format_option, path_option, with_read
from traceless.cli.output import Result, fields

if TYPE_CHECKING:
    from traceless.sources import Schema

MOST_PROBLEMS = 20  # that --check lists


@command(
    "traceless new shop model.toml",
    "traceless new shop model.toml --check january.csv",
    "traceless new clinic model.toml --organisation 'St. Mary'",
    "traceless new branch model.toml --secret shop/secret",
)
@click.argument("folder", metavar="STORE", type=click.Path())
@click.argument("model", type=click.Path())
@click.option("--organisation", metavar="NAME", help="Who keeps the store, for its receipts.")
@path_option(
    "--secret", help="Share the secret of another store, to merge with it row by row: OTHER/secret."
)
@path_option(
    "--check",
    multiple=True,
    help="Make nothing; try this file against the declarations, and list what does not fit.",
)
@format_option
@click.option("--shared", is_flag=True, help="Let the group of the folder read and change it.")
def new(
    folder: str,
    model: str,
    *,
    organisation: str | None,
    secret: str | None,
    check: tuple[str, ...],
    format_: str | None,
    shared: bool,
) -> Result:
    """Make a store: MODEL is a file that declares its table and its model.

    Nothing is computed from rows, so that nothing of them stays. "traceless suggest FILE" proposes
    such a file, and --check FILE tests it.
    """
    schema, estimator = declaration.declared(model)
    _try(estimator, schema)
    if check:
        return _checked(check, with_read(schema), format_)
    from traceless.files import saving
    from traceless.store import Store
    from traceless.store.regular import read_outside

    theirs = None if secret is None else read_outside(secret, 1000, private=True)
    about = {"table": schema.facts()} | ({"organisation": organisation} if organisation else {})
    period = None if schema.suppress == "none" else schema.suppress
    Store.new(folder, estimator, about=about, secret=theirs, shared=shared, suppress=period)
    declared = declaration.described(saving.described(estimator))
    kind = ", map ".join(declared[name] for name in ("kind", "map") if name in declared)
    facts = {"store": folder, "model": kind, "features": len(schema.table.feature_names())}
    facts |= {"target": ", ".join(schema.target) or "none"}
    data = {"store": folder, "options": declared, "table": schema.facts()}
    return Result(data, [fields(facts), f"Next: traceless learn {folder} FILES"])


def _checked(files: Sequence[str], schema: Schema, format_: str | None) -> Result:
    """Rows of files that do not fit the declarations; the exit code is 1 if there are any."""
    from traceless.sources import Files
    from traceless.sources.checking import check_table

    found, names = check_table(Files(files, schema, format_), MOST_PROBLEMS), schema.table.names
    n_features = len(schema.table.feature_names())
    facts = {"rows": found.rows, "columns": len(names), "features": n_features}
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


def _try(estimator: Any, schema: Schema) -> None:
    """Let a copy learn two made-up rows, so that a bad parameter is found now."""
    import numpy as np
    from sklearn.base import clone

    columns = schema.table.columns or ()
    X = np.array([[getattr(column, "shift", 0.0) for column in columns]] * 2)
    X[1] += [column.divisor if column.width > 1 or column.required else 0.0 for column in columns]
    y = np.array([0, 1]) if len(schema.target) < 2 else np.zeros((2, len(schema.target)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(estimator).fit(X, y).predict(X)
