"""The axes of the displays."""

from __future__ import annotations

from typing import Any


def new_axes(rows: int = 1, **options: Any) -> Any:
    """Axes of a new figure, below each other if they are several.

    Raises
    ------
    ImportError
        If matplotlib is not installed; it says which extra has it.
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"Drawing needs matplotlib: pip install 'traceless[plots]' ({error})."
        ) from error
    return plt.subplots(rows, layout="constrained", **options)[1]
