"""Commands that audit a store: status, find, history, receipt, head, key, verify."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceless.cli import inputs
from traceless.cli.chosen import ids_in
from traceless.cli.command import command
from traceless.cli.output import Grid, Outputs, Result, fields
from traceless.cli.trials import How, change_options

if TYPE_CHECKING:
    from traceless.store import Store

_MOST = 50_000_000  # bytes of a receipt: it describes a model, which may have names for all columns


@command("traceless status shop", "traceless status shop --json")
@inputs.store_argument
def status(store: Store) -> Result:
    """Show what the store holds now."""
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
    notes = {
        "The secret is destroyed: single rows can no longer be forgotten.": not now.has_secret,
        "The model is destroyed; only the ledger is left.": not now.has_model,
        "SQLite's log is not yet emptied, because a process was reading: rows that were forgotten "
        "may still be in it until the next change.": not now.log_emptied,
    }
    return Result(asdict(now), [fields(shown), *(said for said, true in notes.items() if true)])


@command("traceless find clinic patient=17", "traceless find clinic patient=17,23 --json")
@inputs.store_argument
@click.argument("which", metavar="COLUMN=IDS")
def find(store: Store, which: str) -> Result:
    """Show what became of the rows of an id.

    COLUMN is the column that [id] declares; give ids as in patient=17,23, or as
    patient=@FILE with one id per line. Shows how many rows are held and in which changes they came,
    how many of them wait to be forgotten, and whether the id is on the suppression list. Of an id
    whose last row is forgotten nothing else is known.
    """
    schema = inputs.declared(store.about)
    found, shown = list[dict[str, Any]](), list[str | Grid]()
    for one in ids_in(which, schema):
        known = store.find(one)
        events = [event._asdict() for event in known.events]
        found.append({"id": one, **asdict(known), "events": events})
        said = {"rows held": known.held, "  of which wait": known.waiting}
        shown.append(fields({str(schema.id): one, **said, "suppressed until": known.suppressed}))
        if events:
            headings = ["change", "time (UTC)", "kind", "rows"]
            shown.append(Grid([list(event.values()) for event in events], headings))
        else:
            shown.append("No rows of this id are held.")
    return Result({"found": found}, shown)


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
@inputs.path_option("--html", help="Also write a page to print.")
@inputs.out_option
def receipt(store: Store, number: int | None, html: str | None, out: str | None) -> Result:
    """Give the receipt of a change, as JSON or a page.

    NUMBER is that of the change, by default the last one. The receipt names no rows. Whoever
    has it, and the rows that remained, can check it without the store: see "traceless verify
    --receipt".
    """
    files = Outputs(html, out)
    try:
        found = store.receipt(number)
    except LookupError as error:
        raise click.UsageError(str(error)) from error
    text, written = found.to_json(), list(files)
    files.write(html, [found.to_html()])
    files.write(out, [text])
    return Result(
        {"receipt": json.loads(text), "entry": found.as_dict(), "written": written},
        [f"Written: {', '.join(written)}" if written else text],
    )


@command(
    "traceless head shop",
    "traceless head shop > kept-elsewhere.txt",
    "traceless head shop --since kept-elsewhere.txt",
)
@inputs.store_argument
@inputs.path_option("--since", help="Prove to whoever kept this head that the log continues it.")
def head(store: Store, since: str | None) -> Result:
    """Print the few lines that identify the whole history.

    Keep them where the owner of the store cannot change them: in a mail, with a notary, on a public
    page. "traceless verify STORE --head FILE" then proves that the history up to there was not
    rewritten, and that the store was not set back to an older copy. It is a signed checkpoint as
    C2SP has it, so that others can timestamp and witness it. With --since the proof is printed that
    the log continues an older head: the hashes of RFC 9162.
    """
    if since is not None:
        proof = store.consistency(_text(since))
        return Result({"consistency": proof}, [proof.rstrip("\n")])
    lines = store.head()
    return Result({"head": lines}, [lines.rstrip("\n")])


@command(
    "traceless key shop",
    "traceless key shop --public clinic.pub",
    "traceless key shop --private /safe/clinic.pem",
    "traceless key shop --replace",
)
@inputs.store_argument
@inputs.path_option("--public", help="Write the public key, as PEM.")
@inputs.path_option("--private", help="Write the private key too.")
@click.option("--replace", is_flag=True, help="Hand over to a new key, in the folder of the store.")
@inputs.path_option("--replace-with", help="Hand over to the key in this file.")
@change_options(scores=False, keyed=False)
@inputs.force_option
def key(
    store: Store,
    public: str | None,
    private: str | None,
    replace: bool,
    replace_with: str | None,
    how: How,
) -> Result:
    """Show, export or replace the key that signs the changes of a store.

    Publish the public key where others find it: with it they can check receipts. The private key
    lies in the folder of the store, as the file "key". Whoever may write there can also sign;
    to keep them apart write it elsewhere with --private, remove the file, and name it with
    --signing-key, or in the environment variable TRACELESS_SIGNING_KEY. A hand-over to another
    key is a change of its own, which the old key signs.
    """
    from traceless.store import keys
    from traceless.store.checkpoint import Head, verifier_key

    shown, data = list[str | Grid](), dict[str, object]()
    replaces = replace or replace_with is not None
    if how.dry_run and (not replaces or public or private):
        raise click.UsageError("--dry-run is for --replace and --replace-with alone.")
    if how.dry_run:
        return how.made(partial(store.new_key, replace_with))
    files = Outputs(public, private)
    if replaces:
        receipt = store.new_key(replace_with)
        data["receipt"] = receipt.as_dict()
        shown.append(f"Change {receipt.sequence} hands over to another key.")
    found = store.public_key
    try:
        if public is not None:
            files.write(public, [keys.public_pem(found)])
        if private is not None:
            files.write(private, [store.private_key()], private=True)
    except OSError as error:
        if replaces:  # a full disk does not take the change back
            made = "The key was replaced all the same: write its file again without --replace"
            raise OSError(error.errno, f"{error.strerror}. {made}", error.filename) from error
        raise
    log = Head.parsed(store.head()).origin
    witness = verifier_key(log, found)  # as programs for C2SP's notes take it
    shown.append(fields({"public key": found, "verifier key": witness}))
    written = list(files)
    if written:
        shown.append(f"Written: {', '.join(written)}")
    told = {"public_key": found, "verifier_key": witness, "written": written}
    return Result({**data, **told}, shown)


@command(
    "traceless verify shop",
    "traceless verify shop remaining.csv",
    "traceless verify shop --receipt kept.json --public-key clinic.pub",
    "traceless verify --receipt receipt.json remaining.csv --public-key clinic.pub",
)
@click.argument("arguments", nargs=-1, type=click.Path(), metavar="[STORE] [FILES]...")
@inputs.path_option("--receipt", "receipt_", help="One that was kept.")
@inputs.path_option("--head", "head_", help="One that was kept.")
@inputs.path_option("--consistency", help='What "traceless head --since" printed; with --receipt.')
@click.option("--public-key", metavar="KEY", help="The store's key as it was published, or a file.")
@inputs.format_option
def verify(
    arguments: Sequence[str],
    receipt_: str | None,
    head_: str | None,
    consistency: str | None,
    public_key: str | None,
    format_: str | None,
) -> Result:
    """Recompute the ledger, the files and the model, and compare.

    With STORE alone, its ledger, signatures and files are checked. With FILES, which must hold all
    rows that remain, the model is also fitted from scratch, and digests are compared. What was kept
    elsewhere (--receipt, --head, --public-key) must be part of the store's history; otherwise the
    history was rewritten, or set back to an older copy.

    Without STORE, --receipt FILE is checked by itself, with FILES against the rows that remained,
    and with --head against a head that was kept: if that has another size, --consistency proves
    that one continues the other. The exit code is 1 if a check fails.
    """
    from traceless.store import PersonalReceipt, Receipt, Store

    receipt = None if receipt_ is None else _receipt(_text(receipt_))
    kept = None if head_ is None else _text(head_)
    if arguments and (Path(arguments[0]).is_dir() or receipt is None):
        path, *files = arguments
        store = Store(path)
        found = store.verify(
            _rows(store.about, files, format_) if files else None,
            receipt=receipt,
            head=kept,
            public_key=public_key,
        )
    elif receipt is not None:
        from traceless.store import verify_receipt

        proof = None if consistency is None else _text(consistency)
        found = verify_receipt(receipt, public_key=public_key, head=kept, consistency=proof)
        if isinstance(receipt, PersonalReceipt) and arguments:
            raise click.UsageError("A personal receipt does not say which rows remain: no FILES.")
        if (
            isinstance(receipt, Receipt) and arguments and found.ok
        ):  # a stranger does not say how the files are read
            rows = _rows(receipt.store.get("about"), arguments, format_)
            found = verify_receipt(
                receipt, rows, public_key=public_key, head=kept, consistency=proof
            )
    else:
        raise click.UsageError("Name a store, or a receipt with --receipt FILE.")
    checks = [asdict(check) for check in found.checks]
    grid = Grid([list(check.values()) for check in checks], ["check", "result", "said"])
    said = "All is as it should be." if found.ok else "A check failed."
    return Result({"checks": checks}, [grid, said], found.ok)


def _rows(about: Any, files: Sequence[str], format_: str | None) -> Iterator[Any]:
    return inputs.rows_of(inputs.open_table(about, files, format_), "verifying")


def _receipt(text: str) -> Any:
    from traceless.store import PersonalReceipt, Receipt

    personal = '"traceless personal receipt' in text[:100]
    return PersonalReceipt.from_json(text) if personal else Receipt.from_json(text)


def _text(path: str) -> str:
    """The text of a receipt, a head or a proof, or of standard input; they are small."""
    from traceless.store.regular import read_outside

    try:
        data = sys.stdin.buffer.read(_MOST) if path == "-" else read_outside(path, _MOST)
        return data.decode("utf-8")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
