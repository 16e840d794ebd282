"""Arguments and options that several commands share."""

from __future__ import annotations

import click

FORMATS = ("csv", "tsv", "parquet", "arrow", "npz")  # as in traceless.sources, without importing it

store_argument = click.argument("store", type=click.Path())
files_argument = click.argument("files", nargs=-1, required=True, type=click.Path())
format_option = click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="What the files are, if their names do not say; standard input (-) is csv by default.",
)
key_option = click.option(
    "--key", help="Name of this request: the same one again is recognised, and changes nothing."
)
wait_option = click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="How long to wait for another process that is writing.",
)
out_option = click.option("--out", type=click.Path(), metavar="FILE", help="Write to this file.")
