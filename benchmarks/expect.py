"""What to expect on your data: a fit, a change and predictions, by rows, features and classes.

    make bench-expect                               some minutes
    python -m benchmarks.expect --quick             the smaller sizes

Defaults beside scikit-learn's pipeline of a StandardScaler and a RidgeClassifier, which has no
other way to learn or forget a row than a fit. One of n, J and K differs at a time. Writes
expect.json to benchmarks/results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.findings import Findings, Record, main
from benchmarks.refitting import rows
from papers.timing import interleave
from traceless import LSSVC

N, J, K = 10_000, 100, 2  # where it is another that differs
SIZES = {"n": (1000, 10_000, 100_000), "J": (10, 100, 1000), "K": (2, 10, 100)}
BY = {
    "n": f"by rows (J = {J}, K = {K})",
    "J": f"by features (n = {N}, K = {K})",
    "K": f"by classes (n = {N}, J = {J})",
}
OURS, LIVE, PEER = "LSSVC", 'LSSVC(solver="woodbury")', "StandardScaler and RidgeClassifier"
FIT, CHANGE, PREDICT = "A fit", "One row in or out, and a prediction", "1000 predictions"
Jobs = dict[tuple[str, str], Callable[[], object]]


def peer() -> Any:
    return make_pipeline(StandardScaler(), RidgeClassifier())


def jobs_of(n: int, J: int, K: int) -> Jobs:
    """What is timed for rows of one size; a change is made and taken back."""
    X, y = rows(n + 1000, J, K)
    kept, one, some = (X[:n], y[:n]), (X[n : n + 1], y[n : n + 1]), X[n:]
    model, live, theirs = LSSVC().fit(*kept), LSSVC(solver="woodbury").fit(*kept), peer().fit(*kept)

    def there_and_back(learner: LSSVC) -> None:
        learner.partial_fit(*one).predict(one[0])
        learner.forget(*one).predict(one[0])

    return {
        (FIT, OURS): lambda: LSSVC().fit(*kept).predict(one[0]),
        (FIT, PEER): lambda: peer().fit(*kept).predict(one[0]),
        (CHANGE, OURS): lambda: there_and_back(model),
        (CHANGE, LIVE): lambda: there_and_back(live),
        (PREDICT, OURS): lambda: model.predict(some),
        (PREDICT, PEER): lambda: theirs.predict(some),
    }


def measured(by: str, size: int, rounds: int) -> list[Record]:
    """Medians at one size; a peer's change is its fit."""
    seconds = interleave(jobs_of(**{"n": N, "J": J, "K": K} | {by: size}), rounds)
    seconds = {(job, way): t / (2 if job == CHANGE else 1) for (job, way), t in seconds.items()}
    seconds[CHANGE, PEER] = seconds[FIT, PEER]
    case = f"{by} = {size}"
    return [Record(f"{job}, {BY[by]}", way, t, case) for (job, way), t in seconds.items()]


def measure(quick: bool) -> Findings:
    found = [
        record
        for by, sizes in SIZES.items()
        for size in (sizes[:2] if quick else sizes)
        for record in measured(by, size, 2 if quick else 7)
    ]
    jobs = dict.fromkeys(f"{job}, {by}" for job in (FIT, CHANGE, PREDICT) for by in BY.values())
    notes = [
        "A fit ends with a prediction, since coefficients are computed when they are asked for. "
        f"{PEER} learn and forget by a fit. Rows are normal; the class is the largest of the first "
        "K columns."
    ]
    return Findings([r for job in jobs for r in found if r.job == job], notes=notes)


if __name__ == "__main__":
    main(measure, __doc__)
