"""What the figures of all papers share: panels for a phone, plain numbers, quiet colours."""

from __future__ import annotations

from typing import Any, Literal

Shared = bool | Literal["none", "all", "row", "col"]
BLUE, ORANGE, GREEN, PURPLE = "#1b6ca8", "#d95f0e", "#2e8b57", "#8856a7"
GREY = "#7f7f7f"


def panels(
    count: int = 1,
    height: float = 4.0,
    columns: int = 1,
    sharex: Shared = True,
    sharey: Shared = True,
) -> tuple[Any, list[Any]]:
    """A figure and its axes, one below the other so that a phone can show them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, height), layout="constrained")
    axes = figure.subplots(count // columns, columns, squeeze=False, sharex=sharex, sharey=sharey)
    for axis in axes.flat:
        axis.grid(color="#e6e6e6", lw=0.8)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(which="both", color="#b0b0b0")
    return figure, list(axes.flat)


def legend_below(figure: Any, axis: Any, columns: int) -> None:
    """One legend for the whole figure, under it, where it covers nothing."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )


def percent(axis: Any, which: str = "y", decimals: int = 0) -> None:
    """Numbers of an axis in percent."""
    from matplotlib.ticker import PercentFormatter

    getattr(axis, f"{which}axis").set_major_formatter(PercentFormatter(1.0, decimals))


def plain_log(axis: Any, which: str) -> None:
    """A logarithmic axis with numbers as people write them."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    getattr(axis, f"set_{which}scale")("log")
    scale = getattr(axis, f"{which}axis")
    scale.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.10g}"))
    scale.set_minor_formatter(NullFormatter())
