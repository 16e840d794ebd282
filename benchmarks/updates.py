"""Small changes: the (w, C) update against retraining, incremental peers and the floor.

    make bench-updates                              everything, some minutes
    python benchmarks/updates.py --quick            fewer rounds, J = 784 only

A model of 55 000 × 784 (MNIST, even against odd); L rows are added and removed, each time
until the model is ready to predict. Writes updates.csv to benchmarks/results.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemm, dsymv, dsyr
from sklearn.linear_model import Ridge

from foundation import RESULTS, mnist
from interleave import Claim, interleave, machine
from traceless import LSSVR
from traceless.exact import Floats
from traceless.features import Linear
from traceless.update import RANK_ONE_ROWS, Change, Inverse, update_flops

GOALS = {1: (75, 10, 4000), 10: (7, 9, 350), 100: (2.6, 29, 98), 1000: (1.2, None, 22)}
Jobs = dict[str, Callable[[], object]]


def peer(module: str, name: str) -> Any:
    """A class of a package that may be missing (the extra `bench` installs it), or None."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        print(f"  left out: {module}.{name} ({error})")
        return None


class Contest:
    """The same change, made by each peer on a model of the same rows."""

    def __init__(self, X: Floats, y: Floats, held: int) -> None:
        self.X, self.y, self.held = X, y, held
        X, y = X[:held], y[:held]
        self.ours = LSSVR(Linear(bias=False), solver="woodbury", target_resolution=1.0).fit(X, y)
        S, V = X.T @ X, (X.T @ y)[:, None]
        self.core = Inverse.of(S, V, 1.0)
        incremental = peer("sklearnex.linear_model", "IncrementalRidge")
        self.intel = incremental and incremental(alpha=1.0, fit_intercept=False).partial_fit(X, y)
        online = peer("polars_ds.linear_models", "OnlineLR")
        self.polars = online and online(lambda_=1.0).fit(X, y[:, None])
        rls = peer("padasip.filters", "FilterRLS")
        self.padasip = rls and rls(X.shape[1], mu=1.0)
        bayes = peer("river.linear_model", "BayesianLinearRegression")
        self.river = bayes and bayes()

    def jobs(self, L: int) -> Jobs:
        """What is timed for L rows; all but the first learner also take the rows out again."""
        rows = self.X[self.held : self.held + L], self.y[self.held : self.held + L]
        out: Jobs = {"traceless": lambda: self._ours(*rows), "core": lambda: self._core(*rows)}
        if self.intel:
            out["sklearnex IncrementalRidge"] = lambda: self.intel.partial_fit(*rows).coef_
        if self.polars and L <= 100:
            out["polars_ds OnlineLR"] = lambda: self._polars(*rows)
        if self.padasip and L == 1:
            out["padasip FilterRLS"] = lambda: self._padasip(*rows)
        if self.river and L == 1:
            named = [dict(enumerate(x.tolist())) for x in rows[0]]
            out["river BayesianLinearRegression"] = lambda: self._river(named, rows[1])
        return out

    def retraining(self) -> Jobs:
        """Fits from scratch."""
        X, y = self.X[: self.held], self.y[: self.held]
        out: Jobs = {
            "scikit-learn Ridge": lambda: Ridge(fit_intercept=False, solver="cholesky").fit(X, y)
        }
        fast = peer("sklearnex.linear_model", "Ridge")
        if fast:
            out["sklearnex Ridge"] = lambda: fast(fit_intercept=False).fit(X, y)
        return out

    def _ours(self, X: Floats, y: Floats) -> None:
        _ = self.ours.partial_fit(X, y).coef_
        _ = self.ours.forget(X, y).coef_

    def _core(self, X: Floats, y: Floats) -> None:
        for sign in (1, -1):
            self.core.apply(Change(X, y[:, None], np.ones(len(X)), sign))

    def _polars(self, X: Floats, y: Floats) -> None:
        for sign in (1.0, -1.0):
            for x, target in zip(X, y, strict=True):
                self.polars.update(x, target, sign)

    def _padasip(self, X: Floats, y: Floats) -> None:
        for x, target in zip(X, y, strict=True):
            self.padasip.adapt(target, x)

    def _river(self, X: list[dict[int, float]], y: Floats) -> None:
        for x, target in zip(X, y, strict=True):
            self.river.learn_one(x, target)


