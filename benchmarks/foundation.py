"""Speed and memory of learning in one go, against NumPy, scikit-learn and scikit-learn-intelex.

    make bench                                      everything, a few minutes
    python -m benchmarks.foundation --quick         fewer rounds and smaller growth curves

Writes foundation.json to benchmarks/results.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import resource
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf
from scipy.sparse import random as random_rows
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge, RidgeClassifier

from benchmarks.findings import FLOOR, Findings, Record, main, times
from benchmarks.floor import Rates, cholesky_flops, gram_flops
from papers.claims import Claim
from papers.datasets import mnist_or_random
from papers.timing import interleave
from traceless import LSSVC, LSSVR, Knowledge, ResolutionWarning
from traceless.features import Linear, RandomFourier

SUMS = "Sums of products, MNIST 60000 × 784"
FIT = "A fit, MNIST 60000 × 784, ten classes"
MAP = "1000 random Fourier features of 10000 rows"
MEMORY = "Peak memory of a fit over the input"
TRIANGLE = "Peak memory of a fit of 4001 features, 4500 rows, ten classes"
PIXELS = "A fit of pixels, MNIST 10000 × 784"
RAW = "A fit of 10000 rows from N(0, 1)"
ROWS = "A fit of n rows, 256 features"
WIDTH = "A fit of J features, 2000 rows"
EPOCH = "2000 × 500, all columns from N(0, 1), or one of seconds since 1970"
WIDE = "4001 random features of 6000 rows, ten classes"
SCORES = "Scores of ten classes, 784 columns"
NARROW = "Scores of 10000 rows of few columns"
SPARSE = "Sparse rows, 20000 × 5000, ten classes, a two-hundredth of the numbers not zero"
BYTES = "Sums of products with torch loaded, MNIST 60000 × 784"


def fast_ridge() -> Any:
    """The strongest exact peer, or None where it is not available."""
    if importlib.util.find_spec("sklearnex") is None:
        return None
    from sklearnex.linear_model import Ridge as IntelRidge

    return IntelRidge


def speed(rounds: int, rates: Rates) -> list[Record]:
    X, y = mnist_or_random()
    F = np.hstack([X, np.ones((len(X), 1))])
    Y = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    ours = RandomFourier(1000, gamma=0.02, random_state=0)
    theirs = RBFSampler(n_components=1000, gamma=0.02, random_state=0).fit(X[:1])
    jobs = {
        (SUMS, "Knowledge.of"): lambda: Knowledge.of(Linear(), X, y),
        (SUMS, "NumPy F.T @ F in floats"): lambda: F.T @ F,
        (FIT, "LSSVC.fit"): lambda: LSSVC().fit(X, y),
        (FIT, "RidgeClassifier(cholesky)"): lambda: RidgeClassifier(solver="cholesky").fit(X, y),
        (FIT, "Ridge(cholesky)"): lambda: Ridge(solver="cholesky").fit(X, Y),
        (MAP, "RandomFourier.transform"): lambda: ours.transform(X[:10_000]),
        (MAP, "RBFSampler.transform"): lambda: theirs.transform(X[:10_000]),
    }
    if (peer := fast_ridge()) is not None:
        jobs[FIT, "sklearnex Ridge"] = lambda: peer().fit(X, Y)
    seconds = interleave(jobs, rounds)
    sums = gram_flops(*F.shape)
    floors = {
        SUMS: rates.floor(sums, X.nbytes),
        FIT: rates.floor(sums + cholesky_flops(F.shape[1]), X.nbytes),
        MAP: rates.floor(2 * 10_000 * 784 * 1000, 8 * 10_000 * 1000),
    }
    return [
        *(Record(job, way, value) for (job, way), value in seconds.items()),
        *(Record(job, FLOOR, value) for job, value in floors.items()),
    ]


def raw(rounds: int) -> list[Record]:
    """What large codes cost: whole numbers, fine grids, targets far from 0, against usual ones."""
    X, y = (part[:10_000] for part in mnist_or_random())
    jobs = {
        (PIXELS, "from 0 to 1", ""): partial(LSSVC().fit, X, y),
        (PIXELS, "from 0 to 255", ""): partial(LSSVC().fit, np.rint(255 * X), y),
    }
    for J in (30, 784):
        N = np.random.default_rng(0).normal(size=(10_000, J))
        for bits in (14, 20, 24):
            fit = LSSVR(Linear(resolution=2.0**-bits)).fit
            jobs[RAW, f"on a grid of 2^-{bits}", f"J = {J}"] = partial(fit, N, N[:, 0])
        for size in (1e4, 1e6):
            jobs[RAW, f"targets near {size:g}", f"J = {J}"] = partial(
                LSSVR().fit, N, size + N[:, 0]
            )
    seconds = interleave(jobs, rounds)
    return [Record(job, way, value, case) for (job, way, case), value in seconds.items()]


def epoch(rounds: int) -> list[Record]:
    """What one very large column costs."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2_000, 500)), rng.normal(size=2_000)
    seconds = X.copy()
    seconds[:, 7] = np.floor(1.7e9 + rng.uniform(0, 3e7, 2_000))
    jobs: dict[tuple[str, str], Callable[[], Any]] = {}
    for case, rows in (("all alike", X), ("with seconds", seconds)):
        one = Knowledge.of(Linear(), rows, y, task="regression")
        jobs["LSSVR.fit", case] = partial(_fitted, rows, y)
        jobs["one + one", case] = partial(one.__add__, one)
        jobs["digest", case] = one.digest
    found = interleave(jobs, rounds)
    return [Record(EPOCH, way, value, case) for (way, case), value in found.items()]


