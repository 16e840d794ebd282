"""Small changes: the (w, C) update against retraining, incremental peers and the floor.

    make bench-updates                              everything, some minutes
    python -m benchmarks.updates --quick            fewer rounds, J = 784 only

A model of 55 000 × 784 (MNIST, even against odd; or its ten digits); L rows are added and removed,
each time until the model is ready to predict: with the defaults, and with the papers' penalty.
Writes updates.json to benchmarks/results.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import Ridge

from benchmarks.findings import FLOOR, PAPERS, Findings, Record, main, records_of, spoken, times
from benchmarks.floor import Rates, cholesky_flops, gram_flops
from papers.claims import Claim
from papers.datasets import Floats, mnist_or_random
from papers.timing import interleave
from traceless import LSSVC, LSSVR
from traceless.features import Linear
from traceless.solvers.inverse import Change, Frame, Inverse, update_flops, worth_updating

GOALS = {1: (40, 2, 4000), 10: (10, 9, 350), 100: (4, 29, 98), 1000: (1.5, None, 22)}
GOALS_AGAINST = ("sklearnex IncrementalRidge", "polars_ds OnlineLR", "scikit-learn Ridge")
OURS, PLAIN = "traceless", "traceless, papers' penalty"
CLASSES, PLAIN_CLASSES = "traceless, ten classes", "traceless, ten classes, papers' penalty"
CORE = "the update alone"
Jobs = dict[str, Callable[[], object]]


def repeat(job: Callable[[], object], times: int) -> None:
    for _ in range(times):
        job()


def peer(module: str, name: str) -> Any:
    """A class of a package that may be missing (the extra `bench` installs it), or None."""
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        print(f"  left out: {module}.{name} ({error})")
        return None


class Contest:
    """The same change, made by each peer on a model of the same rows."""

    def __init__(self, X: Floats, labels: Floats, held: int) -> None:
        self.X, self.y, self.held = X, np.where(labels % 2 == 0, 1.0, -1.0), held
        live: dict[str, Any] = {"solver": "woodbury"}
        self.ours: dict[str, tuple[LSSVC | LSSVR, Floats]] = {
            OURS: (LSSVR(target_resolution=1.0, **live), self.y),
            PLAIN: (LSSVR(Linear(bias=False), target_resolution=1.0, **live, **PAPERS), self.y),
            CLASSES: (LSSVC(**live), labels),
            PLAIN_CLASSES: (LSSVC(Linear(bias=False), **live, **PAPERS), labels),
        }
        X, y = X[:held], self.y[:held]
        for model, targets in self.ours.values():
            model.fit(X, targets[:held])
        S, V = X.T @ X, (X.T @ y)[:, None]
        J = X.shape[1]
        self.core = Inverse.of(np.asfortranarray(S + np.eye(J)), V, Frame.plain(1.0, J))
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
        out: Jobs = {
            way: partial(self._ours, model, rows[0], targets[self.held : self.held + L])
            for way, (model, targets) in self.ours.items()
        }
        out[CORE] = lambda: self._core(*rows)
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

    def _ours(self, model: LSSVC | LSSVR, X: Floats, y: Floats) -> None:
        _ = model.partial_fit(X, y).coef_
        _ = model.forget(X, y).coef_

    def _core(self, X: Floats, y: Floats) -> None:
        for sign in (1, -1):
            self.core = self.core.after([Change(X, y[:, None], np.ones(len(X)), sign)])

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


REPEATED = 64  # changes in a row where one is short: what is done once in so many counts too
BOTH_WAYS = {OURS, PLAIN, CLASSES, PLAIN_CLASSES, CORE, "polars_ds OnlineLR"}


def floor(J: int, L: int, rates: Rates) -> float:
    """Seconds that L rows cannot avoid: P read twice and written once, or the flops."""
    return rates.floor(update_flops(J, L) if L > 1 else 0, 1.5 * 8 * J * J)


def job(J: int) -> str:
    return f"A change of L rows, J = {J} features"


def contest(X: Floats, labels: Floats, held: int, rounds: int) -> list[Record]:
    """Seconds per change, of everyone."""
    J, out = X.shape[1], []
    race, rates = Contest(X, labels, held), Rates.measured(X.shape[1])
    retraining = interleave(race.retraining(), max(1, rounds // 3))
    for L in GOALS:
        often = REPEATED if L <= 10 and J < 1000 else 1
        jobs = {way: partial(repeat, job, often) for way, job in race.jobs(L).items()}
        seconds = {way: s / often for way, s in interleave(jobs, rounds).items()}
        changes = {way: s / (2 if way in BOTH_WAYS else 1) for way, s in seconds.items()}
        changes |= retraining | {FLOOR: floor(J, L, rates)}
        out += records_of(job(J), changes, f"L = {L}")
    return out


def claims(found: Findings, J: int) -> list[Claim]:
    """The goals of Lee et al.'s update, against what was measured."""
    out = []
    for L, goals in GOALS.items():
        t = {r.way: r.value for r in found.records if (r.job, r.case) == (job(J), f"L = {L}")}
        for way, goal in zip(GOALS_AGAINST, goals if J < 1000 else (), strict=False):
            if goal and way in t:
                what = f"L = {L}: {way} / traceless"
                out.append(Claim(what, t[way] / t[OURS], goal, at_least=True))
        limit = 1.5 if L >= 100 else 5.0
        out.append(Claim(f"J = {J}, L = {L}: {CORE} / floor", t[CORE] / t[FLOOR], limit))
        for way, plain in ((OURS, PLAIN), (CLASSES, PLAIN_CLASSES)) if L <= 10 else ():
            out.append(Claim(f"J = {J}, L = {L}: {way} / papers' penalty", t[way] / t[plain], 2.0))
        if L == 1:
            ratio = t[PLAIN] / t[CORE]
            out.append(Claim(f"J = {J}, L = 1: through the estimator / {CORE}", ratio, 2.0))
    return out


