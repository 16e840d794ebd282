"""The parts of a solver: KKT residuals, SMO and working sets."""

import numpy as np
import pytest

from oracles import promise
from papers.karasuyama2009.points import PointProblem
from traceless.hinge import kkt
from traceless.hinge.follow import INSIDE, MARGIN, OUTSIDE
from traceless.hinge.kernels import Kernel
from traceless.hinge.smo import descend
from traceless.hinge.solver import PathSolver

KERNEL = Kernel("rbf", gamma=0.5)


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(120, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=120) > 0, 1.0, -1.0)
    return PointProblem(KERNEL, 3).fit(X, y, 2.0)


@pytest.fixture
def solver(problem):
    """At the end of the path that has led to the problem."""
    solver = PathSolver(problem._held.cache, margin=len(problem))
    solver.resume(problem._held.slots, problem._end)
    return solver


@pytest.mark.parametrize(
    ("side", "g", "violation"),
    [
        (INSIDE, -0.3, 0.3),
        (INSIDE, 0.3, 0.0),
        (OUTSIDE, 0.2, 0.2),
        (OUTSIDE, -0.2, 0.0),
        (MARGIN, 0.1, 0.1),
        (MARGIN, -0.1, 0.1),
        (MARGIN, np.nan, np.nan),
    ],
)
def test_what_violates_the_kkt_conditions(problem, solver, side, g, violation):
    place = np.flatnonzero(problem.sides == side)[0]
    solver.active.g[problem._held.slots[place]] = g
    found = kkt.measured(solver.active)
    assert found.residual == pytest.approx(violation, abs=1e-9, nan_ok=True)
    assert found.imbalance == pytest.approx(0.0, abs=1e-12)
    assert found.tolerance == pytest.approx(0.8e-9)


def test_a_sample_finds_a_g_that_has_drifted(problem, solver):
    assert kkt.sampled(solver.active).residual < 1e-11
    solver.active.g[problem._held.slots] += 1e-6
    assert kkt.sampled(solver.active) is None
    assert kkt.thorough(solver.active).residual < 1e-11


def test_smo_gets_to_the_solution_from_nothing(problem, solver):
    active = solver.active
    active.alpha[:], active.now["intercept"] = 0.0, 5.0
    descend(active, 1e-10, 10**6)
    assert kkt.measured(active).residual <= 1e-9
    assert kkt.thorough(active).residual <= promise(problem)
    np.testing.assert_allclose(active.alpha[problem._held.slots], problem.alpha, atol=1e-6)
