"""Cross-validation by unlearning, against scikit-learn (and cvmatrix, where it is installed).

    python benchmarks/cross_validation.py              everything, some minutes
    python benchmarks/cross_validation.py --quick      one round each, under a minute

Even digits against odd ones (targets ±1) on MNIST, 60000 × 784, and the search for mislabelled
digits. Where scikit-learn would take too long, some of its folds are timed and the rest is
extrapolated; the output says so. Writes cross_validation.csv to benchmarks/results.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score

from foundation import mnist
from interleave import Claim, interleave, machine
from traceless import LSSVC, LSSVR
from traceless import model_selection as ours
from traceless.exact import Floats
from traceless.features import RandomFourier

RESULTS = Path(__file__).parent / "results"
FEW = 3  # folds of scikit-learn's that are timed where all would take too long
RHOS = np.logspace(-1, 3, 10)


def some_folds(X: Floats, t: Floats, n_folds: int) -> Callable[[], object]:
    """The first few folds of scikit-learn's cross-validation, and no others."""
    splits = [pair for pair, _ in zip(KFold(n_folds).split(X), range(FEW), strict=False)]
    return lambda: cross_val_score(Ridge(solver="cholesky"), X, t, cv=splits)


def speed(X: Floats, t: Floats, rounds: int, quick: bool) -> list[Claim]:
    s = interleave(jobs_of(X, t, quick), rounds)
    print("\nMedian seconds, MNIST 60000 × 784, targets ±1 (even or odd)")
    for name, seconds in s.items():
        print(f"  {name:<30} {seconds:8.3f}")
    return claims_of(s)


def jobs_of(X: Floats, t: Floats, quick: bool) -> dict[str, Callable[[], object]]:
    model, ridge, ten, hundred = LSSVR(), Ridge(solver="cholesky"), KFold(10), KFold(100)
    jobs: dict[str, Callable[[], object]] = {
        "ours, 10 folds": lambda: ours.cross_val_score(model, X, t, cv=ten),
        "ours, 100 folds": lambda: ours.cross_val_score(model, X, t, cv=hundred),
        "ours, leave-one-out": lambda: ours.leave_one_out(model, X, t),
        f"Ridge, {FEW} of 10 folds": some_folds(X, t, 10),
        f"Ridge, {FEW} of 100 folds": some_folds(X, t, 100),
        "RidgeCV": lambda: RidgeCV(alphas=[1.0]).fit(X, t),
    }
    if importlib.util.find_spec("cvmatrix") is not None:
        jobs["cvmatrix, 10 folds"] = lambda: cvmatrix_folds(X, t, 10)
    if not quick:
        jobs |= {
            "ours, 100 folds, exact": lambda: ours.cross_val_score(
                model, X, t, cv=hundred, path="subtract"
            ),
            "ours, leave-one-out, 10 rho": lambda: ours.select_rho(model, X, t, RHOS, "loo"),
            "Ridge, 10 folds": lambda: cross_val_score(ridge, X, t, cv=ten),
            "RidgeCV, 10 rho": lambda: RidgeCV(alphas=RHOS).fit(X, t),
        }
    return jobs


def claims_of(s: dict[str, float]) -> list[Claim]:
    said = f"extrapolated from {FEW} folds"
    hundred = s[f"Ridge, {FEW} of 100 folds"] / FEW * 100
    if "Ridge, 10 folds" in s:
        ten, how = s["Ridge, 10 folds"], ""
    else:
        ten, how = s[f"Ridge, {FEW} of 10 folds"] / FEW * 10, f" ({said})"
    pairs = [
        (f"Ridge{how} / ours, 10 folds", ten, "ours, 10 folds", 15),
        (f"Ridge ({said}) / ours, 100 folds", hundred, "ours, 100 folds", 60),
        (f"Ridge ({said}) / ours to the bit, 100", hundred, "ours, 100 folds, exact", 20),
        ("RidgeCV / leave_one_out", s["RidgeCV"], "ours, leave-one-out", 3),
        (
            "RidgeCV / select_rho, 10 rho",
            s.get("RidgeCV, 10 rho"),
            "ours, leave-one-out, 10 rho",
            3,
        ),
        ("cvmatrix and SciPy / ours, 10 folds", s.get("cvmatrix, 10 folds"), "ours, 10 folds", 1),
    ]
    return [
        Claim(what, theirs / s[mine], goal, at_least=True)
        for what, theirs, mine, goal in pairs
        if theirs is not None and mine in s
    ]


