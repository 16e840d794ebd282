"""Karasuyama & Takeuchi 2009, run again and judged.

M. Karasuyama, I. Takeuchi, "Multiple incremental decremental learning of support vector
machines", Advances in Neural Information Processing Systems 22, 2009

(a), (b) `plane`    CPU time and breakpoints of points in the plane: MID, SID, LIBSVM
(c) `series`        a month in, a month out: weather, or the paper's river
(d) `paths`         one path, looked at on the way
(e) `changes`       how exact every result is
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from papers.claims import Finding
from papers.karasuyama2009 import judge, paths, plane, series
from papers.karasuyama2009.numbers import PAPER
from papers.report import QUICK, Plan
from papers.rows import Rows

FULL, SHORT = PAPER.plans()
_WEATHER = (
    "The paper's river data cannot be had: in (c) real weather of the same shape takes their "
    "place. Who has the river can give it with --fisher-river."
)
_FIRST_CALL = """
import time
from sklearn.svm import SVC
start = time.perf_counter()
from traceless.hinge.kernels import Kernel
from papers.karasuyama2009.points import PointProblem
rng = np.random.default_rng(0)
X, y = rng.normal(size=(100, 2)), np.where(np.arange(100) % 2, 1.0, -1.0)
problem = PointProblem(Kernel("rbf"), 2).fit(X[:90], y[:90], 1.0)
problem.update(add=(X[90:], y[90:], 1.0), remove=range(10)).decision_function(X)
print(time.perf_counter() - start)
"""


def run(folder: Path, quick: bool = False, river: Path | None = None) -> Path:
    """Measure, judge and write everything; returns the path of the report.

    `river` is the paper's river as a CSV file (`papers.karasuyama2009.series`).
    """
    data, plan = series.load(river), SHORT if quick else FULL
    notices = [PAPER.notice, *([series.MISSING] if data is None else [])]
    notices += [_WEATHER] if data is not None and river is None else []
    notices += [QUICK] if quick else []
    crosses, circles = (
        " and ".join(f"({a:g}, {b:g})" for a, b in plane.CENTRES[label]).replace("-", "−")
        for label in (1.0, -1.0)
    )
    facts = {
        "Data": f"(a), (b), (d): {plane.N} points in the plane, crosses around {crosses}, circles "
        f"around {circles}, standard deviation 1; (c): {data.described if data else 'left out'}",
        "Model": "hinge SVM with an RBF kernel, the engine of PathSVC; nothing is added to the "
        "diagonal of the kernel matrix",
        "Times": f"CPU times of one thread, medians; {plan.trials} data sets in the plane, "
        f"{plan.repeats} repetitions in (c)",
        "First call": "not measured in a quick run" if quick else _first_call(),
    }
    return PAPER.report(folder, notices, lambda: find(data, plan), facts)


def find(data: series.Series | None, plan: Plan) -> list[Finding]:
    """All findings, measured and judged."""
    in_plane = plane.changes(plan)
    results: dict[str, Rows] = {"plane": in_plane}
    findings = [
        judge.plane_times(in_plane),
        judge.breakpoints(in_plane, plane.breakpoints_by_width(plan)),
    ]
    if data is not None:
        monthly = series.monthly_update(data, plan)
        findings += [
            judge.series_times(monthly, data.name),
            judge.cost_and_error(monthly, data.name),
        ]
        results |= {data.name: monthly, "month by month": series.months(data, plan)}
    results["identical points"] = plane.identical_points(plan)
    path = judge.path(*paths.paths(plan), plan)
    return [*findings, path, judge.exactness(results)]


def _first_call() -> str:
    """What import, first fit and first update cost in a new process."""
    command = [sys.executable, "-c", _FIRST_CALL]
    seconds = float(subprocess.check_output(command, text=True))
    return f"import, first fit and first update take {seconds:.1f} s in a new process"
