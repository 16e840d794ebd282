"""(d) One path, looked at on the way: coefficients over θ, and where its breakpoints are.

The engine gives no account of a path, so it is taken in small steps: bounds of what comes are θC,
of what goes (1 - θ)C, and one update leads to the next θ. At these θ the coefficients are exact,
and they are those of the one long path as long as every point that comes or goes is at its bound.
Paths where one is not are set aside. A breakpoint is known to within a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from papers.datasets import Floats
from papers.karasuyama2009.changes import Change
from papers.karasuyama2009.plane import SCENARIOS, scenario_change
from papers.karasuyama2009.points import PointProblem
from papers.report import Plan
from papers.rows import Rows
from papers.timing import shown

DRAWN = 40  # values of θ that are kept beside the breakpoints


@dataclass(frozen=True)
class Path:
    """A path at some θ: α of all points, those that come last, and breakpoints so far."""

    theta: Floats
    alpha: Floats  # one line for each θ
    breakpoints: list[int]
    off: int  # times that a moving point was not at its bound
    at_once: int  # breakpoints of the same change in one update

    def where(self) -> Floats:
        """θ of every breakpoint: the middle of the step it is in."""
        middle = (self.theta[1:] + self.theta[:-1]) / 2
        return np.repeat(middle, np.diff(self.breakpoints))


def taken_in_steps(change: Change, steps: int) -> Path:
    """Follow a change from θ = 0 to 1."""
    problem, n, m, C = change.before(), len(change.y), len(change.new_labels), change.C
    at_once = change.mid(change.before()).n_breakpoints - problem.n_breakpoints
    start, off = problem.n_breakpoints, 0
    thetas = np.arange(steps + 1) / steps
    alpha, counts = np.zeros((steps + 1, n + m)), [0]
    alpha[0, :n] = problem.alpha
    left = np.delete(np.arange(n + m), change.gone)
    for k, theta in enumerate(thetas[1:], 1):
        if k < steps:
            _lead_to(problem, change, float(theta))
            alpha[k] = problem.alpha
            moving = np.concatenate([change.gone, np.arange(n, n + m)])
            off += int((problem.alpha[moving] < problem.bounds[moving]).sum())
        else:
            bounds = np.full(n + m, C)
            bounds[change.gone] = problem.bounds[change.gone]
            problem.update(remove=change.gone, bounds=bounds)
            alpha[k, left] = problem.alpha
        counts.append(problem.n_breakpoints - start)
    return Path(thetas, alpha, counts, off, at_once)


def _lead_to(problem: PointProblem, change: Change, theta: float) -> None:
    """To the bounds at some θ; at the first one, what comes is added."""
    bounds = np.full(len(problem), change.C)
    bounds[change.gone] *= 1.0 - theta
    m = len(change.new_labels)
    if m and len(problem) == len(change.y):
        add = (change.new_rows, change.new_labels, np.full(m, theta * change.C))
        problem.update(add=add, bounds=bounds)
        return
    bounds[len(change.y) :] *= theta
    problem.update(bounds=bounds)


# --- measurements -------------------------------------------------------------------------------


def paths(plan: Plan) -> tuple[Rows, Rows]:
    """Breakpoints of several paths, and the coefficients of the first of each scenario."""
    found: Rows = []
    drawn: Rows = []
    cases = [(s, k) for s in SCENARIOS for k in range(plan.path_trials)]
    seeds = dict.fromkeys(SCENARIOS, 0)
    for scenario, trial in shown(cases, "(d) paths"):
        aside = 0
        while True:
            change = scenario_change(scenario, plan.path_points, seeds[scenario])
            path = taken_in_steps(change, plan.steps)
            seeds[scenario] += 1
            if not path.off:
                break
            aside += 1
        told = {"scenario": scenario, "trial": trial, "aside": aside}
        counted = {"at_once": path.at_once, "in_steps": path.breakpoints[-1]}
        found += [told | counted | {"theta": theta} for theta in path.where()]
        if trial == 0:
            drawn += [{"scenario": scenario} | row for row in _coefficients(path, change)]
    return found, drawn


def _coefficients(path: Path, change: Change) -> Rows:
    """α over θ of every point of which it changes, where paths bend and at some other θ."""
    jumps = np.flatnonzero(np.diff(path.breakpoints))
    even = np.linspace(0, len(path.theta) - 1, DRAWN + 1).astype(int)
    kept = np.unique(np.concatenate([jumps + 1, even]))
    roles = np.full(path.alpha.shape[1], "stays", dtype=object)
    roles[change.gone], roles[len(change.y) :] = "goes", "comes"
    moves = np.flatnonzero(np.ptp(path.alpha, axis=0) > 0)
    rows: Rows = []
    for i, k in product(moves, kept):
        told = {"point": int(i), "role": roles[i], "theta": float(path.theta[k])}
        rows.append(told | {"alpha": float(path.alpha[k, i]), "breakpoints": path.breakpoints[k]})
    return rows
