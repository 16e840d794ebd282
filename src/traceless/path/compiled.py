"""How functions of this package are compiled: by numba, once, kept on disk.

`compiled` follows IEEE 754 to the letter, operation by operation, so that its results are
the same bits on every machine; `compiled_loosely` may sum in another order, for speed. What
is called by compiled code only is `inner`: it needs no way in from Python.

Only what a path does at every breakpoint is compiled, as functions of few arrays: compiling
takes seconds, once on every machine. A compiled function contains those that it calls, but
numba only looks at the file of the outermost one to see whether what it kept is still valid.
So the name under which it is kept has a hash of all sources that any of them comes from: after
an edit of any file nothing old is found. Where no folder can be written to, not beside the
package nor in the user's cache, every process compiles for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, TypeVar

try:
    import numba
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "traceless.path is compiled by numba, which is not installed: pip install 'traceless[path]'"
    ) from error

F = TypeVar("F", bound=Callable[..., Any])

_ALWAYS: dict[str, Any] = {"error_model": "numpy"}
_LOOSE: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz"}}
_INSIDE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@cache
def _sources() -> str:
    """A hash of what is compiled: this package, and the constants it has from elsewhere."""
    here = [path for path in files("traceless.path").iterdir() if path.name.endswith(".py")]
    h = sha256()
    ours = files("traceless") / "arithmetic" / "elementary.py"
    for path in [*sorted(here, key=lambda p: p.name), ours]:
        text = path.read_bytes()
        h.update(f"{path.name} {len(text)} ".encode() + text)
    return h.hexdigest()[:16]


def _jit(function: F, **options: Any) -> F:
    function.__qualname__ += f"-{_sources()}"  # numba names what it keeps by it
    out: F
    try:
        out = numba.njit(**_ALWAYS, **options, cache=True)(function)
    except RuntimeError:  # no folder to keep it in
        out = numba.njit(**_ALWAYS, **options)(function)
    return out


def compiled(function: F) -> F:
    """Compile to the letter."""
    return _jit(function)


def compiled_loosely(function: F) -> F:
    """Compile with sums in any order."""
    return _jit(function, **_LOOSE)


def inner(function: F) -> F:
    """Compile to the letter, for compiled code only."""
    return _jit(function, **_INSIDE)


def inner_loosely(function: F) -> F:
    """Compile with sums in any order, for compiled code only."""
    return _jit(function, **_LOOSE, **_INSIDE)
