"""``traceless suggest``: propose the file that declares a store."""

from __future__ import annotations

import textwrap

import click

from traceless.cli.command import command
from traceless.cli.inputs import format_option, split_names
from traceless.cli.output import Result


@command(
    "traceless suggest patients.csv --target ill > model.toml",
    "traceless suggest patients.csv --target ill --id patient",
    "traceless suggest prices.parquet --target price --scales --json",
)
@click.argument("file", type=click.Path())
@click.option("--target", required=True, help="Column to predict; several as a,b.")
@click.option("--id", "ids", metavar="NAME", help="Column of ids; by default one is looked for.")
@click.option("--scales", is_flag=True, help="Also scales of numbers, for maps other than linear.")
@format_option
def suggest(file: str, target: str, ids: str | None, scales: bool, format_: str | None) -> Result:
    """Propose the declaration of a store, for "traceless new".

    Each column gets a declaration, with a reason. Proposals are computed from rows, so they are a
    trace of them: replace them by what you know without the rows.
    """
    from traceless.features.suggestion import REMARK
    from traceless.sources.suggestion import suggest_schema

    schema, rows = suggest_schema(file, split_names(target), ids, format_, scales)
    remark = f"{rows} rows of {file} were looked at. {REMARK}"
    lines = [f"# {line}" for line in textwrap.wrap(remark, 98)]
    end = "\n\n[model]  # kind, map and parameters, by their names in Python"
    data = {**schema.facts(), "reasons": schema.table.reasons, "rows": rows, "remark": REMARK}
    return Result(data, ["\n".join([*lines, str(schema) + end])])
