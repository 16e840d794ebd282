"""Pictures of (a) to (d), from the tables of the measurements."""

from __future__ import annotations

from statistics import mean, stdev
from typing import Any

import numpy as np

from papers.pictures import (
    BLUE,
    GREEN,
    GREY,
    NOTE,
    ORANGE,
    PURPLE,
    curve,
    dress,
    legend_below,
    panels,
)
from papers.rows import Rows, column, groups, select, values

_NODES = (BLUE, ORANGE, GREEN, PURPLE)
_ZERO = 1e-16  # where zero is drawn on a logarithmic axis
_RULES = {  # colour, style and name; W1 lies on "balanced", so it has no line
    ("none", "shared"): (GREY, "D-", "no weights"),
    ("balanced", "shared"): (BLUE, "o-", "balanced"),
    ("inverse", "shared"): (GREEN, "x", "W1"),
    ("golden", "shared"): (ORANGE, "s-", "W2"),
    ("balanced", "one_vs_rest"): (BLUE, "o--", "balanced, 1-vs-rest"),
    ("inverse", "one_vs_rest"): (GREEN, "+", "W1, 1-vs-rest"),
    ("golden", "one_vs_rest"): (ORANGE, "s--", "W2, 1-vs-rest"),
}
_SCALINGS = (
    "speed-up(2) = t(1, n) / t(2, n)",
    "size-up(m) = t(p, m N) / t(p, N)",
    "scale-up(2) = t(1, n) / t(2, 2n)",
)
_HELD = {"all": "all stages held", "window": "last three stages held"}


def equality(rows: Rows) -> Any:
    """(a) Largest difference of a coefficient from batch learning, by stage."""
    figure, (axis,) = panels(height=4.6)
    several = groups(rows, "nodes")
    for k, (colour, (nodes, ours)) in enumerate(zip(_NODES, several.items(), strict=False)):
        shift = 1 + 0.18 * (k - (len(several) - 1) / 2)
        drawn = [r | {"place": place + shift} for place, r in enumerate(ours)]
        for how, style in (("float64_difference", "o--"), ("difference", "s")):
            above = [r | {how: max(r[how], _ZERO)} for r in drawn]
            curve(axis, above, "place", how, style, colour, ms=4, lw=1)
        axis.plot([], [], color=colour, lw=3, label=f"{nodes} node{'s' if nodes > 1 else ''}")
    axis.plot([], [], "o--", color=GREY, ms=4, lw=1, label="float64")
    axis.plot([], [], "s", color=GREY, ms=4, label="traceless")
    _axis_with_zero(axis)
    stages = max(column(rows, "stage"))
    names = [*map(str, range(1, stages + 1)), "slice\nout", "rela-\nbelled"]
    axis.set_xticks(range(1, stages + 3), names)
    dress(axis, "", "stage", "largest difference from batch learning")
    legend_below(figure, axis, 3)
    return figure


def _axis_with_zero(axis: Any) -> None:
    """A logarithmic axis with a gap, and below it zero."""
    powers = range(-14, -9)
    axis.set_yscale("log")
    axis.set_ylim(_ZERO / 3, 3e-10)
    names = ["0", *(f"$10^{{{power}}}$" for power in powers)]
    axis.set_yticks([_ZERO, *(10.0**power for power in powers)], names)
    axis.minorticks_off()
    axis.axhspan(_ZERO * 4, _ZERO * 16, color="white", zorder=3, clip_on=False)


def drifting(rows: Rows) -> Any:
    """(b) G-mean and F by stage, with all stages held and with a few."""
    figure, axes = panels(4, height=7.4, columns=2, sharey="row")
    pairs = [(measure, held) for measure in ("g_mean", "f") for held in values(rows, "held")]
    for axis, (measure, held) in zip(axes, pairs, strict=True):
        for rule, scope in _RULES:
            ours = select(rows, held=held, class_weight=rule, weighting=scope)
            if ours:
                _mean_and_spread(axis, ours, measure)
    stages = groups(rows, "stage")
    every, middle = (1 if len(stages) <= 7 else 2), len(stages) // 2
    names = [
        f"{some[0]['ratio']:.0f}" if (k - middle) % every == 0 else ""
        for k, some in enumerate(stages.values())
    ]
    for held, axis, below in zip(values(rows, "held"), axes[:2], axes[2:], strict=True):
        dress(axis, _HELD[held])
        below.set_xticks(list(stages), names)
        below.set_xlabel("stages, by rows of a common\nclass to one of a rare class")
    axes[0].set_ylabel("G-mean")
    axes[2].set_ylabel("F-measure")
    legend_below(figure, axes[0], 4)
    return figure


