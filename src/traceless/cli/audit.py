"""Commands that audit a store: status, history, receipt, verify."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceless.cli import inputs
from traceless.cli.command import command
from traceless.cli.output import Grid, Result, fields, write_files

if TYPE_CHECKING:
    from traceless.store import Store, Verification


@command("traceless status shop", "traceless status shop --json")
@inputs.store_argument
def status(store: Store) -> Result:
    """Say what the store holds now."""
    now = store.status()
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
        notes.append("The model is destroyed; only the ledger is left.")
    return Result(asdict(now), [fields(shown), *notes])


@command("traceless history shop", "traceless history shop --last 10")
@inputs.store_argument
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N changes.")
def history(store: Store, last: int | None) -> Result:
    """List the changes of the store."""
    entries = store.history()[-(last or 0) :]
    rows = []
    for e in entries:
        digest, keys = (e.digest_after or "-")[:16], ", ".join(e.keys) or None
        rows.append([e.sequence, e.time, e.kind, e.rows, e.held, digest, keys])
    headings = ["change", "time (UTC)", "kind", "rows", "held", "digest", "key"]
    return Result({"entries": [e.as_dict() for e in entries]}, [Grid(rows, headings)])


@command(
    "traceless receipt shop > receipt.json",
    "traceless receipt shop 3 --html receipt.html --out receipt.json",
)
@inputs.store_argument
@click.argument("number", type=click.IntRange(min=0), required=False)
@click.option("--html", type=click.Path(), metavar="FILE", help="Also write a page to print.")
@inputs.out_option
def receipt(store: Store, number: int | None, html: str | None, out: str | None) -> Result:
    """Give the receipt of a change, as JSON or a page.

    NUMBER is that of the change, by default the last one. The receipt names no rows. Whoever
    has it, and the rows that remained, can check it without the store: see "traceless verify
    --receipt".
    """
    try:
        found = store.receipt(number)
    except LookupError as error:
        raise click.UsageError(str(error)) from error
    text = found.to_json()
    pages = {html: found.to_html()} if html is not None else {}
    files = {**pages, **({out: text} if out is not None else {})}
    write_files({path: [text] for path, text in files.items()})
    written = list(files)
    shown = f"Written: {', '.join(written)}" if written else text
    return Result({"receipt": json.loads(text), "written": written}, [shown])


@command(
    "traceless verify shop",
    "traceless verify shop remaining.csv",
    "traceless verify --receipt receipt.json remaining.csv",
)
@click.argument("arguments", nargs=-1, type=click.Path(), metavar="[STORE] [FILES]...")
@click.option("--receipt", "receipt_", type=click.Path(), metavar="FILE", help="Check a receipt.")
@inputs.format_option
def verify(arguments: Sequence[str], receipt_: str | None, format_: str | None) -> Result:
    """Recompute the ledger, the files and the model, and compare.

    With STORE alone, the chain of its ledger and its files are checked. With FILES, which must hold
    all rows that remain, the model too is made from scratch and digests are compared. With
    --receipt FILE nothing but that receipt and the rows are needed. The exit code is 1 if a check
    fails.
    """
    from traceless.store import Store

    if receipt_ is not None:
        found = _verify_receipt(receipt_, arguments, format_)
    elif not arguments:
        raise click.UsageError("Name a store, or a receipt with --receipt FILE.")
    else:
        path, *files = arguments
        store = Store(path)
        table = inputs.open_table(store.about, files, format_) if files else None
        found = store.verify(None if table is None else inputs.rows_of(table, "verifying"))
    checks = [asdict(check) for check in found.checks]
    grid = Grid([list(check.values()) for check in checks], ["check", "result", "said"])
    said = "All is as it should be." if found.ok else "A check failed."
    return Result({"checks": checks}, [grid, said], found.ok)


def _verify_receipt(path: str, files: Sequence[str], format_: str | None) -> Verification:
    from traceless.store import Receipt, verify_receipt

    if not files:
        raise click.UsageError("Name the files with all rows that remained, in place of a store.")
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    try:
        receipt = Receipt.from_json(data.decode("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    table = inputs.open_table(receipt.store.get("about"), files, format_)
    return verify_receipt(receipt, inputs.rows_of(table, "verifying"))
