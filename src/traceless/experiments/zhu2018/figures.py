"""Pictures of (a) to (d), from the tables of the measurements."""

from __future__ import annotations

from statistics import mean, stdev
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
from traceless.experiments.zhu2018.criteria import seconds

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
    several = values(rows, "nodes")
    for k, (colour, nodes) in enumerate(zip(_NODES, several, strict=False)):
        ours = select(rows, nodes=nodes)
        places = [place + 0.18 * (k - (len(several) - 1) / 2) for place in range(1, len(ours) + 1)]
        for how, style in (("float64_difference", "o--"), ("difference", "s")):
            drawn = [max(v, _ZERO) for v in column(ours, how)]
            axis.plot(places, drawn, style, color=colour, ms=4, lw=1)
        axis.plot([], [], color=colour, lw=3, label=f"{nodes} node{'s' if nodes > 1 else ''}")
    axis.plot([], [], "o--", color=GREY, ms=4, lw=1, label="float64")
    axis.plot([], [], "s", color=GREY, ms=4, label="traceless")
    _axis_with_zero(axis)
    stages = max(column(rows, "stage"))
    names = [*map(str, range(1, stages + 1)), "slice\nout", "rela-\nbelled"]
    axis.set_xticks(range(1, stages + 3), names)
    axis.set(xlabel="stage", ylabel="largest difference from batch learning")
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
    for axis, held in zip(axes, values(rows, "held"), strict=False):
        axis.set_title(_HELD[held], loc="left", fontsize=11)
    for axis in axes[2:]:
        _name_stages(axis, rows)
        axis.set_xlabel("stages, by rows of a common\nclass to one of a rare class")
    axes[0].set_ylabel("G-mean")
    axes[2].set_ylabel("F-measure")
    legend_below(figure, axes[0], 4)
    return figure


def _name_stages(axis: Any, rows: Rows) -> None:
    """Ratios as names of the stages: all of a short stream, else every other one."""
    stages = values(rows, "stage")
    ratios = [select(rows, stage=k)[0]["ratio"] for k in stages]
    every = 1 if len(stages) <= 7 else 2
    middle = len(stages) // 2
    named = [f"{r:.0f}" if (k - middle) % every == 0 else "" for k, r in enumerate(ratios)]
    axis.set_xticks(stages, named)


def _mean_and_spread(axis: Any, rows: Rows, measure: str) -> None:
    stages = values(rows, "stage")
    each = [column(select(rows, stage=s), measure) for s in stages]
    centre = [mean(v) for v in each]
    spread = [stdev(v) if len(v) > 1 else 0.0 for v in each]
    colour, style, label = _RULES[rows[0]["class_weight"], rows[0]["weighting"]]
    axis.plot(stages, centre, style, color=colour, ms=5, lw=1.4, label=label)
    low = [max(0.0, c - s) for c, s in zip(centre, spread, strict=True)]
    high = [min(1.0, c + s) for c, s in zip(centre, spread, strict=True)]
    axis.fill_between(stages, low, high, color=colour, alpha=0.1, lw=0)


def stage_times(rows: Rows) -> Any:
    """(c) Seconds of each stage, and of all stages so far."""
    figure, (each, total) = panels(2, height=6.4, sharey=False)
    stages = column(rows, "stage")
    learn, solve, retrain = (column(rows, how) for how in ("learn", "solve", "retrain"))
    each.bar(stages, solve, 0.55, color=ORANGE, label="the solve")
    each.bar(stages, learn, 0.55, bottom=solve, color=BLUE, label="learning the stage")
    each.plot(stages, retrain, "D--", color=GREY, ms=5, label="retraining on all rows")
    each.set_ylabel("seconds of a stage")
    both = [a + b for a, b in zip(learn, solve, strict=True)]
    total.plot(stages, _running(retrain), "D--", color=GREY, ms=5)
    total.plot(stages, _running(both), "o-", color=BLUE, ms=5)
    for series, colour, label in (
        (_running(retrain), GREY, "retraining at every stage"),
        (_running(both), BLUE, "incremental"),
    ):
        place = {"textcoords": "offset points", "ha": "right", "fontsize": 9, "color": colour}
        total.annotate(label, (stages[-1], series[-1]), (-10, 8), **place)
    total.set(xlabel="stage", ylabel="seconds of all stages so far", xticks=stages)
    legend_below(figure, each, 3)
    return figure


def _running(numbers: list[float]) -> list[float]:
    return [sum(numbers[: k + 1]) for k in range(len(numbers))]


def worker_times(rows: Rows) -> Any:
    """(d) Speed-up, size-up and scale-up against the number of rows."""
    figure, axes = panels(3, height=8.2, sharey=False)
    sizes = sorted(values(rows, "rows"))
    for colour, K in zip((BLUE, ORANGE), values(rows, "classes"), strict=True):
        ours = select(rows, classes=K)
        one, two = ([seconds(ours, n, p) for n in sizes] for p in (1, 2))
        label = f"{K} classes"
        speed = [a / b for a, b in zip(one, two, strict=True)]
        scale = [a / b for a, b in zip(one, two[1:], strict=False)]
        axes[0].plot(sizes, speed, "o-", color=colour, label=label)
        axes[1].plot(sizes, [t / one[0] for t in one], "s--", color=colour, label=f"{label}, p = 1")
        axes[1].plot(sizes, [t / two[0] for t in two], "o-", color=colour, label=f"{label}, p = 2")
        axes[2].plot(sizes[:-1], scale, "o-", color=colour)
    ideal = {"color": GREY, "lw": 1, "ls": ":"}
    times = [n / sizes[0] for n in sizes]
    axes[0].axhline(2, **ideal)
    axes[1].plot(sizes, times, **ideal, label="linear, or ideal")
    axes[2].axhline(1, **ideal)
    for axis, title in zip(axes, _SCALINGS, strict=True):
        axis.set_title(title, loc="left", fontsize=11)
        plain_log(axis, "x")
        axis.set_xticks(sizes)
        axis.minorticks_off()
    axes[0].set_ylim(0, 2.2)
    plain_log(axes[1], "y")
    axes[1].set_yticks(times, [f"{m:g}" for m in times])
    axes[1].minorticks_off()
    axes[2].set_ylim(0, 1.15)
    axes[2].set_xlabel("rows n")
    legend_below(figure, axes[1], 3)
    return figure
