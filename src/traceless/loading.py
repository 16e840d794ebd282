"""Open a file of a model: read, audit, and only then construct."""

from __future__ import annotations

from typing import Any


def load(path: Any) -> Any:
    """The estimator that `save` wrote to a file."""
    raise NotImplementedError
