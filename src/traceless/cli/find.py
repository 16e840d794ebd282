"""``traceless find``: what a store knows of an id."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from traceless.cli import inputs
from traceless.cli.chosen import ids_in
from traceless.cli.command import command
from traceless.cli.output import Grid, Result, fields

if TYPE_CHECKING:
    from traceless.store import Store


@command("traceless find clinic patient=17", "traceless find clinic patient=17,23 --json")
@inputs.store_argument
@click.argument("which", metavar="COLUMN=IDS")
def find(store: Store, which: str) -> Result:
    """Show what became of the rows of an id.

    COLUMN is the column that "traceless new --id" declared; give ids as in patient=17,23, or as
    patient=@FILE with one id per line. Shows how many rows are held, how many of them wait to be
    forgotten, how many were forgotten, and in which changes.
    """
    schema = inputs.declared(store.about)
    found, shown = list[dict[str, Any]](), list[str | Grid]()
    for one in ids_in(which, schema):
        known = store.find(one)
        events = [event._asdict() for event in known.events]
        found.append({"id": one, **asdict(known), "events": events})
        said = {"rows held": known.held, "  of which wait": known.waiting}
        shown.append(fields({str(schema.id): one, **said, "rows forgotten": known.forgotten}))
        if events:
            headings = ["change", "time (UTC)", "kind", "learned", "forgotten", "waiting"]
            shown.append(Grid([list(event.values()) for event in events], headings))
        else:
            shown.append("No change had rows of this id.")
    return Result({"found": found}, shown)