def _fitted(X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResolutionWarning)
        return LSSVR().fit(X, y).coef_


def wide(rounds: int) -> list[Record]:
    """What a small change of a wide model costs until it can predict again."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6_000, 100))
    y = (X[:, :10] + 0.5 * rng.normal(size=(6_000, 10))).argmax(axis=1)
    model = LSSVC(RandomFourier(4_000)).fit(X, y)
    A = np.asfortranarray(model.knowledge_.feature_gram.astype(np.float64))
    A[np.diag_indices_from(A)] *= 1.01
    parts = iter([slice(i, i + 25) for i in range(0, 6_000, 25)])

    def change() -> None:
        rows = next(parts)
        model.forget(X[rows], y[rows]).predict(X[:5])

    jobs = {"forget 25 rows, then predict": change, "one dpotrf": lambda: dpotrf(A)}
    return [Record(WIDE, way, value) for way, value in interleave(jobs, rounds).items()]


def scores(rounds: int) -> list[Record]:
    """Correctly rounded scores against a product in floats."""
    X, y = (part[:10_000] for part in mnist_or_random())
    model = LSSVC().fit(X, y)
    W, one = np.ascontiguousarray(model.coef_), X[:1]
    jobs = {
        ("decision_function", "10000 rows"): lambda: model.decision_function(X),
        ("X @ coef_.T in floats", "10000 rows"): lambda: X @ W.T,
        ("decision_function", "one row, 100 times"): lambda: [
            model.decision_function(one) for _ in range(100)
        ],
    }
    found = interleave(jobs, rounds)
    return [Record(SCORES, way, value, case) for (way, case), value in found.items()]


def narrow(rounds: int) -> list[Record]:
    """The same of few columns, where a product in floats takes a hundredth of a microsecond."""
    rng = np.random.default_rng(0)
    jobs: dict[tuple[str, str], Callable[[], Any]] = {}
    for J in (10, 64):
        X = rng.normal(size=(10_000, J))
        for K in (2, 10):
            model = LSSVC().fit(X, rng.integers(0, K, 10_000))
            W, case = np.ascontiguousarray(model.coef_), f"{J} columns, {K} classes"
            jobs["decision_function", case] = partial(model.decision_function, X)
            jobs["X @ coef_.T in floats", case] = partial(X.__matmul__, W.T)
    found = interleave(jobs, rounds)
    return [Record(NARROW, way, value, case) for (way, case), value in found.items()]


def sparse(rounds: int) -> list[Record]:
    """Sparse rows as they come, and the same rows made dense."""
    X = random_rows(20_000, 5_000, 0.005, "csr", random_state=0)
    y = np.arange(20_000) % 10
    some, few = slice(0, 2_000), slice(0, 25)
    D, model = X[some].toarray(), LSSVC().fit(X[:, :500], y)
    jobs: dict[tuple[str, str], Callable[[], Any]] = {
        ("as they are", "knowledge of 20000"): lambda: Knowledge.of(Linear(), X, y),
        ("as they are", "knowledge of 2000"): lambda: Knowledge.of(Linear(), X[some], y[some]),
        ("made dense", "knowledge of 2000"): lambda: Knowledge.of(Linear(), D, y[some]),
        ("as they are", "knowledge of 25"): lambda: Knowledge.of(Linear(), X[few], y[few]),
        ("made dense", "knowledge of 25"): lambda: Knowledge.of(Linear(), D[few], y[few]),
        ("as they are", "scores of 2000, 500 columns"): partial(
            model.decision_function, X[some, :500]
        ),
        ("made dense", "scores of 2000, 500 columns"): partial(
            model.decision_function, np.ascontiguousarray(D[:, :500])
        ),
    }
    found = interleave(jobs, rounds)
    return [Record(SPARSE, way, value, case) for (way, case), value in found.items()]


def by_bytes(rounds: int) -> list[Record]:
    """Exact sums by torch's product of bytes, in a process of their own: others load no torch."""
    if importlib.util.find_spec("torch") is None:
        return []
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as pool:
        found = pool.submit(_seconds_by_bytes, rounds).result()
    return [Record(BYTES, way, value) for way, value in found.items()]


