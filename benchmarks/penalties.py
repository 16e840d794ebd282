"""What a free intercept and standardisation cost, beside the papers' penalty ρ‖w‖².

    make bench-penalties                            some minutes
    python -m benchmarks.penalties --quick          few rows, J = 64 only

The same rows (MNIST, or its 64 central pixels) and the same ρ under three penalties, which take
turns. Scales are taken from the sums when they are solved, so gathering costs the same; what
differs is the solve, the update and the closed form of leave-one-out. Writes penalties.json to
benchmarks/results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.findings import PAPERS, Findings, Record, main, records_of
from benchmarks.updates import repeat
from papers.claims import Claim
from papers.datasets import Floats, mnist_or_random
from papers.timing import interleave
from traceless import LSSVC, Knowledge
from traceless.features import Linear
from traceless.model_selection import leave_one_out

PLAIN, FREE, BOTH = "ρ‖w‖²", "free intercept", "free intercept, standardised"
PENALTIES: dict[str, dict[str, Any]] = {
    PLAIN: PAPERS,
    FREE: {"free_intercept": True, "standardize": False},
    BOTH: {"free_intercept": True, "standardize": True},
}
FIT, SOLVE, UPDATE, ONE_OUT = (
    "A fit, up to its coefficients",
    "A solve",
    'One row, up to an answer, solver="woodbury"',
    "Leave-one-out",
)
GOALS = {FIT: 1.1, SOLVE: 1.5}
REPEATED = 10  # changes in a row: one is short
HELD_OUT = 2_000  # rows of the leave-one-out
CASES = [*product((64, 784), (1, 10))]  # J and K
Job = Callable[[], object]


def rows(n: int, J: int, K: int) -> tuple[Floats, Any]:
    """Images of J pixels; even against odd digits for one problem, or all ten digits."""
    X, y = mnist_or_random()
    X, y = X[:n], y[:n].astype(int)
    if J == 64:
        X = X.reshape(n, 28, 28)[:, 10:18, 10:18].reshape(n, 64)
    return np.ascontiguousarray(X), y % 2 if K == 1 else y


def solve(penalty: dict[str, Any], known: Knowledge) -> Job:
    """Make a model that has not been solved yet, and return its solve."""
    model = LSSVC(**penalty).merge(known)
    return lambda: model.feature_coef_


def there_and_back(model: LSSVC, X: Floats, y: Any) -> None:
    """Learn and forget a row, and ask for an answer after each."""
    model.partial_fit(X, y).decision_function(X)
    model.forget(X, y).decision_function(X)


def measured(n: int, J: int, K: int, rounds: int) -> list[Record]:
    """The four jobs at one size, by all penalties."""
    X, y = rows(n + 1, J, K)
    new, X, y = (X[n:], y[n:]), X[:n], y[:n]
    some, known = min(n, HELD_OUT), Knowledge.of(Linear(), X, y)
    jobs: dict[tuple[str, str], Callable[[], Job]] = {}
    for way, penalty in PENALTIES.items():
        ready = LSSVC(solver="woodbury", **penalty).fit(X, y)
        update = partial(repeat, partial(there_and_back, ready, *new), REPEATED)
        jobs[FIT, way] = partial(partial, _fit, penalty, X, y)
        jobs[SOLVE, way] = partial(solve, penalty, known)
        jobs[UPDATE, way] = partial(partial, update)
        jobs[ONE_OUT, way] = partial(partial, leave_one_out, LSSVC(**penalty), X[:some], y[:some])
    found = interleave(jobs, rounds, f"J = {J}, K = {K}", prepared=True)
    out = []
    for job in (FIT, SOLVE, UPDATE, ONE_OUT):
        part = 2 * REPEATED if job == UPDATE else 1
        seconds = {way: found[job, way] / part for way in PENALTIES}
        out += records_of(job, seconds, f"J = {J}, K = {K}")
    return out


def _fit(penalty: dict[str, Any], X: Floats, y: Any) -> object:
    return LSSVC(**penalty).fit(X, y).feature_coef_


def claims(records: list[Record]) -> list[Claim]:
    """The goals, for both parts together."""
    t = {(r.job, r.case, r.way): r.value for r in records}
    return [
        Claim(f"{job}, {case}: {BOTH} / {PLAIN}", t[job, case, BOTH] / t[job, case, PLAIN], goal)
        for job, goal in GOALS.items()
        for case in dict.fromkeys(r.case for r in records)
    ]


def measure(quick: bool) -> Findings:
    n, rounds, cases = (300, 2, CASES[:2]) if quick else (10_000, 9, CASES)
    threadpool_limits(1, user_api="blas")  # for the whole process: small jobs are slowed by waking
    records: list[Record] = []
    for J, K in cases:
        records += measured(n, J, K, rounds)
    order = (FIT, SOLVE, UPDATE, ONE_OUT)
    notes = [
        f"One core, {n} rows, {min(n, HELD_OUT)} for leave-one-out; K is the number of problems: "
        "even against odd digits, or ten classes. The second and third way are multiples of the "
        "first. An update is one row learned or forgotten, until the model has answered for a row."
    ]
    return Findings(sorted(records, key=lambda r: order.index(r.job)), claims(records), notes)


if __name__ == "__main__":
    main(measure, __doc__)
