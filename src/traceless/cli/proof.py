"""Commands that say what is and was: status, history, receipt, verify."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceless.cli.answer import Answer, Facts, Grid
from traceless.cli.command import command
from traceless.cli.meter import watched
from traceless.cli.opened import open_store, schema_in, table_for
from traceless.cli.options import format_option, out_option, store_argument

if TYPE_CHECKING:
    from traceless.store import Receipt, Verification


@command("traceless status shop", "traceless status shop --json")
@store_argument
def status(store: str) -> Answer:
    """Say what the store holds now."""
    now = open_store(store).status()
    shown = {
        "store": now.path,
        "model": now.model,
        "rows": now.rows,
        **{f"  of {label}": count for label, count in now.classes.items()},
        "rows that wait to be forgotten": now.waiting,
        "changes": now.sequence,
        "last change": now.time,
        "digest": now.digest,
        "size": f"{now.size / 1e6:.1f} MB",
    }
    if now.unknown:
        shown["rows without digests"] = now.unknown
    notes = []
    if not now.has_secret:
        notes.append("The secret is destroyed: single rows can no longer be forgotten.")
    if not now.has_model:
        notes.append("The model is destroyed; the ledger is what is left.")
    return Answer(asdict(now), [Facts(shown), *notes])


@command("traceless history shop", "traceless history shop --last 10")
@store_argument
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N changes.")
def history(store: str, last: int | None) -> Answer:
    """Say what happened to the store, from its ledger."""
    entries = open_store(store).history()[-(last or 0) :]
    rows = [
        [e.sequence, e.time, e.kind, e.rows, e.held, (e.digest_after or "-")[:16], _key(e.keys)]
        for e in entries
    ]
    headings = ["change", "time (UTC)", "kind", "rows", "held", "digest", "key"]
    return Answer({"entries": [e.as_dict() for e in entries]}, [Grid(headings, rows)])


@command(
    "traceless receipt shop > receipt.json",
    "traceless receipt shop 3 --html receipt.html --out receipt.json",
)
@store_argument
@click.argument("number", type=click.IntRange(min=0), required=False)
@click.option("--html", type=click.Path(), metavar="FILE", help="Also write a page to print.")
@out_option
def receipt(store: str, number: int | None, html: str | None, out: str | None) -> Answer:
    """Give the receipt of change NUMBER (by default the last), as JSON.

    It names no rows. Whoever has it, and the rows that remained, can check it without the store:
    see "traceless verify --receipt".
    """
    try:
        found = open_store(store).receipt(number)
    except LookupError as error:
        raise click.UsageError(str(error)) from error
    text = found.to_json()
    written = []
    for path, content in ((html, found.to_html), (out, lambda: text)):
        if path is not None:
            Path(path).write_text(content(), encoding="utf-8")
            written.append(path)
    shown = [text] if out is None and html is None else [f"Written: {', '.join(written)}"]
    return Answer({"receipt": json.loads(text), "written": written}, shown)


@command(
    "traceless verify shop",
    "traceless verify shop remaining.csv",
    "traceless verify --receipt receipt.json remaining.csv",
)
@click.argument("arguments", nargs=-1, type=click.Path(), metavar="[STORE] [FILES]...")
@click.option("--receipt", "receipt_", type=click.Path(), metavar="FILE", help="Check a receipt.")
@format_option
def verify(arguments: Sequence[str], receipt_: str | None, format_: str | None) -> Answer:
    """Recompute the chain of the ledger and the files of STORE, and compare.

    With FILES, which must hold all rows that remain, the model too is made from scratch and
    digests are compared. With --receipt FILE nothing but that receipt and the rows are needed.
    The exit code is 1 if a check fails.
    """
    if receipt_ is not None:
        return _verified(_check_receipt(receipt_, arguments, format_))
    if not arguments:
        raise click.UsageError("Name a store, or a receipt with --receipt FILE.")
    store, *files = arguments
    home = open_store(store)
    if not files:
        return _verified(home.verify())
    table = table_for(home, files, format_)
    return _verified(home.verify(watched(table, table.rows(), "verifying")))


def _check_receipt(path: str, files: Sequence[str], format_: str | None) -> Verification:
    from traceless.sources import Table
    from traceless.store import verify_receipt

    if not files:
        raise click.UsageError("Name the files with all rows that remained, in place of a store.")
    found = _read_receipt(path)
    table = Table(files, schema_in(found.store.get("about")), format_)
    return verify_receipt(found, watched(table, table.rows(), "verifying"))


def _read_receipt(path: str) -> Receipt:
    from traceless.store import Receipt

    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    try:
        return Receipt.from_json(data.decode("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _verified(found: Verification) -> Answer:
    checks = [asdict(check) for check in found.checks]
    rows = [[check["name"], check["ok"], check["said"]] for check in checks]
    said = "All is as it should be." if found.ok else "A check failed."
    return Answer({"checks": checks}, [Grid(["check", "result", "said"], rows), said], found.ok)


def _key(keys: Sequence[str]) -> Any:
    return ", ".join(keys) or None
