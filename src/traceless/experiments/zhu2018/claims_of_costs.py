"""(e) What the costs measured here mean for many machines: is the model right, and where it ends.

Assumed, not measured: 1 GB/s between any two machines, 10 ms to begin a round, workers as fast
as this machine's one thread, 16 GB of memory for a worker and 64 GB for the driver, classes of
equal size, rows that lie where they are read.
"""

from __future__ import annotations

import math
from dataclasses import replace

from traceless.experiments.verdict import Criterion, Finding, Rows, Table, by, column, select
from traceless.experiments.zhu2018 import criteria as test
from traceless.experiments.zhu2018 import figures_of_costs as figures
from traceless.experiments.zhu2018.cost_model import (
    Costs,
    Engine,
    Handling,
    Model,
    Problem,
    grid,
    rows_in_int64,
)
from traceless.experiments.zhu2018.costs import Measured
from traceless.experiments.zhu2018.words import amount, duration, rows_in_words
from traceless.experiments.zhu2018.workers import PIECES

FEATURES, CLASSES = (256, 1024, 4096), (2, 10, 100)
ROWS, WORKERS = (1e9, 1e10, 1e11, 1e12), (10, 100, 1000, 10_000)
JUDGED = {"features": 1024, "classes": 10}
WORKER_MEMORY, DRIVER_MEMORY = 16e9, 64e9
_ASSUMED = (
    "Assumed, not measured: 1 GB/s between any two machines, 10 ms to begin a round, workers as "
    "fast as one thread here, 16 GB of memory for each and 64 GB for the driver, classes of equal "
    "size, rows that lie where they are read."
)


# --- is the model right -------------------------------------------------------------------------


