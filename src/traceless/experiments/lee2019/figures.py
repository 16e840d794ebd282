"""Pictures of Fig. 1 (a) to (f) of Lee et al. 2019, from the tables of `measurements`.

Blue is the linear map, orange the random Fourier map, grey what they are compared with.
"""

from __future__ import annotations

from statistics import median
from typing import Any

from traceless.experiments.pictures import (
    BLUE,
    GREY,
    ORANGE,
    legend_below,
    panels,
    percent,
    plain_log,
)
from traceless.experiments.verdict import Rows, column, select, values

COLOURS = {"Linear": BLUE, "RandomFourier": ORANGE}
_MARKERS = "os^"
_NOISES = {"on the ink": "pixels in proportion to their values", "everywhere": "all pixels alike"}


def groups_learned(rows: Rows) -> Any:
    """Fig. 1 (a): accuracy after each group."""
    figure, (axis,) = panels()
    groups = values(rows, "group")
    for name in values(rows, "map"):
        accuracy = column(select(rows, map=name), "accuracy")
        axis.plot(range(len(groups)), accuracy, "o-", color=COLOURS[name], lw=2, label=name)
    for place, group in enumerate(groups):
        _label_points(axis, place, select(rows, group=group))
    axis.set_xticks(range(len(groups)), [f"{'+ ' if k else ''}{g}" for k, g in enumerate(groups)])
    axis.set(xlabel="digits learned", ylabel="accuracy on all ten digits (test set)")
    axis.margins(x=0.08, y=0.15)
    percent(axis)
    legend_below(figure, axis, 2)
    return figure


def _label_points(axis: Any, place: int, rows: Rows) -> None:
    """The numbers at one place, the higher one above its point and the lower one below."""
    from matplotlib.patheffects import withStroke

    for row, offset in zip(sorted(rows, key=lambda r: r["accuracy"]), (-16, 9), strict=True):
        axis.annotate(
            f"{row['accuracy']:.1%}",
            (place, row["accuracy"]),
            (0, offset),
            textcoords="offset points",
            ha="center",
            fontsize=9,
            color=COLOURS[row["map"]],
            path_effects=[withStroke(linewidth=3, foreground="white")],
        )


def wrong_labels_forgotten(rows: Rows) -> Any:
    """Fig. 1 (b): accuracy against the share of wrong rows removed."""
    figure, (axis,) = panels(height=4.3)
    styles = {"flipped": "o-", "drawn at random": "s--"}
    for name in values(rows, "map"):
        for reading, style in styles.items():
            ours = select(rows, map=name, wrong_labels=reading)
            axis.plot(
                column(ours, "removed"),
                column(ours, "accuracy"),
                style,
                color=COLOURS[name],
                lw=1.8,
                ms=5,
                label=f"{name}, labels {reading}",
            )
    axis.set(xlabel="wrongly labelled rows forgotten", ylabel="accuracy on the test set")
    percent(axis)
    percent(axis, "x")
    legend_below(figure, axis, 2)
    return figure


def update_times(rows: Rows) -> Any:
    """Fig. 1 (c): seconds of an update and of retraining, one panel per map."""
    figure, axes = panels(2, height=6.8)
    for axis, name in zip(axes, values(rows, "map"), strict=True):
        ours = select(rows, map=name)
        _time_curve(axis, select(ours, how="retrain"), "retrain, 10 rows", "D--", GREY)
        batches = values(select(ours, how="update"), "batch")
        for marker, batch in zip(_MARKERS, batches, strict=False):
            curve = select(ours, how="update", batch=batch)
            _time_curve(axis, curve, f"update, {batch:,} rows", f"{marker}-", COLOURS[name])
        axis.set_title(name, loc="left", color=COLOURS[name])
        axis.set(ylabel="seconds", xlim=(0, 1.32e-3 * max(column(rows, "size"))))
        plain_log(axis, "y")
    axes[-1].set_xlabel("rows the original model holds (thousands)")
    return figure


