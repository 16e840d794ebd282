"""Speed and memory of the foundation, against NumPy, scikit-learn and scikit-learn-intelex.

    make bench                                      everything, a few minutes
    python benchmarks/foundation.py --quick         fewer rounds and smaller growth curves

Writes growth.png, claims.csv and growth.csv to benchmarks/results.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge, RidgeClassifier

from interleave import Claim, interleave, machine
from traceless import LSSVC, Knowledge
from traceless.datasets import load_mnist
from traceless.exact import Floats
from traceless.features import Linear, RandomFourier

RESULTS = Path(__file__).parent / "results"


def mnist() -> tuple[Floats, Any]:
    """MNIST between 0 and 1; rows of the same shape and kind if it cannot be had."""
    try:
        X, y = load_mnist()
    except FileNotFoundError as error:
        print(f"{error}\nUsing random rows of MNIST's shape instead.")
        rng = np.random.default_rng(0)
        return rng.random((60_000, 784)) * (rng.random((60_000, 784)) < 0.2), np.arange(60_000) % 10
    return X / 255.0, y


def fast_ridge() -> Any:
    """The strongest exact peer, or None where it is not available."""
    if importlib.util.find_spec("sklearnex") is None:
        return None
    from sklearnex.linear_model import Ridge as IntelRidge

    return IntelRidge


def speed(rounds: int) -> list[Claim]:
    X, y = mnist()
    F = np.hstack([X, np.ones((len(X), 1))])
    Y = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
    peer = fast_ridge()
    ours = RandomFourier(1000, gamma=0.02, random_state=0)
    theirs = RBFSampler(n_components=1000, gamma=0.02, random_state=0).fit(X[:1])
    jobs = {
        "F.T @ F": lambda: F.T @ F,
        "knowledge": lambda: Knowledge.of(Linear(), X, y),
        "LSSVC.fit": lambda: LSSVC().fit(X, y),
        "RidgeClassifier": lambda: RidgeClassifier(solver="cholesky").fit(X, y),
        "Ridge": lambda: Ridge(solver="cholesky").fit(X, Y),
        "RandomFourier": lambda: ours.transform(X[:10_000]),
        "RBFSampler": lambda: theirs.transform(X[:10_000]),
    }
    if peer is not None:
        jobs["sklearnex Ridge"] = lambda: peer().fit(X, Y)
    t = interleave(jobs, rounds)
    print("\nMedian seconds, MNIST 60000 × 784 (random features: 10000 rows)")
    for name, seconds in t.items():
        print(f"  {name:<18} {seconds:8.3f}")
    claims = [
        Claim("exact knowledge / numpy's float F.T @ F", t["knowledge"] / t["F.T @ F"], 1.25),
        Claim(
            "RidgeClassifier(cholesky).fit / LSSVC.fit",
            t["RidgeClassifier"] / t["LSSVC.fit"],
            2.0,
            at_least=True,
        ),
        Claim(
            "RBFSampler.transform / RandomFourier.transform",
            t["RBFSampler"] / t["RandomFourier"],
            1.0,
            at_least=True,
        ),
    ]
    if peer is not None:
        ratio = t["LSSVC.fit"] / t["sklearnex Ridge"]
        claims.insert(2, Claim("LSSVC.fit / sklearnex Ridge.fit", ratio, 1.25))
    return claims


def memory(n: int) -> Claim:
    """Peak resident memory of a fit over what the process held before, in a fresh process."""
    command = [sys.executable, __file__, "--measure-memory", str(n)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    extra, knowledge = (float(v) for v in out.split())
    print(
        f"  {n:>7} rows: {extra / 1e6:6.1f} MB over the input, knowledge {knowledge / 1e6:.1f} MB"
    )
    allowed = 2 * knowledge + 64e6
    return Claim(f"peak memory of fit / (2 × knowledge + 64 MB), {n} rows", extra / allowed, 1.0)


def measure_memory(n: int) -> None:
    rng = np.random.default_rng(0)
    X = np.empty((n, 784))
    rng.random(out=X)
    y = np.arange(n) % 10
    LSSVC().fit(X[:2000, :50], y[:2000])  # BLAS allocates its buffers once
    before = peak_resident()
    model = LSSVC().fit(X, y)
    print(peak_resident() - before, model.knowledge_.gram.nbytes)


def peak_resident() -> int:
    """Largest resident memory so far, in bytes (on Linux ru_maxrss starts at the parent's)."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(v for v in status.read_text().splitlines() if v.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def growth(quick: bool) -> list[tuple[str, int, float]]:
    """Seconds of a fit against the number of rows and the number of features."""
    rng = np.random.default_rng(0)
    rows = [2_000, 4_000, 8_000, 16_000] + ([] if quick else [32_000, 64_000])
    widths = [64, 128, 256, 512, 1024] + ([] if quick else [2048, 4096])
    X = rng.normal(size=(max(rows), 256))
    W = rng.normal(size=(2_000, max(widths)))
    y = np.arange(len(X)) % 2
    jobs = {f"N {n}": (lambda n=n: LSSVC().fit(X[:n], y[:n])) for n in rows}
    jobs |= {
        f"J {j}": (lambda j=j: LSSVC().fit(np.ascontiguousarray(W[:, :j]), y[:2_000]))
        for j in widths
    }
    seconds = interleave(jobs, 2 if quick else 5)
    return [(name.split()[0], int(name.split()[1]), s) for name, s in seconds.items()]


def plot(points: list[tuple[str, int, float]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    titles = {"N": "rows (256 features)", "J": "features (2000 rows)"}
    slopes = {"N": [(1, "linear")], "J": [(2, "quadratic"), (3, "cubic")]}
    for axis, kind in zip(axes, "NJ", strict=True):
        size, seconds = np.array([(n, s) for k, n, s in points if k == kind]).T
        axis.loglog(size, seconds, "o-", color="#1b6ca8", label="LSSVC.fit")
        half = len(size) // 2
        for power, name in slopes[kind]:
            line = seconds[-1] * (size / size[-1]) ** power
            axis.loglog(size, line, "--", lw=1, color="0.6")
            axis.annotate(name, (size[half], line[half]), fontsize=8, color="0.4", va="top")
        axis.set(xlabel=titles[kind], ylabel="seconds", ylim=(seconds.min() / 3, None))
        axis.set_xticks(size, [f"{n:g}" for n in size], fontsize=8)
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle("LSSVC.fit: linear in rows, quadratic and in the end cubic in features")
    figure.savefig(RESULTS / "growth.png", dpi=140)


def write_csv(name: str, header: list[str], rows: list[Any]) -> None:
    with (RESULTS / name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller sizes")
    parser.add_argument("--measure-memory", type=int, metavar="ROWS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure_memory:
        measure_memory(options.measure_memory)
        return
    RESULTS.mkdir(exist_ok=True)
    print(machine())
    claims = speed(3 if options.quick else 9)
    print("\nPeak memory of LSSVC.fit")
    claims += [memory(n) for n in ([60_000] if options.quick else [60_000, 240_000])]
    points = growth(options.quick)
    plot(points)
    write_csv("growth.csv", ["axis", "size", "seconds"], points)
    write_csv(
        "claims.csv",
        ["claim", "ratio", "goal", "met"],
        [(c.what, c.ratio, c.goal, c.met) for c in claims],
    )
    print("\nRatios of interleaved medians")
    for claim in claims:
        print(f"  {claim}")
    print(f"\nGrowth with rows and features: {RESULTS / 'growth.png'}")


if __name__ == "__main__":
    main()
