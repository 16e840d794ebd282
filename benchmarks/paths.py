"""Updates of the hinge SVM along a path, against refitting and one point at a time.

    make bench-path                            n = 500, 1423, 5000 and 20 000: about half an hour
    python -m benchmarks.paths --quick         n = 500 only

m rows come and m go, for m = 1, 10, 30 and a tenth of n. Each round times, one after another:
PathSVC, its engine alone, the engine one point at a time (SID), SMO that starts from the
solution before (`warm_start`), and scikit-learn's SVC fitted to the same rows, both at SVC's
default tolerance and at 1e-9 (which SVC does not reach: it keeps kernel values in single
precision). Then leaving out each of 1423 rows in turn. Medians, one core. Writes paths.json to
benchmarks/results.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.model_selection import LeaveOneOut
from sklearn.svm import SVC

from benchmarks.findings import FLOOR, Findings, Record, main, records_of
from benchmarks.floor import Rates
from benchmarks.warm_start import WarmStart
from papers.datasets import Floats, Indices
from traceless import PathSVC
from traceless.hinge.kernels import Kernel
from traceless.hinge.problem import HingeProblem
from traceless.hinge.solver import MANY
from traceless.model_selection import cross_val_predict

Points = tuple[Floats, Floats]


def plane(rng: np.random.Generator, n: int) -> Points:
    """Two classes in the plane, one of them a mixture of two Gaussians (Karasuyama 2009)."""
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    centre = np.where(rng.random(n) < 0.5, -2.0, 2.0)
    X = rng.normal(size=(n, 2))
    X[:, 0] += np.where(y > 0, centre, 0.0)
    return X, y


def wide(rng: np.random.Generator, n: int) -> Points:
    """Twenty columns, a curved boundary, a tenth of the labels flipped."""
    X = rng.normal(size=(n, 20)) / np.sqrt(20)
    f = X[:, 0] + 2 * X[:, 1] * X[:, 2]
    return X, np.where((f > 0) ^ (rng.random(n) < 0.1), 1.0, -1.0)


CASES = {
    "plane, C=1": (plane, 1.0),
    "plane, C=100": (plane, 100.0),
    "20 columns, C=1": (wide, 1.0),
}


ROUNDS = {500: 9, 1423: 9, 5000: 3, 20_000: 1}
SIZES = list(ROUNDS)
PARTS = {"one row": 1, "10 rows": 10, "30 rows": 30, "a tenth of the rows": None}
NOTE = (
    "One core. 'engine' is the path without the checks of an estimator, 'SID' one path for each "
    "row, 'warm SMO' LIBSVM's algorithm started from the solution before; numbers are tolerances. "
    "The floor is that of a path with as many breakpoints as were met; from 1000 rows on windows "
    "spare the path most of what it counts, and none is given."
)


def seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def one_at_a_time(problem: HingeProblem, new: Points, gone: Indices, C: float) -> None:
    """What SID does: each point has a path of its own. `gone` must be in falling order."""
    for place in gone:
        problem.update(remove=[place])
    for x, label in zip(*new, strict=True):
        problem.update(add=(x[None], [label], C))


def _tolerances(n: int) -> tuple[float, ...]:
    """Those at which SMO ends in reasonable time."""
    return (1e-3, 1e-9) if n <= 500 else (1e-3,)


def race(name: str, n: int, m: int, rounds: int, rates: Rates) -> dict[str, float]:
    """Median seconds of each way; the first round is not counted."""
    draw, C = CASES[name]
    rng = np.random.default_rng([n, m])
    X, y = draw(rng, n)
    kernel = Kernel("rbf", gamma=1.0)
    engine = HingeProblem(kernel, X.shape[1]).fit(X, y, C)
    model = PathSVC(C=C, gamma=1.0).fit(X, y)
    warm = {tol: WarmStart(kernel, X, y, C, engine.alpha) for tol in _tolerances(n)}
    told: dict[str, list[float]] = {}
    for turn in range(rounds + 1):
        new, gone = draw(rng, m), np.sort(rng.choice(n, size=m, replace=False))[::-1]
        alone = copy.deepcopy(engine)
        before, ids = engine.n_breakpoints, model.ids_[gone]
        found = {
            "PathSVC": seconds(partial(model.update, add=new, forget=ids)),
            "engine": seconds(partial(engine.update, (*new, C), gone)),
        }
        found["breakpoints"] = float(engine.n_breakpoints - before)
        if m <= 30:
            found["SID"] = seconds(partial(one_at_a_time, alone, new, gone, C))
        for tol, other in warm.items():
            places = rng.choice(n, size=m, replace=False)
            found[f"warm SMO {tol:g}"] = seconds(partial(other.update, new, places, tol))
        rows = engine.X, engine.y
        for tol in (1e-3, 1e-9) if n <= 5000 else (1e-3,):
            svc = SVC(C=C, gamma=1.0, tol=tol)
            found[f"SVC {tol:g}"] = seconds(partial(svc.fit, *rows))
        for key, value in found.items() if turn else ():
            told.setdefault(key, []).append(value)
    t = {key: median(values) for key, values in told.items()}
    breakpoints = t.pop("breakpoints")
    if n < MANY:
        t[FLOOR] = floor(n, X.shape[1], m, breakpoints, engine, rates)
    return t


def floor(n: int, d: int, m: int, breakpoints: float, engine: HingeProblem, rates: Rates) -> float:
    """A path of that many breakpoints: at each, solve on the margin and move all n rows.

    Reading the margin's kernel columns is 8 n |M| bytes, the solve and the product
    2 |M|² + 2 n |M| flops; the kernel of m new rows is 2 n d m flops before.
    """
    M = float((engine.sides == 1).sum())
    flops = breakpoints * (2 * M * M + 2 * n * M) + 2.0 * n * d * m
    return rates.floor(flops, breakpoints * 8 * n * M)


def leave_one_out(name: str, n: int) -> list[Record]:
    """Leaving out each row in turn, against as many fits of SVC (from the median of twelve)."""
    draw, C = CASES[name]
    X, y = draw(np.random.default_rng(n), n)
    model = PathSVC(C=C, gamma=1.0)
    ours = seconds(partial(cross_val_predict, model, X, y, cv=LeaveOneOut()))
    theirs = [seconds(partial(SVC(C=C, gamma=1.0).fit, X[1:], y[1:])) for _ in range(12)]
    t = {"PathSVC": ours, "SVC, extrapolated": n * median(theirs)}
    return records_of(f"Leave-one-out of {n} rows", t, name)


def measure(quick: bool) -> Findings:
    rates = Rates.measured(512)  # a matrix that stays in the caches, as small kernels do
    records = [r for name in CASES for r in leave_one_out(name, 500 if quick else 1423)]
    for name, (part, m) in product(CASES, PARTS.items()):
        for n in [500] if quick else SIZES:
            if n == SIZES[-1] and m not in (1, 30):
                continue  # an hour of SVC
            t = race(name, n, m or n // 10, ROUNDS[n], rates)
            records += records_of(f"{name}: {part} in and out", t, f"n = {n}")
    return Findings(records, notes=[NOTE, str(rates)])


if __name__ == "__main__":
    main(measure, __doc__)