def _mean_and_spread(axis: Any, rows: Rows, measure: str) -> None:
    each = {stage: column(some, measure) for stage, some in groups(rows, "stage").items()}
    centre = np.array([mean(v) for v in each.values()])
    spread = np.array([stdev(v) if len(v) > 1 else 0.0 for v in each.values()])
    colour, style, label = _RULES[rows[0]["class_weight"], rows[0]["weighting"]]
    axis.plot(list(each), centre, style, color=colour, ms=5, lw=1.4, label=label)
    low, high = np.maximum(0.0, centre - spread), np.minimum(1.0, centre + spread)
    axis.fill_between(list(each), low, high, color=colour, alpha=0.1, lw=0)


def stage_times(rows: Rows) -> Any:
    """(c) Seconds of each stage, and of all stages so far."""
    figure, (each, total) = panels(2, height=6.4, sharey=False)
    stages = column(rows, "stage")
    learn, solve, retrain = (np.array(column(rows, how)) for how in ("learn", "solve", "retrain"))
    each.bar(stages, solve, 0.55, color=ORANGE, label="the solve")
    each.bar(stages, learn, 0.55, bottom=solve, color=BLUE, label="learning the stage")
    each.plot(stages, retrain, "D--", color=GREY, ms=5, label="retraining on all rows")
    each.set_ylabel("seconds of a stage")
    for seconds, style, colour, label in (
        (retrain.cumsum(), "D--", GREY, "retraining at every stage"),
        ((learn + solve).cumsum(), "o-", BLUE, "incremental"),
    ):
        total.plot(stages, seconds, style, color=colour, ms=5)
        total.annotate(label, (stages[-1], seconds[-1]), (-10, 8), ha="right", color=colour, **NOTE)
    total.set(xlabel="stage", ylabel="seconds of all stages so far", xticks=stages)
    legend_below(figure, each, 3)
    return figure


def worker_times(rows: Rows) -> Any:
    """(d) Speed-up, size-up and scale-up against the number of rows."""
    figure, axes = panels(3, height=8.2, sharey=False)
    sizes = sorted(values(rows, "rows"))
    for colour, (K, ours) in zip((BLUE, ORANGE), groups(rows, "classes").items(), strict=True):
        one, two = (
            np.array([select(ours, rows=n, workers=p)[0]["seconds"] for n in sizes]) for p in (1, 2)
        )
        axes[0].plot(sizes, one / two, "o-", color=colour, label=f"{K} classes")
        for t, p, style in ((one, 1, "s--"), (two, 2, "o-")):
            axes[1].plot(sizes, t / t[0], style, color=colour, label=f"{K} classes, p = {p}")
        axes[2].plot(sizes[:-1], one[:-1] / two[1:], "o-", color=colour)
    ideal = {"color": GREY, "lw": 1, "ls": ":"}
    times = [n / sizes[0] for n in sizes]
    axes[0].axhline(2, **ideal)
    axes[1].plot(sizes, times, **ideal, label="linear, or ideal")
    axes[2].axhline(1, **ideal)
    for axis, text in zip(axes, _SCALINGS, strict=True):
        dress(axis, text, log="x")
        axis.set_xticks(sizes)
        axis.minorticks_off()
    axes[0].set_ylim(0, 2.2)
    dress(axes[1], log="y")
    axes[1].set_yticks(times, [f"{m:g}" for m in times])
    axes[1].minorticks_off()
    axes[2].set_ylim(0, 1.15)
    axes[2].set_xlabel("rows n")
    legend_below(figure, axes[1], 3)
    return figure
