"""``traceless follow``: a store that holds what a table holds."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from traceless.cli import inputs
from traceless.cli.command import command
from traceless.cli.output import Grid, Result, show
from traceless.cli.trials import How, change_options
from traceless.exceptions import StoreBusyError

if TYPE_CHECKING:
    from traceless.store import Receipt, Store


@command(
    "traceless follow shop tables/customers",
    "traceless follow shop tables/customers --once --batch",
    "traceless follow clinic export.csv --once",
    "traceless follow shop shop.duckdb --query 'SELECT * FROM customers' --once",
)
@inputs.store_argument
@click.argument("table", type=click.Path())
@click.option("--query", metavar="SQL", help="TABLE is a database of DuckDB or SQLite: its rows.")
@click.option("--snapshot", is_flag=True, help="Read the whole table, whatever was followed.")
@click.option("--batch", is_flag=True, help="One change for all new versions.")
@click.option("--again", is_flag=True, help="Learn also rows of ids that are suppressed.")
@click.option("--drop-suppressed", is_flag=True, help="Leave these rows out, and say how many.")
@click.option("--once", is_flag=True, help="End when there is nothing new, as cron needs it.")
@click.option("--every", default=60.0, metavar="SECONDS", help="How often to look [60].")
@change_options(scores=False, named=False)
def follow(store: Store, table: str, once: bool, every: float, how: How, **options: Any) -> Result:
    """Keep the store at what a table holds.

    A row that was deleted in the table is forgotten, a new one is learned. TABLE is the folder of a
    Delta table: each new version is one change, whose receipt names it, and only what it changed is
    read. Or TABLE is a file, a folder or a pattern, or a database with --query: then all of it is
    read each time, and one change moves the store to it.

    A table that brings back somebody who was forgotten is refused, unless --again or
    --drop-suppressed is given. "traceless status" shows the version and how many there are since;
    "traceless verify STORE TABLE --at VERSION" recomputes the model from the table.
    """
    if options["again"] and options["drop_suppressed"]:
        raise click.UsageError(
            "--again learns the rows that --drop-suppressed leaves out: give one."
        )
    watch = partial(inputs.with_progress, label="following")
    as_json = click.get_current_context().meta["as_json"]
    while True:
        try:
            receipts = store.follow(table, watch=watch, dry_run=how.dry_run, **options)
        except StoreBusyError:
            if once or how.dry_run:
                raise
            receipts = []
        if once or how.dry_run:
            return _told(receipts, how.dry_run)
        if receipts:
            show(_told(receipts, False), as_json)
        time.sleep(every)


def _told(receipts: list[Receipt], tried: bool) -> Result:
    rows = [
        [r.sequence, r.followed and r.followed.version, r.added, r.removed, r.held, r.digest_after]
        for r in receipts
    ]
    grid = Grid(rows, ["change", "version", "learned", "forgotten", "held", "digest"])
    shown: list[Any] = [grid if rows else "There is nothing new."]
    shown += ["This was a trial: nothing was changed, and no receipt was signed."] * tried
    data = {"receipts": [receipt.as_dict() for receipt in receipts], "dry_run": tried}
    return Result(data, shown)
