"""The criteria that judge the claims of Lee et al. 2019 on Fig. 1 (a) to (f).

Each public function takes the table of one figure (`measure`) and returns a `Finding`. The
paper's words are in `paper.toml`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from statistics import median

from papers.claims import Case, Finding, at_least, at_most, by, every
from papers.lee2019 import draw
from papers.lee2019.measure import PAPER
from papers.rows import Rows, column, groups, select, values

LIMITS = PAPER.limits


def _each(rows: Rows, words: Callable[[Rows], str]) -> str:
    """What is said of each feature map."""
    return "; ".join(f"{name} {words(some)}" for name, some in groups(rows, "map").items())


_by_map = partial(by, "map")


def _points(change: float) -> str:
    return f"{100 * change:+.1f} points".replace("-", "−")


# --- (a) and (b): accuracy -----------------------------------------------------------------------


def groups_learned(rows: Rows) -> Finding:
    """Fig. 1 (a)."""

    def equal(r: Rows) -> list[bool]:
        return [x["digest"] == x["digest_from_scratch"] for x in r]

    tests = (_rises_mostly, lambda r: every(equal(r)), _dips_at_four)
    cases = [_by_map(rows, test) for test in tests]
    series = _each(rows, lambda r: " → ".join(f"{v:.1%}" for v in column(r, "accuracy")))
    said = {"series": series, "equal": (sum(equal(rows)), len(rows))}
    return PAPER.finding("1a", rows, draw.groups_learned, cases, **said)


def _rises_mostly(rows: Rows) -> Case:
    accuracy = column(rows, "accuracy")
    ups = sum(b > a for a, b in pairwise(accuracy))
    rise = accuracy[-1] - accuracy[0]
    measured = f"{_points(rise)}, rises in {ups} of {len(accuracy) - 1} steps"
    return Case(measured, 100 * rise >= LIMITS.rise and ups >= len(accuracy) - 2)


def _dips_at_four(rows: Rows) -> Case:
    steps = {b["group"]: b["accuracy"] - a["accuracy"] for a, b in pairwise(rows)}
    falls = {group: change for group, change in steps.items() if change < 0}
    measured = ", ".join(f"{group}: {_points(change)}" for group, change in falls.items())
    dips = list(falls) == ["4&5"] and 100 * falls["4&5"] > -LIMITS.minor
    return Case(measured or "no step falls", dips)


def wrong_labels_forgotten(rows: Rows) -> Finding:
    """Fig. 1 (b)."""
    flipped, drawn = (select(rows, wrong_labels=how) for how in ("flipped", "drawn at random"))
    last = select(rows, removed=1.0)

    def from_to(r: Rows) -> str:
        return _each(r, lambda r: f"{r[0]['accuracy']:.1%} → {r[-1]['accuracy']:.1%}")

    cases = [
        _by_map(flipped, lambda r: _climbs(r, LIMITS.rise)),
        _by_map(drawn, lambda r: _climbs(r, 0.0)),
        _by_map(last, lambda r: every(column(r, "equals_never_learned"))),
    ]
    said = {"flipped": from_to(flipped), "drawn": from_to(drawn)}
    equal = sum(column(last, "equals_never_learned")), len(last)
    return PAPER.finding("1b", rows, draw.wrong_labels_forgotten, cases, equal=equal, **said)


def _climbs(rows: Rows, rise: float) -> Case:
    accuracy = column(rows, "accuracy")
    worst = min(b - a for a, b in pairwise(accuracy))
    change = accuracy[-1] - accuracy[0]
    measured = f"{_points(change)}, smallest step {100 * worst:+.1f}"
    return Case(measured, change > 0 and 100 * change >= rise and 100 * worst >= -LIMITS.jitter)


# --- (c), (d) and (e): time and storage ----------------------------------------------------------


def update_times(rows: Rows) -> Finding:
    """Fig. 1 (c)."""
    least, most = min(column(rows, "size")), max(column(rows, "size"))
    large = select(rows, size=most)

    def ten(r: Rows, how: str) -> list[float]:
        return column(select(r, how=how, batch=10), "seconds")

    def speedup(r: Rows) -> float:
        return ten(r, "retrain")[0] / ten(r, "update")[0]

    def times(r: Rows) -> str:
        update, retrain = 1e3 * ten(r, "update")[0], 1e3 * ten(r, "retrain")[0]
        return f"{update:.3g} ms against {retrain:,.0f} ms ({speedup(r):.3g} ×)"

    def growth(how: str) -> str:
        each = [ten(r, how) for r in groups(rows, "map").values()]
        return " and ".join(f"{seconds[-1] / seconds[0]:.2g} ×" for seconds in each)

    def mostly_faster(r: Rows) -> Case:
        retrain = {x["size"]: x["seconds"] for x in select(r, how="retrain")}
        faster = [x["seconds"] < retrain[x["size"]] for x in select(r, how="update")]
        return Case(f"{sum(faster)} of {len(faster)}", sum(faster) > len(faster) / 2)

    much_faster = _by_map(large, lambda r: at_least(speedup(r), LIMITS.faster, "{:.3g} ×"))
    cases = [much_faster, _by_map(rows, mostly_faster)]
    said = {"size": most, "least": least, "times": _each(large, times)}
    said |= {how: growth(how) for how in ("update", "retrain")}
    return PAPER.finding("1c", rows, draw.update_times, cases, **said)


def times_per_row(rows: Rows) -> Finding:
    """Fig. 1 (d)."""
    block, ours = select(rows, how="one block"), select(rows, how="traceless")

    def fastest(r: Rows) -> str:
        best, last = _best(r), r[-1]
        return (
            f"{1e6 * best['seconds_per_row']:,.0f} µs per row at best (batch of "
            f"{best['batch']:,}), {1e6 * last['seconds_per_row']:,.0f} µs at {last['batch']:,}"
        )

    def cutting_pays(r: Rows) -> Case:
        one, cut = (select(r, how=how)[-1]["seconds"] for how in ("one block", "traceless"))
        return at_least(one / cut, 1 + LIMITS.slower)

    cases = [
        _by_map(block, _has_a_best),
        _by_map(rows, cutting_pays),
        _by_map(block, _best_around_1000),
        _by_map(ours, lambda r: at_most(_slower(r)[-1], LIMITS.flat, "{:.2f} ×")),
    ]
    said = {"block": _each(block, fastest), "ours": _each(ours, fastest)}
    return PAPER.finding("1d", rows, draw.times_per_row, cases, **said)


def _best(rows: Rows) -> dict[str, float]:
    return min(rows, key=lambda r: float(r["seconds_per_row"]))


def _slower(rows: Rows) -> list[float]:
    """Times per row, as multiples of the best."""
    best = _best(rows)["seconds_per_row"]
    return [seconds / best for seconds in column(rows, "seconds_per_row")]


def _has_a_best(rows: Rows) -> Case:
    first, *_, last = _slower(rows)
    return Case(f"{first:.2g} × and {last:.2g} ×", min(first, last) >= 1 + LIMITS.slower)


def _best_around_1000(rows: Rows) -> Case:
    least, most = LIMITS.around
    each = zip(column(rows, "batch"), _slower(rows), strict=True)
    around = [slower for batch, slower in each if least <= batch <= most]
    words = f"best at {_best(rows)['batch']:,}, there {{:.2g}} ×"
    return at_most(min(around, default=math.inf), 1 + LIMITS.near, words)


def storage(rows: Rows) -> Finding:
    """Fig. 1 (e)."""
    size = max(column(rows, "size"))
    large = select(rows, size=size)

    def sizes(r: Rows) -> str:
        raw, kept, whole = (r[0][name] / 1e6 for name in ("rows_float64", "w_and_C", "whole_model"))
        return f"{raw:.3g} MB of rows, {kept:.2g} MB for w and C, {whole:.2g} MB the whole model"

    def same(r: Rows) -> Case:
        different = sorted(values(r, "w_and_C"))
        return Case(" to ".join(f"{s / 1e6:.2f} MB" for s in different), len(different) == 1)

    def much_smaller(r: Rows) -> Case:
        return at_least(r[0]["rows_float64"] / r[0]["w_and_C"], LIMITS.smaller, "{:.1f} ×")

    cases = [_by_map(rows, same), _by_map(large, much_smaller)]
    said = _each(large, sizes)
    return PAPER.finding("1e", rows, draw.storage, cases, size=size, sizes=said)


# --- (f): estimates of rows ----------------------------------------------------------------------


def estimates_forgotten(rows: Rows) -> Finding:
    """Fig. 1 (f)."""
    small, large = min(column(rows, "size")), max(column(rows, "size"))
    at = select(rows, row_error=LIMITS.row_error)
    most = select(at, size=large)
    little = max(column(most, "w_error_not_forgotten")) < LIMITS.w_error

    def typical(r: Rows) -> str:
        each = groups(r, "noise").items()
        return ", ".join(f"{_percent(median(column(n, 'w_error')))} ({name})" for name, n in each)

    tried = (large, "on the ink"), (large, "everywhere"), (small, "on the ink")
    return PAPER.finding(
        "1f",
        rows,
        draw.estimates_forgotten,
        [_by_map(select(at, size=size, noise=noise), _error_small) for size, noise in tried],
        small=small,
        large=large,
        with_large=_each(most, typical),
        with_small=_each(select(at, size=small), typical),
        kept=_each(most, lambda r: _percent(median(column(r, "w_error_not_forgotten")))),
        remark=f", below {LIMITS.w_error:.0%} too, so the claim says little here" if little else "",
    )


def _percent(value: float) -> str:
    return "refused" if math.isinf(value) else f"{100 * value:.2g}%"


def _error_small(rows: Rows) -> Case:
    worst = max(column(rows, "w_error"))
    return Case(f"{_percent(worst)} at worst", worst < LIMITS.w_error)