def reach(found: Findings, J: int) -> str:
    """How far ahead of the peers an exact model could be, with all products as fast as dgemm."""
    out = []
    for L in (100, 1000):
        t = {r.way: r.value for r in found.records if (r.job, r.case) == (job(J), f"L = {L}")}
        kept = update_flops(J, L) if worth_updating(J, L) else 1.5 * cholesky_flops(J)
        least = t[FLOOR] * (gram_flops(L, J) + kept) / update_flops(J, L)
        ratio = t.get(GOALS_AGAINST[0], 0.0) / least
        out.append(f"L = {L}: {spoken(least, 's')} ({GOALS_AGAINST[0]}: {times(ratio)})")
    t = {r.way: r.value for r in found.records if (r.job, r.case) == (job(J), "L = 1")}
    rest = t[PLAIN] - t[CORE]
    return (
        f"What cannot be avoided at J = {J}: rows enter the exact sums, J² flops each, and then P "
        "and U, 3J² each, or a new factor, which is made twice where rows are forgotten, to check "
        f"what is left. {'; '.join(out)}. A single row reads half of P; OnlineLR reads P twice "
        "and writes it once, in place and on all cores, and checks for NaN only. Around the "
        f"update are checks of row and parameters, a copy of the row that waits for the exact "
        f"sums, these sums, and now and then the residual: {spoken(rest, 's')} of "
        f"{spoken(t[PLAIN], 's')} (papers' penalty). OnlineLR / the update alone: "
        f"{times(t.get(GOALS_AGAINST[1], 0.0) / t[CORE])}."
    )


def measure(quick: bool) -> Findings:
    X, labels = mnist_or_random()
    records = contest(X, labels, 55_000, 3 if quick else 9)
    widths = [X.shape[1]]
    if not quick:
        wide = np.random.default_rng(0).normal(size=(9_000, 4096))
        records += contest(wide, np.floor(4.0 * wide[:, 0]) % 10, 8_000, 3)
        widths.append(4096)
    notes = [
        "Each change leaves the model ready to predict. The update alone is that of the papers' "
        "penalty, without the checks of an estimator. The floor is bytes for single rows and flops "
        f"for blocks; small changes are made {REPEATED} in a row, so P of 784 features comes from "
        "the cache, and single rows may be faster than memory."
    ]
    found = Findings(records)
    notes += [reach(found, X.shape[1])]
    return replace(found, notes=notes, claims=[c for J in widths for c in claims(found, J)])


if __name__ == "__main__":
    main(measure, __doc__)
