"""How functions of this package are compiled: by numba, once, kept on disk.

`compiled` follows IEEE 754 to the letter, operation by operation, so that its results are
the same bits on every machine; `compiled_loosely` may sum in another order, for speed. What
is called by compiled code only is `inner`: it needs no way in from Python.

Only what a path does at every breakpoint is compiled, as functions of few arrays: compiling
takes seconds, once on every machine. numba looks at the file of the outermost function to see
whether what it kept is still valid: who edits an inner one removes `__pycache__` beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

try:
    import numba
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "traceless.path is compiled by numba, which is not installed: pip install 'traceless[path]'"
    ) from error

F = TypeVar("F", bound=Callable[..., Any])

_ALWAYS: dict[str, Any] = {"cache": True, "error_model": "numpy"}
_LOOSE: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz"}}
_INSIDE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(function: F) -> F:
    """Compile to the letter."""
    out: F = numba.njit(**_ALWAYS)(function)
    return out


def compiled_loosely(function: F) -> F:
    """Compile with sums in any order."""
    out: F = numba.njit(**_ALWAYS, **_LOOSE)(function)
    return out


def inner(function: F) -> F:
    """Compile to the letter, for compiled code only."""
    out: F = numba.njit(**_ALWAYS, **_INSIDE)(function)
    return out


def inner_loosely(function: F) -> F:
    """Compile with sums in any order, for compiled code only."""
    out: F = numba.njit(**_ALWAYS, **_LOOSE, **_INSIDE)(function)
    return out
