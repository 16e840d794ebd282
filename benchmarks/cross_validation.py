"""Cross-validation by unlearning, against scikit-learn (and cvmatrix, where it is installed).

    python -m benchmarks.cross_validation              everything, some minutes
    python -m benchmarks.cross_validation --quick      one round each, under a minute

Even digits against odd ones (targets ±1) on MNIST, 60000 × 784, and the search for mislabelled
digits. Where scikit-learn would take too long, some of its folds are timed and the rest is
extrapolated; the output says so. Writes cross_validation.json to benchmarks/results.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score

from benchmarks.findings import FLOOR, PAPERS, Findings, Record, Unit, main, times
from benchmarks.floor import Rates, cholesky_flops, gram_flops
from papers.claims import Claim
from papers.datasets import Floats, mnist_or_random
from papers.timing import interleave
from traceless import LSSVC, LSSVR
from traceless import model_selection as ours
from traceless.features import RandomFourier

SHORT = 20_000  # rows of a shorter set, where solves weigh more
TEN, CLASSES, SHORT_TEN, SHORT_CLASSES, HUNDRED, ONE_OUT = (
    "Cross-validation, 10 folds",
    "Cross-validation, 10 folds, ten classes",
    f"Cross-validation, 10 folds, {SHORT} rows",
    f"Cross-validation, 10 folds, ten classes, {SHORT} rows",
    "Cross-validation, 100 folds",
    "Leave-one-out",
)
OURS, TO_THE_BIT, FIT = "traceless", "traceless, to the bit", "traceless, one fit"
PLAIN = "traceless, papers' penalty"  # every other way of ours has the defaults
ALL, SOME = "Ridge(cholesky)", "Ridge(cholesky), extrapolated"
SUSPECTS = "Found by suspicion, where 10 % of the labels are wrong"
FEW = 3  # folds of scikit-learn's that are timed where all would take too long


def some_folds(X: Floats, t: Floats, n_folds: int) -> Callable[[], object]:
    """The first few folds of scikit-learn's cross-validation, and no others."""
    splits = [pair for pair, _ in zip(KFold(n_folds).split(X), range(FEW), strict=False)]
    return lambda: cross_val_score(Ridge(solver="cholesky"), X, t, cv=splits)


def jobs_of(
    X: Floats, t: Floats, labels: Any, quick: bool
) -> dict[tuple[str, str], Callable[[], object]]:
    model, classifier, ten, hundred = LSSVR(), LSSVC(), KFold(10), KFold(100)
    plain = LSSVR(**PAPERS)
    folds: dict[str, tuple[Any, Any, Any]] = {
        TEN: (model, X, t),
        CLASSES: (classifier, X, labels),
        SHORT_TEN: (model, X[:SHORT], t[:SHORT]),
        SHORT_CLASSES: (classifier, X[:SHORT], labels[:SHORT]),
    }
    jobs: dict[tuple[str, str], Callable[[], object]] = {}
    for job, (estimator, *rows) in folds.items():
        papers = clone(estimator).set_params(**PAPERS)
        jobs[job, OURS] = partial(ours.cross_val_score, estimator, *rows, cv=ten)
        jobs[job, PLAIN] = partial(ours.cross_val_score, papers, *rows, cv=ten)
        jobs[job, FIT] = partial(clone(estimator).fit, *rows)
    jobs |= {
        (HUNDRED, OURS): lambda: ours.cross_val_score(model, X, t, cv=hundred),
        (HUNDRED, PLAIN): lambda: ours.cross_val_score(plain, X, t, cv=hundred),
        (ONE_OUT, OURS): lambda: ours.leave_one_out(model, X, t),
        (ONE_OUT, PLAIN): lambda: ours.leave_one_out(plain, X, t),
        (HUNDRED, SOME): some_folds(X, t, 100),
        (ONE_OUT, "RidgeCV"): lambda: RidgeCV(alphas=[1.0]).fit(X, t),
    }
    if importlib.util.find_spec("cvmatrix") is not None:
        jobs[TEN, "cvmatrix and SciPy"] = lambda: cvmatrix_folds(X, t, 10)
    if quick:
        return jobs | {(TEN, SOME): some_folds(X, t, 10)}
    return jobs | {
        (TEN, ALL): lambda: cross_val_score(Ridge(solver="cholesky"), X, t, cv=ten),
        (HUNDRED, TO_THE_BIT): lambda: ours.cross_val_score(
            model, X, t, cv=hundred, path="subtract"
        ),
    }


def speed(X: Floats, t: Floats, labels: Any, quick: bool, rates: Rates) -> list[Record]:
    """Medians, with some folds made into all, and the floor of each job."""
    seconds = interleave(jobs_of(X, t, labels, quick), 1 if quick else 5)
    folds = {TEN: 10, HUNDRED: 100}
    found = [
        Record(job, way, value * (folds[job] / FEW if way == SOME else 1))
        for (job, way), value in seconds.items()
    ]
    J, folded = X.shape[1] + 1, (TEN, CLASSES, SHORT_TEN, SHORT_CLASSES)
    for job in dict.fromkeys(record.job for record in found):
        n = SHORT if job in (SHORT_TEN, SHORT_CLASSES) else len(X)
        solves = 10 if job in folded else 1
        K = len(np.unique(labels)) if job in (CLASSES, SHORT_CLASSES) else 1
        flops = gram_flops(n, J) + solves * cholesky_flops(J) + 2 * n * J * K
        flops += 0 if job in folded else gram_flops(n, J)  # the hat: each row's own products
        found.append(Record(job, FLOOR, rates.floor(flops, X.nbytes * n / len(X))))
    return found


