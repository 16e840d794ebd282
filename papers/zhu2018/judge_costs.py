"""(e) What costs measured here mean for many machines: is the model right, and where it ends."""

from __future__ import annotations

import math

from papers.claims import Case, Finding, at_least, at_most, by
from papers.cost_model import tables
from papers.cost_model.costs import PIECES, Measured, compared
from papers.cost_model.model import Costs, Engine, Model, Problem, grid, rows_in_int64
from papers.cost_model.words import duration, rows_in_words
from papers.page import Table
from papers.rows import Row, Rows, column, select
from papers.zhu2018 import draw_costs
from papers.zhu2018.judge import LIMITS, PAPER


def local(costs: Costs) -> Model:
    """The model of two processes on this machine, which leave pieces in files."""
    return Model(costs, Engine(costs.file, costs.dispatch, loads=2, pieces=PIECES // 2))


# --- is the model right --------------------------------------------------------------------------


def validation(measured: Measured, timed: Rows) -> Finding:
    """Predictions against times that the costs were not taken from."""
    model = local(measured.costs)
    learned = [_predicted(model, **row) for row in timed]
    rows = learned + measured.rows
    whole = [r | {"case": f"{r['workers']} worker{'s' * (r['workers'] > 1)}"} for r in learned]
    most = select(whole, rows=max(column(whole, "rows")))
    kept = select(rows, used="kept back")
    ratios = [r["predicted"] / r["measured"] for r in learned]
    return PAPER.finding(
        "e1",
        rows,
        draw_costs.validation,
        [
            by("case", most, lambda r: _within(r, LIMITS.near)),
            by("case", whole, lambda r: _within(r, LIMITS.not_far)),
            by("what", kept, lambda r: _within(r, LIMITS.not_far)),
        ],
        {"The times of (d), predicted": _validation_table(learned)}
        | tables.of_costs(measured.costs),
        low=min(ratios),
        high=max(ratios),
        paying=_paying(model),
        **_scopes(rows),
    )


def _predicted(
    model: Model, workers: int, rows: int, features: int, classes: int, seconds: float
) -> Row:
    expected = model.wall(Problem(rows, features, classes, "class-wise"), workers).total
    size = workers, rows, features, classes
    return compared("learn and solve", *size, seconds, expected, "predicted")


def _within(rows: Rows, factor: float) -> Case:
    ratios = [r["predicted"] / r["measured"] for r in rows]
    low, high = min(ratios), max(ratios)
    return Case(f"{low:.2f} to {high:.2f}", 1 / factor <= low and high <= factor)


def _paying(model: Model) -> str:
    """From how many rows two processes are faster than one."""

    def breaks_even(J: int, K: int) -> float:
        for tenths in range(20, 100):
            problem = Problem(10.0 ** (tenths / 10), J, K, "class-wise")
            if model.wall(problem, 2).total < model.wall(problem, 1).total:
                return problem.rows
        return math.inf

    cases = [(J, K) for J in (256, 1024) for K in (2, 10)]
    said = (f"{rows_in_words(breaks_even(J, K))} (J = {J}, K = {K})" for J, K in cases)
    return ", ".join(said)


def _scopes(rows: Rows) -> Row:
    """The two ways to weight many classes, timed in the same case."""
    apart = select(rows, what="solve, one_vs_rest")
    K = max(column(apart, "classes"))
    J = max(column(select(apart, classes=K), "features"))
    shared, alone = (
        select(rows, what=f"solve, {how}", classes=K, features=J)[0]["measured"]
        for how in ("shared", "one_vs_rest")
    )
    return {"J": J, "K": K, "shared": duration(shared), "alone": duration(alone)}


def _validation_table(rows: Rows) -> Table:
    head = ["Classes", "Rows", "Workers", "Measured", "Predicted", "Ratio"]
    line = "{classes}|{rows:,}|{workers}|{measured:.3f} s|{predicted:.3f} s|{ratio:.2f}"
    ratios = [r | {"ratio": r["predicted"] / r["measured"]} for r in rows]
    return Table(head, [line.format(**r).split("|") for r in ratios])


# --- where it ends -------------------------------------------------------------------------------


def prediction(costs: Costs) -> Finding:
    """Wall times for many workers, and where they break."""
    model = Model(costs)
    rows = grid(model)
    tree, flat = (column(select(rows, merging=how), "dominant") for how in ("tree", "flat"))
    tests = (_keeps_speeding_up, _within_a_day, _tree_is_small, _tree_beats_flat)
    return PAPER.finding(
        "e2",
        rows,
        draw_costs.prediction,
        [by("knowledge", select(rows, features=1024, classes=10), test) for test in tests],
        tables.of_predictions(model, rows),
        assumed=tables.ASSUMED,
        cases=len(tree),
        **{part: tree.count(part) for part in ("gather", "merge", "solve")},
        merge_flat=flat.count("merge"),
        limit=rows_in_words(model.limit),
        mean_square=costs.mean_square,
        at_one=rows_in_words(rows_in_int64(1.0)),
    )


def _wall(rows: Rows, n: float, workers: int, merging: str = "tree") -> dict[str, float]:
    return select(rows, rows=n, workers=workers, merging=merging)[0]


def _keeps_speeding_up(rows: Rows) -> Case:
    few, many = (_wall(rows, 1e10, p)["seconds"] for p in (10, 1000))
    return at_least(few / many, LIMITS.hundredfold, "{:.0f} ×")


def _within_a_day(rows: Rows) -> Case:
    seconds = _wall(rows, 1e12, 10_000)["seconds"]
    return at_most(seconds, LIMITS.day, f"{seconds / 3600:.1f} h")


def _tree_is_small(rows: Rows) -> Case:
    wall = _wall(rows, 1e10, 1000)
    return at_most(wall["merge"] / wall["seconds"], LIMITS.share, "{:.1%}")


def _tree_beats_flat(rows: Rows) -> Case:
    tree, flat = (_wall(rows, 1e10, 10_000, how)["merge"] for how in ("tree", "flat"))
    return at_least(flat / tree, LIMITS.tree, "{:,.0f} ×")
