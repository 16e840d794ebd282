import numpy as np
import pytest

from families import FAMILIES, draw_points, sample
from oracles import change, equal_bits, promise, published_residual, residual
from papers.karasuyama2009.points import PointProblem
from traceless.hinge import solver as module
from traceless.hinge.follow import INSIDE, MARGIN
from traceless.hinge.kernels import Kernel
from traceless.hinge.smo import descend
from traceless.hinge.solver import REPAIRS, PathSolver
from traceless.hinge.target import Target


def fitted(X, y, bounds=10.0, kernel=None, **options):
    return PointProblem(kernel or Kernel("rbf", gamma=0.5), X.shape[1], **options).fit(X, y, bounds)


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


@pytest.mark.parametrize("name", [name for name, f in FAMILIES.items() if f.bound < 1e6])
def test_without_any_path_pairs_get_there(name, monkeypatch):
    monkeypatch.setattr(PathSolver, "follow_path", PathSolver.end_path)
    repairs = 0
    for seed in range(3):
        for problem in chain(name, seed, length=6):
            assert residual(problem) <= promise(problem)
        repairs += problem.n_repairs
    assert repairs


@pytest.mark.parametrize("how", sorted(set(REPAIRS), key=str))
def test_each_repair_mends_what_is_wrong(rng, monkeypatch, how):
    problem = fitted(*sample(rng, 150))
    cache, _, slots, _ = problem._held
    solver = PathSolver(cache, margin=150)
    solver.resume(slots, problem._end)
    active = solver.active
    active.alpha[:], active.side[slots], active.now["k"] = 0.0, INSIDE, 0
    with monkeypatch.context() as patch:
        patch.setattr("traceless.hinge.solver.REPAIRS", ())
        solver.solve()
        assert solver.violation.residual > 1e-3
        patch.setattr("traceless.hinge.solver.REPAIRS", (how,))
        solver.solve()
    assert solver.violation.residual <= promise(problem)
    assert np.abs(solver.active.alpha[slots] - problem.alpha).max() < 1e-6
    assert solver.factored == (how is not None)


@pytest.mark.parametrize("memory", [1 << 30, 150_000])
def test_paths_go_on_from_where_pairs_have_left_off(rng, monkeypatch, memory):
    X, y = sample(rng, 150)
    problem = fitted(X, y, memory=memory)
    with monkeypatch.context() as patch:
        patch.setattr(PathSolver, "follow_path", PathSolver.end_path)
        problem.update((*sample(rng, 10), 10.0), np.arange(10))
    repairs = problem.n_repairs
    assert repairs
    assert residual(problem) <= promise(problem)
    on_margin = np.flatnonzero(problem.sides == MARGIN)
    problem.update((*sample(rng, 10), 10.0), on_margin[:4], np.full(150, 5.0))
    assert problem.n_repairs == repairs
    fresh = fitted(problem.X, problem.y, problem.bounds)
    assert np.abs(problem.decision_function(X) - fresh.decision_function(X)).max() < 1e-8


def test_the_path_from_a_restored_state_is_the_same(rng):
    X, y = sample(rng, 120)
    problem, again = fitted(X, y), PointProblem(Kernel("rbf", gamma=0.5), 3)
    points = problem.rows, Target(problem.ids, y, problem.bounds, y)
    numbers = problem.alpha, problem.slopes, problem.intercept, problem.residual
    again = again.restored(*points, *numbers)
    new, before = (*sample(rng, 10), 10.0), problem.n_breakpoints
    for one in (problem, again):
        one.update(new, np.arange(10))
    assert again.n_breakpoints == problem.n_breakpoints - before > 10
    assert np.abs(again.alpha - problem.alpha).max() < 1e-8


@pytest.mark.parametrize("name", ["generic", "linear", "duplicates", "tiny gamma", "separable"])
def test_windows_change_nothing(name, monkeypatch):
    monkeypatch.setattr("traceless.hinge.solver.MANY", 32)
    family = FAMILIES[name]
    rng = np.random.default_rng(5)
    X, y, u = draw_points(family, rng, 120)
    problem = fitted(X, y, u, family.kernel)
    for _ in range(15):
        change(problem, family, rng, 12)
        assert residual(problem) <= promise(problem)


def test_windows_on_many_points(rng):
    X, y = sample(rng, 1500)
    problem = fitted(X[:1400], y[:1400])
    problem.update((X[1400:], y[1400:], 10.0), np.arange(100))
    assert problem.n_repairs == 0
    assert residual(problem) <= promise(problem)


@pytest.mark.parametrize("memory", [1 << 30, 2_000_000])
def test_memory_is_given_back_when_most_points_have_gone(rng, memory):
    X, y = sample(rng, 900)
    problem = fitted(X, y, memory=memory)
    big = problem._held.cache.capacity
    while len(problem) > 100:
        problem.update(remove=rng.choice(len(problem), len(problem) // 10, replace=False))
        assert residual(problem) <= promise(problem)
    assert problem._held.cache.capacity < big // 2
    problem.update((X[:50], y[:50], 10.0), np.arange(20))
    assert residual(problem) <= promise(problem)
    assert equal_bits(problem.canonical(), fitted(problem.X, problem.y).canonical())


def test_nothing_of_what_is_forgotten_is_kept(rng):
    X, y = sample(rng, 100)
    problem = fitted(X, y).update(remove=np.arange(30))
    cache, _, slots, _ = problem._held
    used = np.isin(np.arange(cache.capacity), slots)
    for values in (cache.rows.T, cache.gram, cache.gram.T, cache.diagonal):
        assert not values[~used[: len(values)]].any()
    *numbers, _, factor = problem._end
    assert all(len(values) == 70 for values in (problem.X, problem.y, *numbers))
    k = np.sum(problem.sides == MARGIN)
    assert factor.R[:k, :k].any()
    assert not factor.R[k:].any()
    assert not factor.R[:, k:].any()


def test_where_most_rows_change_it_is_fitted_anew(rng, monkeypatch):
    X, y = sample(rng, 600)
    problem = fitted(X[:300], y[:300])
    fits = []
    monkeypatch.setattr(module, "descend", lambda *a: (fits.append(1), descend(*a))[1])
    problem.update((X[300:305], y[300:305], 10.0), np.arange(5))
    assert not fits
    problem.update((X[305:], y[305:], 10.0), np.arange(290))
    assert fits
    assert residual(problem) <= promise(problem)
