"""Pictures of (e): predicted against measured times, and wall time over workers."""

from __future__ import annotations

from typing import Any

from papers.pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, curve, dress, legend_below, panels
from papers.rows import Rows, column, groups, select

_KINDS = {
    "learn and solve": (BLUE, "the times of (d), predicted"),
    "gather": (GREEN, "gathering"),
    "solve, pooled": (GREY, "solve, pooled"),
    "solve, shared": (ORANGE, "solve, shared weights"),
    "solve, one_vs_rest": (PURPLE, "solve, one-vs-rest"),
}
_LINES = (BLUE, GREEN, ORANGE, PURPLE)
_PARTS = {"gather": ("o", "gathering"), "merge": ("s", "merging"), "solve": ("^", "the solve")}
_TICKS = {1: "1 s", 60: "1 min", 3600: "1 h", 86_400: "1 day"}
_TICKS |= {2_592_000: "1 month", 31_536_000: "1 year"}
_SHOWN = ((1024, 10, "pooled"), (4096, 100, "class-wise"))


def validation(rows: Rows) -> Any:
    """Predicted over measured seconds."""
    figure, (axis,) = panels(height=5.4)
    times = column(rows, "measured") + column(rows, "predicted")
    ends = [0.7 * min(times), 1.4 * max(times)]
    axis.plot(ends, ends, color=GREY, lw=1)
    axis.fill_between(ends, [e / 1.5 for e in ends], [1.5 * e for e in ends], color="#f0f0f0", lw=0)
    for what, (colour, label) in _KINDS.items():
        for used, ours in groups(select(rows, what=what), "used").items():
            look = {"mfc": "white", "ms": 5, "alpha": 0.7} if used == "fitted" else {"ms": 6.5}
            name = None if used == "fitted" else label
            curve(axis, ours, "measured", "predicted", "o", colour, label=name, **look)
    axis.plot([], [], "o", color=GREY, mfc="white", label="hollow: used for the fit")
    dress(axis, "", "measured seconds", "predicted seconds", log="xy")
    axis.set(xlim=ends, ylim=ends)
    axis.minorticks_off()
    place = {"xycoords": "axes fraction", "color": GREY, "fontsize": 9}
    axis.annotate("shaded: within a factor of 1.5", (0.03, 0.95), **place)
    legend_below(figure, axis, 2)
    return figure


def prediction(rows: Rows) -> Any:
    """Wall time over workers, lines for rows; what dominates is marked."""
    figure, axes = panels(2, height=8.6)
    for axis, (J, K, kind) in zip(axes, _SHOWN, strict=True):
        ours = select(rows, features=J, classes=K, knowledge=kind)
        for how, style, size in (("flat", ":", 8), ("tree", "-", 5)):
            lines = groups(select(ours, merging=how), "rows").values()
            for colour, line in zip(_LINES, lines, strict=True):
                curve(axis, line, "workers", "seconds", style, colour)
                for row in line:
                    face = colour if how == "tree" else "white"
                    mark, _ = _PARTS[row["dominant"]]
                    curve(axis, [row], "workers", "seconds", mark, colour, mfc=face, ms=size)
        dress(axis, f"J = {J:,}, K = {K}, {kind} knowledge", y="predicted wall time", log="xy")
        axis.set_yticks(list(_TICKS), list(_TICKS.values()))
        axis.minorticks_off()
        axis.set_ylim(0.3, 5e8)
    axes[1].set_xlabel("workers")
    for colour, n in zip(_LINES, groups(rows, "rows"), strict=True):  # for the legend alone
        label = f"$10^{{{len(f'{n:.0f}') - 1}}}$ rows"
        axes[0].plot([], [], color=colour, lw=2, label=label)
    axes[0].plot([], [], "-", color=GREY, label="tree")
    axes[0].plot([], [], ":", color=GREY, label="flat (hollow)")
    for mark, name in _PARTS.values():
        axes[0].plot([], [], mark, color=GREY, label=f"most of it: {name}")
    legend_below(figure, axes[0], 3)
    return figure
