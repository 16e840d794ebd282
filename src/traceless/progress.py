"""A progress line on standard error, for work that takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def progress(items: Sequence[T], label: str, verbose: bool, after: float = 2.0) -> Iterator[T]:
    """Yield the items; if `verbose`, show how far it is once `after` seconds have passed."""
    start = time.monotonic()
    shown = False
    for done, item in enumerate(items):
        elapsed = time.monotonic() - start
        if verbose and done and elapsed > after:
            shown = True
            part = done / len(items)
            bar = "#" * round(30 * part)
            left = elapsed / part - elapsed
            print(f"\r{label} [{bar:<30}] {part:4.0%}, {left:.0f} s left ", end="", file=sys.stderr)
        yield item
    if shown:
        took = time.monotonic() - start
        print(f"\r{label} [{'#' * 30}] 100%, {took:.1f} s       ", file=sys.stderr)
