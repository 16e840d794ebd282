"""Updates of the hinge SVM against refitting with scikit-learn's SVC, interleaved, one core.

make bench-path                                 n = 500 and 5000
python benchmarks/path_engine.py 500 20000      other numbers of rows
"""

from __future__ import annotations

import sys
import time
from statistics import median

import numpy as np
from sklearn.svm import SVC

from traceless.exact import Floats
from traceless.path import HingeProblem, Kernel

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
    "plane, C=1": (plane, 1.0, 1.0),
    "plane, C=100": (plane, 100.0, 1.0),
    "wide, C=1": (wide, 1.0, 1.0),
}


def measure(name: str, n: int, m: int, repeats: int) -> None:
    draw, C, gamma = CASES[name]
    rng = np.random.default_rng(n)
    X, y = draw(rng, n)
    problem = HingeProblem(Kernel("rbf", gamma=gamma), X.shape[1]).fit(X, y, C)
    ours, theirs, canonical, steps = [], [], [], []
    for _ in range(repeats):
        add, gone = draw(rng, m), rng.choice(n, size=m, replace=False)
        before, start = problem.n_breakpoints, time.perf_counter()
        problem.update((*add, C), gone)
        ours.append(time.perf_counter() - start)
        steps.append(problem.n_breakpoints - before)
        start = time.perf_counter()
        problem.canonical()
        canonical.append(time.perf_counter() - start)
        A, b = problem.X, problem.y
        start = time.perf_counter()
        SVC(C=C, gamma=gamma).fit(A, b)
        theirs.append(time.perf_counter() - start)
    k = int((problem.sides == 1).sum())
    a, s = median(ours), median(theirs)
    print(
        f"{name:13s} n={n:5d} m=l={m:3d} |M|={k:4d} SVs={int((problem.alpha > 0).sum()):5d} "
        f"breakpoints {median(steps):5.0f} update {1e3 * a:8.2f} ms "
        f"({1e6 * sum(ours) / max(1, sum(steps)):6.0f} us each) canonical "
        f"{1e3 * median(canonical):7.2f} ms SVC {1e3 * s:8.1f} ms ratio {s / a:6.1f}",
        flush=True,
    )


if __name__ == "__main__":
    for n in map(int, sys.argv[1:] or ["500", "5000"]):
        for name in CASES:
            for m in (1, 30):
                measure(name, n, m, 21 if n <= 1000 else 7)
