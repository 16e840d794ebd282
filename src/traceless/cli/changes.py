"""Commands that change a store: each is one change, all or nothing, with a receipt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from traceless.cli.chosen import Chosen, chosen_rows, files_argument, where_option
from traceless.cli.command import command
from traceless.cli.inputs import format_option, path_option, rows_option, store_argument
from traceless.cli.output import Outputs, Result
from traceless.cli.trials import How, change_options

if TYPE_CHECKING:
    from traceless.sources import Files
    from traceless.store import Receipt, Store


@command(
    "traceless learn shop january.csv february.csv",
    "traceless learn shop 'archive/*.parquet' --request 2026-import",
    "traceless learn shop march.csv --dry-run --score test.csv",
    "zcat big.csv.gz | traceless learn shop -",
)
@store_argument
@files_argument
@click.option(
    "--again", is_flag=True, help="Learn rows once more, and those of ids that are suppressed."
)
@change_options()
def learn(store: Store, chosen: Chosen, again: bool, how: How) -> Result:
    """Learn the rows of files.

    FILES are files, folders, patterns, or - for standard input; all of them are learned in one
    change. Refused are rows that an earlier change learned, exactly these, or that are held under
    the same id, since they would count twice; and rows of ids on the suppression list. --again
    allows both. "traceless undo" undoes the last learn.
    """

    def change(**options: Any) -> Receipt:
        rows = chosen.rows("learning", "needed")
        return store.learn(rows, once=not again, again=again, **options)

    return how.made(change)


@command(
    "traceless forget shop requests.csv",
    "traceless forget clinic --from all.csv --where patient=17,23",
    "traceless forget clinic --from 'visits/*.csv' --where patient=@letters.txt --dry-run",
    "traceless forget shop requests.csv --request ticket-4711 --batch",
    "traceless forget shop --slice branch.traceless",
)
@store_argument
@click.option("--slice", "slice_", metavar="OTHER", help="All that was merged from this, instead.")
@click.option("--name", help="Name under which the slice was merged.")
@chosen_rows
@click.option("--whole", is_flag=True, help="Refuse if the store holds more rows of these ids.")
@click.option("--batch", is_flag=True, help="Wait in a queue until enough rows are together.")
@path_option("--personal", help="Write a receipt of his own for each id: one on each line.")
@change_options(asks=True)
def forget(
    store: Store,
    chosen: Chosen,
    batch: bool,
    whole: bool,
    slice_: str | None,
    name: str | None,
    personal: str | None,
    how: How,
) -> Result:
    """Forget rows, exactly, with a receipt.

    FILES have the rows as they were learned. Or take the rows of some ids from a larger table, with
    --from FILE and --where COLUMN=IDS: it must have all rows that the store holds of these ids.
    Rows that were never learned, or are forgotten already, are refused, and nothing is changed.
    Whoever has the model before and after few rows are forgotten can reconstruct them: --batch
    keeps the request until it is safe (see "traceless queue"). A receipt with --personal FILE says
    what was done with the rows of one id, and nothing of others; it cannot be had again.
    """
    if bool(chosen.files) == (slice_ is not None):
        raise click.UsageError(
            "Say what to forget: FILES of rows, or --slice OTHER, or --from FILE and --where "
            "COLUMN=IDS."
        )
    if slice_ is not None:
        return how.made(partial(store.forget, slice_, name=name))
    from traceless.store import PersonalReceipt, Queued

    files, whole = Outputs(personal), whole or chosen.where is not None
    given: dict[str, Any] = {"whole": whole, "batch": batch, "personal": personal is not None}
    people = list[PersonalReceipt]()

    def change(**options: Any) -> Any:
        answer = store.forget(chosen.rows("forgetting"), **given, **options)
        receipt = answer.receipt if isinstance(answer, Queued) else answer
        people.extend(receipt.people if receipt else ())
        return answer

    result = chosen.made(change, how, asks=not batch)
    files.write(personal if people else None, [f"{one.to_json()}\n" for one in people])
    return result


@command("traceless undo shop february.csv", "traceless undo shop february.csv --dry-run")
@store_argument
@files_argument
@change_options(asks=True)
def undo(store: Store, chosen: Chosen, how: How) -> Result:
    """Undo the last learn, given its files.

    FILES have exactly the rows that the last "learn" learned, in any order.
    Others are refused, and nothing is changed.
    """
    return chosen.made(lambda **o: store.undo(chosen.rows("forgetting", "needed"), **o), how)


@command(
    "traceless correct clinic --from old.csv --to new.csv --where patient=17",
    "traceless correct shop --from wrong.csv --to right.csv",
    "traceless correct shop --from wrong.csv --label no",
    "traceless correct shop --from wrong.csv --label-column corrected",
)
@store_argument
@rows_option("--from", "old", required=True, help="The rows as they were learned.")
@rows_option("--to", "new", help="The rows as they should be.")
@click.option("--label", help="Or the new label of all these rows.")
@click.option("--label-column", metavar="NAME", help="Or the column of their new labels.")
@where_option
@format_option
@click.option("--again", is_flag=True, help="Also under ids that are suppressed.")
@change_options(asks=True)
def correct(
    store: Store,
    old: Sequence[str],
    new: Sequence[str],
    label: str | None,
    label_column: str | None,
    where: str | None,
    format_: str | None,
    again: bool,
    how: How,
) -> Result:
    """Put rows, or labels, in the place of others, in one change.

    The rows of one table are forgotten, and those of another learned; their numbers may differ.
    Or learned rows, which have the old label in the target column, get another label, and keep
    their ids. With --where only the rows of these ids are used, in both tables, and the first must
    have all rows that the store holds of them.
    """
    if [bool(new), label is not None, label_column is not None].count(True) != 1:
        raise click.UsageError(
            "Say what is right: --to FILE, --label LABEL or --label-column NAME. Nothing was "
            "changed."
        )
    wrong = Chosen(store, old, format_, where)

    def replaced(**options: Any) -> Any:
        added = _joined(Chosen(store, new, format_, where).rows("reading", "needed"))
        rows = _joined(wrong.rows("reading"))
        return store.correct(rows, added, whole=where is not None, again=again, **options)

    def relabelled(**options: Any) -> Any:
        X, y, weight, ids, right = _relabelled(wrong.table, label, label_column)
        whole = where is not None
        return store.relabel(X, y, right, weight, ids=ids, whole=whole, **options)

    return wrong.made(replaced if new else relabelled, replace(how, verb="replaced by others"))


@command(
    "traceless merge shop branch-store", "traceless merge shop branch.traceless --name berlin-2026"
)
@store_argument
@click.argument("other", type=click.Path())
@click.option("--name", help="Name of the slice, by which a second merge of it is refused.")
@click.option(
    "--again", is_flag=True, help="Although it was merged, or has ids that are suppressed."
)
@change_options()
def merge(store: Store, other: str, name: str | None, again: bool, how: How) -> Result:
    """Take in another model or store.

    OTHER is a store, or the file of a model. It is not changed.
    """
    return how.made(partial(store.merge, other, name=name, again=again))


@command(
    "traceless destroy shop secret --yes",
    "traceless destroy shop model --yes",
    "traceless destroy shop suppression --yes",
)
@store_argument
@click.argument("what", type=click.Choice(["secret", "model", "suppression"]))
@change_options(scores=False, asks=True)
def destroy(store: Store, what: str, how: How) -> Result:
    """Destroy the secret, the model or the suppression list; the ledger stays.

    Row digests need the secret. Without it nobody can test whether a row is among those learned
    (only a guess of all of them at once, by the digest of the model), and single rows can no longer
    be forgotten. Without the suppression list people who were forgotten are learned again if they
    are in the next table. This cannot be undone.
    """
    question = f"Destroy the {what} of {store.path} for ever?"
    return how.made(partial(store.destroy, what), question=question)


def _joined(batches: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Batches (X, y), (X, y, weight) or (X, y, weight, ids) as X, y, weight and ids of all rows."""
    import numpy as np

    X, y, weights, ids = zip(*((*batch, None, None)[:4] for batch in batches), strict=True)
    weight = None if weights[0] is None else np.concatenate(weights)
    each = [one for some, rows in zip(ids, X, strict=True) for one in some or [None] * len(rows)]
    return np.concatenate(X), np.concatenate(y), weight, each


def _relabelled(table: Files, to: str | None, column: str | None) -> tuple[Any, ...]:
    """X, old labels, weights, ids and new labels of all rows."""
    import numpy as np

    from traceless.features.cells import Cells

    schema, named = table.schema, [name for name in (table.schema.id,) if name]
    if len(schema.target) != 1:
        raise ValueError(
            "Rows with several targets, or none, have no label to change: forget and learn them."
        )
    batches = list(table.batches([*schema.names, *([column] if column else [])], maybe=named))
    new = []
    for batch in batches:
        same = Cells(np.full(batch.n_rows, to, dtype=object), "--label", "The new label")
        new.append(schema.target_of(batch.cells(column) if column else same))
    return *_joined((b.X, b.y, b.weight, b.ids) for b in batches), np.concatenate(new)
