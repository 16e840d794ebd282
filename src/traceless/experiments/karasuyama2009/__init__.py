"""Karasuyama & Takeuchi 2009, run again and judged.

    M. Karasuyama, I. Takeuchi, "Multiple incremental decremental learning of support vector
    machines", Advances in Neural Information Processing Systems 22, 2009

    (a), (b) `artificial`  CPU time and breakpoints of points in the plane: MID, SID, LIBSVM
    (c) `series`           a month in, a month out: weather, or the paper's river
    (d) `paths`            one path, looked at on the way
    (e) `changes`          how exact every result is

`claims` and `claims_of_paths` have the findings, `criteria` the tests and thresholds, `figures`
the pictures, `plan` how much is computed, `first_call` what compilation costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from traceless.experiments.conduct import QUICK, conduct, ran
from traceless.experiments.karasuyama2009 import (
    artificial,
    claims,
    claims_of_paths,
    first_call,
    paths,
    series,
)
from traceless.experiments.karasuyama2009 import plan as plans
from traceless.experiments.report import Report, machine
from traceless.experiments.verdict import Finding, Rows

_COPY = (
    "Our copy of this paper has lost its formulas, its figures and some parameters; where that "
    "matters it is said. Thresholds are ours: they were set after trial runs and before the first "
    "full one, and none has been loosened since."
)
_WEATHER = (
    "The paper's river data cannot be had: in (c) real weather of the same shape takes their "
    "place. Who has the river can give it with --fisher-river."
)


def run(folder: Path, quick: bool = False, river: Path | None = None) -> Path:
    """Measure, judge and write everything; returns the path of the report.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    quick : bool
        Fewer points and trials: seconds instead of minutes.
    river : Path, optional
        The paper's river as a CSV file (`traceless.experiments.karasuyama2009.series`).
    """
    data, how_much = series.load(river), plans.QUICK if quick else plans.FULL
    notices = [_COPY, *([series.MISSING] if data is None else [])]
    notices += [_WEATHER] if data is not None and river is None else []
    notices += [QUICK] if quick else []
    first_call.warm_up()
    return conduct(
        folder,
        notices,
        lambda: find(data, how_much),
        lambda took: _report(data, how_much, took, notices, quick),
    )


def find(data: series.Series | None, how_much: plans.Plan) -> list[Finding]:
    """All findings, measured and judged."""
    plane = artificial.plane_changes(how_much)
    widths = artificial.breakpoints_by_width(how_much)
    results: dict[str, Rows] = {"plane": plane}
    findings = [claims.plane_times(plane), claims.breakpoints(plane, widths)]
    if data is not None:
        monthly = series.monthly_update(data, how_much)
        results[data.name] = monthly
        findings += [
            claims.series_times(monthly, data.name),
            claims.cost_and_error(monthly, data.name),
        ]
        results["month by month"] = series.months(data, how_much)
    results["identical points"] = artificial.identical_points(how_much)
    found, drawn = paths.paths(how_much)
    return [
        *findings,
        claims_of_paths.path(found, drawn, how_much),
        claims_of_paths.exactness(results),
    ]


def _report(
    data: series.Series | None,
    how_much: plans.Plan,
    seconds: float,
    notices: Sequence[str],
    quick: bool,
) -> Report:
    facts = {
        "Data": f"(a), (b), (d): {plans.N} points in the plane, crosses around {_centres(1.0)}, "
        f"circles around {_centres(-1.0)}, standard deviation 1; (c): "
        f"{'left out' if data is None else _described(data)}",
        "Model": "hinge SVM with an RBF kernel, the engine of traceless.hinge; nothing is added to "
        "the diagonal of the kernel matrix",
        "Times": f"CPU times of one thread, medians; {how_much.trials} data sets in the plane, "
        f"{how_much.repeats} repetitions in (c)",
        "First call": "not measured in a quick run" if quick else _first_call(),
        "Run": ran(seconds),
    }
    return Report(
        title="Multiple incremental decremental learning of SVMs: the experiments, run again",
        reference="M. Karasuyama and I. Takeuchi, “Multiple incremental decremental learning of "
        "support vector machines”, Advances in Neural Information Processing Systems 22, 2009.",
        introduction="A support vector machine can take in and give up many points at once by "
        "following one path (MID), instead of one path for each point (SID) or fitting afresh "
        "(LIBSVM). These are the paper's claims, each with how we tested it, what came out, and a "
        "verdict computed from the numbers.",
        facts=facts | machine(),
        notice=" ".join(notices),
    )


def _centres(label: float) -> str:
    each = (f"({a:g}, {b:g})" for a, b in artificial.CENTRES[label])
    return " and ".join(each).replace("-", "−")


def _described(data: series.Series) -> str:
    share = (data.y > 0).mean()
    return (
        f"{data.name}, {len(data.y):,} rows of {data.X.shape[1]} features, {data.initial:,} at "
        f"first, {share:.0%} up"
    )


def _first_call() -> str:
    new, later = first_call.first_calls()
    return (
        f"import, first fit and first update take {new:.1f} s on a new machine, where numba "
        f"compiles, and {later:.1f} s in later processes; in no other time of this report"
    )
