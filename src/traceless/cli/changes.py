"""Commands that change a store: each is one change, all or nothing, with a receipt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from traceless.cli import inputs
from traceless.cli.command import command
from traceless.cli.output import Result, ask, fields
from traceless.exceptions import AlreadyLearnedError

if TYPE_CHECKING:
    from traceless.sources import Table
    from traceless.store import Queued, Receipt, Store


@command(
    "traceless learn shop january.csv february.csv",
    "traceless learn shop 'archive/*.parquet' --key 2026-import",
    "zcat big.csv.gz | traceless learn shop -",
)
@inputs.store_argument
@inputs.files_argument
@click.option("--again", is_flag=True, help="Learn the rows of the last change once more.")
@inputs.change_options
def learn(
    store: Store, files: Sequence[str], format_: str | None, key: str | None, again: bool
) -> Result:
    """Learn the rows of files.

    FILES are files, folders, patterns, or - for standard input. All of them together are one
    change. Rows that are exactly those of the last change are
    refused, as a retry would count them twice; --again, or another --key, lets them in.
    """
    rows = inputs.rows_for(store, files, format_, "learning", ids="needed")
    once = not again and key is None
    try:
        return _receipt(store.learn(rows, key=key, once=once))
    except AlreadyLearnedError as error:
        raise AlreadyLearnedError(f"{error} (On the command line: --again.)") from error


@command(
    "traceless forget shop requests.csv",
    "traceless forget shop requests.csv --key ticket-4711 --batch",
    "traceless forget shop --slice branch.traceless",
)
@inputs.store_argument
@click.argument("files", nargs=-1, type=click.Path())
@inputs.format_option
@click.option("--batch", is_flag=True, help="Wait in a queue until enough rows are together.")
@click.option("--slice", "slice_", metavar="OTHER", help="All that was merged from this, instead.")
@click.option("--name", help="Name under which the slice was merged.")
@inputs.change_options
def forget(
    store: Store,
    files: Sequence[str],
    format_: str | None,
    key: str | None,
    batch: bool,
    slice_: str | None,
    name: str | None,
) -> Result:
    """Forget rows, exactly, with a receipt.

    FILES have the rows as they were learned. Rows that were never learned, or are forgotten
    already, are refused, and nothing is changed. Whoever has the model before and after few rows
    are forgotten can reconstruct them: --batch keeps the request until it is safe (see "traceless
    flush").
    """
    if bool(files) == (slice_ is not None):
        raise click.UsageError("Say what to forget: FILES of rows, or --slice OTHER.")
    if slice_ is not None:
        return _receipt(store.forget(slice_, key=key, name=name))
    rows = inputs.rows_for(store, files, format_, "forgetting")
    return _receipt(store.forget(rows, key=key, batch=batch))


@command("traceless flush shop", "traceless flush shop --force")
@inputs.store_argument
@click.option("--force", is_flag=True, help="Also if so few rows could be reconstructed.")
@inputs.wait_option
def flush(store: Store, force: bool) -> Result:
    """Apply the forgetting that waits in the queue, if it is safe."""
    results = [_receipt(receipt) for receipt in store.flush(force=force)]
    waiting = sum(request.rows for request in store.pending())
    shown = [block for result in results for block in result.shown]
    if waiting and not results:
        shown.append(f"{waiting} rows wait for others; --force forgets them now.")
    receipts = [result.data["receipt"] for result in results]
    return Result({"receipts": receipts, "waiting_rows": waiting}, shown or ["Nothing waits."])


@command(
    "traceless relabel shop wrong.csv --to no",
    "traceless relabel shop wrong.csv --new-column corrected",
)
@inputs.store_argument
@inputs.table_argument
@click.option("--to", metavar="LABEL", help="The new label of all these rows.")
@click.option("--new-column", metavar="NAME", help="Column of the new labels or targets.")
@inputs.change_options
def relabel(
    store: Store, table: Table, to: str | None, new_column: str | None, key: str | None
) -> Result:
    """Give learned rows another label, in one change.

    The target column of FILES has the old label.
    """
    if (to is None) == (new_column is None):
        raise click.UsageError("Say what the new labels are: --to LABEL, or --new-column NAME.")
    if len(table.schema.target) > 1:
        raise ValueError("Rows with several targets cannot be relabelled: forget and learn them.")
    X, old, new, weight = _relabelled(table, to, new_column)
    return _receipt(store.relabel(X, old, new, weight, key=key))


@command(
    "traceless merge shop branch-store",
    "traceless merge shop branch.traceless --name berlin-2026",
)
@inputs.store_argument
@click.argument("other", type=click.Path())
@click.option("--name", help="Name of the slice, by which a second merge of it is refused.")
@click.option("--again", is_flag=True, help="Merge it although it was merged before.")
@inputs.change_options
def merge(store: Store, other: str, name: str | None, again: bool, key: str | None) -> Result:
    """Take in another model or store.

    OTHER is a store, or the file of a model. It is not changed.
    """
    return _receipt(store.merge(other, name=name, key=key, again=again))


@command("traceless seal shop")
@inputs.store_argument
@inputs.change_options
def seal(store: Store, key: str | None) -> Result:
    """Make the exact model of all rows, now.

    With --solver woodbury the store keeps a model that is exact up to rounding.
    """
    return _receipt(store.seal(key=key))


@command("traceless destroy shop secret --yes", "traceless destroy shop model --yes")
@inputs.store_argument
@click.argument("what", type=click.Choice(["secret", "model"]))
@click.option("--yes", is_flag=True, help="Do not ask.")
@inputs.change_options
def destroy(store: Store, what: str, yes: bool, key: str | None) -> Result:
    """Destroy the secret, or the model; the ledger stays.

    Row digests need the secret. Without it nobody can test whether a row is among those learned
    (only a guess of all of them at once, by the digest of the model), and single rows can no longer
    be forgotten. This cannot be undone.
    """
    if not yes:
        ask(f"Destroy the {what} of {store.path} for ever?", "--yes")
    return _receipt(store.destroy(what, key=key))


def _relabelled(table: Table, to: str | None, column: str | None) -> tuple[Any, ...]:
    """X, old labels, new labels and weights of all rows."""
    import numpy as np
    import pyarrow as pa

    from traceless.sources.cells import Cells

    schema = table.schema
    batches: list[tuple[Any, ...]] = []
    for batch in table.batches([*schema.names, *([column] if column else [])]):
        same = Cells(pa.array([to] * batch.n_rows), "--to", "The new label", 0, typed=False)
        new = schema.target_of(batch.cells[column] if column else same)
        batches.append((batch.X, batch.y, new, np.ones(0) if not schema.weight else batch.weight))
    X, old, new, weight = map(np.concatenate, zip(*batches, strict=True))
    return X, old, new, weight if schema.weight else None


def _receipt(answer: Receipt | Queued) -> Result:
    from traceless.store import Queued

    if isinstance(answer, Queued):
        said = f"{answer.rows} rows wait in the queue; see traceless flush."
        return Result({"queued": asdict(answer)}, [said])
    shown = {
        "change": f"{answer.sequence} ({answer.kind})",
        "rows": answer.rows,
        "rows held": answer.held,
        "digest": answer.digest_after,
        "receipt": answer.hash,
    }
    again = ["This request was answered before; nothing was changed again."]
    return Result(
        {"receipt": {**answer.as_dict(), "replayed": answer.replayed}},
        [fields(shown), *(again if answer.replayed else [])],
    )
