"""``traceless export``: write the model to a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceless.cli.command import command
from traceless.cli.inputs import store_argument
from traceless.cli.output import Result

if TYPE_CHECKING:
    from traceless.store import Store


@command("traceless export shop shop.traceless", "traceless export shop shop.onnx")
@store_argument
@click.argument("out", type=click.Path())
def export(store: Store, out: str) -> Result:
    """Write the model to OUT: .traceless to go on learning elsewhere, .onnx to serve answers.

    The store cannot reach that file: rows that it forgets later are still in there.
    """
    suffix = Path(out).suffix
    if suffix not in (".traceless", ".onnx"):
        raise click.UsageError(f"{out}: the name must end in .traceless or .onnx.")
    model = store.model()
    if suffix == ".traceless":
        model.save(out)
    else:
        from traceless.estimators.onnx import to_onnx

        to_onnx(model, out)
    data = {"out": out, "digest": model.digest(), "bytes": Path(out).stat().st_size}
    return Result(data, [f"{out}: {data['bytes']} bytes, digest {data['digest']}"])
