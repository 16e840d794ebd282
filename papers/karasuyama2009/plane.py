"""(a), (b) Points in the plane: added, removed and both, one path against many.

Two classes of equal prior; the crosses are a mixture of two Gaussians, the circles one
Gaussian between them. Only points with α = C are added or removed, as in the paper: others
cost next to nothing.

Section 3.4 of the paper: if breakpoints are spread evenly over the space of the coefficients
that change, their number is proportional to the length of the path. One path for all is the
diagonal of the box that one-at-a-time updates walk along the edges of:

    breakpoints(MID) / breakpoints(SID) = ‖Δα‖₂ / ‖Δα‖₁ = 1 / √(m + ℓ)  where all |Δα| = C
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from papers.datasets import Floats, Indices
from papers.karasuyama2009.changes import Change, breakpoints, exactness, measured
from papers.karasuyama2009.points import PointProblem
from papers.report import Plan
from papers.rows import Rows
from papers.timing import shown

N = 500  # points in the plane, as in the paper
GAMMA, C = 1.0, 10.0  # those of the paper are not in our copy
SCENARIOS = ("adding", "removing", "both")
CROSSES = "adding crosses"  # points of one class only
CENTRES = {1.0: ((-2.0, 0.0), (2.0, 0.0)), -1.0: ((0.0, 0.0),)}  # crosses, circles
POOL = 1000  # points that those to be added are taken from
LATTICE = 0.25  # to which points are rounded, to have identical ones
TEST = 500  # points at which decision values are compared


def points(n: int, seed: int) -> tuple[Floats, Floats]:
    """Points and labels; the first ones are the same whatever n."""
    rng = np.random.default_rng(seed)
    draws = rng.uniform(size=(n, 2))
    noise = np.random.default_rng((seed, 1)).normal(size=(n, 2))
    y = np.where(draws[:, 0] < 0.5, 1.0, -1.0)
    several = [CENTRES[label] for label in y]
    centres = [c[int(u * len(c))] for c, u in zip(several, draws[:, 1], strict=True)]
    return np.array(centres) + noise, y


def theoretical_ratio(changes: ArrayLike) -> float:
    """Breakpoints of one path to those of one-at-a-time updates, by section 3.4.

    Examples
    --------
    >>> theoretical_ratio([10.0] * 25)
    0.2
    >>> theoretical_ratio([3.0, -4.0, 0.0])  # what does not move does not count
    0.7142857142857143
    """
    moved = np.abs(np.asarray(changes, dtype=np.float64))
    return float(np.sqrt((moved**2).sum()) / moved.sum())


def scenario_change(
    scenario: str, several: int, seed: int, C: float = C, gamma: float = GAMMA
) -> Change:
    """So many bounded support vectors to come, to go, or half and half; or crosses to come."""
    m = {"removing": 0, "both": several // 2}.get(scenario, several)
    X, y = points(N + POOL, seed)
    if scenario == CROSSES:
        X, y = (np.concatenate([part[:N], part[N:][y[N:] > 0]]) for part in (X, y))
    nothing = Change(X[:N], y[:N], X[:0], y[:0], np.zeros(0, dtype=np.intp), gamma, C)
    rng = np.random.default_rng((seed, 2))
    problem = nothing.before()
    bounded = np.flatnonzero(problem.alpha >= problem.bounds)
    gone = np.sort(rng.choice(bounded, several - m, replace=False))
    new = _that_end_bounded(nothing, problem, gone, X[N:], y[N:], m)
    return Change(X[:N], y[:N], X[N:][new], y[N:][new], gone, gamma, C)


def _that_end_bounded(
    change: Change, problem: PointProblem, gone: Indices, X: Floats, y: Floats, m: int
) -> Indices:
    """The first points that all have α = C once they and nothing else have come."""
    if not m:
        return np.zeros(0, dtype=np.intp)
    left: list[int] = list(np.flatnonzero(y * problem.decision_function(X) < 1.0))
    while True:
        chosen = np.array(left[:m])
        after = change.before().update(add=(X[chosen], y[chosen], change.C), remove=gone)
        free = after.alpha[-m:] < after.bounds[-m:]
        if not free.any():
            return chosen
        left = [i for i in left if i not in set(chosen[free])]


def changes(plan: Plan) -> Rows:
    """(a), (b) Times, breakpoints and exactness of all changes in the plane."""
    kinds = [(C, plan.points, plan.trials)]
    kinds += [(other, plan.other_points, plan.other_trials) for other in plan.other_strengths]
    cases = [
        (strength, *case)
        for strength, several, trials in kinds
        for case in product(range(trials), SCENARIOS, several)
        if case[1] != "both" or case[2] % 2 == 0
    ]
    rows: Rows = []
    for strength, seed, scenario, several in shown(cases, "(a) and (b) plane"):
        change = scenario_change(scenario, several, seed, strength)
        told = {"scenario": scenario, "C": strength, "points": several, "trial": seed}
        row = measured(change, points(TEST, 10_000)[0])
        theory = row["breakpoints_SID"] * theoretical_ratio([strength] * several)
        rows.append(told | row | {"theory": theory})
    return rows


def breakpoints_by_width(plan: Plan) -> Rows:
    """(b) Breakpoints at the most points, for kernels of other widths, and for one class."""
    several = max(plan.points)
    kinds = [*product(plan.widths, SCENARIOS), (GAMMA, CROSSES)]
    rows: Rows = []
    for gamma, scenario in shown(kinds, "(b) other kernels"):
        for seed in range(plan.other_trials):
            change = scenario_change(scenario, several, seed, gamma=gamma)
            told = {"gamma": gamma, "scenario": scenario, "points": several, "trial": seed}
            mid, sid = change.mid(change.before()), change.sid(change.before())
            rows.append(told | breakpoints(change.before(), mid, sid))
    return rows


def identical_points(plan: Plan) -> Rows:
    """(e) Random changes of points on a lattice, where many are the same: K is singular."""
    rows: Rows = []
    for seed in shown(range(plan.trials), "(e) identical points"):
        X, y = points(N + 20, seed)
        X = np.round(X / LATTICE) * LATTICE
        gone = np.sort(np.random.default_rng(seed).choice(N, 20, replace=False))
        change = Change(X[:N], y[:N], X[N:], y[N:], gone, GAMMA, C)
        row = exactness(change, change.mid(change.before()), points(TEST, 10_000)[0])
        rows.append({"trial": seed, "different": len(np.unique(X[:N], axis=0))} | row)
    return rows