def claims_of(records: list[Record]) -> tuple[list[Claim], list[str]]:
    """The goals, as theirs against ours; of those missed, what the floor would have reached."""
    t = {(r.job, r.way): r.value for r in records}
    goals = [
        (TEN, ALL, OURS, 11),
        (TEN, SOME, OURS, 11),
        (HUNDRED, SOME, OURS, 60),
        (HUNDRED, SOME, TO_THE_BIT, 20),
        (ONE_OUT, "RidgeCV", OURS, 3),
        (TEN, "cvmatrix and SciPy", OURS, 1),
    ]
    out = [
        (
            Claim(f"{job}: {theirs} / {mine}", t[job, theirs] / t[job, mine], goal, at_least=True),
            t[job, theirs] / t[job, FLOOR],
        )
        for job, theirs, mine, goal in goals
        if (job, theirs) in t and (job, mine) in t
    ]
    out += [
        (
            Claim(f"{job}: {OURS} / one fit", t[job, OURS] / t[job, FIT], goal),
            t[job, FLOOR] / t[job, FIT],
        )
        for job, goal in ((TEN, 1.4), (CLASSES, 1.6), (SHORT_TEN, 1.4), (SHORT_CLASSES, 1.6))
    ]
    notes = [
        f"{claim.what}: {times(claim.ratio)}, with the goal {claim.hope}. Nothing but the floor's "
        f"flops would make it {times(reached)}."
        for claim, reached in out
        if not claim.case.holds
    ]
    return [claim for claim, _ in out], notes


def cvmatrix_folds(X: Floats, t: Floats, n_folds: int) -> list[float]:
    """The same by cvmatrix, which subtracts in floats, and a solve and a score by SciPy."""
    cvmatrix = importlib.import_module("cvmatrix.cvmatrix").CVMatrix
    F = np.hstack([X, np.ones((len(X), 1))])
    model = cvmatrix(center_X=False, center_Y=False, scale_X=False, scale_Y=False)
    model.fit(F, t[:, None])
    scores = []
    for test in np.array_split(np.arange(len(X)), n_folds):
        (XTX, XTY), _ = model.training_XTX_XTY(test)
        XTX[np.diag_indices_from(XTX)] += 1.0
        w = cho_solve(cho_factor(XTX), XTY)
        scores.append(r2_score(t[test], F[test] @ w))
    return scores


# --- mislabelled rows ------------------------------------------------------------------------


def mislabelled(X: Floats, y: Any, n: int, peer_rows: int) -> list[Record]:
    """Share of wrong labels among as many rows as are wrong, by our ranking and a peer's."""
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(X))[:n]
    X, y = np.ascontiguousarray(X[rows]), y[rows].astype(int)
    wrong = rng.random(n) < 0.1
    noisy = np.where(wrong, (y + rng.integers(1, 10, size=n)) % 10, y)
    fourier = LSSVC(RandomFourier(1000, gamma=0.02, random_state=0), **PAPERS)
    rankings = {
        "influence, RandomFourier(1000)": influence_of(fourier),
        "influence, linear": influence_of(LSSVC(**PAPERS)),
        "LogisticRegression, self-confidence": self_confidence,
    }
    return [
        Record(SUSPECTS, way, found, f"{size} rows, {what}", unit)
        for size in (peer_rows, n)
        for way, margin in rankings.items()
        if size == peer_rows or margin is not self_confidence
        for what, found, unit in rank(X[:size], noisy[:size], wrong[:size], margin)
    ]


def influence_of(model: LSSVC) -> Callable[[Floats, Any], Floats]:
    return lambda X, y: ours.influence(model, X, y).margin


def self_confidence(X: Floats, y: Any) -> Floats:
    """Out-of-fold probability of the given label, by which cleanlab ranks: lowest first."""
    model = LogisticRegression(C=0.05, max_iter=60, tol=1e-2)
    probabilities = cross_val_predict(model, X, y, cv=5, method="predict_proba")
    return np.asarray(probabilities[np.arange(len(y)), y])


def rank(
    X: Floats, y: Any, wrong: Any, margin: Callable[[Floats, Any], Floats]
) -> list[tuple[str, float, Unit]]:
    """Precision, which is recall too, and the time of one run."""
    start = time.perf_counter()
    lowest = np.argsort(margin(X, y), kind="stable")[: wrong.sum()]
    seconds = time.perf_counter() - start
    return [("right", float(wrong[lowest].mean()), "share"), ("time of one run", seconds, "s")]


def measure(quick: bool) -> Findings:
    rates = Rates.measured()
    X, y = mnist_or_random()
    records = speed(X, np.where(y % 2 == 0, 1.0, -1.0), y, quick, rates)
    suspects = mislabelled(X, y, *((10_000, 3_000) if quick else (60_000, 10_000)))
    note = f"{SOME!r} are {FEW} folds that were timed, and the rest extrapolated from them."
    claims, missed = claims_of(records)
    return Findings([*records, *suspects], claims, [str(rates), note, *missed])


if __name__ == "__main__":
    main(measure, __doc__)
