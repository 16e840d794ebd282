"""The queue of requests to forget that wait for others: list, cancel, flush."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from traceless.cli import inputs
from traceless.cli.command import Group, command
from traceless.cli.output import Grid, Result
from traceless.cli.trials import How, change_options

if TYPE_CHECKING:
    from traceless.store import Queued, Store


@click.group(cls=Group)
def queue() -> None:
    """Look at the requests to forget that wait for others, or cancel one.

    "traceless forget --batch" puts them there, and "traceless flush" forgets them.
    """


@command("traceless queue list shop", "traceless queue list shop --json")
@inputs.store_argument
def list_(store: Store) -> Result:
    """List the requests that wait, the oldest first."""
    from traceless.store.queue import SAFE_ROWS

    data, rows, now = [], [], datetime.now(UTC)
    for one in store.pending():
        hours = int((now - datetime.fromisoformat(one.time)).total_seconds() // 3600)
        age = f"{hours // 24} days" if hours >= 48 else f"{hours} hours"
        said = {"number": one.sequence, "time": one.time, "hours": hours, "key": one.key}
        proof = None if one.receipt is None else one.receipt.hash
        data.append({**said, "rows": one.rows, "classes": one.classes, "receipt": proof})
        classes = ", ".join([f"{label} {n}" for label, n in one.classes.items()]) or None
        found = f"traceless receipt {store.path} {one.sequence}"
        rows.append([one.sequence, one.time, age, one.key, one.rows, classes, found])
    if not rows:
        return Result({"requests": []}, ["Nothing waits."])
    headings = ["number", "came (UTC)", "age", "key", "rows", "classes", "receipt"]
    how = (
        f"They are forgotten once {SAFE_ROWS} rows of each class among them wait; traceless flush "
        "--force forgets them now."
    )
    return Result({"requests": data}, [Grid(rows, headings), how])


@command("traceless queue cancel shop 4", "traceless queue cancel shop ticket-4711")
@inputs.store_argument
@click.argument("request", metavar="NUMBER|KEY")
@change_options(scores=False, keyed=False)
def cancel(store: Store, request: str, how: How) -> Result:
    """Cancel a request; its rows stay in the model.

    Give its number, as "traceless queue list" shows it, or its key. The ledger keeps its arrival
    and its cancellation.
    """
    meant: list[Queued] = [q for q in store.pending() if request in (str(q.sequence), q.key)]
    if len(meant) > 1:
        raise click.UsageError(
            f"{request} is the number of one request, and the key of another. Give the other name "
            "of the one that is meant. Nothing was changed."
        )
    return how.made(partial(store.cancel, meant[0] if meant else request))


@command("traceless flush shop", "traceless flush shop --force", "traceless flush shop --dry-run")
@inputs.store_argument
@click.option("--force", is_flag=True, help="Even if so few rows can be reconstructed.")
@change_options(asks=True, keyed=False)
def flush(store: Store, force: bool, how: How) -> Result:
    """Forget the rows that wait in the queue, if there are enough."""
    result = how.made(lambda **o: next(iter(store.flush(force=force, **o)), None))
    waiting = sum(request.rows for request in store.pending())
    few = f"{waiting} rows wait for others; --force forgets them now."
    nothing = [] if result.data["receipt"] else [few if waiting else "Nothing waits."]
    return Result({**result.data, "waiting_rows": waiting}, [*nothing, *result.shown])


for _command, _name in ((list_, "list"), (cancel, "cancel")):
    queue.add_command(_command, _name)
