"""Correctly rounded solves beside Cholesky and its solution in float64.

    make bench-solves                               one minute
    python -m benchmarks.solves --quick             few features

784 features and ten targets, in one thread: a usual system, one whose sums take two limbs of 64
bits, and an ill-conditioned one, which float64 can only just factor. Writes solves.json to
benchmarks/results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs
from threadpoolctl import threadpool_limits

from benchmarks.findings import Findings, main, records_of
from papers.claims import Claim
from papers.timing import interleave
from traceless.arithmetic.integers import shifted
from traceless.solvers.solve import solve

FLOATS = "Cholesky in float64"
GOALS = {"sums of one limb": 1.8, "sums of two limbs": 2.5, "ill-conditioned": 5.0}


def measure(quick: bool) -> Findings:
    J, rounds = (64, 3) if quick else (784, 21)
    rng = np.random.default_rng(0)
    F = np.rint(np.abs(rng.normal(size=(20 * J, J))) * rng.uniform(0, 1, J) * 2**14)
    S, Q = (F.T @ F).astype(np.int64), (F.T @ rng.integers(-1, 2, (20 * J, 10))).astype(np.int64)
    A, ridge = S + np.diag(np.full(J, 2.0**28)), np.full(J, 2.0**28)
    jobs: dict[str, Callable[[], object]] = {
        FLOATS: lambda: dpotrs(dpotrf(A)[0], Q.astype(np.float64)),
        "sums of one limb": partial(solve, S, ridge, Q),
        "sums of two limbs": partial(solve, shifted(S, 40), ridge * 2.0**40, Q),
        "ill-conditioned": partial(solve, S, ridge * 1e-9, Q),
    }
    with threadpool_limits(1, user_api="blas"):
        records = records_of("A solve", interleave(jobs, rounds))
    t = {r.way: r.value for r in records}
    claims = [Claim(f"{way} / {FLOATS}", t[way] / t[FLOATS], goal) for way, goal in GOALS.items()]
    return Findings(records, claims, ["One thread of BLAS; of ours, as many as there are cores."])


if __name__ == "__main__":
    main(measure, __doc__)
