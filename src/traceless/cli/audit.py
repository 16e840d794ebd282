"""Commands that look at a store: status, find, history, receipt, key."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from traceless.cli import inputs
from traceless.cli.chosen import hint, id_column, ids_in, similar
from traceless.cli.command import command
from traceless.cli.output import Grid, Outputs, Result, fields
from traceless.cli.trials import How, change_options
from traceless.pages import LANGUAGES

if TYPE_CHECKING:
    from traceless.store import Store


@command(
    "traceless status shop",
    "traceless status shop --model --all",
    "traceless status shop --head > kept-elsewhere.txt",
    "traceless status shop --since kept-elsewhere.txt",
)
@inputs.store_argument
@click.option("--model", is_flag=True, help="Also what was declared, and the coefficients.")
@click.option("--level", type=float, default=0.95, help="Of the intervals of --model [0.95].")
@click.option(
    "--all", "all_", is_flag=True, help="With --model: all coefficients, not the largest."
)
@click.option("--head", is_flag=True, help="Only the few lines that identify the whole history.")
@inputs.path_option("--since", help="Prove to whoever kept this head that the log continues it.")
def status(
    store: Store, model: bool, level: float, all_: bool, head: bool, since: str | None
) -> Result:
    """Show what the store holds now.

    Coefficients come with the largest effect first, that is the coefficient times the deviation of
    its column. Those of regressions have errors: an interval holds the coefficient in 95 of 100
    cases (--level), if the noise is normal and rho is not too large.

    Keep the lines of --head where the owner of the store cannot change them: in a mail, with a
    notary, on a public page. "traceless verify STORE --head FILE" then proves that the history up
    to there was not rewritten, and that the store was not set back to an older copy. They are a
    signed checkpoint as C2SP has it, so that others can timestamp and witness it. With --since the
    proof is printed that the log continues an older head: the hashes of RFC 9162.
    """
    if since is not None:
        proof = store.consistency(inputs.text_of_file(since))
        return Result({"consistency": proof}, [proof.rstrip("\n")])
    lines = store.head()
    if head:
        return Result({"head": lines}, [lines.rstrip("\n")])
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
    data = asdict(now)
    if now.followed is not None:
        from traceless.sources.followed import DeltaVersions

        table, here, lag = now.followed.table, now.followed.version, None
        with suppress(ImportError, ValueError):
            lag = DeltaVersions(table).latest - here
        data["followed"] = {**now.followed._asdict(), "lag": lag}
        shown |= {"follows": f"{table}, version {here}", "versions since": lag}
    if now.unknown:
        shown["rows without digests"] = now.unknown
    notes = {
        "The secret is destroyed: single rows can no longer be forgotten.": not now.has_secret,
        "The model is destroyed; only the ledger is left.": not now.has_model,
        "SQLite's log is not yet emptied, because a process was reading: rows that were forgotten "
        "may still be in it until the next change.": not now.log_emptied,
    }
    found = Result({})
    if model:
        from traceless.cli.show import declared_model

        found = declared_model(store, now, level, all_)
    said = [said for said, true in notes.items() if true]
    return Result({**data, **found.data}, [fields(shown), *said, *found.shown])


@command("traceless find clinic 17", "traceless find clinic patient=17,23 --json")
@inputs.store_argument
@click.argument("which", metavar="[COLUMN=]IDS")
def find(store: Store, which: str) -> Result:
    """Show what is held of an id: the answer to a request for access.

    Give ids as in 17,23 or patient=17,23, or as patient=@FILE with one id per line. Shows how many
    rows are held and in which changes they came, and how many of them wait to be forgotten; or when
    the last one was forgotten, and until when the id is on the suppression list. Of an id whose
    last row is forgotten nothing else is known, and once it is off that list not even this.
    """
    column = id_column(store)
    found, shown = list[dict[str, Any]](), list[str | Grid]()
    for one in ids_in(which, column):
        known = store.find(one)
        events = [event._asdict() for event in known.events]
        meant = [] if known.held or known.forgotten else similar(store, one)
        found.append({"id": one, **asdict(known), "events": events, "similar": meant})
        said: dict[str, Any] = {"rows held": known.held, "  of which wait": known.waiting}
        said |= {"forgotten on": known.forgotten, "suppressed until": known.suppressed}
        shown.append(fields({column: one, **said}))
        if events:
            headings = ["change", "time (UTC)", "kind", "rows"]
            shown.append(Grid([list(event.values()) for event in events], headings))
        else:
            shown.append(f"No rows of this id are held.{hint(meant)}")
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
    headings = ["change", "time (UTC)", "kind", "rows", "held", "digest", "request"]
    return Result({"entries": [e.as_dict() for e in entries]}, [Grid(rows, headings)])


@command(
    "traceless receipt shop > receipt.json",
    "traceless receipt shop 3 --html receipt.html --out receipt.json",
    "traceless receipt shop 3 --html beleg.html --language de",
)
@inputs.store_argument
@click.argument("number", type=click.IntRange(min=0), required=False)
@inputs.path_option("--html", help="Also write a page to print.")
@click.option(
    "--language", type=click.Choice(LANGUAGES), default="en", help="Of the page: English or German."
)
@inputs.out_option
def receipt(
    store: Store, number: int | None, html: str | None, language: str, out: str | None
) -> Result:
    """Give the receipt of a change, as JSON or a page.

    NUMBER is that of the change, by default the last one. The receipt names no rows. Whoever
    has it, and the rows that remained, can check it without the store: see "traceless verify".
    """
    files = Outputs(html, out)
    try:
        found = store.receipt(number)
    except LookupError as error:
        raise click.UsageError(str(error)) from error
    text, written = found.to_json(), list(files)
    if html is not None:
        files.write(html, [found.to_html(language)])
    files.write(out, [text])
    return Result(
        {"receipt": json.loads(text), "entry": found.as_dict(), "written": written},
        [f"Written: {', '.join(written)}" if written else text],
    )


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
@change_options(scores=False, named=False)
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
