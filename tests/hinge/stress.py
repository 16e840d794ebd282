"""Random chains of updates on degenerate data, each result checked from scratch.

    python tests/hinge/stress.py --minutes 5

prints a table: updates, ends of paths above the promise ("bad"), published solutions above it
("published bad"), the largest residual of either in units of the promise max(1e-9, 10 eps Σα κ),
restarts, repairs, breakpoints; and how often the published bits of an updated state and of a
fresh fit on shuffled rows were equal, different, flagged. Regressors and one class follow, with
the same data: there the published solution is measured, from public attributes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

sys.path.insert(0, str(Path(__file__).parents[2]))  # as a command it is far from the papers

from families import FAMILIES, TARGETS, Family, Machine, draw_points, draw_rows, machine
from oracles import dense_kernel, promise, residual
from papers.karasuyama2009.points import PointProblem
from traceless import PathOneClass
from traceless.arithmetic.integers import Floats
from traceless.hinge.published import Published


def published_residual(problem: PointProblem) -> float:
    """The same of what is published; infinite where its α are not within their bounds.

    Decision values must be those of the dual coefficients.
    """
    solution, bounds = problem.published, problem.bounds
    alpha = solution.alpha_of_points(bounds)
    if not ((alpha >= 0.0) & (alpha <= bounds)).all():
        return np.inf
    found = residual(problem, alpha, solution.intercept)
    if len(problem) and len(np.unique(problem.y)) == 2:
        f = (
            dense_kernel(problem.kernel, problem.X, problem.X) @ (problem.y * alpha)
            + solution.intercept
        )
        off = np.abs(f - problem.decision_function(problem.X)).max()
        found = max(found, float(off))
    return max(found, abs(solution.residual))


def change(problem: PointProblem, family: Family, rng: Generator, most: int) -> None:
    """One random update: in, out, both, other bounds, all but a few, or all of one class."""
    n, kind = len(problem), rng.integers(12)
    m, k = int(rng.integers(0, most + 1)), int(rng.integers(0, most + 1))
    if kind == 0 and n:
        problem.update(bounds=problem.bounds * rng.choice([0.5, 2.0, 1.0], size=n))
        return
    if kind == 1:
        k = n - int(rng.integers(0, 4))
    gone = rng.choice(n, size=min(max(k, 0), n), replace=False)
    if kind == 2:
        gone = np.flatnonzero(problem.y == rng.choice([-1.0, 1.0]))
        gone = gone[int(rng.integers(0, 2)) :]
    if n - len(gone) < 5:
        m += 30
    problem.update(draw_points(family, rng, m), gone)


def same_bits(problem: PointProblem, rng: Generator) -> str:
    """Compare with a fresh fit on shuffled rows: "equal", "different", or "flagged" by either."""
    order = rng.permutation(len(problem))
    fresh = PointProblem(problem.kernel, problem.X.shape[1], seed=1)
    fresh.fit(problem.X[order], problem.y[order], problem.bounds[order])
    a, b = problem.published, fresh.published
    if not (a.certain and b.certain):
        return "flagged"
    return "equal" if equal_bits(a, b) else "different"


def equal_bits(a: Published, b: Published) -> bool:
    """Whether two solutions of the same points are the same function to the bit."""
    same = np.array_equal(a.shares, b.shares) and a.intercept == b.intercept
    if a.weights is None or b.weights is None:
        return same
    return same and np.array_equal(a.weights, b.weights)


def chain(name: str, seed: int, length: int, tally: Counter[str], worst: dict[str, float]) -> None:
    """One chain of updates of one family."""
    family = FAMILIES[name]
    rng = np.random.default_rng([seed, *name.encode()])
    n = int(rng.integers(10, 120))
    X, y, u = draw_points(family, rng, n)
    problem = PointProblem(family.kernel, X.shape[1]).fit(X, y, u)
    for _ in range(length):
        change(problem, family, rng, int(rng.choice([1, 5, 30])))
        ratio = residual(problem) / promise(problem)
        published = published_residual(problem) / promise(problem)
        tally["updates"] += 1
        tally["bad"] += not ratio <= 1.0
        tally["published bad"] += not published <= 1.0
        worst[name] = max(worst.get(name, 0.0), ratio, published)
    tally[same_bits(problem, rng)] += 1
    tally["restarts"] += problem.n_restarts
    tally["repairs"] += problem.n_repairs
    tally["breakpoints"] += problem.n_breakpoints


def was_reported(model: Any) -> bool:
    """Whether a warning says that the solution is less exact than promised."""
    problems = model._current().problems.values()
    return any(problem.published.excess(model.tol) for problem in problems)


def machine_residual(model: Any, which: Machine, held: Sequence[Floats]) -> float:
    """KKT of a regressor or one class in plain numpy, in units of the promise.

    Infinite where a coefficient is not within its bounds.
    The promise is 1e-9 of the unit in which the problem is solved, or more where it is said.
    """
    X, target, weight = held
    kernel, eps = FAMILIES[which[0]].kernel, float(np.finfo(float).eps)
    c, K = np.zeros(len(X)), dense_kernel(kernel, X, X)
    c[model.support_] = model.dual_coef_[0]
    f = K @ c + model.intercept_[0]
    unit = next(iter(model._model.problems.values())).scale
    low, high = (0.0, 1.0) if isinstance(model, PathOneClass) else (-model.C, model.C)
    if (c < low * weight * (1 + 1e-12)).any() or (c > high * weight * (1 + 1e-12)).any():
        return np.inf
    if isinstance(model, PathOneClass):
        total = model.nu * weight.sum()
        wrong = np.where(c <= 0.0, -f, np.where(c >= weight, f, np.abs(f))) / unit
        sums = abs(c.sum() - total) / total
    else:
        apart = target - f
        over = np.sign(c) * apart - model.epsilon  # 0 where 0 < |c| < C
        wrong = np.where(np.abs(c) >= model.C * weight, -over, np.abs(over))
        wrong = np.where(c == 0.0, np.abs(apart) - model.epsilon, wrong) / unit
        sums = abs(c.sum()) / max(1.0, np.abs(c).sum())
    noise = 40 * eps * (np.abs(c).sum() * float(np.abs(K).max()) + np.abs(target).max()) / unit
    said = 1.01 * model.kkt_residual_ if was_reported(model) else 0.0
    return max(float(wrong.max()), sums) / max(1e-9, noise, said)


def machine_chain(
    which: Machine, seed: int, length: int, tally: Counter[str], worst: dict[str, float]
) -> None:
    """One chain of updates of a regressor or one class."""
    family, style, _ = which
    name = "one class" if style is None else "regressor"
    rng = np.random.default_rng([seed, *family.encode()])
    held = draw_rows(family, style, rng, int(rng.integers(5, 80)))
    model = machine(*which).fit(*held)
    for _ in range(length):
        new = draw_rows(family, style, rng, int(rng.integers(1, 20)))
        gone = rng.random(len(held[1])) < rng.choice([0.02, 0.4, 0.95])
        model.update(add=new, forget=model.ids_[gone])
        held = tuple(np.concatenate([a[~gone], b]) for a, b in zip(held, new, strict=True))
        ratio = machine_residual(model, which, held)
        tally["updates"] += 1
        tally["published bad"] += not ratio <= 1.0
        tally["said"] += was_reported(model)
        worst[name] = max(worst.get(name, 0.0), ratio)
    order = rng.permutation(len(held[1]))
    fresh = machine(*which).fit(*(values[order] for values in held))
    flagged = model.ambiguous_ or fresh.ambiguous_
    same = "equal" if model.digest() == fresh.digest() else "different"
    tally["flagged" if flagged else same] += 1


def run(minutes: float, length: int = 20, seed: int = 0) -> dict[str, Counter[str]]:
    """Chains over all families, in turn, until the time is up."""
    end = time.monotonic() + 60 * minutes
    tallies = {name: Counter[str]() for name in (*FAMILIES, "regressor", "one class")}
    worst: dict[str, float] = {}
    while time.monotonic() < end:
        rng = np.random.default_rng(seed)
        for name in FAMILIES:
            regressor = name, str(rng.choice([*TARGETS])), float(rng.choice([0.0, 1e-6, 0.1, 0.5]))
            one = name, None, float(rng.choice([0.02, 0.1, 0.5, 0.9]))
            chains: list[tuple[str, Callable[..., None], Any, int]] = [
                (name, chain, name, length),
                ("regressor", machine_chain, regressor, 4),
                ("one class", machine_chain, one, 4),
            ]
            for kind, job, what, long in chains:
                try:
                    job(what, seed, long, tallies[kind], worst)
                except Exception as error:
                    tallies[kind]["errors"] += 1
                    sys.stderr.write(f"{what}, seed {seed}: {error!r}\n")
        seed += 1
    for name, tally in tallies.items():
        sys.stdout.write(f"{name:20s} {dict(tally)} worst {worst.get(name, 0.0):.1e}\n")
    return tallies


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    totals = run(arguments.minutes, seed=arguments.seed)
    wrong = ("bad", "published bad", "different", "errors")
    sys.exit(any(tally[kind] for tally in totals.values() for kind in wrong))
