"""The tests that the claims of Zhu et al. 2018 are put to, with their thresholds.

Each takes some rows of a table and says what was measured and whether it holds. `claims`
and `claims_of_costs` say which test belongs to which claim, and print the threshold. All
thresholds are ours. They were set after trial runs and before the first full one, and none
has been loosened since.
"""

from __future__ import annotations

from statistics import mean

from traceless.experiments.verdict import Case, Rows, column, select, values

RISE = 0.05  # (b): what weights must add to G-mean where the imbalance is largest
FASTER = 3.0  # (c): a stage against retraining, in the last stage
FASTER_IN_ALL = 2.0  # (c): all stages together
FLAT = 1.5  # (c): the last stage against the second
SPEED_UP = 1.5  # (d): with two processes, at the most rows
SCALE_UP = 0.75  # (d): two processes and twice the rows
SIZE_UP = 1.25  # (d): how far above m size-up may lie
NEAR, NOT_FAR = 1.5, 2.0  # (e): factors between predicted and measured times
HALF = 0.5  # (e): of the ideal speed-up
DAY = 86_400.0
SHARE = 0.1  # (e): of the time that a tree may take
TREE = 10.0  # (e): how much faster than collecting flat


def no_difference(rows: Rows) -> Case:
    """(a) Every coefficient is the same number."""
    worst = max(column(rows, "difference"))
    return Case(f"{worst:g} at most", worst == 0.0)


def rarest(rows: Rows) -> Rows:
    """(b) The rows of the stage with the largest imbalance."""
    return select(rows, ratio=max(column(rows, "ratio")))


def gains(rows: Rows, measure: str) -> list[float]:
    """(b) What each rule adds to a measure at the largest imbalance, in the mean of all seeds."""
    there = rarest(rows)
    plain = mean(column(select(there, class_weight="none"), measure))
    weighted = [r for r in there if r["class_weight"] != "none"]
    rules = values([{"rule": (r["class_weight"], r["weighting"])} for r in weighted], "rule")
    return [
        mean(column(select(weighted, class_weight=rule, weighting=scope), measure)) - plain
        for rule, scope in rules
    ]


def weights_help(rows: Rows) -> Case:
    """(b) Every rule raises G-mean by enough."""
    added = gains(rows, "g_mean")
    return Case(_span(added), min(added) >= RISE)


def weights_do_no_harm(rows: Rows) -> Case:
    """(b) No rule lowers F."""
    added = gains(rows, "f")
    return Case(_span(added), min(added) >= 0.0)


def _span(numbers: list[float]) -> str:
    low, high = min(numbers), max(numbers)
    same = f"{low:+.3f}" == f"{high:+.3f}"
    return (f"{low:+.3f}" if same else f"{low:+.3f} to {high:+.3f}").replace("-", "−")


def incremental(row: dict[str, float]) -> float:
    """(c) Seconds of a stage."""
    return row["learn"] + row["solve"]


def faster_at_last(rows: Rows) -> Case:
    """(c) The last stage against retraining."""
    ratio = rows[-1]["retrain"] / incremental(rows[-1])
    return Case(f"{ratio:.2g} ×", ratio >= FASTER)


def faster_in_all(rows: Rows) -> Case:
    """(c) All stages against retraining in each."""
    ratio = sum(column(rows, "retrain")) / sum(map(incremental, rows))
    return Case(f"{ratio:.2g} ×", ratio >= FASTER_IN_ALL)


def stays_flat(rows: Rows) -> Case:
    """(c) The last stage takes no longer than an early one."""
    ratio = incremental(rows[-1]) / incremental(rows[1])
    return Case(f"{ratio:.2f} ×", ratio <= FLAT)


def seconds(rows: Rows, n: int, p: int) -> float:
    """(d) The time t(p, n)."""
    return float(select(rows, rows=n, workers=p)[0]["seconds"])


def speeds_up(rows: Rows) -> Case:
    """(d) Two processes are faster at the most rows."""
    n = max(column(rows, "rows"))
    ratio = seconds(rows, n, 1) / seconds(rows, n, 2)
    return Case(f"{ratio:.2f}", ratio >= SPEED_UP)


def scales_up(rows: Rows) -> Case:
    """(d) Two processes take as long for the most rows as one does for half of them."""
    n = max(column(rows, "rows"))
    ratio = seconds(rows, n // 2, 1) / seconds(rows, n, 2)
    return Case(f"{ratio:.2f}", ratio >= SCALE_UP)


def sizes_up(rows: Rows) -> Case:
    """(d) Time grows no faster than rows, by much."""
    few, most = min(column(rows, "rows")), max(column(rows, "rows"))
    m = most / few
    ratios = [seconds(rows, most, p) / seconds(rows, few, p) for p in (1, 2)]
    measured = f"{ratios[0]:.2f} and {ratios[1]:.2f} for m = {m:g}"
    return Case(measured, max(ratios) <= SIZE_UP * m)


def predicted_within(rows: Rows, factor: float) -> Case:
    """(e) Predictions and measurements differ by less than a factor."""
    ratios = [r["predicted"] / r["measured"] for r in rows]
    low, high = min(ratios), max(ratios)
    return Case(f"{low:.2f} to {high:.2f}", 1 / factor <= low and high <= factor)


def keeps_speeding_up(rows: Rows) -> Case:
    """(e) From 10 to 1000 workers, 10^10 rows."""
    few, many = (
        select(rows, rows=1e10, workers=p, merging="tree")[0]["seconds"] for p in (10, 1000)
    )
    return Case(f"{few / many:.0f} ×", few / many >= HALF * 100)


def within_a_day(rows: Rows) -> Case:
    """(e) 10^12 rows on 10 000 workers."""
    took = select(rows, rows=1e12, workers=10_000, merging="tree")[0]["seconds"]
    return Case(f"{took / 3600:.1f} h", took <= DAY)


def tree_is_small(rows: Rows) -> Case:
    """(e) What the tree takes of the time."""
    row = select(rows, rows=1e10, workers=1000, merging="tree")[0]
    share = row["merge"] / row["seconds"]
    return Case(f"{share:.1%}", share <= SHARE)


def tree_beats_flat(rows: Rows) -> Case:
    """(e) A tree against collecting flat, 10 000 workers."""
    tree, flat = (
        select(rows, rows=1e10, workers=10_000, merging=how)[0]["merge"] for how in ("tree", "flat")
    )
    return Case(f"{flat / tree:,.0f} ×", flat / tree >= TREE)
