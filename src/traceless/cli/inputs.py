"""Arguments and options that several commands share: the store, and the table of its rows."""

from __future__ import annotations

import csv
import functools
import glob
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from traceless.cli.output import Result, can_draw
from traceless.cli.places import keep
from traceless.progress import progress

if TYPE_CHECKING:
    from traceless.sources import Files, Schema
    from traceless.sources.reader import Ids

Function = Callable[..., Result]
_MOST = 50_000_000  # bytes of a receipt: it describes a model, which may have names for all columns
FORMATS = ("csv", "tsv", "jsonl", "parquet")  # those of traceless.sources

_FORMAT = click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="What the files are, if their names do not say; standard input (-) is csv by default.",
)
_READ = click.option(  # what `with_read` takes
    "--read",
    metavar="NAME=VALUE",
    multiple=True,
    expose_value=False,
    callback=lambda ctx, _, given: ctx.meta.update(read=given),
    help="How CSV is written, in place of what is declared: encoding=cp1252, delimiter=;",
)


def format_option(function: Function) -> Function:
    """Add --format, and --read for CSV that is written in another way than declared."""
    return _FORMAT(_READ(function))


def with_read(schema: Schema) -> Schema:
    """The schema, with what --read says of files."""
    given = click.get_current_context().meta.get("read", ())
    pairs = [text.partition("=") for text in given]
    if wrong := [name for name, _, _ in pairs if name not in ("delimiter", "decimal", "encoding")]:
        raise click.UsageError(f"--read {wrong[0]}: delimiter=, decimal= or encoding= is needed.")
    return replace(schema, text=replace(schema.text, **{name: said for name, _, said in pairs}))


def path_option(*names: str, help: str, **more: Any) -> Callable[[Function], Function]:  # noqa: A002
    """An option that names a file."""
    return click.option(*names, **{"type": click.Path(), "metavar": "FILE", **more}, help=help)


class RowsPath(click.Path):
    """Files of rows, which must be there: answered before anything heavy is imported."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The path, as it is."""
        special = value == "-" or "://" in value or glob.has_magic(value)
        if not special and not os.path.exists(os.path.expanduser(value)):
            self.fail(f"There is no file {value}. Nothing was changed.", param, ctx)
        return super().convert(value, param, ctx)


def rows_option(*names: str, help: str, **more: Any) -> Callable[[Function], Function]:  # noqa: A002
    """An option that names files of rows, and may be given many times."""
    return path_option(*names, type=RowsPath(), multiple=True, help=help, **more)


force_option = click.option(  # what `output.target_of` asks for
    "--force",
    is_flag=True,
    expose_value=False,
    callback=lambda ctx, _, given: ctx.meta.update(force=given),
    help="Replace a file that is there, without asking.",
)


def out_option(function: Function) -> Function:
    """Add --out and --force."""
    return path_option("--out", help="Write to this file.")(force_option(function))


def store_argument(function: Function) -> Function:
    """Add the argument STORE; the function gets the store, not the options it is opened with.

    A command that changes the store has --wait, and opens the ledger only for its change.
    """

    @click.argument("store", type=click.Path())
    @functools.wraps(function)
    def called(
        store: str, wait: float = 0.0, signing_key: str | None = None, **options: Any
    ) -> Result:
        from traceless.store.store import Store

        opened = Store(store, wait=wait, signing_key=signing_key)
        keep(store=opened)
        return function(opened, **options)

    return called


def declared(about: Any) -> Schema:
    """The table that `traceless new` declared for a store that is `about` this."""
    from traceless.sources import Schema

    if not isinstance(about, dict) or "table" not in about:
        raise ValueError(
            "No table is declared for this store, which was made in Python: it says nothing of "
            "columns, so files cannot be read for it. Stores made by 'traceless new' have a table."
        )
    try:
        return with_read(Schema.from_facts(about["table"]))
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"This is not the schema of a table: {error}") from error


def open_table(about: Any, files: Sequence[str], format_: str | None) -> Files:
    """Files, to be read as `traceless new` declared them for a store that is `about` this."""
    from traceless.sources import Files

    table = Files(files, declared(about), format_)
    keep(table=table)
    return table


def text_of_file(path: str) -> str:
    """The text of a receipt, a head or a proof, or of standard input; they are small."""
    from traceless.store.regular import read_outside

    try:
        data = sys.stdin.buffer.read(_MOST) if path == "-" else read_outside(path, _MOST)
        return data.decode("utf-8")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def split_names(text: str | None) -> list[str]:
    """Names between commas; quotes keep a comma in a name."""
    return next(csv.reader([text]), []) if text else []


def rows_of(table: Files, label: str, ids: Ids = "if there") -> Iterator[Any]:
    """The rows of a table in batches, with a progress line in a terminal."""
    return with_progress(table.rows(ids), label)


def with_progress(batches: Iterator[Any], label: str) -> Iterator[Any]:
    """Batches (X, ...) of a table, with a progress line in a terminal."""
    return progress(batches, label, can_draw(sys.stderr), size=lambda batch: len(batch[0]))
