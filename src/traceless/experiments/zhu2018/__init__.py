"""Zhu et al. 2018, judged by the claims that our copy of the paper has.

    L. Zhu, K. Ikeda, S. Pang, T. Ban, A. Sarrafzadeh, "Merging weighted SVMs for parallel
    incremental learning", Neural Networks, 2018

Its experimental part is lost to us, so the claims are those of the abstract and the
introduction, and the designs are ours, by what such work is judged by:

    (a) `equality`      the same bits as batch learning, at every stage
    (b) `imbalance`     G-mean and F-measure while the imbalance of the classes drifts
    (c) `incremental`   time of a stage against retraining
    (d) `workers`       speed-up, size-up and scale-up
    (e) `cost_model`    what that means for many machines, from costs measured here (`costs`)

`claims` and `claims_of_costs` have the findings, `criteria` the tests and thresholds,
`figures` and `figures_of_costs` the pictures, `plan` how much is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from traceless.experiments.conduct import QUICK, conduct, ran
from traceless.experiments.images import NOT_FOUND, Images
from traceless.experiments.report import Report, machine
from traceless.experiments.verdict import Finding
from traceless.experiments.zhu2018 import (
    claims,
    claims_of_costs,
    costs,
    equality,
    imbalance,
    incremental,
    plan,
    workers,
)

_OURS = (
    "The experimental part of this paper is not in our copy, which ends in section 2.2. The claims "
    "below are those of its abstract and introduction; experiments, data, criteria and thresholds "
    "are ours. Thresholds were set after trial runs and before the first full one, and none has "
    "been loosened since."
)


def run(folder: Path, quick: bool = False) -> Path:
    """Measure, judge and write everything; returns the path of the report.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    quick : bool
        Fewer rows and points: seconds instead of minutes.
    """
    images, how_much = plan.load(quick)
    notices = [_OURS] + ([] if images.name == "MNIST" else [NOT_FOUND])
    notices += [QUICK] if quick else []
    return conduct(
        folder,
        notices,
        lambda: find(images, how_much),
        lambda took: _report(images, how_much, took, notices),
    )


def find(images: Images, how_much: plan.Plan) -> list[Finding]:
    """All findings, measured and judged."""
    timed = workers.worker_times(how_much)
    measured = costs.measure(how_much)
    return [
        claims.equality(equality.differences_from_batch(images, how_much)),
        claims.drifting(imbalance.drifting_two(how_much), "b1", "two classes"),
        claims.drifting(imbalance.drifting_ten(images, how_much), "b2", "ten digits"),
        claims.stage_times(incremental.stage_times(images, how_much)),
        claims.worker_times(timed),
        claims_of_costs.validation(measured, timed),
        claims_of_costs.prediction(measured.costs),
    ]


def _report(images: Images, how_much: plan.Plan, seconds: float, notices: Sequence[str]) -> Report:
    facts = {
        "Data": f"(a), (b) and (c): {images.described}; (b) also, (d) and (e): synthetic rows",
        "Model": f"wESVM: a random layer of sigmoids with W uniform in ±{plan.SCALE:g} (±1 for two "
        f"classes) and {how_much.units} units in (a), {how_much.stream_units} in (b), "
        f"{how_much.timed_units} in (c), {how_much.work_units} in (d); balanced weights and C = "
        f"{1 / equality.RHO:g} where nothing else is said",
        "Times": f"medians of {how_much.rounds} rounds in which the jobs take turns, on one thread "
        "of each process",
        "Run": ran(seconds),
    }
    return Report(
        title="Merging weighted SVMs for parallel incremental learning: the claims, tested",
        reference="L. Zhu, K. Ikeda, S. Pang, T. Ban and A. Sarrafzadeh, “Merging weighted SVMs "
        "for parallel incremental learning”, Neural Networks, 2018.",
        introduction="A weighted extreme SVM can be learned from slices of the data, on many "
        "machines and over time, by adding up one matrix for each class. These are the paper's "
        "claims, each with how we tested it, what came out, and a verdict computed from the "
        "numbers.",
        facts=facts | machine(),
        notice=" ".join(notices),
    )
