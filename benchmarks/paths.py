"""Updates of the path family, each up to its first prediction, against refitting.

    make bench-paths                            about six minutes
    python -m benchmarks.paths --quick         small sizes

m rows come and m go; then one row is predicted, which is when a `PathSVC` computes what it
publishes. Each round times, one after another: the update and the prediction; SMO that starts from
the solution before (`warm_start`); the peers of scikit-learn and of scikit-learn-intelex, fitted to
the same rows at their default tolerance, and their prediction. Then the first change of a model
that was loaded from a file, leaving out each row in turn, ten classes of images, and a first fit in
a new process. Medians, one core. With 20 columns all parameters are the defaults. Writes paths.json
to benchmarks/results.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.model_selection import LeaveOneOut
from sklearn.svm import SVC, SVR, OneClassSVM

from benchmarks.findings import FLOOR, Findings, Record, main, records_of
from benchmarks.floor import Rates
from benchmarks.starting import program
from benchmarks.updates import peer
from benchmarks.warm_start import WarmStart
from papers.claims import Claim
from papers.datasets import Floats, find_mnist, mnist_images, small_images
from papers.timing import interleave
from traceless import PathOneClass, PathSVC, PathSVR, load
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


def wave(rng: np.random.Generator, n: int) -> Points:
    """A wave over the plane, with noise as large as the tube is wide."""
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=n)


CASES: dict[str, tuple[Callable[[np.random.Generator, int], Points], dict[str, Any]]] = {
    "20 columns, C=1": (wide, {}),  # the defaults, which here are gamma = 1 of both
    "plane, C=1": (plane, {"gamma": 1.0}),
    "plane, C=100": (plane, {"gamma": 1.0, "C": 100.0}),
}
MANY = 1000  # rows from which on a path need not look at all of them at each breakpoint
PARTS = {"one row": 1, "30 rows": 30, "250 rows": 250}
SIZES: dict[
    str, dict[int, tuple[int, ...]]
] = {  # rows of each size that come and go, and how often
    "20 columns, C=1": {500: (1, 30), 5000: (1, 30, 250)},
    "plane, C=1": {500: (1, 30), 5000: (1, 30)},
    "plane, C=100": {500: (1, 30), 5000: (1, 30)},
}
ROUNDS = {500: 25, 1400: 9, 5000: 5}
GOALS = [  # the least that SVC may take, as a multiple of the update and its first prediction
    ("20 columns, C=1", "one row", 5000, 60.0),
    ("20 columns, C=1", "30 rows", 5000, 15.0),
    ("20 columns, C=1", "250 rows", 5000, 6.0),
    ("plane, C=1", "one row", 500, 10.0),
    ("plane, C=100", "one row", 500, 30.0),
    ("plane, C=100", "one row", 5000, 400.0),
]
OURS, SKLEARN, ONEDAL, SMO = "PathSVC", "SVC 0.001", "oneDAL 0.001", "warm SMO 0.001"
IMAGES = "Ten classes of images, the first fit"
PREDICTED = "Ten classes of images, 1000 predictions"
LOADED = "The first row in and out of a loaded model"
FIRST = "Import, first fit and prediction in a new process"
PROGRAM = """
import time, numpy
X = numpy.random.default_rng(0).normal(size=(200, 2))
start = time.perf_counter()
from {package} import {name}
{name}().fit(X, X[:, 0] > 0).predict(X[:1])
print(time.perf_counter() - start)
"""
NOTE = (
    "One core. Times are those of an update and the first prediction after it; peers are fitted "
    "anew and predict the same row. 'update alone' is without the prediction, 'warm SMO' LIBSVM's "
    "algorithm started from the solution before; numbers are tolerances. The floor is that of a "
    "path with as many breakpoints as were met; from 1000 rows on working sets spare the path most "
    "of what it counts, and none is given."
)


class Contest(NamedTuple):
    """An estimator of the path family, its peers, and rows for all of them."""

    draw: Callable[[np.random.Generator, int], Points]
    ours: Any
    peers: Mapping[str, Callable[[], Any]]
    C: float = 0.0  # of a PathSVC, which SMO is compared with


def contest(name: str) -> Contest:
    """A `PathSVC` of one of the cases against its peers."""
    draw, options = CASES[name]
    peers: dict[str, Callable[[], Any]] = {SKLEARN: partial(SVC, **options)}
    if (theirs := peer("sklearnex.svm", "SVC")) is not None:
        peers[ONEDAL] = partial(theirs, **options)
    return Contest(draw, PathSVC(**options), peers, options.get("C", 1.0))


def others() -> dict[str, Contest]:
    """A regressor and one class."""
    svr: dict[str, Callable[[], Any]] = {"SVR 0.001": partial(SVR, C=10.0, gamma=1.0)}
    one: dict[str, Callable[[], Any]] = {"OneClassSVM 0.001": partial(OneClassSVM, nu=0.1, gamma=1)}
    if (theirs := peer("sklearnex.svm", "SVR")) is not None:
        svr[ONEDAL] = partial(theirs, C=10.0, gamma=1.0)
    return {
        "PathSVR": Contest(wave, PathSVR(C=10.0, gamma=1.0), svr),
        "PathOneClass": Contest(wide, PathOneClass(nu=0.1, gamma=1.0), one),
    }


def seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def fit_and_predict(make: Callable[[], Any], X: Floats, y: Any, ask: Floats) -> None:
    make().fit(X, y).predict(ask)


def race(it: Contest, n: int, m: int, rounds: int, rates: Rates) -> dict[str, float]:
    """Median seconds of each way; the first round is not counted."""
    rng = np.random.default_rng([n, m])
    X, y = it.draw(rng, n)
    model, name = it.ours.fit(X, y), type(it.ours).__name__
    told: dict[str, list[float]] = {}
    warm = None
    if it.C:
        alpha = np.zeros(n)
        alpha[model.support_] = np.abs(model.dual_coef_[0])
        warm = WarmStart(1.0, X, y, it.C, alpha)
    for turn in range(rounds + 1):
        new, gone = it.draw(rng, m), np.sort(rng.choice(n, size=m, replace=False))
        X = np.concatenate([np.delete(X, gone, axis=0), new[0]])
        y = np.concatenate([np.delete(y, gone), new[1]])
        alone = seconds(partial(model.update, add=new, forget=model.ids_[gone]))
        found = {name: alone + seconds(partial(model.predict, X[:1])), "update alone": alone}
        found["breakpoints"] = float(model.n_breakpoints_)
        if warm is not None:
            places = rng.choice(n, size=m, replace=False)
            found[SMO] = seconds(partial(warm.update, new, places, 1e-3))
        for way, make in it.peers.items():
            found[way] = seconds(partial(fit_and_predict, make, X, y, X[:1]))
        for key, value in found.items() if turn else ():
            told.setdefault(key, []).append(value)
    t = {key: median(values) for key, values in told.items()}
    breakpoints = t.pop("breakpoints")
    if it.C and n < MANY:
        t[FLOOR] = floor(n, X.shape[1], m, breakpoints, model, rates)
    return t


def floor(n: int, d: int, m: int, breakpoints: float, model: Any, rates: Rates) -> float:
    """A path of that many breakpoints: at each, solve on the margin and move all n rows.

    Reading the margin's kernel columns is 8 n |M| bytes, the solve and the product
    2 |M|² + 2 n |M| flops; the kernel of m new rows is 2 n d m flops before.
    """
    M = float((np.abs(model.dual_coef_[0]) < model.C).sum())
    flops = breakpoints * (2 * M * M + 2 * n * M) + 2.0 * n * d * m
    return rates.floor(flops, breakpoints * 8 * n * M)


def leave_one_out(name: str, n: int) -> list[Record]:
    """Leaving out each row in turn, against as many fits of SVC (from the median of twelve)."""
    draw, options = CASES[name]
    X, y = draw(np.random.default_rng(n), n)
    model = PathSVC(**options)
    cross_val_predict(model, X[:50], y[:50], cv=LeaveOneOut())  # what is done once for a process
    ours = seconds(partial(cross_val_predict, model, X, y, cv=LeaveOneOut()))
    theirs = [seconds(partial(SVC(**options).fit, X[1:], y[1:])) for _ in range(12)]
    t = {OURS: ours, "SVC, extrapolated": n * median(theirs)}
    return records_of(f"Leave-one-out of {n} rows", t, name)


def loaded(n: int, rounds: int) -> list[Record]:
    """One row in and out of a model that was just read from a file, and of one that lives on."""
    name = next(iter(CASES))
    it, rng = contest(name), np.random.default_rng(n)
    X, y = it.draw(rng, n)
    live = it.ours.fit(X, y)

    def changed(model: Any) -> None:
        model.update(add=(X[:1], y[:1]), forget=model.ids_[:1]).predict(X[:1])

    with tempfile.TemporaryDirectory() as folder:
        live.save(f"{folder}/model")
        jobs: dict[str, Callable[[], Callable[[], None]]] = {
            "loaded": lambda: partial(changed, load(f"{folder}/model")),
            "live": lambda: partial(changed, live),
            SKLEARN: lambda: partial(fit_and_predict, it.peers[SKLEARN], X, y, X[:1]),
        }
        return records_of(LOADED, interleave(jobs, rounds, prepared=True), f"n = {n}")


def images(rounds: int, quick: bool) -> list[Record]:
    """Ten classes of MNIST, or of scikit-learn's digits: a first fit, and 1000 predictions."""
    records = []
    small = quick or find_mnist() is None
    for n in (1200,) if small else (2000, 3000):
        some = small_images(n, 500) if small else mnist_images(n, 1000)
        X, y, ask, case = some.X, some.digits, some.X_test, f"{some.name}, n = {n}"
        gamma = PathSVC().fit(X, y).gamma_
        models: dict[str, Callable[[], Any]] = {OURS: PathSVC, SKLEARN: partial(SVC, gamma=gamma)}
        if (theirs := peer("sklearnex.svm", "SVC")) is not None:
            models[ONEDAL] = partial(theirs, gamma=gamma)
        fits = {way: partial(fit_and_predict, make, X, y, ask[:1]) for way, make in models.items()}
        records += records_of(IMAGES, interleave(fits, rounds), case)
        asks = {way: partial(make().fit(X, y).predict, ask) for way, make in models.items()}
        records += records_of(PREDICTED, interleave(asks, rounds), case)
    return records


