"""``traceless verify``: recompute and compare, and say what that proves and what it does not."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceless.cli import inputs
from traceless.cli.command import command
from traceless.cli.output import Grid, Result

if TYPE_CHECKING:
    from traceless.store import PersonalReceipt, Receipt, Store, Verification

_UNPROVABLE = "that no copy of the rows, or of the model, is left elsewhere"
_RECEIPTS = "traceless receipt ", "traceless personal receipt "  # how their formats begin


@command(
    "traceless verify shop",
    "traceless verify shop remaining.csv",
    "traceless verify shop tables/customers --at 12",
    "traceless verify receipt.json",
    "traceless verify receipt.json remaining.csv --public-key clinic.pub",
    "traceless verify shop receipt.json --head kept.txt",
)
@click.argument(
    "arguments", nargs=-1, type=inputs.RowsPath(), metavar="[STORE] [RECEIPT] [FILES]..."
)
@inputs.path_option("--head", help="One that was kept.")
@inputs.path_option("--consistency", help='What "traceless status --since" printed.')
@click.option("--public-key", metavar="KEY", help="The store's key as it was published, or a file.")
@click.option("--at", type=click.IntRange(min=0), help="FILES is a Delta table: this version.")
@inputs.format_option
def verify(
    arguments: Sequence[str],
    head: str | None,
    consistency: str | None,
    public_key: str | None,
    at: int | None,
    format_: str | None,
) -> Result:
    """Recompute the ledger, the files and the model, and compare.

    Name a store, a receipt, or both: files are told apart by what they are. Of STORE the ledger,
    signatures and files are checked, of RECEIPT its signature and its place in the log, and of both
    that the store continues the history of the receipt. With FILES, which must hold all rows that
    remain, the model is also fitted from scratch, and digests are compared. With --at it is fitted
    to a version of the table that STORE follows, and compared with the change that moved to it.

    What was kept elsewhere (a receipt, --head, --public-key) must be part of the history; otherwise
    it was rewritten, or set back to an older copy. If a receipt and a head are of different sizes,
    --consistency proves that one continues the other. The last line says what is proven, and what
    is not. The exit code is 1 if a check fails.
    """
    store, receipt, files = _sorted(arguments, format_)
    kept = None if head is None else inputs.text_of_file(head)
    if store is not None:
        table = _rows(store.about, files, format_) if files and at is None else None
        found = store.verify(table, receipt=receipt, head=kept, public_key=public_key)
        if at is not None:
            found = replace(found, checks=found.checks + _at(store, files, at).checks)
    elif receipt is not None:
        found = _alone(receipt, files, kept, consistency, public_key, format_)
    else:
        raise click.UsageError(
            "Name a store, a receipt, or both: rows alone prove nothing. A store is a folder made "
            "by traceless new, and a receipt a file written by traceless receipt."
        )
    checks = [asdict(check) for check in found.checks]
    given = store, receipt, files, kept, public_key
    gaps, said = (_unchecked(*given), _proven(*given)) if found.ok else ([], [])
    missing = [*(what for *_, what in gaps), _UNPROVABLE]
    last = f"Proven: {'; '.join(said)}. Not proven: {'; '.join(missing)}."
    if not found.ok:
        wrong = ", ".join(check.name for check in found.checks if not check.ok)
        last = f"A check failed: {wrong}. Nothing that depends on it is proven."
    data = {"checks": checks, "proven": said, "not_proven": missing}
    data["not_checked"] = [name for name, *_ in gaps]
    heading = [] if receipt is None else [f"fingerprint of the receipt: {fingerprint(receipt)}"]
    rows = [*(list(check.values()) for check in checks), *(gap[:3] for gap in gaps)]
    grid = Grid(rows, ["check", "result", "said"])
    return Result(data, [*heading, grid, last], found.ok)


def fingerprint(receipt: Receipt | PersonalReceipt) -> str:
    """The one hash by which a receipt is compared: the leaf of the log."""
    from traceless.store import PersonalReceipt

    return receipt.facts["leaf"] if isinstance(receipt, PersonalReceipt) else receipt.hash


def _proven(store: Any, receipt: Any, files: Any, head: Any, key: Any) -> list[str]:
    """What the checks that passed prove."""
    rows = f"{'the model holds' if store else 'after the change the model held'} exactly these rows"
    claims = {
        "the receipt is unchanged, and in the log of its store": receipt,
        "the ledger, its signatures, the files and the model fit together": store,
        "the store continues the history of the receipt": store and receipt,
        "it is signed with the key that was given": key,
        "the history up to the head that was kept was not rewritten": head,
        rows: files,
    }
    return [said for said, given in claims.items() if given]


def _unchecked(store: Any, receipt: Any, files: Any, head: Any, key: Any) -> list[list[Any]]:
    """What was not checked: its name, no result, what would check it; and what is not proven."""
    from traceless.store import PersonalReceipt

    rows = files or isinstance(receipt, PersonalReceipt)  # which does not say what remains
    gaps: list[tuple[Any, str, str, str]] = [
        (key, "signer", "who signed it", "the signer was not checked: give --public-key KEY"),
        (rows, "rows", "which rows the model holds", "not checked: give FILES with all of them"),
        (
            head or (store and receipt),
            "history",
            "whether the history was rewritten or set back",
            "not checked: give a head, or a receipt and the store, of which one was kept elsewhere",
        ),
    ]
    return [[name, None, how, what] for given, name, what, how in gaps if not given]


def _sorted(
    arguments: Sequence[str], format_: str | None
) -> tuple[Store | None, Receipt | None, list[str]]:
    """The store, the receipt and the files of rows among the arguments."""
    from traceless.store import Store
    from traceless.store.folder import is_store

    path, receipt, files = os.environ.get("TRACELESS_STORE"), None, list[str]()
    for one in arguments:
        if is_store(Path(one)):
            path = one
        elif receipt is None and (text := _receipt_text(one, alone=not (path or files))):
            receipt = _receipt(text)
        else:
            files.append(one)
    wrong = [one for one in files if Path(one).suffix == ".json" and Path(one).is_file()]
    if wrong and receipt is None and format_ is None:
        raise click.UsageError(
            f"{wrong[0]} is no receipt: those are as traceless receipt writes them. Nothing was "
            "checked."
        )
    if path is None and receipt is None and files:
        path, *files = files  # it says what is wrong with it
    return None if path is None else Store(path), receipt, files


def _receipt_text(path: str, alone: bool) -> str | None:
    """The text of a file, or of standard input, that is a receipt; None for rows."""
    if path == "-":
        return inputs.text_of_file(path) if alone else None
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        start = file.read(100).decode(errors="replace")
    return inputs.text_of_file(path) if any(f'"{form}' in start for form in _RECEIPTS) else None


def _receipt(text: str) -> Any:
    from traceless.store import PersonalReceipt, Receipt

    personal = f'"{_RECEIPTS[1]}' in text[:100]
    return PersonalReceipt.from_json(text) if personal else Receipt.from_json(text)


def _alone(
    receipt: Any,
    files: Sequence[str],
    head: str | None,
    consistency: str | None,
    public_key: str | None,
    format_: str | None,
) -> Verification:
    """Check a receipt without its store."""
    from traceless.store import PersonalReceipt, verify_receipt

    kept = {"public_key": public_key, "head": head}
    kept["consistency"] = None if consistency is None else inputs.text_of_file(consistency)
    if isinstance(receipt, PersonalReceipt) and files:
        raise click.UsageError("A personal receipt does not say which rows remain: no FILES.")
    found = verify_receipt(receipt, **kept)
    if not files or not found.ok:  # a stranger does not say how the files are read
        return found
    return verify_receipt(receipt, _rows(receipt.store.get("about"), files, format_), **kept)


def _at(store: Store, files: Sequence[str], version: int) -> Verification:
    """The change that moved to a version of a table, compared with a fit on that version."""
    from traceless.sources.followed import DeltaVersions
    from traceless.store import verify_receipt

    if len(files) != 1:
        raise click.UsageError("--at VERSION takes the folder of one Delta table.")
    moves = {e.followed.version: e.sequence for e in store.history() if e.followed}
    if version not in moves:
        raise click.UsageError(f"This store has not moved to version {version} of a table.")
    table = DeltaVersions(files[0], inputs.declared(store.about))
    rows = inputs.with_progress(table.rows(version), "verifying")
    receipt = store.receipt(moves[version])
    return verify_receipt(receipt, ((*batch, None)[:3] for batch in rows))


def _rows(about: Any, files: Sequence[str], format_: str | None) -> Iterator[Any]:
    return inputs.rows_of(inputs.open_table(about, files, format_), "verifying")
