"""Zhu et al. 2018, judged by the claims that our copy of the paper has.

    L. Zhu, K. Ikeda, S. Pang, T. Ban, A. Sarrafzadeh, "Merging weighted SVMs for parallel
    incremental learning", Neural Networks, 2018

Its experimental part is lost to us, so the claims are those of the abstract and the
introduction, and the designs are ours, by what such work is judged by:

    (a) `equality`            the same bits as batch learning, at every stage
    (b) `imbalance`           G-mean and F-measure while the imbalance of the classes drifts
    (c) `times`               time of a stage against retraining
    (d) `times`               speed-up, size-up and scale-up
    (e) `papers.cost_model`   what that means for many machines, from costs measured here
"""

from __future__ import annotations

from pathlib import Path

from papers.claims import Finding
from papers.cost_model import costs
from papers.datasets import NOT_FOUND, Images, find_mnist, mnist_images, small_images
from papers.report import QUICK, Plan
from papers.zhu2018 import equality, imbalance, judge, judge_costs, times

FULL, SHORT, DIGITS, SHORT_DIGITS = judge.PAPER.plans()


def run(folder: Path, quick: bool = False) -> Path:
    """Measure, judge and write everything; returns the path of the report."""
    images, plan = load(quick)
    notices = [judge.PAPER.notice] + ([] if images.name == "MNIST" else [NOT_FOUND])
    notices += [QUICK] if quick else []
    facts = {
        "Data": f"(a), (b) and (c): {images.described}; (b) also, (d) and (e): synthetic rows",
        "Model": f"wESVM: a random layer of sigmoids with W uniform in ±{costs.SCALE:g} (±1 for "
        f"two classes) and {plan.units} units in (a), {plan.stream_units} in (b), "
        f"{plan.timed_units} in (c), {plan.work_units} in (d); balanced weights and C = "
        f"{1 / equality.RHO:g} where nothing else is said",
        "Times": f"medians of {plan.rounds} rounds in which the jobs take turns, on one thread "
        "of each process",
    }
    return judge.PAPER.report(folder, notices, lambda: find(images, plan), facts)


def load(quick: bool) -> tuple[Images, Plan]:
    """MNIST if it is on this machine, else the digits of scikit-learn; nothing is downloaded."""
    if find_mnist() is None:
        plan = SHORT_DIGITS if quick else DIGITS
        return small_images(plan.rows, plan.test_rows), plan
    plan = SHORT if quick else FULL
    return mnist_images(plan.rows, plan.test_rows), plan


def find(images: Images, plan: Plan) -> list[Finding]:
    """All findings, measured and judged."""
    timed = times.worker_times(plan)
    measured = costs.measure(plan.widths, plan.class_numbers, plan.rounds)
    return [
        judge.equality(equality.differences_from_batch(images, plan)),
        judge.drifting(imbalance.drifting_two(plan), "b1", "two classes"),
        judge.drifting(imbalance.drifting_ten(images, plan), "b2", "ten digits"),
        judge.stage_times(times.stage_times(images, plan)),
        judge.worker_times(timed),
        judge_costs.validation(measured, timed),
        judge_costs.prediction(measured.costs),
    ]
