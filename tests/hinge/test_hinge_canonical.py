import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from families import FAMILIES, draw_points
from oracles import change
from oracles import equal_bits as same
from papers.karasuyama2009.points import PointProblem
from traceless.hinge.kernels import Kernel


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(FAMILIES)),
    st.integers(0, 2**32),
    st.integers(3, 60),
    st.lists(st.sampled_from([1, 4, 15]), max_size=6),
)
def test_bits_depend_on_the_data_alone_unless_it_says_so(name, seed, n, sizes):
    family, rng = FAMILIES[name], np.random.default_rng(seed)
    X, y, u = draw_points(family, rng, n)
    problem = PointProblem(family.kernel, X.shape[1]).fit(X, y, u)
    for most in sizes:
        change(problem, family, rng, most)
    order = rng.permutation(len(problem))
    fresh = PointProblem(family.kernel, X.shape[1], seed=7)
    fresh.fit(problem.X[order], problem.y[order], problem.bounds[order])
    ours, theirs = problem.canonical(), fresh.canonical()
    if ours.certain and theirs.certain:
        assert same(ours, theirs)
        assert np.array_equal(problem.decision_function(X), fresh.decision_function(X))
    ordered = problem.X[ours.first]
    assert np.array_equal(ordered, fresh.X[theirs.first])


def test_only_rows_within_rounding_of_each_other_are_in_doubt():
    doubted = set()
    for name, family in FAMILIES.items():
        for seed in range(4):
            rng = np.random.default_rng([seed, *name.encode()])
            X, y, u = draw_points(family, rng, 80)
            solution = PointProblem(family.kernel, X.shape[1]).fit(X, y, u).canonical()
            doubted |= set() if solution.certain else {name}
    assert {"near duplicates"} <= doubted <= {name for name in FAMILIES if "near" in name}


def test_equal_points_share_what_is_theirs(rng):
    X = rng.normal(size=(30, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    rows, labels = np.repeat(X, 3, axis=0), np.repeat(y, 3)
    bounds = np.tile([1.0, 2.0, 0.5], 30)
    kernel = Kernel("rbf", gamma=1.0)
    many = PointProblem(kernel, 2).fit(rows, labels, bounds)
    one = PointProblem(kernel, 2).fit(X, y, 3.5)
    a, b = many.canonical(), one.canonical()
    assert len(a.first) == 30
    assert same(a, b)
    shares = a.alpha_of_points(bounds).reshape(30, 3)
    assert np.allclose(shares, shares[:, :1] * np.array([1.0, 2.0, 0.5]))
    assert np.allclose(shares.sum(axis=1), one.alpha)


def test_memory_does_not_change_bits(rng):
    family = FAMILIES["generic"]
    X, y, u = draw_points(family, rng, 150)
    add = draw_points(family, rng, 20)
    whole = PointProblem(family.kernel, 3).fit(X, y, u).update(add, np.arange(20))
    lines = PointProblem(family.kernel, 3, memory=100_000).fit(X, y, u).update(add, np.arange(20))
    assert whole._held.cache.whole
    assert not lines._held.cache.whole
    assert same(whole.canonical(), lines.canonical())
