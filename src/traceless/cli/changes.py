"""Commands that change a store: each is one change, all or nothing, with a receipt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from traceless.cli import inputs
from traceless.cli.chosen import Chosen, chosen_rows, where_option
from traceless.cli.command import command
from traceless.cli.output import Result
from traceless.cli.trials import How, trial_options
from traceless.exceptions import AlreadyLearnedError

if TYPE_CHECKING:
    from traceless.sources import Table
    from traceless.store import Store


@command(
    "traceless learn shop january.csv february.csv",
    "traceless learn shop 'archive/*.parquet' --key 2026-import",
    "traceless learn shop march.csv --dry-run --score test.csv",
    "zcat big.csv.gz | traceless learn shop -",
)
@inputs.store_argument
@inputs.files_argument
@click.option("--again", is_flag=True, help="Learn the rows of the last change once more.")
@trial_options()
@inputs.change_options
def learn(
    store: Store, files: Sequence[str], format_: str | None, key: str | None, again: bool, how: How
) -> Result:
    """Learn the rows of files.

    FILES are files, folders, patterns, or - for standard input. All of them together are one
    change. Rows that are exactly those of the last change are
    refused, as a retry would count them twice; --again, or another --key, lets them in.
    "traceless undo" takes the last learning back.
    """
    once = not again and key is None

    def change(dry_run: bool) -> Any:
        rows = inputs.rows_for(store, files, format_, "learning", ids="needed")
        return store.learn(rows, key=key, once=once, dry_run=dry_run)

    try:
        return how.made(change)
    except AlreadyLearnedError as error:
        raise AlreadyLearnedError(f"{error} (On the command line: --again.)") from error


@command(
    "traceless forget shop requests.csv",
    "traceless forget clinic --from all.csv --where patient=17,23",
    "traceless forget clinic --from 'visits/*.csv' --where patient=@letters.txt --dry-run",
    "traceless forget shop requests.csv --key ticket-4711 --batch",
    "traceless forget shop --slice branch.traceless",
)
@inputs.store_argument
@click.option("--slice", "slice_", metavar="OTHER", help="All that was merged from this, instead.")
@click.option("--name", help="Name under which the slice was merged.")
@chosen_rows
@click.option("--whole", is_flag=True, help="Refuse if the store holds more rows of these ids.")
@click.option("--batch", is_flag=True, help="Wait in a queue until enough rows are together.")
@trial_options(asks=True)
@inputs.change_options
def forget(
    store: Store,
    chosen: Chosen,
    key: str | None,
    batch: bool,
    whole: bool,
    slice_: str | None,
    name: str | None,
    how: How,
) -> Result:
    """Forget rows, exactly, with a receipt.

    FILES have the rows as they were learned. Or --from FILE is a table that has the rows of some
    ids among others, and --where names the ids: then all that the store holds of these ids must be
    there. Rows that were never learned, or are forgotten already, are refused, and nothing is
    changed. Whoever has the model before and after few rows are forgotten can reconstruct them:
    --batch keeps the request until it is safe (see "traceless flush").
    """
    if bool(chosen.files) == (slice_ is not None):
        raise click.UsageError(
            "Say what to forget: FILES of rows, or --slice OTHER, or --from FILE and --where "
            "COLUMN=IDS."
        )
    if slice_ is not None:
        return how.made(lambda dry: store.forget(slice_, key=key, name=name, dry_run=dry))
    whole = whole or chosen.where is not None

    def change(dry_run: bool) -> Any:
        rows = chosen.rows("forgetting")
        return store.forget(rows, whole=whole, key=key, batch=batch, dry_run=dry_run)

    return chosen.made(lambda: how.made(change))


@command("traceless undo shop february.csv", "traceless undo shop february.csv --dry-run")
@inputs.store_argument
@inputs.files_argument
@trial_options(asks=True)
@inputs.change_options
def undo(
    store: Store, files: Sequence[str], format_: str | None, key: str | None, how: How
) -> Result:
    """Take the last learning back, given its files.

    FILES have exactly the rows that the last change of the kind "learn" has learned, in any order.
    Others are refused, and nothing is changed.
    """

    def change(dry_run: bool) -> Any:
        rows = inputs.rows_for(store, files, format_, "forgetting", ids="needed")
        return store.undo(rows, key=key, dry_run=dry_run)

    return how.made(change)


@command(
    "traceless relabel shop wrong.csv --to no",
    "traceless relabel shop wrong.csv --new-column corrected",
    "traceless relabel clinic --from all.csv --where patient=17 --to well",
)
@inputs.store_argument
@chosen_rows
@click.option("--to", metavar="LABEL", help="The new label of all these rows.")
@click.option("--new-column", metavar="NAME", help="Column of the new labels or targets.")
@trial_options(asks=True)
@inputs.change_options
def relabel(
    store: Store,
    chosen: Chosen,
    to: str | None,
    new_column: str | None,
    key: str | None,
    how: How,
) -> Result:
    """Give learned rows another label, in one change.

    The target column has the old label. The rows are all those of FILES; or those of some ids in a
    table of yours, with --from and --where. They keep their ids.
    """
    if not chosen.files:
        raise click.UsageError("Say which rows: FILES, or --from FILE and --where COLUMN=IDS.")
    if (to is None) == (new_column is None):
        raise click.UsageError("Say what the new labels are: --to LABEL, or --new-column NAME.")
    if len(chosen.table.schema.target) != 1:
        raise ValueError(
            "Rows with several targets, or none, have no label to change: forget and learn them."
        )
    whole = chosen.where is not None

    def change(dry_run: bool) -> Any:
        X, old, weight, ids, new = _relabelled(chosen.table, to, new_column)
        return store.relabel(X, old, new, weight, ids=ids, whole=whole, key=key, dry_run=dry_run)

    return chosen.made(lambda: how.made(change))


@command(
    "traceless correct clinic --from old.csv --to new.csv --where patient=17",
    "traceless correct shop --from wrong.csv --to right.csv",
)
@inputs.store_argument
@click.option(
    "--from",
    "old",
    multiple=True,
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="The rows as they were learned.",
)
@click.option(
    "--to",
    "new",
    multiple=True,
    required=True,
    type=click.Path(),
    metavar="FILE",
    help="The rows as they should be.",
)
@where_option
@inputs.format_option
@trial_options(asks=True)
@inputs.change_options
def correct(
    store: Store,
    old: Sequence[str],
    new: Sequence[str],
    where: str | None,
    format_: str | None,
    key: str | None,
    how: How,
) -> Result:
    """Put rows in the place of others, in one change.

    The rows of one table are forgotten, and those of another are learned; they need not be as
    many. With --where only the rows of these ids are meant, in both, and all that the store holds
    of them must be in the first.
    """
    right = Chosen(store, new, format_, where)
    wrong = Chosen(store, old, format_, where)

    def change(dry_run: bool) -> Any:
        added = _joined(right.rows("reading", ids="needed"))
        removed = _joined(wrong.rows("reading"))
        whole = where is not None
        return store.correct(removed, added, whole=whole, key=key, dry_run=dry_run)

    return wrong.made(lambda: how.made(change))


@command(
    "traceless merge shop branch-store",
    "traceless merge shop branch.traceless --name berlin-2026",
)
@inputs.store_argument
@click.argument("other", type=click.Path())
@click.option("--name", help="Name of the slice, by which a second merge of it is refused.")
@click.option("--again", is_flag=True, help="Merge it although it was merged before.")
@trial_options()
@inputs.change_options
def merge(
    store: Store, other: str, name: str | None, again: bool, key: str | None, how: How
) -> Result:
    """Take in another model or store.

    OTHER is a store, or the file of a model. It is not changed.
    """
    return how.made(
        lambda dry_run: store.merge(other, name=name, key=key, again=again, dry_run=dry_run)
    )


@command("traceless seal shop")
@inputs.store_argument
@trial_options()
@inputs.change_options
def seal(store: Store, key: str | None, how: How) -> Result:
    """Make the exact model of all rows, now.

    With --solver woodbury the store keeps a model that is exact up to rounding.
    """
    return how.made(lambda dry_run: store.seal(key=key, dry_run=dry_run))


@command("traceless destroy shop secret --yes", "traceless destroy shop model --yes")
@inputs.store_argument
@click.argument("what", type=click.Choice(["secret", "model"]))
@trial_options(scores=False, asks=True)
@inputs.change_options
def destroy(store: Store, what: str, key: str | None, how: How) -> Result:
    """Destroy the secret, or the model; the ledger stays.

    Row digests need the secret. Without it nobody can test whether a row is among those learned
    (only a guess of all of them at once, by the digest of the model), and single rows can no longer
    be forgotten. This cannot be undone.
    """
    return how.made(
        lambda dry_run: store.destroy(what, key=key, dry_run=dry_run),
        f"Destroy the {what} of {store.path} for ever?",
    )


def _joined(batches: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Batches (X, y), (X, y, weight) or (X, y, weight, ids) as X, y, weight and ids of all rows."""
    import numpy as np

    X, y, weights, ids = zip(*((*batch, None, None)[:4] for batch in batches), strict=True)
    weight = None if weights[0] is None else np.concatenate(weights)
    each = [one for some, rows in zip(ids, X, strict=True) for one in some or [None] * len(rows)]
    return np.concatenate(X), np.concatenate(y), weight, each


def _relabelled(table: Table, to: str | None, column: str | None) -> tuple[Any, ...]:
    """X, old labels, weights, ids and new labels of all rows."""
    import numpy as np
    import pyarrow as pa

    from traceless.sources.cells import Cells

    schema, named = table.schema, [name for name in (table.schema.id,) if name]
    batches = list(table.batches([*schema.names, *([column] if column else [])], maybe=named))
    new = []
    for batch in batches:
        same = Cells(pa.array([to] * batch.n_rows), "--to", "The new label", 0, typed=False)
        new.append(schema.target_of(batch.cells[column] if column else same))
    return *_joined((b.X, b.y, b.weight, b.ids) for b in batches), np.concatenate(new)
