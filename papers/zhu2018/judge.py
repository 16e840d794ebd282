"""The criteria that judge the claims of Zhu et al. 2018: (a) to (d); (e) is in `judge_costs`.

Each public function takes the table of one figure and returns a `Finding`. The paper's words
are in `paper.toml`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import mean, median, stdev

from papers.claims import Case, Finding, at_least, at_most, by, every
from papers.page import Table
from papers.report import Paper
from papers.rows import Row, Rows, column, groups, select, values
from papers.zhu2018 import draw
from papers.zhu2018.imbalance import CS, TUNING_SEED, WINDOW

PAPER = Paper(Path(__file__).parent)
LIMITS = PAPER.limits
_HELD = {"all": "all stages held", "window": f"last {WINDOW} stages held"}
_RULES = {"none": "none", "balanced": "balanced", "inverse": "W1", "golden": "W2"}


def _by_case(
    rows: Rows, name: Callable[[Row], str], test: Callable[[Rows], Case]
) -> dict[str, Case]:
    """Put the rows to a test, once for each name they are given."""
    return by("case", [r | {"case": name(r)} for r in rows], test)


def equality(rows: Rows) -> Finding:
    """(a) Equality with batch learning."""

    def nodes(row: Row) -> str:
        return f"{row['nodes']} node{'s' if row['nodes'] > 1 else ''}"

    def apart(r: Rows) -> Case:
        return at_most(max(column(r, "difference")), 0.0, "{:g} at most")

    residue, equal = column(rows, "float64_difference"), column(rows, "digest_equal")
    same = _by_case(rows, nodes, lambda r: every(column(r, "digest_equal")))
    said = {"n": len(rows), "difference": max(column(rows, "difference")), "equal": sum(equal)}
    said |= {"residue": (min(residue), median(residue), max(residue))}
    said |= {"last": select(rows, event="learned")[-1]}
    cases = [_by_case(rows, nodes, apart), same]
    return PAPER.finding("a", rows, draw.equality, cases, **said)


# --- (b) -----------------------------------------------------------------------------------------


def drifting(rows: Rows, name: str, what: str) -> Finding:
    """(b) Drifting imbalance, of two classes or ten."""
    asked = [r for r in rows if r["equals_fit_with_weights"] != ""]
    seeds = len(values(rows, "seed"))
    there = select(_rarest(select(rows, held="window")), weighting="shared")
    rules = groups(there, "class_weight")
    cases: list[tuple[Rows, Callable[[Rows], Case]]] = [
        (rows, lambda r: every(column(r, "equals_batch"))),
        (asked, lambda r: every(column(r, "equals_fit_with_weights"))),
        (rows, lambda r: _gains(r, "g_mean", LIMITS.rise)),
        (rows, lambda r: _gains(r, "f", 0.0)),
    ]
    return PAPER.finding(
        name,
        rows,
        draw.drifting,
        [_by_case(some, lambda r: _HELD[r["held"]], test) for some, test in cases],
        {"Mean and standard deviation over streams": _measures_table(rows)},
        "b",
        what=what,
        stream=PAPER.texts["streams"][what],
        ratio=max(column(rows, "ratio")),
        window=WINDOW,
        rare="the rare class" if what == "two classes" else "all classes (macro)",
        seeds=f"{seeds} stream{'s' if seeds > 1 else ''}",
        Cs=", ".join(f"{C:g}" for C in CS),
        tuning_seed=TUNING_SEED,
        **{m: {rule: mean(column(r, m)) for rule, r in rules.items()} for m in ("g_mean", "f")},
    )


def _rarest(rows: Rows) -> Rows:
    """The rows of the stage with the largest imbalance."""
    return select(rows, ratio=max(column(rows, "ratio")))


def _gains(rows: Rows, measure: str, enough: float) -> Case:
    """What each rule adds to a measure at the largest imbalance, in the mean of all seeds."""
    there = _rarest(rows)
    plain = mean(column(select(there, class_weight="none"), measure))
    rules = groups([r | {"rule": (r["class_weight"], r["weighting"])} for r in there], "rule")
    added = [mean(column(r, measure)) - plain for rule, r in rules.items() if rule[0] != "none"]
    ends = dict.fromkeys(f"{gain:+.3f}".replace("-", "−") for gain in (min(added), max(added)))
    return at_least(min(added), enough, " to ".join(ends))


def _measures_table(rows: Rows) -> Table:
    """Mean ± spread over seeds at the largest imbalance, and in all stages."""
    lines = []
    kinds = [r | {"kind": (r["held"], r["class_weight"], r["weighting"], r["C"])} for r in rows]
    for (held, rule, scope, C), ours in groups(kinds, "kind").items():
        scaled = " × rows per class" if rule in ("inverse", "golden") else ""
        cells = [_spread(r, m) for m in ("g_mean", "f") for r in (_rarest(ours), ours)]
        name = f"{_RULES[rule]}{', one-vs-rest' if scope == 'one_vs_rest' else ''}"
        lines.append([_HELD[held], name, f"{C:g}{scaled}", *cells])
    head = ["Held", "Weights", "C", "G-mean, rarest", "all stages", "F, rarest", "all stages"]
    return Table(head, lines)


def _spread(rows: Rows, measure: str) -> str:
    each = [mean(column(r, measure)) for r in groups(rows, "seed").values()]
    return f"{mean(each):.3f} ± {stdev(each):.3f}" if len(each) > 1 else f"{mean(each):.3f}"


# --- (c) and (d) ---------------------------------------------------------------------------------


def stage_times(rows: Rows) -> Finding:
    """(c) Incremental learning against retraining."""
    stages = [r["learn"] + r["solve"] for r in rows]
    retrain = column(rows, "retrain")
    cases = [
        {"wESVM": at_least(retrain[-1] / stages[-1], LIMITS.faster)},
        {"wESVM": at_least(sum(retrain) / sum(stages), LIMITS.faster_in_all)},
        {"wESVM": at_most(stages[-1] / stages[1], LIMITS.flat, "{:.2f} ×")},
    ]
    said = {"stage": stages[-1], "stages": sum(stages), "retrain": sum(retrain), "last": rows[-1]}
    return PAPER.finding("c", rows, draw.stage_times, cases, **said)


def worker_times(rows: Rows) -> Finding:
    """(d) Speed-up, size-up and scale-up."""
    few, n = min(column(rows, "rows")), max(column(rows, "rows"))

    def classes(row: Row) -> str:
        return f"{row['classes']} classes"

    def t(r: Rows, p: int, size: int) -> float:
        return float(select(r, workers=p, rows=size)[0]["seconds"])

    def sizes_up(r: Rows) -> Case:
        one, two = (t(r, p, n) / t(r, p, few) for p in (1, 2))
        words = f"{one:.2f} and {two:.2f} for m = {n / few:g}"
        return at_most(max(one, two), LIMITS.size_up * n / few, words)

    said = [
        f"{K} classes: {t(r, 1, n):.2f} s with one process, {t(r, 2, n):.2f} s with two"
        for K, r in groups(rows, "classes").items()
    ]
    tests: list[Callable[[Rows], Case]] = [
        lambda r: at_least(t(r, 1, n) / t(r, 2, n), LIMITS.speed_up, "{:.2f}"),
        lambda r: at_least(t(r, 1, n // 2) / t(r, 2, n), LIMITS.scale_up, "{:.2f}"),
        sizes_up,
    ]
    cases, J = [_by_case(rows, classes, test) for test in tests], rows[0]["features"]
    words = "; ".join(said)
    return PAPER.finding("d", rows, draw.worker_times, cases, J=J, n=n, half=n // 2, said=words)
