"""How functions of this package are compiled: by numba, once, kept on disk.

`compiled` follows IEEE 754 to the letter, operation by operation, so that its results are
the same bits on every machine; `compiled_loosely` may sum in another order, for speed.
"""

from __future__ import annotations

from typing import Any

try:
    import numba
except ImportError as error:  # pragma: no cover
    raise ImportError(
        "traceless.path is compiled by numba, which is not installed: pip install 'traceless[path]'"
    ) from error

_ONLY_INSIDE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # quicker to compile
_LOOSE = {"reassoc", "contract", "nsz"}

compiled: Any = numba.njit(cache=True, error_model="numpy")
compiled_loosely: Any = numba.njit(cache=True, error_model="numpy", fastmath=_LOOSE)
inner: Any = numba.njit(cache=True, error_model="numpy", **_ONLY_INSIDE)
inner_loosely: Any = numba.njit(
    cache=True, error_model="numpy", fastmath=_LOOSE, **_ONLY_INSIDE
)
