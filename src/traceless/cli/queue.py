"""The queue of requests to forget that wait for others: list, cancel, flush."""

from __future__ import annotations

import calendar
from collections import Counter
from datetime import UTC, date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from traceless.cli import inputs
from traceless.cli.command import Group, command
from traceless.cli.output import Grid, Result
from traceless.cli.trials import How, change_options

if TYPE_CHECKING:
    from traceless.store import Queued, Store


def due(time: str) -> date:
    """The day by which a request that came then is to be answered: a month later.

    That is the time which article 12 of the GDPR gives; a month that has no such day ends earlier.
    """
    came = date.fromisoformat(time[:10])
    year, month = came.year + came.month // 12, came.month % 12 + 1
    return date(year, month, min(came.day, calendar.monthrange(year, month)[1]))


def waiting(store: Store, today: date | None = None) -> list[dict[str, Any]]:
    """The requests that wait, the oldest first, each with its day and the days left."""
    now, found = today or datetime.now(UTC).date(), []
    for one in store.pending():
        last, proof = due(one.time), None if one.receipt is None else one.receipt.hash
        said = {"number": one.sequence, "time": one.time, "due": last.isoformat()}
        said |= {"days_left": (last - now).days, "request": one.key, "rows": one.rows}
        found.append({**said, "classes": dict(one.classes), "receipt": proof})
    return found


@command("traceless queue list shop", "traceless queue list shop --json", name="list")
@inputs.store_argument
def list_(store: Store) -> Result:
    """List the requests that wait, the oldest first, with the days left to answer them.

    A request is to be answered within a month from its arrival.
    """
    from traceless.store.queue import SAFE_ROWS

    found, rows = waiting(store), []
    for one in found:
        classes = ", ".join([f"{label} {n}" for label, n in one["classes"].items()]) or None
        number, days = one["number"], one["days_left"]
        left = f"{days} days" if days >= 0 else f"OVERDUE by {-days} days"
        how = f"traceless receipt {store.path} {number}"
        rows.append(
            [number, one["time"], one["due"], left, one["request"], one["rows"], classes, how]
        )
    if not rows:
        return Result({"requests": []}, ["Nothing waits."])
    headings = ["number", "came (UTC)", "due", "left", "request", "rows", "classes", "receipt"]
    said = (
        f"They are forgotten once {SAFE_ROWS} rows of each class among them wait; traceless queue "
        "flush --force forgets them now."
    )
    return Result({"requests": found}, [Grid(rows, headings), said])


@command("traceless queue cancel shop 4", "traceless queue cancel shop ticket-4711")
@inputs.store_argument
@click.argument("which", metavar="NUMBER|REQUEST")
@change_options(scores=False, named=False)
def cancel(store: Store, which: str, how: How) -> Result:
    """Cancel a request; its rows stay in the model.

    Give its number, as "traceless queue list" shows it, or its name. The ledger keeps its arrival
    and its cancellation.
    """
    meant: list[Queued] = [q for q in store.pending() if which in (str(q.sequence), q.key)]
    if len(meant) > 1:
        raise click.UsageError(
            f"{which} is the number of one request, and the name of another. Give the other one "
            "of the request that is meant. Nothing was changed."
        )
    return how.made(partial(store.cancel, meant[0] if meant else which))


@command(
    "traceless queue flush shop",
    "traceless queue flush shop --force",
    "traceless queue flush shop --dry-run",
)
@inputs.store_argument
@click.option("--force", is_flag=True, help="Even if so few rows can be reconstructed.")
@change_options(asks=True, named=False)
def flush(store: Store, force: bool, how: How) -> Result:
    """Forget the rows that wait in the queue, if there are enough."""
    from traceless.store.queue import SAFE_ROWS

    def count() -> int:
        """Rows that would be forgotten."""
        pending = store.pending()
        classes = Counter[str]()
        for one in pending:
            classes.update(one.classes or {"": one.rows})
        enough = force or min(classes.values(), default=0) >= SAFE_ROWS
        return sum(one.rows for one in pending) if enough else 0

    result = how.made(lambda **o: next(iter(store.flush(force=force, **o)), None), count)
    left = sum(request.rows for request in store.pending())
    few = f"{left} rows wait for others; --force forgets them now."
    nothing = [] if result.data["receipt"] else [few if left else "Nothing waits."]
    return Result({**result.data, "waiting_rows": left}, [*nothing, *result.shown])


@click.group(cls=Group, sections={"Commands": (list_, cancel, flush)})
def queue() -> None:
    """Requests to forget that wait for others: list, cancel or flush.

    "traceless forget --batch" puts them there, and "traceless queue flush" forgets them.
    """