def local(costs: Costs) -> Model:
    """The model of two processes on this machine, which leave pieces in files."""
    return Model(costs, Engine(costs.file, costs.dispatch, loads=2, pieces=PIECES // 2))


def validation(measured: Measured, timed: Rows) -> Finding:
    """Predictions against times that the costs were not taken from."""
    rows = _predicted(measured.costs, timed) + measured.rows
    whole = [r | {"case": f"{r['workers']} worker{'s' * (r['workers'] > 1)}"} for r in rows]
    learned = [r for r in whole if r["what"] == "learn and solve"]
    most = select(learned, rows=max(column(learned, "rows")))
    kept = [r | {"case": r["what"]} for r in whole if r["used"] == "kept back"]
    return Finding(
        name="e1",
        title="(e) A cost model, tested where it can be",
        claim="Abstract: “rapidly processing large scale data streams”, “desired scalability”. "
        "We have one machine with two cores. What many machines would do can only be computed, "
        "from costs measured here; this figure asks whether the computation can be trusted.",
        gist="a cost model from costs measured here predicts (d)",
        design="Learning costs (a + b J + c J²) for each row and d J² for each matrix; adding "
        "pieces costs seconds for each of the m J²/2 integers packed, moved, unpacked and added; "
        "solving costs J³ (of which the coefficient is timed directly) and K J², for one-vs-rest "
        "K times J³. Coefficients are fitted to small cases; the widest "
        "features are kept back to test them, and the times of (d) are predicted, not fitted.",
        found=f"{_agreement(learned)} {_paying(local(measured.costs))} {_scopes(rows)}",
        criteria=[
            Criterion(
                f"At the most rows the times of (d) are predicted within a factor of {test.NEAR:g}",
                by("case", most, lambda r: test.predicted_within(r, test.NEAR)),
            ),
            Criterion(
                f"All times of (d) are predicted within a factor of {test.NOT_FAR:g}",
                by("case", learned, lambda r: test.predicted_within(r, test.NOT_FAR)),
                essential=False,
            ),
            Criterion(
                f"The costs kept back are predicted within a factor of {test.NOT_FAR:g}",
                by("case", kept, lambda r: test.predicted_within(r, test.NOT_FAR)),
                essential=False,
            ),
        ],
        rows=rows,
        draw=figures.validation,
        tables=[_validation_table(learned), _costs_table(measured.costs)],
    )


def _predicted(costs: Costs, timed: Rows) -> Rows:
    model = local(costs)
    rows: Rows = []
    for row in timed:
        problem = Problem(row["rows"], row["features"], row["classes"], "class-wise")
        rows.append(
            {
                "what": "learn and solve",
                "workers": row["workers"],
                "rows": row["rows"],
                "features": row["features"],
                "classes": row["classes"],
                "measured": row["seconds"],
                "predicted": model.wall(problem, row["workers"]).total,
                "used": "predicted",
            }
        )
    return rows


def _agreement(rows: Rows) -> str:
    ratios = [r["predicted"] / r["measured"] for r in rows]
    return (
        f"Predicted times of (d) are {min(ratios):.2f} to {max(ratios):.2f} of the measured ones. "
        "Two processes share caches and memory, and the machine does other work too; the model "
        "knows neither."
    )


def _paying(model: Model) -> str:
    cases = [(J, K) for J in (256, 1024) for K in (2, 10)]
    said = [f"{rows_in_words(breaks_even(model, J, K))} (J = {J}, K = {K})" for J, K in cases]
    return f"By the model two processes pay on this machine from so many rows: {', '.join(said)}."


def breaks_even(model: Model, features: int, classes: int) -> float:
    """Rows from which two processes are faster than one."""
    for tenths in range(20, 100):
        problem = Problem(10.0 ** (tenths / 10), features, classes, "class-wise")
        if model.wall(problem, 2).total < model.wall(problem, 1).total:
            return problem.rows
    return math.inf


def _scopes(rows: Rows) -> str:
    """The two ways to weight many classes, timed in the same case."""
    shared, apart = (select(rows, what=f"solve, {how}") for how in ("shared", "one_vs_rest"))
    most = max(column(apart, "classes"))
    J = max(column(select(apart, classes=most), "features"))
    a, b = (select(r, classes=most, features=J)[0]["measured"] for r in (shared, apart))
    return (
        f"Weights that all classes share need one factorisation, weights of each problem need K: "
        f"at J = {J}, K = {most} the solve takes {duration(a)} shared and {duration(b)} "
        "one-vs-rest."
    )


def _validation_table(rows: Rows) -> Table:
    lines = [
        [
            str(r["classes"]),
            f"{r['rows']:,}",
            str(r["workers"]),
            f"{r['measured']:.3f} s",
            f"{r['predicted']:.3f} s",
            f"{r['predicted'] / r['measured']:.2f}",
        ]
        for r in rows
    ]
    head = ["Classes", "Rows", "Workers", "Measured", "Predicted", "Ratio"]
    return Table("The times of (d), predicted", head, lines)


def _costs_table(costs: Costs) -> Table:
    lines = [
        ["A row", _terms(costs.gather)],
        *([f"Solve, {how.replace('_', '-')}", _terms(c)] for how, c in costs.solve.items()),
        _handled("An integer of a piece: add, pack, unpack; size", costs.narrow),
        _handled("The same beyond int64 (Python integers)", costs.wide),
        ["Solve, a matrix entry beyond int64", f"{1e6 * costs.wide_solve:.2g} µs more"],
        ["A temporary file, there and back", f"{1e-6 / costs.file:,.0f} MB/s"],
        ["Loopback", f"{1e-6 / costs.loopback:,.0f} MB/s"],
        ["A round of tasks", f"{1e3 * costs.dispatch:.0f} ms"],
        ["Largest mean of φ²", f"{costs.mean_square:.2f}"],
    ]
    return Table("Costs measured on one thread of this machine", ["What", "Cost"], lines)


def _handled(name: str, h: Handling) -> list[str]:
    seconds = ", ".join(f"{1e9 * s:.3g}" for s in (h.add, h.dump, h.load))
    return [name, f"{seconds} ns; {h.size:.1f} bytes"]


def _terms(coefficients: dict[str, float]) -> str:
    return " + ".join(f"{v:.2g} s {name}" for name, v in coefficients.items() if v)


# --- where it ends --------------------------------------------------------------------------------


def prediction(costs: Costs) -> Finding:
    """Wall times for many workers, and where they break."""
    model = Model(costs)
    rows = grid(model, features=FEATURES, classes=CLASSES, rows=ROWS, workers=WORKERS)
    judged = select(rows, **JUDGED)
    return Finding(
        name="e2",
        title="(e) Ten to ten thousand workers: predicted",
        claim="Abstract: “rapidly processing large scale data streams”, “desired scalability”.",
        gist="scales to many machines (predicted by the model)",
        design="The model of the figure before, with pieces added in a tree by the workers, or "
        f"collected flat by one driver. {_ASSUMED} J = 4096 and K = 100 lie beyond what was "
        "measured.",
        found=_limits_in_words(model, rows),
        criteria=[
            Criterion(
                "10^10 rows: 1000 workers are at least 50 times as fast as 10 (J = 1024, K = 10)",
                by("knowledge", judged, test.keeps_speeding_up),
            ),
            Criterion(
                "10^12 rows are learned within a day by 10,000 workers (J = 1024, K = 10)",
                by("knowledge", judged, test.within_a_day),
            ),
            Criterion(
                f"10^10 rows, 1000 workers: the tree takes at most {test.SHARE:.0%} of the time",
                by("knowledge", judged, test.tree_is_small),
                essential=False,
            ),
            Criterion(
                f"10,000 workers: a tree merges at least {test.TREE:g} times faster than a driver "
                "that collects flat",
                by("knowledge", judged, test.tree_beats_flat),
                essential=False,
            ),
        ],
        rows=rows,
        draw=figures.prediction,
        tables=[_wall_table(rows), _solve_table(model), _limits_table(model)],
    )


def _limits_in_words(model: Model, rows: Rows) -> str:
    tree, flat = (column(select(rows, merging=how), "dominant") for how in ("tree", "flat"))
    held, at_one = rows_in_words(model.limit), rows_in_words(rows_in_int64(1.0))
    return (
        f"With a tree, gathering dominates in {tree.count('gather')} of {len(tree)} cases, the "
        f"solve in {tree.count('solve')}, merging in {tree.count('merge')}; collected flat, "
        f"merging dominates in {flat.count('merge')}. int64 holds {held} rows of one matrix at "
        f"the default resolution of 2^-14 (largest mean of φ² {model.costs.mean_square:.2f}; "
        f"{at_one} rows where it is 1). Beyond, sums are Python integers: still exact, but slower."
    )


def _wall_table(rows: Rows) -> Table:
    """Times with a tree, flat in the last column."""
    shown = [(1e9, 100), (1e10, 1000), (1e11, 1000), (1e12, 10_000)]
    lines = []
    for J in FEATURES:
        for K in CLASSES:
            for kind in ("pooled", "class-wise"):
                ours = select(rows, features=J, classes=K, knowledge=kind)
                trees = [select(ours, rows=n, workers=p, merging="tree")[0] for n, p in shown]
                flat = select(ours, rows=1e12, workers=10_000, merging="flat")[0]
                cells = [f"{duration(r['seconds'])}{_MARKS[r['dominant']]}" for r in trees]
                last = f"{duration(flat['seconds'])}{_MARKS[flat['dominant']]}"
                size = amount(trees[0]["piece_bytes"])
                lines.append([str(J), str(K), kind, size, *cells, last])
    heads = [f"10^{round(math.log10(n))} rows, {p:,} workers" for n, p in shown]
    head = ["J", "K", "Knowledge", "Piece", *heads, "the last one flat"]
    title = "Predicted wall time (ᵐ: merging, ˢ: the solve takes the largest part)"
    return Table(title, head, lines)


_MARKS = {"gather": "", "merge": " ᵐ", "solve": " ˢ"}


def _solve_table(model: Model) -> Table:
    lines = []
    for J in FEATURES:
        for K in CLASSES:
            pooled, apart = (Problem(1e9, J, K, kind) for kind in ("pooled", "class-wise"))
            lines.append(
                [
                    str(J),
                    str(K),
                    duration(model.solve(pooled)),
                    duration(model.solve(apart)),
                    duration(model.solve(apart, "one_vs_rest")),
                    amount(pooled.memory),
                    amount(apart.memory),
                ]
            )
    head = ["J", "K", "Pooled", "Shared", "One-vs-rest", "Memory, pooled", "class-wise"]
    return Table("Predicted time of the solve on one thread, and memory of a piece", head, lines)


def _limits_table(model: Model) -> Table:
    apart, large = Problem(1e10, 1024, 10, "class-wise"), Problem(1e10, 4096, 100, "class-wise")
    total, step = model.gather(apart, apart.rows), model.step(apart, 0.0)
    narrow, beyond = model.costs.narrow, model.costs.wide
    wide, hour = Problem(1e12, 1024, 10, "pooled"), _cubic_hour(model)
    lines = [
        [
            "Collecting flat at the driver (J = 1024, K = 10, class-wise, 10^10 rows)",
            f"takes longer than gathering from {math.sqrt(total / step):,.0f} workers; pieces held "
            f"at once fill {amount(DRIVER_MEMORY)} at {DRIVER_MEMORY / (8 * apart.entries):,.0f}",
            f"a tree: {duration(model.tree(apart, 10_000))} instead of "
            f"{duration(model.flat(apart, 10_000))} at 10,000 workers",
        ],
        [
            "K matrices in memory, two pieces at a time",
            f"{amount(WORKER_MEMORY)} are full at "
            + ", ".join(f"K = {WORKER_MEMORY / (16 * J * J):,.0f} for J = {J}" for J in FEATURES),
            f"pooled knowledge, or weights fixed beforehand as weights of rows: one matrix, "
            f"{amount(Problem(1, 4096, 100, 'pooled').memory)} instead of {amount(large.memory)} "
            "at J = 4096, K = 100",
        ],
        [
            "The solve on one machine",
            f"J³ alone takes an hour at J = {hour:,.0f}, of which one matrix has "
            f"{amount(8 * hour**2)}; with shared weights J = 4096, K = 100 takes "
            f"{duration(model.solve(large))}",
            f"fewer features; pooled {duration(model.solve(replace(large, kind='pooled')))}; "
            f"one-vs-rest {duration(model.solve(large, 'one_vs_rest'))}, whose K problems could be "
            "solved on K machines; a factorisation on many threads or a GPU",
        ],
        [
            "int64",
            f"{rows_in_words(model.limit)} rows of one matrix (pooled: of all classes, class-wise: "
            f"of one); beyond, an addition costs {beyond.add / narrow.add:.0f} times as much and "
            f"the solve of J = 1024 takes {duration(model.solve(wide))} instead of "
            f"{duration(model.solve(replace(wide, rows=1e9)))}",
            f"a coarser resolution: 2^-12 holds {rows_in_words(16 * model.limit)} rows, 2^-10 "
            f"{rows_in_words(256 * model.limit)}",
        ],
    ]
    return Table("Where it breaks, and what then", ["What", "Where", "What then"], lines)


def _cubic_hour(model: Model) -> float:
    return float((3600.0 / model.costs.solve["pooled"]["J³"]) ** (1 / 3))
