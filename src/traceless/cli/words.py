"""Messages in the words of the command line.

The library's messages are for people who write Python: they name parameters and methods. A command
shows the same message with the options and commands that do the same:

1. Where a message gives both, as ``Store.new (or traceless new)`` and ``batch=True (--batch)``, the
   second is kept.
2. A parameter that is an option of `traceless new` becomes that option: ``solver='cholesky'`` is
   ``--solver cholesky``, and ``standardize=True`` is ``--standardize``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_BOTH = re.compile(  # only from where a word begins: a text of one long word takes no longer
    r"(?<![A-Za-z_.])[A-Za-z_.]+(?:\([^()]*\)|=[\w']+)? \((?:or )?((?:traceless |--)[^()]+)\)"
)
_OPTIONS = (
    *("rho", "C", "gamma", "degree", "coef0", "kernel", "strategy", "activation", "solver"),
    *("decision", "weighting", "class_weight", "standardize", "free_intercept", "resolution"),
    *("input_resolution", "target_resolution", "labels", "classes"),
)
_PARAMETER = re.compile(rf"\b({'|'.join(_OPTIONS)})=('[^']*'|\{{\}}|[\w.+*-]*\w)")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question with similar names for an unknown one; empty if there are none."""
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.65)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def in_commands(message: str) -> str:
    """A message of the library in the words of the command line."""
    return _PARAMETER.sub(_option, _BOTH.sub(r"\1", message))


def _option(found: re.Match[str]) -> str:
    """A parameter and its value as an option."""
    name, value = found[1].replace("_", "-"), found[2].strip("'")
    if value in ("True", "False"):
        return f"--{name}" if value == "True" else f"--no-{name}"
    return f"no --{name}" if value == "None" else f"--{name} {value}"
