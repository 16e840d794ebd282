"""Fig. 1 (a) to (f) of Lee et al. 2019, run again.

    W.-H. Lee, B. J. Ko, S. Wang, C. Liu, K. K. Leung, "Exact incremental and decremental
    learning for LS-SVM", ICIP 2019

on MNIST if it is on this machine (see `papers.datasets`), else on the digits that ship with
scikit-learn.
"""

from __future__ import annotations

from pathlib import Path

from papers.claims import Finding
from papers.datasets import NOT_FOUND
from papers.lee2019 import judge, measure
from papers.report import QUICK, Plan


def run(folder: Path, quick: bool = False) -> Path:
    """Measure, judge and write everything; returns the path of the report."""
    data, plan = measure.load(quick)
    notices = [] if data.name == "MNIST" else [f"{NOT_FOUND} The paper used MNIST."]
    notices += [QUICK] if quick else []
    maps = "; ".join(str(phi) for phi in data.maps.values())
    facts = {
        "Data": f"{data.described}; even against odd digits",
        "Model": f"LSSVC, ρ = {measure.RHO:g} for all coefficients, the intercept among them; "
        f"the feature maps are {maps}",
        "Times": f"medians of {plan.rounds} rounds in which the jobs take turns, on one thread; "
        "an update ends when the new coefficients are there",
    }
    return measure.PAPER.report(folder, notices, lambda: find(data, plan), facts)


def find(data: measure.Data, plan: Plan) -> list[Finding]:
    """The six figures, measured and judged."""
    return [
        judge.groups_learned(measure.groups_learned(data)),
        judge.wrong_labels_forgotten(measure.wrong_labels_forgotten(data)),
        judge.update_times(measure.update_times(data, plan)),
        judge.times_per_row(measure.times_per_row(data, plan)),
        judge.storage(measure.storage(data, plan)),
        judge.estimates_forgotten(measure.estimates_forgotten(data, plan)),
    ]
