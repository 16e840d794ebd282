"""A progress line on standard error, for work that takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar, cast

T = TypeVar("T")


def progress(
    items: Iterable[T],
    label: str,
    verbose: bool,
    after: float = 2.0,
    *,
    size: Callable[[T], int] | None = None,
) -> Iterator[T]:
    """Yield the items; if `verbose`, show how far the work is once `after` seconds have passed.

    Parameters
    ----------
    items : sequence, or any iterable if there is a `size`
    label : str
    verbose : bool
    after : float
    size : callable, optional
        The number of rows of an item; the line then shows their sum, and not how much is left.
    """
    start, rows, shown = time.monotonic(), 0, False
    try:
        for done, item in enumerate(items, 1):
            yield item
            rows += size(item) if size else 0
            elapsed = time.monotonic() - start
            if verbose and elapsed > after:  # the item is done now, not when it was read
                shown = True
                known = None if size else done / len(cast(Sequence[T], items))
                left = f"{elapsed / known - elapsed:.0f} s left" if known else f"{elapsed:.0f} s"
                if known is None or known < 1.0:  # the last line is drawn once, below
                    _draw(label, known, f"{rows} rows, {left}" if size else left)
        if shown:
            _draw(label, 1.0, f"{time.monotonic() - start:.1f} s      ")
    finally:
        if shown:  # what is written next, an error perhaps, begins on a line of its own
            print(file=sys.stderr)


def _draw(label: str, known: float | None, said: str) -> None:
    bar = "" if known is None else f" [{'#' * round(30 * known):<30}] {known:4.0%}"
    print(f"\r{label}{bar}, {said} ", end="", file=sys.stderr, flush=True)
