"""A progress bar on standard error, for reading that takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from traceless.cli.answer import has_terminal

if TYPE_CHECKING:
    from rich.progress import Progress

    from traceless.sources import Table

AFTER = 2.0


def watched(table: Table, batches: Iterator[Any], label: str) -> Iterator[Any]:
    """The same batches of a table; a bar shows how far it is, if there is a terminal."""
    start, rows, able = time.monotonic(), 0, has_terminal(sys.stderr)
    bar: Progress | None = None
    try:
        for batch in batches:
            yield batch
            rows += len(batch[0])
            if bar is None and able and time.monotonic() - start > AFTER:
                bar = _started(label)
            if bar is not None:
                total = None if table.part is None else 1.0
                bar.update(bar.task_ids[0], completed=table.part or 0.0, total=total, rows=rows)
    finally:
        if bar is not None:
            bar.stop()


def _started(label: str) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(label, rows=0)
    bar.start()
    return bar
