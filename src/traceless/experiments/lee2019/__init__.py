"""Fig. 1 (a) to (f) of Lee et al. 2019, run again.

    W.-H. Lee, B. J. Ko, S. Wang, C. Liu, K. K. Leung, "Exact incremental and decremental
    learning for LS-SVM", ICIP 2019

on MNIST if it is on this machine (see `traceless.datasets`), else on the digits that ship
with scikit-learn. `measurements` has the numbers, `claims` the criteria
and `figures` the pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from traceless.experiments.conduct import QUICK, conduct, ran
from traceless.experiments.images import NOT_FOUND
from traceless.experiments.lee2019 import claims
from traceless.experiments.lee2019 import measurements as measure
from traceless.experiments.lee2019.measurements import Data, Plan
from traceless.experiments.report import Report, machine
from traceless.experiments.verdict import Finding


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
    notices = [] if data.name == "MNIST" else [f"{NOT_FOUND} The paper used MNIST."]
    notices += [QUICK] if quick else []
    return conduct(
        folder, notices, lambda: find(data, plan), lambda took: _report(data, plan, took, notices)
    )


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
        "Data": f"{data.described}; even against odd digits",
        "Model": f"LSSVC, ρ = {measure.RHO:g}, with the feature maps {maps}",
        "Times": f"medians of {plan.rounds} rounds in which the jobs take turns, on one thread; "
        "an update ends when the new coefficients are there",
        "Run": ran(seconds),
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