BOTH_WAYS = {"traceless", "core", "polars_ds OnlineLR"}


def rates(J: int) -> tuple[float, float]:
    """Flops per second of dgemm, and bytes per second of reading and writing half a J × J."""
    A = np.asfortranarray(np.random.default_rng(0).random((1500, 1500)))
    P, x = np.eye(J, order="F"), np.ones(J)

    def stream() -> None:
        dsymv(1.0, P, x)
        dsyr(1e-9, x, a=P, overwrite_a=True)

    t = interleave({"dgemm": lambda: dgemm(1.0, A, A), "stream": stream}, 9)
    return 2 * 1500**3 / t["dgemm"], 1.5 * 8 * J * J / t["stream"]


def floor(J: int, L: int, flops: float, stream: float) -> float:
    """Seconds that L rows cannot avoid: bytes for single rows, flops for blocks."""
    return L * 1.5 * 8 * J * J / stream if L <= RANK_ONE_ROWS else update_flops(J, L) / flops


def contest(X: Floats, y: Floats, held: int, rounds: int) -> list[tuple[int, int, str, float]]:
    """(J, L, who, seconds per change) of everyone."""
    J, out = X.shape[1], []
    race = Contest(X, y, held)
    flops, stream = rates(J)
    retraining = interleave(race.retraining(), max(1, rounds // 3))
    for L in GOALS:
        for name, seconds in interleave(race.jobs(L), rounds).items():
            out.append((J, L, name, seconds / (2 if name in BOTH_WAYS else 1)))
        out += [(J, L, name, seconds) for name, seconds in retraining.items()]
        out.append((J, L, "floor", floor(J, L, flops, stream)))
    return out


def claims(rows: list[tuple[int, int, str, float]]) -> list[Claim]:
    """The goals of Lee et al.'s update, against what was measured."""
    t = {(J, L, name): seconds for J, L, name, seconds in rows}
    out = []
    for (J, L, name), ours in t.items():
        if name != "traceless":
            continue
        intel, polars, retrain = GOALS[L] if J < 1000 else (None, None, None)
        for who, goal in (
            ("sklearnex IncrementalRidge", intel),
            ("polars_ds OnlineLR", polars),
            ("scikit-learn Ridge", retrain),
        ):
            if goal and (J, L, who) in t:
                what = f"L = {L}: {who} / traceless"
                out.append(Claim(what, t[J, L, who] / ours, goal, at_least=True))
        limit = 1.5 if L >= 100 else 5.0
        out.append(
            Claim(f"J = {J}, L = {L}: core / floor", t[J, L, "core"] / t[J, L, "floor"], limit)
        )
    return out


def show(rows: list[tuple[int, int, str, float]]) -> None:
    for J in sorted({r[0] for r in rows}):
        names = list(dict.fromkeys(r[2] for r in rows if r[0] == J))
        print(
            f"\nMilliseconds per change, J = {J}\n  {'':<32}" + "".join(f"{L:>12}" for L in GOALS)
        )
        for name in names:
            t = {r[1]: r[3] * 1e3 for r in rows if r[0] == J and r[2] == name}
            print(
                f"  {name:<32}"
                + "".join(f"{t[L]:12.3f}" if L in t else f"{'–':>12}" for L in GOALS)
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, J = 784 only")
    quick = parser.parse_args().quick
    print(machine())
    start = time.perf_counter()
    X, labels = mnist()
    y = np.where(labels % 2 == 0, 1.0, -1.0)
    rows = contest(X, y, 55_000, 3 if quick else 9)
    if not quick:
        rng = np.random.default_rng(0)
        wide = rng.normal(size=(9_000, 4096))
        rows += contest(wide, np.sign(wide[:, 0]), 8_000, 3)
    show(rows)
    RESULTS.mkdir(exist_ok=True)
    with (Path(RESULTS) / "updates.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("J", "L", "who", "seconds"), *rows])
    print("\nRatios of interleaved medians")
    for claim in claims(rows):
        print(f"  {claim}")
    print(f"\n{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
