"""The cost model's tables: what was measured, what it predicts, and where it breaks."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

from papers.cost_model.model import CLASSES, FEATURES, Costs, Handling, Model, Problem
from papers.cost_model.words import amount, duration, rows_in_words
from papers.page import Table
from papers.rows import Rows, select

WORKER_MEMORY, DRIVER_MEMORY = 16e9, 64e9
ASSUMED = (
    "Assumed, not measured: 1 GB/s between any two machines, 10 ms to begin a round, workers as "
    "fast as one thread here, 16 GB of memory for each and 64 GB for the driver, classes of equal "
    "size, rows that lie where they are read."
)
_MARKS = {"gather": "", "merge": " ᵐ", "solve": " ˢ"}
_KINDS = ("pooled", "class-wise")


def of_costs(costs: Costs) -> dict[str, Table]:
    """What was measured."""

    def terms(coefficients: dict[str, float]) -> str:
        return " + ".join(f"{v:.2g} s {name}" for name, v in coefficients.items() if v)

    def handled(h: Handling) -> str:
        seconds = ", ".join(f"{1e9 * s:.3g}" for s in (h.add, h.dump, h.load))
        return f"{seconds} ns; {h.size:.1f} bytes"

    solves = {f"Solve, {how.replace('_', '-')}": terms(c) for how, c in costs.solve.items()}
    lines = {
        "A row": terms(costs.gather),
        **solves,
        "An integer of a piece: add, pack, unpack; size": handled(costs.narrow),
        "The same beyond int64 (two limbs)": handled(costs.wide),
        "Solve, a matrix entry beyond int64": f"{1e6 * costs.wide_solve:.2g} µs more",
        "A temporary file, there and back": f"{1e-6 / costs.file:,.0f} MB/s",
        "A round of tasks": f"{1e3 * costs.dispatch:.0f} ms",
        "Largest mean of φ²": f"{costs.mean_square:.2f}",
    }
    table = Table(["What", "Cost"], list(lines.items()))
    return {"Costs measured on one thread of this machine": table}


def of_predictions(model: Model, rows: Rows) -> dict[str, Table]:
    """What follows for many machines."""
    return {
        "Predicted wall time (ᵐ: merging, ˢ: the solve takes the largest part)": _walls(rows),
        "Predicted time of the solve on one thread, and memory of a piece": _solves(model),
        "Where it breaks, and what then": _limits(model),
    }


def _walls(rows: Rows) -> Table:
    """Times with a tree, flat in the last column."""
    shown = [(1e9, 100, "tree"), (1e10, 1000, "tree"), (1e11, 1000, "tree"), (1e12, 10_000, "tree"),
             (1e12, 10_000, "flat")]  # fmt: skip
    lines = []
    for J, K, kind in product(FEATURES, CLASSES, _KINDS):
        ours = select(rows, features=J, classes=K, knowledge=kind)
        walls = [select(ours, rows=n, workers=p, merging=how)[0] for n, p, how in shown]
        cells = [f"{duration(r['seconds'])}{_MARKS[r['dominant']]}" for r in walls]
        lines.append([str(J), str(K), kind, amount(walls[0]["piece_bytes"]), *cells])
    heads = [f"10^{round(math.log10(n))} rows, {p:,} workers" for n, p, _ in shown[:-1]]
    return Table(["J", "K", "Knowledge", "Piece", *heads, "the last one flat"], lines)


def _solves(model: Model) -> Table:
    lines = []
    for J, K in product(FEATURES, CLASSES):
        pooled, apart = (Problem(1e9, J, K, kind) for kind in _KINDS)
        solves = (model.solve(pooled), model.solve(apart), model.solve(apart, "one_vs_rest"))
        memory = map(amount, (pooled.memory, apart.memory))
        lines.append([str(J), str(K), *map(duration, solves), *memory])
    head = ["J", "K", "Pooled", "Shared", "One-vs-rest", "Memory, pooled", "class-wise"]
    return Table(head, lines)


def _limits(model: Model) -> Table:
    apart, large = Problem(1e10, 1024, 10, "class-wise"), Problem(1e10, 4096, 100, "class-wise")
    wide = Problem(1e12, 1024, 10, "pooled")
    from_workers = math.sqrt(model.gather(apart, apart.rows) / model.step(apart, 0.0))
    hour = float((3600.0 / model.costs.solve["pooled"]["J³"]) ** (1 / 3))
    dearer = model.costs.wide.add / model.costs.narrow.add
    full = ", ".join(f"K = {WORKER_MEMORY / (16 * J * J):,.0f} for J = {J}" for J in FEATURES)
    lines = [
        [
            "Collecting flat at the driver (J = 1024, K = 10, class-wise, 10^10 rows)",
            f"takes longer than gathering from {from_workers:,.0f} workers; pieces held at once "
            f"fill {amount(DRIVER_MEMORY)} at {DRIVER_MEMORY / (8 * apart.entries):,.0f}",
            f"a tree: {duration(model.tree(apart, 10_000))} instead of "
            f"{duration(model.flat(apart, 10_000))} at 10,000 workers",
        ],
        [
            "K matrices in memory, two pieces at a time",
            f"{amount(WORKER_MEMORY)} are full at {full}",
            f"pooled knowledge, or weights fixed beforehand as weights of rows: one matrix, "
            f"{amount(replace(large, kind='pooled').memory)} instead of {amount(large.memory)} "
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
            f"of one); beyond, an addition costs {dearer:.0f} times as much and the solve of "
            f"J = 1024 takes {duration(model.solve(wide))} instead of "
            f"{duration(model.solve(replace(wide, rows=1e9)))}",
            f"a coarser resolution: 2^-12 holds {rows_in_words(16 * model.limit)} rows, 2^-10 "
            f"{rows_in_words(256 * model.limit)}",
        ],
    ]
    return Table(["What", "Where", "What then"], lines)
