import numpy as np
import pytest

from families import FAMILIES, draw_points, sample
from oracles import change, equal_bits, promise, published_residual, residual
from papers.karasuyama2009.points import PointProblem
from traceless.hinge.kernels import Kernel
from traceless.hinge.target import Target


def fitted(X, y, bounds=10.0, kernel=None, **options):
    return PointProblem(kernel or Kernel("rbf", gamma=0.5), X.shape[1], **options).fit(X, y, bounds)


def restored(problem, alpha, b, memory=1 << 30):
    """A problem of the same points with a solution from elsewhere."""
    other = PointProblem(problem.kernel, 3, memory)
    target = Target(problem.ids, problem.y, problem.bounds, problem.y)
    with other.held.opened(problem.rows, problem.kernel, memory) as place:
        other.__dict__ |= other.restored(target, problem.rows, place, alpha, b).__dict__
    other.rows = problem.rows
    return other


@pytest.mark.parametrize("name", FAMILIES)
def test_chains_of_updates_on_degenerate_data(name):
    family = FAMILIES[name]
    for seed in range(3):
        rng = np.random.default_rng([seed, *name.encode()])
        X, y, u = draw_points(family, rng, 60)
        problem = fitted(X, y, u, family.kernel)
        for _ in range(8):
            change(problem, family, rng, 12)
            assert residual(problem) <= promise(problem)
            assert problem.residual <= promise(problem)
            assert published_residual(problem) <= promise(problem)


def chain(name, seed, length=20):
    """A chain of the stress command; yields its problem after each update."""
    family, rng = FAMILIES[name], np.random.default_rng([seed, *name.encode()])
    problem = fitted(*draw_points(family, rng, int(rng.integers(10, 120))), family.kernel)
    for _ in range(length):
        change(problem, family, rng, int(rng.choice([1, 5, 30])))
        yield problem


@pytest.mark.parametrize(
    ("name", "seed"), [("near duplicates", 86), ("near, few", 9), ("near, huge bound", 196)]
)
def test_margins_that_no_factor_resolves(name, seed):
    for problem in chain(name, seed):
        assert residual(problem) <= promise(problem)


@pytest.mark.parametrize("memory", [1 << 30, 260_000])
@pytest.mark.parametrize("wrong", [0.0, 0.3, 10.0])
def test_a_path_starts_from_anywhere(rng, memory, wrong):
    X, y = sample(rng, 150)
    problem, alpha = fitted(X, y), rng.choice([0.0, 1.0, 0.5], size=150) * wrong
    other = restored(problem, alpha, -3.0, memory)
    other.update((*sample(rng, 10), 10.0), np.arange(10), np.full(150, 5.0))
    assert residual(other) <= promise(other)
    fresh = fitted(other.X, other.y, other.bounds)
    assert np.abs(other.decision_function(X) - fresh.decision_function(X)).max() < 1e-8


def test_the_path_from_a_restored_state_is_the_same(rng):
    X, y = sample(rng, 120)
    problem = fitted(X, y)
    again = restored(problem, problem.alpha, problem.intercept)
    new, before = (*sample(rng, 10), 10.0), problem.n_breakpoints
    for one in (problem, again):
        one.update(new, np.arange(10))
    assert again.n_breakpoints == pytest.approx(problem.n_breakpoints - before, rel=0.3)
    assert np.abs(again.alpha - problem.alpha).max() < 1e-8


def test_a_restored_problem_computes_no_more_than_it_needs(rng):
    X, y = sample(rng, 1200)
    problem = fitted(X, y, 1.0)
    again = restored(problem, problem.alpha, problem.intercept)
    again.update((*sample(rng, 1), 1.0), [0])
    support = np.sum(again.alpha > 0)
    assert again.held._place.gram.lines.held < support + 50 < 600


@pytest.mark.parametrize("name", ["generic", "linear", "duplicates", "tiny gamma", "rare class"])
def test_working_sets_change_nothing(name):
    family, rng = FAMILIES[name], np.random.default_rng(5)
    X, y, u = draw_points(family, rng, 1100)
    problem = fitted(X, y, u, family.kernel)
    for _ in range(4):
        problem.update(draw_points(family, rng, 40), rng.choice(1100, 40, replace=False))
        assert residual(problem) <= promise(problem)
    assert problem.n_repairs == 0


@pytest.mark.parametrize("memory", [1 << 30, 2_000_000])
def test_memory_is_given_back_when_most_points_have_gone(rng, memory):
    X, y = sample(rng, 900)
    problem = fitted(X, y, memory=memory)
    while len(problem) > 100:
        problem.update(remove=rng.choice(len(problem), len(problem) // 10, replace=False))
        assert residual(problem) <= promise(problem)
    problem.update((X[:50], y[:50], 10.0), np.arange(20))
    assert problem.held._place.gram.lines.n < 450
    assert residual(problem) <= promise(problem)
    assert equal_bits(problem.published, fitted(problem.X, problem.y).published)


def test_where_most_rows_change_it_is_fitted_anew(rng):
    X, y = sample(rng, 600)
    problem = fitted(X[:300], y[:300])
    problem.update((X[300:305], y[300:305], 10.0), np.arange(5))
    steps = problem.n_breakpoints
    problem.update((X[305:], y[305:], 10.0), np.arange(290))
    assert problem.n_breakpoints - steps < 150  # a path of so many points has more
    assert residual(problem) <= promise(problem)
