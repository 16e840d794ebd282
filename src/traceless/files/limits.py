"""How much memory a file may ask for, by what it declares of itself.

A few bytes can declare gigabytes: one long text that a million rows repeat, zeros that were
compressed, a model with a hundred thousand features. Whoever reads looks at what is declared first.
"""

from __future__ import annotations

import math
import os

VARIABLE = "TRACELESS_MEMORY_LIMIT"
_DEFAULT = 2.0
_GIB = 2**30


def refusal(what: str, declared: int) -> str | None:
    """Why something is too large, as a sentence that says how to allow it; None if it is not.

    Parameters
    ----------
    what : str
        The subject of the sentence.
    declared : int
        Bytes that it would take at once.
    """
    text = os.environ.get(VARIABLE, "")
    try:
        limit = float(text) if text else _DEFAULT
    except ValueError:
        raise ValueError(f"{VARIABLE} must be a number of gibibytes, got {text!r}.") from None
    if declared <= limit * _GIB:
        return None
    needed = math.ceil(declared / _GIB)
    return (
        f"{what} would take {_in_gib(declared)} GiB of memory at once, and {limit:g} are allowed. "
        f"If you trust it, set the environment variable {VARIABLE} to {needed}. "
        "Nothing was changed."
    )


def _in_gib(size: int) -> str:
    return f"{size / _GIB:,.1f}".replace(",", " ")
