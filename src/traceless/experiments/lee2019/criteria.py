"""The tests that claims of Lee et al. 2019 are put to, with their thresholds.

Each takes the rows of one feature map and says what was measured and whether it holds.
`claims` says which test belongs to which figure, and prints the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from traceless.experiments.verdict import Case, Rows, by, column, select

RISE = 0.10  # accuracy must rise by this much in (a) and (b, flipped)
MINOR = 0.05  # what "minor decrease" may mean in (a)
JITTER = 0.005  # a fall by less than this, in (b), is noise
FASTER = 5.0  # what "significantly outperforms" must mean at least in (c)
AROUND, NEAR = 3.0, 1.1  # (d): within this factor of 1000 rows, of the best time per row
SLOWER = 1.2  # (d): by how much single rows and the largest batch must be slower than the best
FLAT = 2.0  # (d): time per row of cut batches, the largest against the best
SMALLER = 10.0  # what "significantly reduces the storage" must mean at least in (e)
ROW_ERROR, W_ERROR = 0.10, 0.01  # (f): below 10 % in the row, below 1 % in w


def by_map(rows: Rows, test: Callable[[Rows], Case]) -> dict[str, Case]:
    """Put the rows of each map to a test."""
    return by("map", rows, test)


def same(sizes: list[int]) -> Case:
    """There is only one size."""
    return Case(" to ".join(f"{s / 1e6:.2f} MB" for s in sorted(set(sizes))), len(set(sizes)) == 1)


def rises_mostly(rows: Rows) -> Case:
    """(a) Accuracy rises by enough, in all steps but one."""
    accuracy = column(rows, "accuracy")
    ups = sum(b > a for a, b in pairwise(accuracy))
    rise = accuracy[-1] - accuracy[0]
    measured = f"{points(rise)}, rises in {ups} of {len(accuracy) - 1} steps"
    return Case(measured, rise >= RISE and ups >= len(accuracy) - 2)


def dips_at_four(rows: Rows) -> Case:
    """(a) Accuracy falls in one step only, to 4&5, and by little."""
    steps = [(b["group"], b["accuracy"] - a["accuracy"]) for a, b in pairwise(rows)]
    falls = [(group, change) for group, change in steps if change < 0]
    measured = ", ".join(f"{group}: {points(change)}" for group, change in falls) or "no step falls"
    return Case(measured, [g for g, _ in falls] == ["4&5"] and falls[0][1] > -MINOR)


def climbs(rows: Rows, rise: float) -> Case:
    """(b) Accuracy ends higher, by at least `rise`, and does not fall on the way."""
    accuracy = column(rows, "accuracy")
    worst = min(b - a for a, b in pairwise(accuracy))
    change = accuracy[-1] - accuracy[0]
    measured = f"{points(change)}, smallest step {100 * worst:+.1f}"
    return Case(measured, change > 0 and change >= rise and worst >= -JITTER)


def much_faster(rows: Rows) -> Case:
    """(c) An update with 10 rows is faster than retraining, by enough."""
    ratio = speedup(rows)
    return Case(f"{ratio:.3g} ×", ratio >= FASTER)


def speedup(rows: Rows) -> float:
    """How often an update with 10 rows fits into one retraining."""
    retrain, update = (select(rows, how=how, batch=10) for how in ("retrain", "update"))
    return float(retrain[0]["seconds"] / update[0]["seconds"])


def mostly_faster(rows: Rows) -> Case:
    """(c) An update is faster than retraining in most cases."""
    retrain = {r["size"]: r["seconds"] for r in select(rows, how="retrain")}
    faster = [r["seconds"] < retrain[r["size"]] for r in select(rows, how="update")]
    return Case(f"{sum(faster)} of {len(faster)}", sum(faster) > len(faster) / 2)


def has_a_best(rows: Rows) -> Case:
    """(d) Both ends of the curve are slower per row than its best point."""
    per_row = column(rows, "seconds_per_row")
    first, last = per_row[0] / min(per_row), per_row[-1] / min(per_row)
    return Case(f"{first:.2g} × and {last:.2g} ×", min(first, last) >= SLOWER)


def best_around_1000(rows: Rows) -> Case:
    """(d) The best point, or nearly the best, is around 1000 rows."""
    best = min(rows, key=lambda r: float(r["seconds_per_row"]))
    around = [r for r in rows if 1000 / AROUND <= r["batch"] <= 1000 * AROUND]
    ratio = min(column(around, "seconds_per_row"), default=math.inf) / best["seconds_per_row"]
    return Case(f"best at {best['batch']:,}, there {ratio:.2g} ×", ratio <= NEAR)


def cutting_pays(rows: Rows) -> Case:
    """(d) The largest batch is slower in one block than cut."""
    block, ours = (select(rows, how=how)[-1]["seconds"] for how in ("one block", "traceless"))
    return Case(f"{block / ours:.2g} ×", block / ours >= SLOWER)


def stays_flat(rows: Rows) -> Case:
    """(d) The largest batch is about as fast per row as the best."""
    ratio = rows[-1]["seconds_per_row"] / min(column(rows, "seconds_per_row"))
    return Case(f"{ratio:.2f} ×", ratio <= FLAT)


def smaller(rows: Rows, large: str, small: str, times: float = SMALLER) -> Case:
    """(e) One is larger than the other by at least this factor."""
    ratio = rows[0][large] / rows[0][small]
    return Case(f"{ratio:.1f} ×", ratio >= times)


def error_small(rows: Rows) -> Case:
    """(f) The error of w is small for every row that was tried."""
    worst = max(column(rows, "w_error"))
    return Case(f"{percent(worst)} at worst", worst < W_ERROR)


def percent(value: float) -> str:
    """An error in words."""
    return "refused" if math.isinf(value) else f"{100 * value:.2g}%"


def points(change: float) -> str:
    """A change of accuracy in words."""
    return f"{100 * change:+.1f} points".replace("-", "−")
