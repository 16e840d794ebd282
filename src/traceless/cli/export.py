"""``traceless export``: the model leaves the store as a file."""

from __future__ import annotations

from pathlib import Path

import click

from traceless.cli.answer import Answer
from traceless.cli.command import command
from traceless.cli.opened import open_store
from traceless.cli.options import store_argument


@command("traceless export shop shop.traceless", "traceless export shop shop.onnx")
@store_argument
@click.argument("out", type=click.Path())
def export(store: str, out: str) -> Answer:
    """Write the model to OUT: .traceless to go on learning elsewhere, .onnx to serve answers.

    A model that has left is out of reach: what the store forgets later, it does not forget.
    """
    suffix = Path(out).suffix
    if suffix not in (".traceless", ".onnx"):
        raise click.UsageError(f"{out}: the name must end in .traceless or .onnx.")
    model = open_store(store).model()
    if suffix == ".traceless":
        model.save(out)
    else:
        from traceless.estimators.onnx import to_onnx

        to_onnx(model, out)
    data = {"out": out, "digest": model.digest(), "bytes": Path(out).stat().st_size}
    return Answer(data, [f"{out}: {data['bytes']} bytes, digest {data['digest']}"])