def first_calls(rounds: int) -> list[Record]:
    """A first fit and prediction, with what is kept compiled on disk, and without."""
    records = []
    programs = {OURS: ("traceless", "PathSVC"), SKLEARN: ("sklearn.svm", "SVC")}
    for case in ("caches cold", "caches warm"):
        with tempfile.TemporaryDirectory() as folder:
            found: dict[str, list[float]] = {way: [] for way in programs}
            for turn in range(rounds + 1):
                for way, (package, name) in programs.items():
                    cache = f"{folder}/{turn if case == 'caches cold' else 0}/{name}"
                    caches = {"PYTHONPYCACHEPREFIX": cache, "NUMBA_CACHE_DIR": cache}
                    text = PROGRAM.format(package=package, name=name)
                    found[way].append(float(program(text, **caches)))
            times = {way: median(values[1:]) for way, values in found.items()}
            records += records_of(FIRST, times, case)
    return records


def claims_of(t: Findings) -> list[Claim]:
    """What was measured beside the goals."""
    claims = []
    for name, part, n, goal in GOALS:
        job, case = f"{name}: {part} in and out", f"n = {n}"
        for way in (SKLEARN, SMO) if part == "30 rows" else (SKLEARN,):
            ratio = t.value(job, way, case) / t.value(job, OURS, case)
            hope = goal if way == SKLEARN else 1.0
            claims.append(Claim(f"{job}, {case}: {way} / {OURS}", ratio, hope, at_least=True))
    for job, hope in ((IMAGES, 1.2), (PREDICTED, 1.0), (FIRST, 1.2)):
        for case in dict.fromkeys(r.case for r in t.records if r.job == job):
            ratio = t.value(job, OURS, case) / t.value(job, SKLEARN, case)
            claims.append(Claim(f"{job}, {case}: {OURS} / {SKLEARN}", ratio, hope))
    return claims


def measure(quick: bool) -> Findings:
    rates = Rates.measured(512)  # a matrix that stays in the caches, as small kernels do
    records = [r for name in CASES for r in leave_one_out(name, 300 if quick else 1423)]
    for name, sizes in SIZES.items():
        for part, m in PARTS.items():
            for n in [n for n in sizes if m in sizes[n] and not (quick and n > 500)]:
                t = race(contest(name), n, m, 3 if quick else ROUNDS[n], rates)
                records += records_of(f"{name}: {part} in and out", t, f"n = {n}")
    for name, it in others().items():
        for part, m in PARTS.items():
            n = 300 if quick else 1400
            t = race(it, n, min(m, n // 10), 3 if quick else ROUNDS[n], rates)
            records += records_of(f"{name}: {part} in and out", t, f"n = {n}")
    records += loaded(500 if quick else 5000, 3 if quick else 5)
    records += images(2 if quick else 5, quick) + first_calls(1 if quick else 3)
    found = Findings(records)
    return Findings(records, [] if quick else claims_of(found), [NOTE, str(rates)])


if __name__ == "__main__":
    main(measure, __doc__)
