"""The axes and colours of all displays."""

from __future__ import annotations

from typing import Any

BLUE, ORANGE, GREY = "#1b6ca8", "#d95f0e", "#7f7f7f"


def axes_for(display: Any, ax: Any, rows: int = 1, **options: Any) -> Any:
    """The axes that are given, or those of a new figure; the display keeps both.

    Raises
    ------
    ImportError
        If matplotlib is not installed; it says which extra has it.
    """
    if ax is None:
        try:
            from matplotlib import pyplot as plt
        except ImportError as error:
            raise ImportError(
                f"Drawing needs matplotlib: pip install 'traceless[plots]' ({error})."
            ) from error
        options = {"figsize": (6.4, 4.0), "layout": "constrained"} | options
        ax = plt.subplots(rows, **options)[1]
    display.ax_ = ax if rows == 1 else tuple(ax)
    display.figure_ = ax.figure if rows == 1 else ax[0].figure
    return display.ax_


def legend_beside(ax: Any) -> None:
    """The legend on the right of the axes, where it covers nothing."""
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def quieten(ax: Any, grid: str = "both") -> None:
    """Hide the frame on the sides without a scale, and draw a grid behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis=grid, color="0.9", lw=0.8)
    ax.set_axisbelow(True)
