"""One BLAS thread for each task: engines run as many tasks as there are cores."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """Within it, matrix products use one thread."""
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1)
    return limit


@cache
def _libraries() -> Any:
    """The BLAS libraries of this process; to find them takes as long as to learn a small task."""
    return ThreadpoolController()
