"""Scores and predictions beside a product in float64, and large columns beside plain ones.

    make bench-scores                               one minute
    python -m benchmarks.scores --quick             few rows

10 000 rows of 64 columns, in one thread: X @ W rounds each sum many times, ours once. Then a model
of rows with a column whose values are 1e5 or 1e7 times as large, beside one of the plain rows.
Writes scores.json to benchmarks/results.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.findings import Findings, Record, main, records_of
from papers.claims import Claim
from papers.datasets import Floats
from papers.timing import interleave
from traceless import LSSVR
from traceless.estimators.scoring import scores

SCORES, PREDICT, MATRIX = "scores of one call", "predict", "X @ W"
LARGE = {"plain columns": 1.0, "one of 1e5": 1e5, "one of 1e7": 1e7}
GOALS = {"one of 1e5": 1.3, "one of 1e7": 1.5}


def targets(X: Floats, K: int, rounds: int) -> list[Record]:
    """Scores of rows for K targets."""
    noise, W = np.random.default_rng(1).normal(size=(len(X), K)), X[: X.shape[1], :K].copy()
    model = LSSVR().fit(X, X @ W + noise)
    solution, phi = model._weights()
    jobs = {
        SCORES: partial(scores, solution, phi, X),
        PREDICT: partial(model.predict, X),
        MATRIX: partial(np.matmul, X, W),
    }
    return records_of("One product", interleave(jobs, rounds), f"K = {K}")


def large(X: Floats, rounds: int) -> list[Record]:
    """Predictions of models with one large column."""
    jobs = {}
    for way, size in LARGE.items():
        rows = X * np.where(np.arange(X.shape[1]) == 3, size, 1.0)
        model = LSSVR().fit(rows, X[:, 0] + np.random.default_rng(2).normal(size=len(X)))
        jobs[way] = partial(model.predict, rows)
    return records_of("A large column", interleave(jobs, rounds))


def measure(quick: bool) -> Findings:
    n, rounds = (500, 3) if quick else (10_000, 51)
    X = np.random.default_rng(0).normal(size=(n, 64))
    with threadpool_limits(1, user_api="blas"):
        records = [*targets(X, 1, rounds), *targets(X, 10, rounds), *large(X, rounds)]
    t = {(r.case, r.way): r.value for r in records}
    claims = [
        Claim(f"{case}: scores / {MATRIX}", t[case, SCORES] / t[case, MATRIX], 2.5)
        for case in ("K = 1", "K = 10")
    ]
    first = t["", "plain columns"]
    claims += [Claim(f"{way} / plain columns", t["", way] / first, g) for way, g in GOALS.items()]
    return Findings(records, claims, ["One thread of BLAS and of ours."])


if __name__ == "__main__":
    main(measure, __doc__)
