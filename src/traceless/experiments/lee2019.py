"""Fig. 1 (a) to (f) of Lee et al. 2019, run again.

    W.-H. Lee, B. J. Ko, S. Wang, C. Liu, K. K. Leung, "Exact incremental and decremental
    learning for LS-SVM", ICIP 2019

on MNIST if it is on this machine (see `traceless.datasets`), else on the digits that ship
with scikit-learn. `lee2019_measurements` has the numbers, `lee2019_claims` the criteria
and `lee2019_figures` the pictures.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

from traceless.experiments import lee2019_claims as claims
from traceless.experiments import lee2019_measurements as measure
from traceless.experiments.lee2019_measurements import Data, Plan
from traceless.experiments.report import Report, machine, summary_table
from traceless.experiments.verdict import Finding

_DIGITS = (
    "MNIST was not found on this machine, so scikit-learn's digits were used instead: 1,797 "
    "images of 8 × 8 pixels. The paper used MNIST; times, sizes and errors below are those of a "
    "much smaller problem. Set TRACELESS_DATA to a folder that holds MNIST's idx files."
)
_QUICK = "This was a quick run on few rows. Run it without --quick to judge the paper."


def run(folder: Path, quick: bool = False) -> Path:
    """Measure, judge and write everything; returns the path of the report.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    quick : bool
        Fewer rows and points: seconds instead of minutes.
    """
    data, plan = measure.load(quick)
    notices = [] if data.name == "MNIST" else [_DIGITS]
    notices += [_QUICK] if quick else []
    for notice in notices:
        sys.stdout.write(f"{notice}\n")
    start = time.monotonic()
    with threadpool_limits(1, user_api="blas"):  # threads that wait for each other spoil times
        findings = find(data, plan)
    took = time.monotonic() - start
    path = _report(data, plan, took, notices).write(findings, folder)
    sys.stdout.write(f"\n{summary_table(findings)}\n\nReport: {path}\n")
    return path


def find(data: Data, plan: Plan) -> list[Finding]:
    """The six figures, measured and judged."""
    return [
        claims.groups_learned(measure.groups_learned(data)),
        claims.wrong_labels_forgotten(measure.wrong_labels_forgotten(data)),
        claims.update_times(measure.update_times(data, plan)),
        claims.times_per_row(measure.times_per_row(data, plan)),
        claims.storage(measure.storage(data, plan)),
        claims.estimates_forgotten(measure.estimates_forgotten(data, plan)),
    ]


def _report(data: Data, plan: Plan, seconds: float, notices: Sequence[str]) -> Report:
    maps = "; ".join(str(phi) for phi in data.maps.values())
    facts = {
        "Data": f"{data.name}: {len(data.X):,} training rows of {data.X.shape[1]} pixels between "
        f"0 and 1, {len(data.X_test):,} test rows; even against odd digits",
        "Model": f"LSSVC, ρ = {measure.RHO:g}, with the feature maps {maps}",
        "Times": f"medians of {plan.rounds} rounds in which the jobs take turns, on one thread; "
        "an update ends when the new coefficients are there",
        "Run": f"{time.strftime('%Y-%m-%d %H:%M')}, {seconds:.0f} s",
    }
    return Report(
        title="Exact incremental and decremental learning for LS-SVM: the experiments, run again",
        reference="W.-H. Lee, B. J. Ko, S. Wang, C. Liu and K. K. Leung, “Exact incremental and "
        "decremental learning for LS-SVM”, IEEE ICIP 2019, Fig. 1 (a) to (f).",
        introduction="The least-squares support vector machine can learn and unlearn rows without "
        "the other rows. These are the paper's six figures, computed with traceless, each with "
        "what the paper says of it, what came out here, and a verdict computed from the numbers. "
        "The paper does not name its kernel function; a linear map and random Fourier features "
        "(the RBF kernel) stand for the two usual choices.",
        facts=facts | machine(),
        notice=" ".join(notices),
    )
