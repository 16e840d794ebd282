"""How functions of this package are compiled: by numba, once, cached on disk.

`compiled` follows IEEE 754 operation by operation, so that its results are the same bits on every
machine; `compiled_loosely` may sum in another order, for speed. Functions that only compiled code
calls are `inner`: they need no wrapper for Python.

Only what a path does at every breakpoint is compiled, as functions of few arrays: compiling
takes seconds, once on every machine. A compiled function contains those that it calls, but
numba compares only the file of the outermost one with what it has cached. So the name in the cache
has a hash of all sources that may be compiled in: after an edit of any file nothing old is
found. Where numba can write neither beside the package nor to the user's cache, every process
compiles for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from typing import Any, TypeVar

try:
    import numba
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "PathSVC is compiled by numba, which is not installed: pip install 'traceless[path]'"
    ) from error

F = TypeVar("F", bound=Callable[..., Any])


@cache
def _sources() -> str:
    """A hash of what is compiled: this package, and the constants it has from elsewhere."""
    here = [path for path in files("traceless.hinge").iterdir() if path.name.endswith(".py")]
    h = sha256()
    ours = files("traceless") / "arithmetic" / "elementary.py"
    for path in [*sorted(here, key=lambda p: p.name), ours]:
        text = path.read_bytes()
        h.update(f"{path.name} {len(text)} ".encode() + text)
    return h.hexdigest()[:16]


def compiled(function: F, **options: Any) -> F:
    """Compile, each operation as it is written."""
    function.__qualname__ += f"-{_sources()}"  # by which numba names what it caches
    out: F
    try:
        out = numba.njit(**options, error_model="numpy", cache=True)(function)
    except RuntimeError:  # there is no folder for the cache
        out = numba.njit(**options, error_model="numpy")(function)
    return out


_loose: dict[str, Any] = {"fastmath": {"reassoc", "contract", "nsz"}}
_inside: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# with sums in any order; for compiled code only; and both
compiled_loosely: Callable[[F], F] = partial(compiled, **_loose)
inner: Callable[[F], F] = partial(compiled, **_inside)
inner_loosely: Callable[[F], F] = partial(compiled, **_loose, **_inside)