def _seconds_by_bytes(rounds: int) -> dict[str, float]:
    importlib.import_module("torch")
    X, y = mnist_or_random()
    F = np.hstack([X, np.ones((len(X), 1))])
    jobs = {
        "Knowledge.of": lambda: Knowledge.of(Linear(), X, y),
        "NumPy F.T @ F in floats": lambda: F.T @ F,
    }
    return interleave(jobs, rounds)


def peak_memory(n: int) -> tuple[int, int]:
    """Bytes of peak resident memory of a fit over what the process held, and of knowledge."""
    rng = np.random.default_rng(0)
    X = np.empty((n, 784))
    rng.random(out=X)
    y = np.arange(n) % 10
    LSSVC().fit(X[:2000, :50], y[:2000])  # BLAS allocates its buffers once
    before = peak_resident()
    model = LSSVC().fit(X, y)
    return peak_resident() - before, model.knowledge_.sums.nbytes


def peak_resident(field: str = "VmHWM") -> int:
    """Largest resident memory so far, in bytes (on Linux ru_maxrss starts at the parent's)."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(v for v in status.read_text().splitlines() if v.startswith(field))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def peak_of_wide_fit() -> tuple[int, int]:
    """Bytes of peak resident memory of a fit over what was resident before, and of a triangle.

    The process is fresh: it has imported everything, holds the rows, and BLAS has multiplied and
    factored a matrix a quarter as wide. A triangle is that of the sums, eight bytes a number.
    """
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4_500, 4_000)), np.arange(4_500) % 10
    LSSVC().fit(np.ascontiguousarray(X[:2_000, :1_000]), y[:2_000])
    before = peak_resident("VmRSS")
    LSSVC().fit(X, y)
    return peak_resident() - before, 8 * 4_001 * 4_002 // 2


def wide_memory() -> tuple[list[Record], Claim]:
    """The peak of a fit of many features, in a fresh process, and what it may be."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as pool:
        extra, triangle = pool.submit(peak_of_wide_fit).result()
    sizes = {"LSSVC.fit": extra, "the triangle of its sums": triangle}
    records = [Record(TRIANGLE, way, size, unit="B") for way, size in sizes.items()]
    return records, Claim("peak memory of a fit of 4001 features / triangle", extra / triangle, 4.0)