def cvmatrix_folds(X: Floats, t: Floats, n_folds: int) -> list[float]:
    """The same by cvmatrix, which subtracts in floats, and a solve and a score by SciPy."""
    cvmatrix = importlib.import_module("cvmatrix.cvmatrix").CVMatrix
    F = np.hstack([X, np.ones((len(X), 1))])
    model = cvmatrix(center_X=False, center_Y=False, scale_X=False, scale_Y=False)
    model.fit(F, t[:, None])
    scores = []
    for test in np.array_split(np.arange(len(X)), n_folds):
        (XTX, XTY), _ = model.training_XTX_XTY(test)
        XTX[np.diag_indices_from(XTX)] += 1.0
        w = cho_solve(cho_factor(XTX), XTY)
        scores.append(r2_score(t[test], F[test] @ w))
    return scores


# --- mislabelled rows ------------------------------------------------------------------------


def mislabelled(X: Floats, y: Any, n: int, peer_rows: int) -> list[tuple[str, int, float, float]]:
    """Share of wrong labels among as many rows as are wrong, by our ranking and a peer's."""
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(X))[:n]
    X, y = np.ascontiguousarray(X[rows]), y[rows].astype(int)
    wrong = rng.random(n) < 0.1
    noisy = np.where(wrong, (y + rng.integers(1, 10, size=n)) % 10, y)
    rankings = {
        "influence, linear": influence_of(LSSVC()),
        "influence, RandomFourier(1000)": influence_of(
            LSSVC(RandomFourier(1000, gamma=0.02, random_state=0))
        ),
    }
    found = [rank(name, X, noisy, wrong, margin) for name, margin in rankings.items()]
    few = slice(0, peer_rows)
    rankings["LogisticRegression, self-confidence"] = self_confidence
    found += [rank(n, X[few], noisy[few], wrong[few], margin) for n, margin in rankings.items()]
    return found


def influence_of(model: LSSVC) -> Callable[[Floats, Any], Floats]:
    return lambda X, y: ours.influence(model, X, y).margin


def self_confidence(X: Floats, y: Any) -> Floats:
    """Out-of-fold probability of the given label, by which cleanlab ranks: lowest first."""
    model = LogisticRegression(C=0.05, max_iter=60, tol=1e-2)
    probabilities = cross_val_predict(model, X, y, cv=5, method="predict_proba")
    return np.asarray(probabilities[np.arange(len(y)), y])


def rank(
    name: str, X: Floats, y: Any, wrong: Any, margin: Callable[[Floats, Any], Floats]
) -> tuple[str, int, float, float]:
    start = time.perf_counter()
    lowest = np.argsort(margin(X, y), kind="stable")[: wrong.sum()]
    return name, len(X), float(wrong[lowest].mean()), time.perf_counter() - start


def report(found: list[tuple[str, int, float, float]]) -> None:
    print("\n10 % of the labels are wrong: precision = recall of as many suspects")
    for name, n, precision, seconds in found:
        print(f"  {name:<40} {n:>6} rows {precision:7.1%} {seconds:8.2f} s (one run)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one round, smaller sizes")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    print(machine())
    X, y = mnist()
    claims = speed(X, np.where(y % 2 == 0, 1.0, -1.0), 1 if options.quick else 5, options.quick)
    report(mislabelled(X, y, *((10_000, 3_000) if options.quick else (60_000, 10_000))))
    with (RESULTS / "cross_validation.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["claim", "ratio", "goal", "met"])
        writer.writerows((c.what, c.ratio, c.goal, c.met) for c in claims)
    print("\nRatios of interleaved medians")
    for claim in claims:
        print(f"  {claim}")


if __name__ == "__main__":
    main()
