"""Commands that change a store: each is one change, all or nothing, with a receipt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from traceless.cli.answer import Answer, Facts
from traceless.cli.command import command
from traceless.cli.meter import watched
from traceless.cli.opened import open_store, table_for
from traceless.cli.options import (
    files_argument,
    format_option,
    key_option,
    store_argument,
    wait_option,
)
from traceless.exceptions import AlreadyLearnedError

if TYPE_CHECKING:
    from traceless.sources import Table
    from traceless.store import Queued, Receipt


@command(
    "traceless learn shop january.csv february.csv",
    "traceless learn shop 'archive/*.parquet' --key 2026-import",
    "zcat big.csv.gz | traceless learn shop -",
)
@store_argument
@files_argument
@format_option
@key_option
@click.option("--again", is_flag=True, help="Learn the rows of the last change once more.")
@wait_option
def learn(
    store: str, files: Sequence[str], format_: str | None, key: str | None, again: bool, wait: float
) -> Answer:
    """Learn the rows of FILES: files, folders, patterns, or - for standard input.

    All files together are one change. Rows that are exactly those of the last change are
    refused, as a retry would count them twice; --again, or another --key, lets them in.
    """
    home = open_store(store, wait)
    table = table_for(home, files, format_)
    rows = watched(table, table.rows(), "learning")
    try:
        return _receipt(home.learn(rows, key=key, once=not again and key is None))
    except AlreadyLearnedError as error:
        raise AlreadyLearnedError(f"{error} (On the command line: --again.)") from error


@command(
    "traceless forget shop requests.csv",
    "traceless forget shop requests.csv --key ticket-4711 --batch",
    "traceless forget shop --slice branch.traceless",
)
@store_argument
@click.argument("files", nargs=-1, type=click.Path())
@format_option
@key_option
@click.option("--batch", is_flag=True, help="Wait in a queue until enough rows are together.")
@click.option("--slice", "slice_", metavar="OTHER", help="All that was merged from this, instead.")
@click.option("--name", help="Under which the slice was merged.")
@wait_option
def forget(
    store: str,
    files: Sequence[str],
    format_: str | None,
    key: str | None,
    batch: bool,
    slice_: str | None,
    name: str | None,
    wait: float,
) -> Answer:
    """Forget the rows of FILES, exactly; give them as they were learned.

    Rows that were never learned, or are forgotten already, are refused, and nothing is changed.
    Whoever has the model before and after few rows are forgotten can reconstruct them: --batch
    keeps the request until it is safe (see "traceless flush").
    """
    if bool(files) == (slice_ is not None):
        raise click.UsageError("Say what to forget: FILES of rows, or --slice OTHER.")
    home = open_store(store, wait)
    if slice_ is not None:
        return _answer(home.forget(slice_, key=key, name=name))
    table = table_for(home, files, format_)
    rows = watched(table, table.rows(), "forgetting")
    return _answer(home.forget(rows, key=key, batch=batch))


@command("traceless flush shop", "traceless flush shop --force")
@store_argument
@click.option("--force", is_flag=True, help="Also if so few rows could be reconstructed.")
@wait_option
def flush(store: str, force: bool, wait: float) -> Answer:
    """Apply the forgetting that waits in the queue, if it is safe."""
    home = open_store(store, wait)
    receipts = home.flush(force=force)
    waiting = sum(request.rows for request in home.pending())
    data = {"receipts": [_plain(receipt) for receipt in receipts], "waiting_rows": waiting}
    shown = [block for receipt in receipts for block in _receipt(receipt).shown]
    if not receipts:
        shown.append(
            f"{waiting} rows wait for others; --force forgets them now."
            if waiting
            else "Nothing waits."
        )
    return Answer(data, shown)


@command(
    "traceless relabel shop wrong.csv --to no",
    "traceless relabel shop wrong.csv --new-column corrected",
)
@store_argument
@files_argument
@click.option("--to", metavar="LABEL", help="The new label of all these rows.")
@click.option("--new-column", metavar="NAME", help="Column of the new labels or targets.")
@format_option
@key_option
@wait_option
def relabel(
    store: str,
    files: Sequence[str],
    to: str | None,
    new_column: str | None,
    format_: str | None,
    key: str | None,
    wait: float,
) -> Answer:
    """Give the rows of FILES another label, in one change; the target column has the old one."""
    if (to is None) == (new_column is None):
        raise click.UsageError("Say what the new labels are: --to LABEL, or --new-column NAME.")
    home = open_store(store, wait)
    table = table_for(home, files, format_)
    if len(table.schema.target) > 1:
        raise ValueError("Rows with several targets cannot be relabelled: forget and learn them.")
    X, old, new, weight = _relabelled(table, to, new_column)
    return _receipt(home.relabel(X, old, new, weight, key=key))


@command(
    "traceless merge shop branch-store",
    "traceless merge shop branch.traceless --name berlin-2026",
)
@store_argument
@click.argument("other", type=click.Path())
@click.option("--name", help="Name of the slice, by which a second merge of it is refused.")
@click.option("--again", is_flag=True, help="Merge it although it was merged before.")
@key_option
@wait_option
def merge(
    store: str, other: str, name: str | None, again: bool, key: str | None, wait: float
) -> Answer:
    """Take in what OTHER has learned: a store, or a file of a model. OTHER is not changed."""
    home = open_store(store, wait)
    return _receipt(home.merge(other, name=name, key=key, again=again))


@command("traceless seal shop")
@store_argument
@key_option
@wait_option
def seal(store: str, key: str | None, wait: float) -> Answer:
    """Make the exact model of all rows now, where --solver woodbury keeps an approximate one."""
    return _receipt(open_store(store, wait).seal(key=key))


@command("traceless destroy shop secret --yes", "traceless destroy shop model --yes")
@store_argument
@click.argument("what", type=click.Choice(["secret", "model"]))
@click.option("--yes", is_flag=True, help="Do not ask.")
@key_option
@wait_option
def destroy(store: str, what: str, yes: bool, key: str | None, wait: float) -> Answer:
    """Destroy the secret that row digests need, or the model. The ledger stays.

    Without the secret nobody can test whether a row is among those learned (only a guess of all
    of them at once, by the digest of the model), and single rows can no longer be forgotten. This
    cannot be undone.
    """
    home = open_store(store, wait)
    if not yes:
        click.confirm(f"Destroy the {what} of {store} for ever?", abort=True, err=True)
    return _receipt(home.destroy(what, key=key))


def _relabelled(table: Table, to: str | None, column: str | None) -> tuple[Any, ...]:
    """X, old labels, new labels and weights of all rows."""
    import numpy as np
    import pyarrow as pa

    from traceless.sources.cells import Cells

    schema = table.schema
    parts: list[tuple[Any, ...]] = []
    for batch in table.batches([*schema.names, *([column] if column else [])]):
        same = Cells(pa.array([to] * batch.n_rows), "--to", "The new label", 1, typed=False)
        new = schema.target_of(batch.cells[column] if column else same)
        parts.append((batch.X, batch.y, new, np.ones(0) if not schema.weight else batch.weight))
    X, old, new, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
    return X, old, new, weight if schema.weight else None


def _plain(receipt: Receipt) -> dict[str, Any]:
    return {**receipt.as_dict(), "replayed": receipt.replayed}


def _receipt(receipt: Receipt) -> Answer:
    said = {
        "change": f"{receipt.sequence} ({receipt.kind})",
        "rows": receipt.rows,
        "rows held": receipt.held,
        "digest": receipt.digest_after,
        "receipt": receipt.hash,
    }
    blocks: list[Any] = [Facts(said)]
    if receipt.replayed:
        blocks.append("This request was answered before; nothing was changed again.")
    return Answer({"receipt": _plain(receipt)}, blocks)


def _answer(given: Receipt | Queued) -> Answer:
    from traceless.store import Queued

    if not isinstance(given, Queued):
        return _receipt(given)
    said = f"{given.rows} rows wait in the queue; see traceless flush."
    return Answer({"queued": asdict(given)}, [said])
