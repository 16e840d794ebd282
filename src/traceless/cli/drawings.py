"""Drawings for a page: SVG as text, in the colours of the page, without scripts.

Every drawing has a title and a description for screen readers. Names are not trusted: `text`
escapes them.
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
COLOURS = ["#12977f", "#e0883a", "#5a86d0", "#c05a94", "#a3a23a", "#8577c9", "#d26a5c", "#4fb0c6"]
GREY, OTHERS = "#8a949e", "other classes"


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
    """The legend."""
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
        said = f"{text(name)}: {number(bins[-1].held[k])} rows now"
        parts.append(
            f'<path d="{path}" fill="{colour}" fill-opacity=".82"><title>{said}</title></path>'
        )
        below = above
    largest = max(1, *(max(one.learned, one.forgotten) for one in bins))
    for k, one in enumerate(bins):
        for word, rows in (("learned", one.learned), ("forgotten", -one.forgotten)):
            if rows:  # however small, a bar can be seen
                high, colour = max(3.0, 44 * abs(rows) / largest), "good" if rows > 0 else "bad"
                box = _LEFT + k * step, bars - high * (rows > 0), max(step, 3), high
                parts.append(_rect(box, f"var(--{colour})", said=f"{number(abs(rows))} {word}"))
    parts.append(_across("zero", bars))
    parts += [_left(bars - 18, "learned"), _left(bars + 26, "forgotten")]
    ticks = [_tick(at, said, start, end) for at, said in times(start, end)]
    rows_now = number(sum(bins[-1].held))
    return figure(
        (WIDTH, 420),
        "Rows over time",
        f"{start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC; {rows_now} rows are held at the end.",
        "".join([*ticks, *parts]),
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
        out += [_across("grid", y), _left(y + 4, number(rows))]
    return "".join(out)


def _steps(levels: Sequence[int], step: float, most: int, top: int, floor: int) -> list[str]:
    """The corners of a line that stays level within each bin; equal levels need no corner."""
    out = []
    for k, level in enumerate(levels):
        y = floor - (floor - top) * level / most
        if k in (0, len(levels) - 1) or level != levels[k - 1] or level != levels[k + 1]:
            out += [f"{_LEFT + k * step:.1f},{y:.1f}", f"{_LEFT + (k + 1) * step:.1f},{y:.1f}"]
    return out


def times(start: datetime, end: datetime) -> Iterator[tuple[datetime, str]]:
    """Some five round times between two, and how they are written."""
    seconds, minute, hour, day = (end - start).total_seconds(), 60, 3600, 86400
    steps = [k * unit for unit in (1, minute) for k in (1, 5, 15, 30)]
    steps += [hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day]
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
    label = _label(x, 412, said, "end" if x > WIDTH - 40 else "middle")
    return f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="10" y2="396"/>{label}'


def confusion(labels: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    """How many rows of each class (a line) were taken for which (a column)."""
    n = len(labels)
    wide = min(64, (WIDTH - 200) // n)
    high = wide if n <= 5 else 34
    left, top = 30 + 7 * min(22, max(map(len, labels))), 58
    parts = [_label(left + n * wide / 2, 16, "predicted"), _label(left - 10, 16, "true", "end")]
    for k, name in enumerate(labels):
        across, down = left + (k + 0.5) * wide, top + (k + 0.5) * high
        parts.append(_label(left - 10, down + 4, text(name, 22), "end", "strong"))
        parts.append(_label(across, top - 10, text(name, max(2, wide // 8)), "middle", "strong"))
    for i, row in enumerate(counts):
        for j, rows in enumerate(row):
            share = rows / max(1, sum(row))
            said = f"{text(labels[i])} taken for {text(labels[j])}: {number(rows)} ({share:.0%})"
            box = left + j * wide, top + i * high, wide - 2, high - 2
            middle = left + (j + 0.5) * wide - 1, top + (i + 0.5) * high + 3
            kind = "inverse" if share > 0.55 else "strong" if rows else ""
            parts += [f"<g><title>{said}</title>", _rect(box, "var(--shade)", 1, 3)]
            parts.append(_rect(box, "var(--good)" if i == j else "var(--bad)", share, 3))
            parts.append(f"{_label(*middle, number(rows), 'middle', kind)}</g>")
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
        box = left + i * w, top + high - (j + 1) * h, w - 0.6, h - 0.6
        parts.append(_rect(box, COLOURS[0], 0.15 + 0.85 * math.sqrt(counts[i, j] / most)))
    sides, side = counts.sum(axis=0), left + wide + 24
    for j, rows in enumerate(sides):
        length = (WIDTH - side - _RIGHT) * rows / max(1.0, sides.max())
        box = side, top + high - (j + 1) * h, length, h - 1
        parts.append(_rect(box, COLOURS[2], 0.8, said=f"{number(rows)} rows"))
    zero, foot = top + high / 2, top + high + 20
    parts.append(_across("zero", zero))
    for y, value in ((top + 8, reach), (zero + 4, 0.0), (top + high, -reach)):
        parts.append(_left(y, decimal(value)))
    parts += [
        _label(left, foot, decimal(span[0]), "start"),
        _label(left + wide, foot, decimal(span[1]), "end"),
        _label(left + wide / 2, foot, "predicted"),
        _label(side, foot, "how many rows", "start"),
    ]
    return figure(
        (WIDTH, top + high + 30),
        f"Residuals of {name}",
        "Measured less predicted, against the prediction; and how many rows miss by how much.",
        "".join(parts),
    )


def _label(x: float, y: float, said: str, anchor: str = "middle", kind: str = "") -> str:
    """Text that is escaped already, or a number."""
    class_ = f' class="{kind}"' if kind else ""
    return f'<text{class_} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{said}</text>'


def _left(y: float, said: str) -> str:
    """Text in the left margin."""
    return _label(_LEFT - 10, y, said, "end")


def _across(kind: str, y: float) -> str:
    """A line across the drawing."""
    return f'<line class="{kind}" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _rect(
    box: tuple[float, ...], fill: str, opacity: float = 1.0, round_: int = 0, said: str = ""
) -> str:
    """A rectangle: x, y, width and height."""
    x, y, width, height = box
    look = f' fill-opacity="{opacity:.3f}"' if opacity < 1 else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{round_}" '
        f'fill="{fill}"{look}>{f"<title>{said}</title>" if said else ""}</rect>'
    )


def grouped(counts: Mapping[str, int], most: int) -> dict[str, str]:
    """The name under which each label is drawn: its own, or that of all small ones."""
    order = sorted(counts, key=lambda label: (-counts[label], label))
    large = sorted(order if len(order) <= most else order[: most - 1])
    return {label: label for label in large} | {
        label: OTHERS for label in order if label not in large
    }
