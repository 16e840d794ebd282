"""Pictures of (e): predicted against measured times, and wall time over workers."""

from __future__ import annotations

from typing import Any

from traceless.experiments.pictures import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    legend_below,
    panels,
    plain_log,
)
from traceless.experiments.verdict import Rows, column, select, values

_KINDS = {
    "learn and solve": (BLUE, "the times of (d), predicted"),
    "gather": (GREEN, "gathering"),
    "solve, pooled": (GREY, "solve, pooled"),
    "solve, shared": (ORANGE, "solve, shared weights"),
    "solve, one_vs_rest": (PURPLE, "solve, one-vs-rest"),
}
_LINES = (BLUE, GREEN, ORANGE, PURPLE)
_PARTS = {"gather": "o", "merge": "s", "solve": "^"}
_SHOWN = ((1024, 10, "pooled"), (4096, 100, "class-wise"))


def validation(rows: Rows) -> Any:
    """Predicted over measured seconds."""
    figure, (axis,) = panels(height=5.4)
    times = column(rows, "measured") + column(rows, "predicted")
    ends = [0.7 * min(times), 1.4 * max(times)]
    axis.plot(ends, ends, color=GREY, lw=1)
    axis.fill_between(ends, [e / 1.5 for e in ends], [1.5 * e for e in ends], color="#f0f0f0", lw=0)
    for what, (colour, label) in _KINDS.items():
        ours = select(rows, what=what)
        fitted = [r for r in ours if r["used"] == "fitted"]
        other = [r for r in ours if r["used"] != "fitted"]
        axis.plot(*_both(fitted), "o", color=colour, mfc="white", ms=5, alpha=0.7)
        axis.plot(*_both(other), "o", color=colour, ms=6.5, label=label)
    axis.plot([], [], "o", color=GREY, mfc="white", label="hollow: used for the fit")
    plain_log(axis, "x")
    plain_log(axis, "y")
    axis.set(xlabel="measured seconds", ylabel="predicted seconds", xlim=ends, ylim=ends)
    axis.minorticks_off()
    place = {"xycoords": "axes fraction", "color": GREY, "fontsize": 9}
    axis.annotate("shaded: within a factor of 1.5", (0.03, 0.95), **place)
    legend_below(figure, axis, 2)
    return figure


def _both(rows: Rows) -> tuple[list[float], list[float]]:
    return column(rows, "measured"), column(rows, "predicted")


def prediction(rows: Rows) -> Any:
    """Wall time over workers, lines for rows; what dominates is marked."""
    figure, axes = panels(2, height=8.6)
    for axis, (J, K, kind) in zip(axes, _SHOWN, strict=True):
        ours = select(rows, features=J, classes=K, knowledge=kind)
        for how in ("flat", "tree"):
            for colour, n in zip(_LINES, values(ours, "rows"), strict=True):
                _line(axis, select(ours, rows=n, merging=how), how, colour)
        axis.set_title(f"J = {J:,}, K = {K}, {kind} knowledge", loc="left", fontsize=11)
        plain_log(axis, "x")
        axis.set_yscale("log")
        axis.set_ylabel("predicted wall time")
        _in_words(axis)
    axes[1].set_xlabel("workers")
    _explain(axes[0], values(rows, "rows"))
    legend_below(figure, axes[0], 3)
    return figure


def _line(axis: Any, rows: Rows, how: str, colour: str) -> None:
    """Wall time over workers, with a mark for what takes most of it."""
    style, face, size = ("-", colour, 5) if how == "tree" else (":", "white", 8)
    axis.plot(column(rows, "workers"), column(rows, "seconds"), style, color=colour)
    for row in rows:
        marker = _PARTS[row["dominant"]]
        axis.plot(row["workers"], row["seconds"], marker, color=colour, mfc=face, ms=size)


def _in_words(axis: Any) -> None:
    """Times of day as ticks."""
    ticks = {
        1: "1 s",
        60: "1 min",
        3600: "1 h",
        86400: "1 day",
        2592000: "1 month",
        31536000: "1 year",
    }
    axis.set_yticks(list(ticks), list(ticks.values()))
    axis.minorticks_off()
    axis.set_ylim(0.3, 5e8)


def _explain(axis: Any, rows: list[float]) -> None:
    """Lines that only the legend shows."""
    for colour, n in zip(_LINES, rows, strict=True):
        axis.plot([], [], color=colour, lw=2, label=f"$10^{{{len(f'{n:.0f}') - 1}}}$ rows")
    axis.plot([], [], "-", color=GREY, label="tree")
    axis.plot([], [], ":", color=GREY, label="flat (hollow)")
    for part, marker in _PARTS.items():
        name = {"gather": "gathering", "merge": "merging", "solve": "the solve"}[part]
        axis.plot([], [], marker, color=GREY, label=f"most of it: {name}")