def _time_curve(axis: Any, rows: Rows, label: str, style: str, colour: str) -> None:
    """Seconds against size, with the label at the end of the curve."""
    sizes, seconds = [r["size"] / 1e3 for r in rows], column(rows, "seconds")
    axis.plot(sizes, seconds, style, color=colour, ms=5)
    axis.annotate(
        label,
        (sizes[-1], seconds[-1]),
        (9, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        color=colour,
    )


def times_per_row(rows: Rows) -> Any:
    """Fig. 1 (d): time per row against batch size, ours and in one block."""
    figure, axes = panels(2, height=6.8)
    for axis, name in zip(axes, values(rows, "map"), strict=True):
        for how, style, colour, label in (
            ("one block", "D--", GREY, "the paper's eq. 5 and 6, in one block"),
            ("traceless", "o-", COLOURS[name], "traceless"),
        ):
            ours = select(rows, map=name, how=how)
            per_row = [1e3 * r["seconds_per_row"] for r in ours]
            axis.plot(column(ours, "batch"), per_row, style, color=colour, ms=5, label=label)
        axis.set_title(name, loc="left", color=COLOURS[name])
        axis.set_ylabel("milliseconds per row")
        plain_log(axis, "x")
        plain_log(axis, "y")
        axis.legend(frameon=False, fontsize=9, loc="upper right", bbox_to_anchor=(1.0, 1.1))
    axes[-1].set_xlabel("batch size (rows)")
    return figure


def storage(rows: Rows) -> Any:
    """Fig. 1 (e): megabytes of rows and models against the number of rows."""
    figure, (axis,) = panels(height=4.8)
    first = select(rows, map=rows[0]["map"])
    for name, style, label in (
        ("rows_float64", "D-", "rows, float64"),
        ("rows_bytes", "D:", "rows, one byte per pixel"),
    ):
        megabytes = [r[name] / 1e6 for r in first]
        axis.plot(column(first, "size"), megabytes, style, color=GREY, ms=4, label=label)
    for name in values(rows, "map"):
        ours = select(rows, map=name)
        for what, style, label in (
            ("w_and_C", "o-", "w and C"),
            ("whole_model", "s--", "whole model"),
        ):
            megabytes = [r[what] / 1e6 for r in ours]
            axis.plot(
                column(ours, "size"),
                megabytes,
                style,
                color=COLOURS[name],
                ms=4,
                label=f"{label}, {name}",
            )
    plain_log(axis, "x")
    plain_log(axis, "y")
    axis.set(xlabel="training rows", ylabel="megabytes")
    legend_below(figure, axis, 2)
    return figure


def estimates_forgotten(rows: Rows) -> Any:
    """Fig. 1 (f): error of w against error of the row, one panel per kind of noise."""
    figure, axes = panels(2, height=7.6)
    small, large = min(column(rows, "size")), max(column(rows, "size"))
    for axis, noise in zip(axes, values(rows, "noise"), strict=True):
        axis.axhline(0.01, color=GREY, lw=1)
        axis.axvspan(0.001, 0.1, color="#f3f3f3", zorder=0)
        for name in values(rows, "map"):
            for size, style in ((large, "o-"), (small, "s--")):
                ours = select(rows, map=name, size=size, noise=noise)
                axis.plot(
                    values(ours, "row_error"),
                    _medians(ours),
                    style,
                    color=COLOURS[name],
                    ms=5,
                    label=f"{name}, {size:,} rows held",
                )
            kept = median(column(select(rows, map=name, size=large), "w_error_not_forgotten"))
            label = f"{name}, {large:,} rows, nothing forgotten"
            axis.axhline(kept, color=COLOURS[name], lw=1.2, ls=":", label=label)
        _plain_percent(axis)
        axis.set_title(f"error {noise}: {_NOISES[noise]}", loc="left", fontsize=11)
        axis.set_ylabel("relative error of w (median)")
    axes[-1].set_xlabel("relative error of the forgotten row")
    axes[0].annotate("claim", (0.001, 0.01), (3, 3), textcoords="offset points", color=GREY)
    legend_below(figure, axes[0], 2)
    return figure


def _medians(rows: Rows) -> list[float]:
    """Median error of w for each error of the row."""
    return [median(column(select(rows, row_error=e), "w_error")) for e in values(rows, "row_error")]


def _plain_percent(axis: Any) -> None:
    """Both axes logarithmic, in percent."""
    from matplotlib.ticker import FuncFormatter

    for which in "xy":
        plain_log(axis, which)
        scale = getattr(axis, f"{which}axis")
        scale.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.10g}%"))
