"""The axes and colours of all displays."""

from __future__ import annotations

from typing import Any

BLUE, ORANGE, GREY = "#1b6ca8", "#d95f0e", "#7f7f7f"


def new_axes(rows: int = 1, *, size: tuple[float, float] = (6.4, 4.0), **options: Any) -> Any:
    """Axes of a new figure: one, or an array of them below each other.

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
    return plt.subplots(rows, figsize=size, layout="constrained", **options)[1]


def quieten(ax: Any, grid: str = "both") -> None:
    """No frame where there is no scale, and a grid that stays behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, color="0.9", lw=0.8)
    ax.set_axisbelow(True)