def memory(n: int) -> tuple[list[Record], Claim]:
    """The peak of a fit, in a fresh process, and what it may be."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=fresh) as pool:
        extra, knowledge = pool.submit(peak_memory, n).result()
    sizes = {"LSSVC.fit": extra, "the knowledge itself": knowledge, "the input": 8 * 784 * n}
    records = [Record(MEMORY, way, size, f"n = {n}", "B") for way, size in sizes.items()]
    allowed = 2 * knowledge + 64e6
    return records, Claim(
        f"peak memory of fit / (2 × knowledge + 64 MB), {n} rows", extra / allowed, 1.0
    )


def growth(quick: bool, rates: Rates) -> list[Record]:
    """Seconds of a fit against the number of rows and the number of features."""
    rng = np.random.default_rng(0)
    rows = [2_000, 4_000, 8_000, 16_000] + ([] if quick else [32_000, 64_000])
    widths = [64, 128, 256, 512, 1024] + ([] if quick else [2048, 4096])
    X = rng.normal(size=(max(rows), 256))
    W = rng.normal(size=(2_000, max(widths)))
    y = np.arange(len(X)) % 2
    shapes = {(ROWS, n): (n, 256) for n in rows} | {(WIDTH, J): (2_000, J) for J in widths}
    jobs = {(ROWS, n): (lambda n=n: LSSVC().fit(X[:n], y[:n])) for n in rows}
    jobs |= {
        (WIDTH, J): (lambda J=J: LSSVC().fit(np.ascontiguousarray(W[:, :J]), y[:2_000]))
        for J in widths
    }
    seconds = interleave(jobs, 2 if quick else 5)
    floors = {
        key: rates.floor(gram_flops(n, J) + cholesky_flops(J), 8.0 * n * J)
        for key, (n, J) in shapes.items()
    }
    return [
        Record(job, way, value, f"{'n' if job == ROWS else 'J'} = {size}")
        for way, values in (("LSSVC.fit", seconds), (FLOOR, floors))
        for (job, size), value in values.items()
    ]


def claims_of(t: Findings) -> list[Claim]:
    """The goals of the foundation, against what was measured."""
    fit = t.value(FIT, "LSSVC.fit")
    claims = [
        Claim(
            "exact knowledge / numpy's float F.T @ F",
            t.value(SUMS, "Knowledge.of") / t.value(SUMS, "NumPy F.T @ F in floats"),
            1.1,
        ),
        Claim(
            "RidgeClassifier(cholesky).fit / LSSVC.fit",
            t.value(FIT, "RidgeClassifier(cholesky)") / fit,
            2.0,
            at_least=True,
        ),
        Claim(
            "RBFSampler.transform / RandomFourier.transform",
            t.value(MAP, "RBFSampler.transform") / t.value(MAP, "RandomFourier.transform"),
            1.0,
            at_least=True,
        ),
    ]
    if fast_ridge() is not None:
        ratio = fit / t.value(FIT, "sklearnex Ridge")
        claims.append(Claim("LSSVC.fit / sklearnex Ridge.fit", ratio, 1.25))
    for way in ("LSSVR.fit", "one + one", "digest"):
        ratio = t.value(EPOCH, way, "with seconds") / t.value(EPOCH, way, "all alike")
        claims.append(Claim(f"{way}: with a column of seconds since 1970 / without", ratio, 2.0))
    if any(record.job == BYTES for record in t.records):
        ratio = t.value(BYTES, "Knowledge.of") / t.value(BYTES, "NumPy F.T @ F in floats")
        claims.append(Claim("exact knowledge with torch loaded / numpy's F.T @ F", ratio, 0.7))
    for case in dict.fromkeys(record.case for record in t.records if record.job == NARROW):
        ratio = t.value(NARROW, "decision_function", case)
        ratio /= t.value(NARROW, "X @ coef_.T in floats", case)
        claims.append(Claim(f"scores of 10000 rows, {case} / X @ coef_.T in floats", ratio, 2.0))
    many = t.value(SCORES, "decision_function", "10000 rows")
    return [
        *claims,
        Claim(
            "4001 features: forget 25 rows, then predict / one dpotrf",
            t.value(WIDE, "forget 25 rows, then predict") / t.value(WIDE, "one dpotrf"),
            3.0,
        ),
        Claim(
            "scores of 10000 rows / X @ coef_.T in floats",
            many / t.value(SCORES, "X @ coef_.T in floats", "10000 rows"),
            2.0,
        ),
        Claim(
            "scores of one row, ms",
            10 * t.value(SCORES, "decision_function", "one row, 100 times"),
            0.1,
        ),
    ]


def reach(t: Findings) -> str:
    """What the floor alone would make of goals, and what scores cost besides their product."""
    least, floats = t.value(SUMS, FLOOR), t.value(SUMS, "NumPy F.T @ F in floats")
    peer = t.value(FIT, "RidgeClassifier(cholesky)")
    return (
        f"Nothing but the floor's flops would make exact knowledge {times(least / floats)} of "
        f"NumPy's product, and RidgeClassifier {times(peer / t.value(FIT, FLOOR))} of a fit. A "
        "column of seconds is cut into several, and sums beyond 64 bits take more than one word. "
        "Scores are two products where floats have one (a slice of each coefficient, and its "
        "rest), after each row is rounded to its grid and before each score is checked: of few "
        "columns and classes these passes take longer than the product."
    )


def measure(quick: bool) -> Findings:
    rates = Rates.measured()
    records = speed(3 if quick else 9, rates)
    records += [*epoch(3 if quick else 15), *wide(2 if quick else 5), *scores(5 if quick else 30)]
    records += [*narrow(5 if quick else 50), *sparse(2 if quick else 5)]
    records += by_bytes(3 if quick else 9)
    found = Findings(records)
    claims, notes = claims_of(found), [str(rates), reach(found)]
    for n in [60_000] if quick else [60_000, 240_000]:
        sizes, claim = memory(n)
        records += sizes
        claims.append(claim)
    sizes, claim = wide_memory()
    records += sizes
    claims.append(claim)
    records += raw(3 if quick else 5)
    return Findings([*records, *growth(quick, rates)], claims, notes)


if __name__ == "__main__":
    main(measure, __doc__)
