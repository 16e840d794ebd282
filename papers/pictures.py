"""Figures for the reports: panels for a phone, plain numbers, quiet colours."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from papers.rows import Rows, column

BLUE, ORANGE, GREEN, PURPLE = "#1b6ca8", "#d95f0e", "#2e8b57", "#8856a7"
GREY = "#7f7f7f"
NOTE: dict[str, Any] = {"textcoords": "offset points", "fontsize": 9}  # beside a point


def panels(
    count: int = 1, height: float = 4.0, columns: int = 1, width: float = 6.4, **shared: Any
) -> tuple[Figure, list[Any]]:
    """A figure and its axes, one below the other so that a phone can show them."""
    figure = Figure(figsize=(width, height), layout="constrained")
    shared = {"sharex": True, "sharey": True} | shared
    axes = figure.subplots(-(-count // columns), columns, squeeze=False, **shared)
    for axis in axes.flat:
        axis.grid(color="#e6e6e6", lw=0.8)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(which="both", color="#b0b0b0")
    return figure, list(axes.flat)


def curve(
    axis: Any, rows: Rows, x: str, y: str, style: str, colour: str, scale: float = 1.0, **more: Any
) -> None:
    """One column over another, the latter in other units where a scale is given."""
    axis.plot(column(rows, x), [scale * v for v in column(rows, y)], style, color=colour, **more)


def dress(
    axis: Any,
    title: str = "",
    x: str = "",
    y: str = "",
    *,
    log: str = "",
    percent: str = "",
    size: float = 11,
    **more: Any,
) -> None:
    """What a panel shows, at its left, and the names of its axes.

    Axes named by `log` ("x", "y" or both) are logarithmic, with numbers as people write them;
    those named by `percent` are in percent. `more` are properties of the title.
    """
    if title:
        axis.set_title(title, loc="left", fontsize=size, **more)
    if x:
        axis.set_xlabel(x)
    if y:
        axis.set_ylabel(y)
    for name in log:
        getattr(axis, f"set_{name}scale")("log")
    for name in {*log, *percent}:
        words, scale = ("{:.10g}%", 100) if name in percent else ("{:,.10g}", 1)
        ticks = getattr(axis, f"{name}axis")
        ticks.set_major_formatter(FuncFormatter(partial(_plain, words, scale)))
        ticks.set_minor_formatter(NullFormatter())


def _plain(words: str, scale: float, value: float, _: int) -> str:
    return words.format(round(scale * value, 10))


def legend_below(figure: Any, axes: Any, columns: int) -> None:
    """One legend for some axes, under the whole figure, where it covers nothing."""
    found: dict[str, Any] = {}
    for axis in np.ravel(axes):
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        where = {"loc": "outside lower center", "ncols": columns}
        figure.legend(found.values(), found.keys(), **where, frameon=False, fontsize=9)
