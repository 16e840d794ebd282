"""Drawings for a page: SVG as text, in the colours of the page, without scripts.

Every drawing has a title and a description for those who do not see it. Names in it come from
anywhere, and go through `text`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from traceless.store.page import text

WIDTH = 960
_LEFT, _RIGHT = 78, 8  # margins: numbers of the axis stand in the left one
COLOURS = (
    *("#12977f", "#e0883a", "#5a86d0", "#c05a94", "#a3a23a", "#8577c9", "#d26a5c", "#4fb0c6"),
)
GREY, OTHERS = "#8a949e", "other classes"
STYLE = """
figure { margin: .6rem 0 } svg { width: 100%; height: auto; display: block }
svg text { font: 12px system-ui, sans-serif; fill: var(--soft) } svg .grid { stroke: var(--line) }
svg .zero { stroke: var(--soft) } svg .strong { fill: var(--ink); font-weight: 600 }
svg .inverse { fill: var(--paper); font-weight: 600 } figcaption { font-size: .88rem }
.key { display: inline-block; margin-right: 1.1rem; white-space: nowrap }
.key i { display: inline-block; width: .8em; height: .8em; border-radius: 2px;
  margin-right: .35em; vertical-align: -.05em }
@media print { svg, .key i { print-color-adjust: exact; -webkit-print-color-adjust: exact } }
"""


@dataclass(frozen=True)
class Bin:
    """What happened in a stretch of time, and how many rows of each kind were held after it."""

    learned: int
    forgotten: int
    held: Sequence[int]


def number(value: float) -> str:
    """A whole number with thin spaces between thousands."""
    return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def decimal(value: float) -> str:
    """A number with some four digits."""
    return number(value) if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def figure(
    size: tuple[int, int], title: str, description: str, body: str, caption: str = ""
) -> str:
    """A drawing of so many units, with a title and a description."""
    width, height = size
    below = f"<figcaption>{caption}</figcaption>" if caption else ""
    return (
        f'<figure style="flex:0 1 {width}px"><svg viewBox="0 0 {width} {height}" role="img">'
        f"<title>{text(title, 200)}</title><desc>{text(description, 400)}</desc>{body}</svg>"
        f"{below}</figure>"
    )


def keys(names: Sequence[str]) -> str:
    """Which colour stands for what."""
    return "".join(
        f'<span class="key"><i style="background:{colour}"></i><bdi>{text(name)}</bdi></span>'
        for name, colour in zip(names, _colours(names), strict=True)
    )


def _colours(names: Sequence[str]) -> list[str]:
    """A colour for each name, grey for what is drawn together."""
    return [
        GREY if name == OTHERS else colour for name, colour in zip(names, COLOURS, strict=False)
    ]


def history(bins: Sequence[Bin], names: Sequence[str], start: datetime, end: datetime) -> str:
    """Rows held, one area for each name above the other; below, rows learned and forgotten."""
    top, floor, bars = 10, 250, 350
    most = max(1, *(sum(one.held) for one in bins))
    step = (WIDTH - _LEFT - _RIGHT) / len(bins)
    parts = [_rules(most, top, floor)]
    below = [0] * len(bins)
    for k, (name, colour) in enumerate(zip(names, _colours(names), strict=True)):
        above = [b + one.held[k] for b, one in zip(below, bins, strict=True)]
        edges = [_steps(levels, step, most, top, floor) for levels in (above, below)]
        path = f"M{' L'.join([*edges[0], *reversed(edges[1])])} Z"
        last = bins[-1].held[k]
        parts.append(
            f'<path d="{path}" fill="{colour}" fill-opacity=".82"><title>{text(name)}: '
            f"{number(last)} rows now</title></path>"
        )
        below = above
    largest = max(1, *(max(one.learned, one.forgotten) for one in bins))
    for k, one in enumerate(bins):
        parts += _bar(_LEFT + k * step, step, bars, one.learned, largest, "learned")
        parts += _bar(_LEFT + k * step, step, bars, -one.forgotten, largest, "forgotten")
    middle = f'<line class="zero" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{bars}" y2="{bars}"/>'
    said = [
        _label(_LEFT - 10, bars - 18, "learned", "end"),
        _label(_LEFT - 10, bars + 26, "forgotten", "end"),
    ]
    ticks = [_tick(at, said, start, end) for at, said in times(start, end)]
    rows = number(sum(bins[-1].held))
    return figure(
        (WIDTH, 420),
        "Rows over time",
        f"{start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC; {rows} rows are held at the end.",
        "".join([*ticks, *parts, middle, *said]),
        keys(names) if len(names) > 1 else "",
    )


def _rules(most: int, top: int, floor: int) -> str:
    """Lines at round numbers of rows."""
    unit = 10 ** math.floor(math.log10(most))
    unit = next(unit * k for k in (0.2, 0.5, 1, 2) if most / (unit * k) <= 5)
    unit = max(1, round(unit))
    out = []
    for rows in range(0, most + 1, unit):
        y = floor - (floor - top) * rows / most
        out.append(
            f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        out.append(_label(_LEFT - 10, y + 4, number(rows), "end"))
    return "".join(out)


def _steps(levels: Sequence[int], step: float, most: int, top: int, floor: int) -> list[str]:
    """The corners of a line that stays level within each bin; equal levels need no corner."""
    out = []
    for k, level in enumerate(levels):
        y = floor - (floor - top) * level / most
        if k in (0, len(levels) - 1) or level != levels[k - 1] or level != levels[k + 1]:
            out += [f"{_LEFT + k * step:.1f},{y:.1f}", f"{_LEFT + (k + 1) * step:.1f},{y:.1f}"]
    return out


def _bar(x: float, step: float, y: int, rows: int, largest: int, word: str) -> list[str]:
    """A bar up or down; however small, it can be seen."""
    if not rows:
        return []
    height = max(3.0, 44 * abs(rows) / largest)
    place = y - height if rows > 0 else float(y)
    colour = "var(--good)" if rows > 0 else "var(--bad)"
    return [
        f'<rect x="{x:.1f}" y="{place:.1f}" width="{max(step, 3):.1f}" height="{height:.1f}" '
        f'fill="{colour}"><title>{number(abs(rows))} {word}</title></rect>'
    ]


def times(start: datetime, end: datetime) -> Iterator[tuple[datetime, str]]:
    """Some five round times between two, and how they are written."""
    seconds = (end - start).total_seconds()
    minute, hour, day = 60, 3600, 86400
    steps = (
        *(1, 5, 15, 30, minute, 5 * minute, 15 * minute, 30 * minute, hour, 3 * hour, 6 * hour),
        *(12 * hour, day, 2 * day, 7 * day, 14 * day),
    )
    size = next((step for step in steps if seconds / step <= 7), None)
    if size is None:
        yield from _months(start, end)
        return
    form = "%H:%M:%S" if size < minute else "%H:%M"
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    first = math.ceil((start - midnight).total_seconds() / size)
    at = midnight + timedelta(seconds=first * size)
    while at <= end:
        yield at, at.strftime("%Y-%m-%d" if size >= day or at.hour == at.minute == 0 else form)
        at += timedelta(seconds=size)


def _months(start: datetime, end: datetime) -> Iterator[tuple[datetime, str]]:
    months = (end.year - start.year) * 12 + end.month - start.month
    size = next((step for step in (1, 2, 3, 6, 12, 24, 60, 120) if months / step <= 7), 1200)
    first = math.ceil((start.year * 12 + start.month) / size) * size
    for month in range(first, end.year * 12 + end.month, size):
        at = datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)
        yield at, at.strftime("%Y-%m" if size < 12 else "%Y")


def _tick(at: datetime, said: str, start: datetime, end: datetime) -> str:
    x = _LEFT + (WIDTH - _LEFT - _RIGHT) * ((at - start) / (end - start))
    anchor = "end" if x > WIDTH - 40 else "middle"
    return f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="10" y2="396"/>' + _label(
        x, 412, said, anchor
    )


def confusion(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    """How many rows of each class (a line) were taken for which (a column)."""
    n = len(labels)
    wide = min(64, (WIDTH - 200) // n)
    high = wide if n <= 5 else 34
    left, top = 30 + 7 * min(22, max(map(len, labels))), 58
    parts = [
        _label(left + n * wide / 2, 16, "predicted", "middle"),
        _label(left - 10, 16, "true", "end"),
    ]
    for k, name in enumerate(labels):
        across, down = left + (k + 0.5) * wide, top + (k + 0.5) * high
        parts.append(_label(left - 10, down + 4, text(name, 22), "end", "strong"))
        parts.append(_label(across, top - 10, text(name, max(2, wide // 8)), "middle", "strong"))
    for i, row in enumerate(counts):
        for j, rows in enumerate(row):
            share = rows / max(1, sum(row))
            said = f"{text(labels[i])} taken for {text(labels[j])}: {number(rows)} ({share:.0%})"
            colour = "var(--good)" if i == j else "var(--bad)"
            place = (
                f'x="{left + j * wide}" y="{top + i * high}" width="{wide - 2}" '
                f'height="{high - 2}" rx="3"'
            )
            middle = left + (j + 0.5) * wide - 1, top + (i + 0.5) * high + 3
            kind = "inverse" if share > 0.55 else "strong" if rows else ""
            parts.append(
                f'<g><title>{said}</title><rect {place} fill="var(--shade)"/>'
                f'<rect {place} fill="{colour}" fill-opacity="{share:.3f}"/>'
                f"{_label(*middle, number(rows), 'middle', kind)}</g>"
            )
    return figure(
        (left + n * wide, top + n * high + 6),
        "Confusion matrix",
        "A line for each class, a column for each answer.",
        "".join(parts),
    )


def residuals(predicted: Any, rest: Any, name: str) -> str:
    """How many rows have which prediction, and miss it by how much."""
    import numpy as np

    across, down, left, top, wide, high = 56, 27, _LEFT, 12, 690, 270
    reach = float(np.max(np.abs(rest), initial=0.0)) or 1.0
    low, top_value = float(np.min(predicted)), float(np.max(predicted))
    span = (low, top_value) if low < top_value else (low - 1.0, low + 1.0)
    counts, _, _ = np.histogram2d(predicted, rest, (across, down), (span, (-reach, reach)))
    most = counts.max(initial=1.0)
    w, h = wide / across, high / down
    parts = []
    for i, j in zip(*np.nonzero(counts), strict=True):
        shade = 0.15 + 0.85 * math.sqrt(counts[i, j] / most)
        parts.append(
            f'<rect x="{left + i * w:.1f}" y="{top + high - (j + 1) * h:.1f}" '
            f'width="{w - 0.6:.1f}" height="{h - 0.6:.1f}" fill="{COLOURS[0]}" '
            f'fill-opacity="{shade:.2f}"/>'
        )
    sides, side = counts.sum(axis=0), left + wide + 24
    for j, rows in enumerate(sides):
        length = (WIDTH - side - _RIGHT) * rows / max(1.0, sides.max())
        parts.append(
            f'<rect x="{side}" y="{top + high - (j + 1) * h:.1f}" width="{length:.1f}" '
            f'height="{h - 1:.1f}" fill="{COLOURS[2]}" fill-opacity=".8">'
            f"<title>{number(rows)} rows</title></rect>"
        )
    zero = top + high / 2
    parts.append(f'<line class="zero" x1="{left}" x2="{WIDTH - _RIGHT}" y1="{zero}" y2="{zero}"/>')
    for y, value in ((top + 8, reach), (zero + 4, 0.0), (top + high, -reach)):
        parts.append(_label(left - 10, y, decimal(value), "end"))
    for x, value in ((left, span[0]), (left + wide, span[1])):
        parts.append(_label(x, top + high + 20, decimal(value), "start" if x == left else "end"))
    parts.append(_label(left + wide / 2, top + high + 20, "predicted", "middle"))
    parts.append(_label(side, top + high + 20, "how many rows", "start"))
    return figure(
        (WIDTH, top + high + 30),
        f"Residuals of {name}",
        "Measured less predicted, against the prediction; and how many rows miss by how much.",
        "".join(parts),
    )


def _label(x: float, y: float, said: str, anchor: str, kind: str = "") -> str:
    """Text that is escaped already, or a number."""
    class_ = f' class="{kind}"' if kind else ""
    return f'<text{class_} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{said}</text>'


def grouped(counts: Mapping[str, int], most: int) -> dict[str, str]:
    """The name under which each label is drawn: its own, or that of all small ones."""
    order = sorted(counts, key=lambda label: (-counts[label], label))
    large = sorted(order if len(order) <= most else order[: most - 1])
    return {label: label for label in large} | {
        label: OTHERS for label in order if label not in large
    }
