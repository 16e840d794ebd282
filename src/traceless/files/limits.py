"""A limit on the memory that a file may ask for by the sizes it declares.

A few bytes can declare gigabytes: one long text that a million rows repeat, zeros that were
compressed, a model with a hundred thousand features. Readers check declared sizes first.
"""

from __future__ import annotations

import math
import os

VARIABLE = "TRACELESS_MEMORY_LIMIT"
_DEFAULT = 2.0
_GIB = 2**30


def refusal(what: str, declared: int) -> str | None:
    """The message for something too large, with how to allow it; None if it is small enough.

    Parameters
    ----------
    what : str
        The subject of the sentence.
    declared : int
        Bytes that it would take at once.
    """
    limit = allowed()
    if declared <= limit:
        return None
    needed = math.ceil(declared / _GIB)
    return (
        f"{what} would take {declared / _GIB:.1f} GiB of memory at once, and {limit / _GIB:g} are "
        "allowed. "
        f"If you trust it, set the environment variable {VARIABLE} to {needed}. "
        "Nothing was changed."
    )


def allowed() -> int:
    """Bytes that one piece of a file may take: 2 GiB, or the environment variable's limit."""
    text = os.environ.get(VARIABLE, "")
    try:
        limit = float(text) if text else _DEFAULT
    except ValueError:
        limit = 0.0
    if not 0 < limit < 2**30:
        raise ValueError(f"{VARIABLE} must be a number of gibibytes, such as 8, got {text!r}.")
    return int(limit * _GIB)
