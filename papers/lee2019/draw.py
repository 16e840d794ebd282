"""Pictures of Fig. 1 (a) to (f) of Lee et al. 2019, from the tables of `measure`.

Blue is the linear map, orange the random Fourier map, grey what they are compared with.
"""

from __future__ import annotations

from statistics import median
from typing import Any

from matplotlib.patheffects import withStroke

from papers.pictures import BLUE, GREY, NOTE, ORANGE, curve, dress, legend_below, panels
from papers.rows import Rows, column, groups, select, values

COLOURS = {"Linear": BLUE, "RandomFourier": ORANGE}
_NOISES = {"on the ink": "pixels in proportion to their values", "everywhere": "all pixels alike"}


def groups_learned(rows: Rows) -> Any:
    """Fig. 1 (a): accuracy after each group."""
    figure, (axis,) = panels()
    names = values(rows, "group")
    for name, ours in groups(rows, "map").items():
        axis.plot(column(ours, "accuracy"), "o-", color=COLOURS[name], lw=2, label=name)
    for place, pair in enumerate(groups(rows, "group").values()):
        # the higher number above its point, the lower one below
        for row, offset in zip(sorted(pair, key=lambda r: r["accuracy"]), (-16, 9), strict=True):
            axis.annotate(
                f"{row['accuracy']:.1%}",
                (place, row["accuracy"]),
                (0, offset),
                ha="center",
                color=COLOURS[row["map"]],
                path_effects=[withStroke(linewidth=3, foreground="white")],
                **NOTE,
            )
    axis.set_xticks(range(len(names)), [f"{'+ ' if k else ''}{g}" for k, g in enumerate(names)])
    dress(axis, "", "digits learned", "accuracy on all ten digits (test set)", percent="y")
    axis.margins(x=0.08, y=0.15)
    legend_below(figure, axis, 2)
    return figure


def wrong_labels_forgotten(rows: Rows) -> Any:
    """Fig. 1 (b): accuracy against the share of wrong rows removed."""
    figure, (axis,) = panels(height=4.3)
    for name, ours in groups(rows, "map").items():
        for (reading, some), style in zip(
            groups(ours, "wrong_labels").items(), ("o-", "s--"), strict=True
        ):
            curve(axis, some, "removed", "accuracy", style, COLOURS[name], lw=1.8, ms=5,
                  label=f"{name}, labels {reading}")  # fmt: skip
    names = "wrongly labelled rows forgotten", "accuracy on the test set"
    dress(axis, "", *names, percent="xy")
    legend_below(figure, axis, 2)
    return figure


def update_times(rows: Rows) -> Any:
    """Fig. 1 (c): seconds of an update and of retraining, one panel per map."""
    figure, axes = panels(2, height=6.8)
    thousands = [r | {"size": r["size"] / 1e3} for r in rows]
    for axis, (name, ours) in zip(axes, groups(thousands, "map").items(), strict=True):
        batches = groups(select(ours, how="update"), "batch").items()
        curves = [("retrain, 10 rows", select(ours, how="retrain"), "D--", GREY)]
        curves += [
            (f"update, {batch:,} rows", some, f"{marker}-", COLOURS[name])
            for marker, (batch, some) in zip("os^", batches, strict=False)
        ]
        for label, some, style, colour in curves:
            curve(axis, some, "size", "seconds", style, colour, ms=5)
            end = some[-1]["size"], some[-1]["seconds"]
            axis.annotate(label, end, (9, 0), va="center", color=colour, **NOTE)
        dress(axis, name, y="seconds", log="y", size=12, color=COLOURS[name])
        axis.set_xlim(0, 1.32 * max(column(ours, "size")))
    axes[-1].set_xlabel("rows the original model holds (thousands)")
    return figure


def times_per_row(rows: Rows) -> Any:
    """Fig. 1 (d): time per row against batch size, ours and in one block."""
    figure, axes = panels(2, height=6.8)
    for axis, (name, ours) in zip(axes, groups(rows, "map").items(), strict=True):
        for how, style, colour, label in (
            ("one block", "D--", GREY, "the paper's eq. 5 and 6, in one block"),
            ("traceless", "o-", COLOURS[name], "traceless"),
        ):
            some = select(ours, how=how)
            curve(axis, some, "batch", "seconds_per_row", style, colour, 1e3, ms=5, label=label)
        dress(axis, name, y="milliseconds per row", log="xy", size=12, color=COLOURS[name])
        axis.legend(frameon=False, fontsize=9, loc="upper right", bbox_to_anchor=(1.0, 1.1))
    axes[-1].set_xlabel("batch size (rows)")
    return figure


def storage(rows: Rows) -> Any:
    """Fig. 1 (e): megabytes of rows and models against the number of rows."""
    figure, (axis,) = panels(height=4.8)
    maps = groups(rows, "map")
    curves = [
        (next(iter(maps.values())), "rows_float64", "D-", GREY, "rows, float64"),
        (next(iter(maps.values())), "rows_bytes", "D:", GREY, "rows, one byte per pixel"),
    ]
    for name, ours in maps.items():
        curves += [
            (ours, "w_and_C", "o-", COLOURS[name], f"w and C, {name}"),
            (ours, "whole_model", "s--", COLOURS[name], f"whole model, {name}"),
        ]
    for some, what, style, colour, label in curves:
        curve(axis, some, "size", what, style, colour, 1e-6, ms=4, label=label)
    dress(axis, "", "training rows", "megabytes", log="xy")
    legend_below(figure, axis, 2)
    return figure


def estimates_forgotten(rows: Rows) -> Any:
    """Fig. 1 (f): error of w against error of the row, one panel per kind of noise."""
    figure, axes = panels(2, height=7.6)
    small, large = min(column(rows, "size")), max(column(rows, "size"))
    for axis, (noise, there) in zip(axes, groups(rows, "noise").items(), strict=True):
        axis.axhline(0.01, color=GREY, lw=1)
        axis.axvspan(0.001, 0.1, color="#f3f3f3", zorder=0)
        for name, ours in groups(there, "map").items():
            for size, style in ((large, "o-"), (small, "s--")):
                errors = groups(select(ours, size=size), "row_error")
                medians = [median(column(some, "w_error")) for some in errors.values()]
                label = f"{name}, {size:,} rows held"
                axis.plot(list(errors), medians, style, color=COLOURS[name], ms=5, label=label)
            kept = median(column(select(ours, size=large), "w_error_not_forgotten"))
            label = f"{name}, {large:,} rows, nothing forgotten"
            axis.axhline(kept, color=COLOURS[name], lw=1.2, ls=":", label=label)
        heading = f"error {noise}: {_NOISES[noise]}"
        dress(axis, heading, y="relative error of w (median)", log="xy", percent="xy")
    axes[-1].set_xlabel("relative error of the forgotten row")
    axes[0].annotate("claim", (0.001, 0.01), (3, 3), textcoords="offset points", color=GREY)
    legend_below(figure, axes[0], 2)
    return figure
