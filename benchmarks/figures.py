"""Pictures of what a benchmark found: lines over sizes, multiples of our time, calibration."""

from __future__ import annotations

from itertools import cycle
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import Any

from matplotlib.ticker import FuncFormatter, LogLocator

from benchmarks.findings import FLOOR, Findings, Record, times
from papers.pictures import BLUE, legend_below, panels

REST = ["#d95f0e", "#31a354", "#756bb1", "#c51b8a", "#8c6d31", "#17a2a2", "#636363"]
COLUMNS = 3


def picture(found: Findings, path: Path) -> bool:
    """Draw all jobs that were timed or are curves, one axes each; False where there are none."""
    jobs = {job: rs for job, rs in found.jobs().items() if rs[0].unit == "s" or _is_curve(rs)}
    if not jobs:
        return False
    columns = min(COLUMNS, len(jobs))
    width, height = (4.4 * columns, 3.0 * ceil(len(jobs) / columns)) if columns > 1 else (6.6, 4.2)
    figure, axes = panels(len(jobs), height, columns, width, sharex=False, sharey=False)
    colours = _colours(found)
    for ax, (job, records) in zip(axes, jobs.items(), strict=False):
        draw = _reliability if _is_curve(records) else _lines if _sizes(records) else _multiples
        draw(ax, records, colours)
        ax.set_title(fill(job, 36), fontsize=9, loc="left")
        ax.tick_params(labelsize=8)
    for ax in axes[len(jobs) :]:
        ax.set_axis_off()
    legend_below(figure, axes, 2 if len(axes) == 1 else 4)
    figure.savefig(path, dpi=100)
    return True


def _sizes(records: list[Record]) -> bool:
    """Whether a job was measured at three sizes or more."""
    return len({r.size for r in records}) > 2 and all(r.size is not None for r in records)


def _is_curve(records: list[Record]) -> bool:
    """Whether these are shares over percentages: how often what was said to be likely came true."""
    return records[0].unit == "share" and records[0].case.startswith("p = ")


def _reliability(ax: Any, records: list[Record], colours: dict[str, str]) -> None:
    """Shares over percentages, beside the diagonal that they should lie on."""
    ax.plot([0, 100], [0, 100], "--", color="0.6", lw=1)
    for way in dict.fromkeys(r.way for r in records):
        points = sorted((r.size or 0, 100 * r.value) for r in records if r.way == way)
        ours = way == records[0].way
        style = {"lw": 2 if ours else 1.2, "ms": 5 if ours else 3, "zorder": 3 if ours else 2}
        ax.plot(*zip(*points, strict=True), "o-", label=way, color=colours[way], **style)
    ax.set_xlabel("said, %", fontsize=8)
    ax.set_ylabel("came true, %", fontsize=8)


def _colours(found: Findings) -> dict[str, str]:
    """Ours is blue, the floor grey, and each peer has one colour on all axes."""
    ours = {records[0].way for records in found.jobs().values()}
    peers = dict.fromkeys(r.way for r in found.records if r.way not in ours | {FLOOR})
    peer_colours = dict(zip(peers, cycle(REST), strict=False))
    return peer_colours | dict.fromkeys(ours, BLUE) | {FLOOR: "0.6"}


def _lines(ax: Any, records: list[Record], colours: dict[str, str]) -> None:
    for way in dict.fromkeys(r.way for r in records):
        points = [(r.size, r.value) for r in records if r.way == way]
        ours, style = way == records[0].way, "--" if way == FLOOR else "o-"
        ax.loglog(
            *zip(*points, strict=True),
            style,
            label=way,
            color=colours[way],
            lw=2 if ours else 1.2,
            ms=5 if ours else 3,
            zorder=3 if ours else 2,
        )
    sizes = sorted({r.size for r in records if r.size is not None})
    ax.set_xticks(sizes, [f"{size:g}" if size < 10_000 else f"{size // 1000}k" for size in sizes])
    ax.minorticks_off()
    ax.set_xlabel(records[0].case.partition(" = ")[0], fontsize=8)
    ax.set_ylabel("seconds", fontsize=8)


def _multiples(ax: Any, records: list[Record], colours: dict[str, str]) -> None:
    """Peers at multiples of our time, which is the line at 1."""
    ours = {r.case: r.value for r in records if r.way == records[0].way}
    shown = [r for r in records if r.way != records[0].way and r.case in ours]
    names = [f"{r.way}, {r.case}" if len(ours) > 1 else r.way for r in shown]
    ax.grid(False)
    ax.axvline(1.0, color=BLUE, lw=2)
    for place, r in enumerate(shown):
        ratio, colour = r.value / ours[r.case], colours[r.way]
        ax.plot([1.0, ratio], [place, place], color=colour, lw=1.2)
        ax.plot(ratio, place, "o", color=colour, ms=6)
        away = {"xytext": (7 if ratio >= 1 else -7, 0), "textcoords": "offset points"}
        side = "left" if ratio >= 1 else "right"
        ax.annotate(times(ratio), (ratio, place), **away, ha=side, va="center", fontsize=8)
    ratios = [1.0, *(r.value / ours[r.case] for r in shown)]
    low, high = min(ratios), max(ratios)
    room = 1.5 * (high / low) ** 0.3  # for the numbers beside the dots
    ax.set(xscale="log", xlim=(low / room, high * room), ylim=(len(shown) - 0.5, -0.5))
    ax.set_yticks(range(len(shown)), [fill(name, 24, break_long_words=False) for name in names])
    ax.xaxis.set_major_locator(LogLocator(numticks=5))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g} ×"))
    ax.minorticks_off()
    ax.set_xlabel(f"time, against {records[0].way}", fontsize=8)
