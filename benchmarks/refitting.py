"""When refitting is faster: single changes of a model against a fit from scratch.

    make bench-refitting                            some minutes
    python -m benchmarks.refitting --quick          fewer rounds and sizes

L rows are learned and forgotten again, each time until the model can predict; half of that is one
change. Numbers below 1 × are the cases in which a user should refit. Writes refitting.json to
benchmarks/results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.findings import PAPERS, Findings, Record, main, records_of
from benchmarks.paths import CASES
from benchmarks.updates import repeat
from papers.datasets import Floats, mnist_or_random
from papers.timing import interleave
from traceless import LSSVC, LSSVR, PathSVC
from traceless.features import Linear

UPDATE, WOODBURY, REFIT = "updated, default solver", 'updated, solver="woodbury"', "LSSVC.fit"
PLAIN = "updated, default solver, papers' penalty"
RIDGE = "RidgeClassifier.fit"
Jobs = dict[str, Callable[[], object]]


def rows(n: int, J: int, classes: int = 2) -> tuple[Floats, Any]:
    """Normal rows; the class is the largest of the first columns, or the sign of the first."""
    X = np.random.default_rng(0).normal(size=(n, J))
    return X, X[:, :classes].argmax(axis=1) if classes > 2 else (X[:, 0] > 0).astype(int)


def there_and_back(model: Any, X: Floats, y: Any) -> None:
    _ = model.partial_fit(X, y).feature_coef_
    _ = model.forget(X, y).feature_coef_


def seconds(updates: Jobs, refits: Jobs, rounds: int, times: int = 1) -> dict[str, float]:
    """Seconds of one change, of each way; an update is there and back, so it counts half."""
    jobs = {way: partial(repeat, job, times) for way, job in (updates | refits).items()}
    found = interleave(jobs, rounds)
    return {way: found[way] / times / (2 if way in updates else 1) for way in jobs}


def ready(model: Any) -> None:
    """A fit is lazy: the coefficients are computed when they are asked for."""
    _ = model.feature_coef_


def contest(
    n: int, J: int, L: int, rounds: int, classes: int = 2, weights: str | None = None
) -> dict[str, float]:
    """One change of L rows among n, of J features, by all ways."""
    X, y = rows(n + L, J, classes)
    kept, new = (X[:n], y[:n]), (X[n:], y[n:])
    default = LSSVC(class_weight=weights).fit(*kept)
    woodbury = LSSVC(solver="woodbury", class_weight=weights).fit(*kept)
    updates: Jobs = {
        UPDATE: lambda: there_and_back(default, *new),
        WOODBURY: lambda: there_and_back(woodbury, *new),
    }
    refits: Jobs = {
        REFIT: lambda: ready(LSSVC(class_weight=weights).fit(*kept)),
        RIDGE: lambda: RidgeClassifier(class_weight=weights).fit(*kept),
    }
    return seconds(updates, refits, rounds, 10 if n * J <= 200_000 else 1)


def path_contest(name: str, n: int, L: int, rounds: int) -> dict[str, float]:
    """L rows in and L out of a hinge-loss SVM, up to the first decision value."""
    draw, options = CASES[name]
    X, y = draw(np.random.default_rng([n, L]), n + L)
    kept, first, last = (X[:n], y[:n]), (X[:L], y[:L]), (X[n:], y[n:])
    svc = PathSVC(**options).fit(*kept)

    def swap_and_back() -> None:
        for add, forget in ((last, first), (first, last)):
            svc.update(add=add, forget=forget).decision_function(X[:1])

    def fit(model: Any) -> None:
        model(**options).fit(*kept).decision_function(X[:1])

    refits: Jobs = {"PathSVC.fit": partial(fit, PathSVC), "SVC.fit": partial(fit, SVC)}
    return seconds({"PathSVC.update": swap_and_back}, refits, rounds)


def among_mnist(rounds: int) -> dict[str, float]:
    """One row of MNIST with the default solver: what the README sets beside `woodbury`."""
    X, labels = mnist_or_random()
    y = np.where(labels % 2 == 0, 1.0, -1.0)
    kept, new = (X[:55_000], y[:55_000]), (X[55_000:55_001], y[55_000:55_001])
    model = LSSVR(target_resolution=1.0).fit(*kept)
    plain = LSSVR(Linear(bias=False), target_resolution=1.0, **PAPERS).fit(*kept)
    updates: Jobs = {
        UPDATE: lambda: there_and_back(model, *new),
        PLAIN: lambda: there_and_back(plain, *new),
    }
    refits: Jobs = {"scikit-learn Ridge": lambda: Ridge(solver="cholesky").fit(*kept)}
    return seconds(updates, refits, rounds)


def measure(quick: bool) -> Findings:
    rounds = 2 if quick else 7
    threadpool_limits(1, user_api="blas")  # for the whole process: small jobs are slowed by waking
    out: list[Record] = records_of("One row of 55 000 MNIST rows, J = 784", among_mnist(rounds))
    for n in (100, 1000) if quick else (100, 1000, 10_000, 100_000):
        job = "One row changes, 20 features"
        out += records_of(job, contest(n, 20, 1, rounds), f"n = {n}")
    for J in (100, 400) if quick else (100, 500, 1000, 2000, 4000):
        job = "One row changes, 2000 rows held"
        out += records_of(job, contest(2000, J, 1, rounds), f"J = {J}")
    for L in (1, 1000) if quick else (1, 100, 250, 1000, 5000, 20_000):
        job = "L rows change, 20 000 rows held, 500 features"
        out += records_of(job, contest(20_000, 500, L, rounds), f"L = {L}")
    for weights in (None, "balanced"):
        job = "One row changes, 20 000 rows held, 500 features, ten classes"
        case = f"class_weight={weights!r}"
        out += records_of(job, contest(20_000, 500, 1, rounds, 10, weights), case)
    for name, (what, part) in product(CASES, {"one row": 0, "half of the rows": 0.5}.items()):
        job = f"{name}: {what} in and out, then one prediction"
        for n in (100, 500) if quick else (100, 500, 1423, 5000):
            found = path_contest(name, n, max(1, int(part * n)), rounds)
            out += records_of(job, found, f"n = {n}")
    notes = [
        "One core. A number below 1 × is a case in which refitting is faster. Rows are normal, "
        "except MNIST; the hinge loss has the rows of the section above. An update and a fit "
        "end when the coefficients, or one decision value, are there."
    ]
    return Findings(out, notes=notes)


if __name__ == "__main__":
    main(measure, __doc__)
