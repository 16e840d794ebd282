"""One change of a hinge SVM, made in three ways, and whether what comes out is exact.

    MID     all points at once, on one path
    SID     the same engine, one point after the other (Cauwenberghs & Poggio)
    LIBSVM  scikit-learn's SVC, fitted afresh to the points there are then

Times are CPU times of one thread.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from sklearn.svm import SVC

from papers.datasets import Floats, Indices
from papers.karasuyama2009.points import PointProblem
from papers.rows import Row
from traceless.hinge.kernels import Kernel

CACHE = 1000  # MB for LIBSVM: it holds the whole kernel matrix, as in the paper
LONG = 0.5  # seconds from which on a time is measured once
EPS = float(np.finfo(np.float64).eps)


TOLERANCES = {"LIBSVM 1e-3": 1e-3, "LIBSVM 1e-6": 1e-6, "LIBSVM 1e-9": 1e-9}
LIBSVMS = tuple(TOLERANCES)
METHODS = ("MID", "SID", *LIBSVMS)


@dataclass(frozen=True)
class Change:
    """Points that come and points that go.

    Parameters
    ----------
    X, y : the points there are
    new_rows, new_labels : those that come
    gone : places of those that go, in rising order
    gamma, C : of the SVM with an RBF kernel
    """

    X: Floats
    y: Floats
    new_rows: Floats
    new_labels: Floats
    gone: Indices
    gamma: float
    C: float

    @property
    def after(self) -> tuple[Floats, Floats]:
        """The points there are then."""
        X = np.concatenate([np.delete(self.X, self.gone, axis=0), self.new_rows])
        return X, np.concatenate([np.delete(self.y, self.gone), self.new_labels])

    def fitted(self, X: Floats, y: Floats) -> PointProblem:
        """The SVM of some points."""
        return PointProblem(Kernel("rbf", gamma=self.gamma), X.shape[1]).fit(X, y, self.C)

    def before(self) -> PointProblem:
        """The SVM of the points there are."""
        return self.fitted(self.X, self.y)

    def mid(self, problem: PointProblem) -> PointProblem:
        """All at once."""
        add = (self.new_rows, self.new_labels, self.C) if len(self.new_labels) else None
        return problem.update(add=add, remove=self.gone)

    def sid(self, problem: PointProblem) -> PointProblem:
        """One after the other: one comes, one goes, as in a stream."""
        places = self.gone - np.arange(len(self.gone))  # what is left moves up
        for k in range(max(len(self.new_labels), len(places))):
            if k < len(self.new_labels):
                problem.update(add=(self.new_rows[k : k + 1], self.new_labels[k : k + 1], self.C))
            if k < len(places):
                problem.update(remove=places[k : k + 1])
        return problem

    def libsvm(self, tol: float) -> SVC:
        """Afresh, by LIBSVM."""
        svc = SVC(C=self.C, gamma=self.gamma, tol=tol, cache_size=CACHE)
        return svc.fit(*self.after)


def measured(change: Change, test_X: Floats, repeats: int = 1) -> Row:
    """CPU seconds of all methods, breakpoints of MID and SID, and exactness."""
    problem = change.before()
    change.mid(copy.deepcopy(problem))  # whoever is first should not find a cold cache
    jobs: dict[str, Callable[[], Any]] = {
        "MID": lambda: partial(change.mid, copy.deepcopy(problem)),
        "SID": lambda: partial(change.sid, copy.deepcopy(problem)),
    }
    jobs |= {name: partial(partial, change.libsvm, tol) for name, tol in TOLERANCES.items()}
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    results: dict[str, Any] = {}
    for _ in range(repeats):
        for name, make in jobs.items():
            if not seconds[name] or seconds[name][0] < LONG:
                job = make()
                start = time.process_time()
                results[name] = job()
                seconds[name].append(time.process_time() - start)
    mid, f = results["MID"], results["MID"].decision_function(test_X)
    return {
        **{name: median(values) for name, values in seconds.items()},
        **breakpoints(problem, mid, results["SID"]),
        "new_at_bound": at_bound(mid, len(change.new_labels)),
        **exactness(change, mid, test_X),
        "SID_same_bits": same_bits(mid, results["SID"]),
        **{f"difference_{m}": apart(results[m].decision_function(test_X), f) for m in LIBSVMS},
    }


def breakpoints(before: PointProblem, mid: PointProblem, sid: PointProblem) -> Row:
    """Breakpoints that MID and SID passed."""
    start = before.n_breakpoints
    return {
        "breakpoints_MID": mid.n_breakpoints - start,
        "breakpoints_SID": sid.n_breakpoints - start,
    }


def at_bound(problem: PointProblem, last: int) -> int:
    """How many of the last points are bounded support vectors."""
    k = len(problem) - last
    return int((problem.alpha[k:] >= problem.bounds[k:]).sum())


# --- exactness ----------------------------------------------------------------------------------


def exactness(change: Change, problem: PointProblem, test_X: Floats) -> Row:
    """What an update left, against a fresh fit to the same points in another order."""
    X, y = change.after
    order = np.random.default_rng(0).permutation(len(y))
    fresh = change.fitted(X[order], y[order])
    f = fresh.decision_function(test_X)
    V = problem.kernel.values(X, test_X)
    path = (y * problem.alpha) @ V + problem.intercept
    return {
        "residual": problem.published.residual,
        "promise": promise(problem.alpha),
        "difference": apart(problem.decision_function(test_X), f),
        "path_difference": apart(path, f),
        "certain": problem.published.certain and fresh.published.certain,
        "same_bits": same_bits(problem, fresh),
        "restarts": problem.n_restarts,
    }


def promise(alpha: Floats) -> float:
    """The KKT residual that rounding allows where k(x, x) = 1: max(1e-9, 10 ε Σα)."""
    return max(1e-9, 10 * EPS * float(alpha.sum()))


def same_bits(a: PointProblem, b: PointProblem) -> bool:
    """Whether support vectors, coefficients and intercept are the same numbers."""
    (i, c, p), (j, d, q) = a.published.terms(), b.published.terms()
    rows = [x.rows.values(np.searchsorted(x.rows.ids, ids)) for x, ids in ((a, i), (b, j))]
    return p == q and np.array_equal(c, d) and np.array_equal(rows[0], rows[1])


def apart(a: Floats, b: Floats) -> float:
    """The largest difference."""
    return float(np.abs(a - b).max())
