"""What is published: the bits that were promised, the same whatever the history, or flagged."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from families import FAMILIES, draw_points
from oracles import change, published_residual
from oracles import equal_bits as same
from papers.karasuyama2009.points import PointProblem
from traceless.hinge.kernels import Kernel


def exact_solution(A, z):
    """The x with A x = z, of whole fractions."""
    A, n = [[*row, value] for row, value in zip(A, z, strict=True)], len(z)
    for j in range(n):
        pivot = max(range(j, n), key=lambda i: abs(A[i][j]))
        A[j], A[pivot] = A[pivot], A[j]
        for i in range(j + 1, n):
            ratio = A[i][j] / A[j][j]
            A[i] = [a - ratio * b if b else a for a, b in zip(A[i], A[j], strict=True)]
    x = [Fraction(0)] * n
    for j in reversed(range(n)):
        x[j] = (A[j][n] - sum(A[j][i] * x[i] for i in range(j + 1, n))) / A[j][j]
    return x


def rounded(x, size):
    """The nearest multiple of 2⁻⁵² of the power of two at or below a size; first of 2⁻⁶⁰."""
    digit = Fraction(2) ** (math.frexp(float(size))[1] - 53)
    return float(round(Fraction(round(x / digit * 2**8), 2**8)) * digit)


def exact(problem):
    """The α and b of the published sides: the equations in fractions, rounded once."""
    s, G = problem.published, problem.kernel.values(grouped(problem), grouped(problem))
    E = np.flatnonzero((s.alpha > 0.0) & (s.alpha < s.bounds))
    O = np.flatnonzero(s.alpha >= s.bounds)  # noqa: E741
    K = [[Fraction(k) for k in row] for row in G[np.ix_(E, E)]]
    c = [Fraction(v) for v in s.y[O] * s.bounds[O]]
    z = [
        Fraction(s.y[i]) - sum(a * Fraction(k) for a, k in zip(c, G[i, O], strict=True)) for i in E
    ]
    one = Fraction(1)
    *x, b = exact_solution([[*row, one] for row in K] + [[one] * len(E) + [0 * one]], [*z, -sum(c)])
    alpha, size = s.alpha.copy(), max(abs(v) for v in x)
    alpha[E] = [s.y[i] * rounded(v, size) for i, v in zip(E, x, strict=True)]
    return alpha, rounded(b, max(1, abs(b)))


@given(
    st.sampled_from(["generic", "weighted", "duplicates", "polynomial", "rare class"]),
    st.integers(0, 2**32),
    st.integers(8, 45),
)
@settings(deadline=None)
def test_every_bit_is_that_of_the_exact_solution(name, seed, n):
    family, rng = FAMILIES[name], np.random.default_rng(seed)
    X, y, u = draw_points(family, rng, n)
    problem = PointProblem(family.kernel, X.shape[1]).fit(X, y, u)
    change(problem, family, rng, 3)
    s = problem.published
    if not (s.certain and ((s.alpha > 0.0) & (s.alpha < s.bounds)).any()):
        return
    alpha, b = exact(problem)
    assert np.array_equal(s.alpha, alpha)
    assert s.constant == b


@given(st.sampled_from(["generic", "weighted", "duplicates", "tiny bound"]), st.integers(0, 2**32))
def test_sums_that_are_carried_from_change_to_change_are_those_from_scratch(name, seed):
    family, rng = FAMILIES[name], np.random.default_rng(seed)
    problem = PointProblem(family.kernel, 3 if name != "duplicates" else 2)
    problem.fit(*draw_points(family, rng, 90))
    for _ in range(12):
        change(problem, family, rng, 3)
        measured = published_residual(problem)
        assert problem.published.residual <= 1e-9
        assert measured <= 1e-9


def grouped(problem):
    """The points, one of each group."""
    return problem.rows.values(np.searchsorted(problem.rows.ids, problem.published.ids))


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
    ours, theirs = problem.published, fresh.published
    if ours.certain and theirs.certain:
        assert same(ours, theirs)
        assert np.array_equal(problem.decision_function(X), fresh.decision_function(X))
    assert np.array_equal(grouped(problem), grouped(fresh))


def test_only_rows_within_rounding_of_each_other_are_in_doubt():
    doubted = set()
    for name, family in FAMILIES.items():
        for seed in range(4):
            rng = np.random.default_rng([seed, *name.encode()])
            X, y, u = draw_points(family, rng, 80)
            solution = PointProblem(family.kernel, X.shape[1]).fit(X, y, u).published
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
    a, b = many.published, one.published
    assert len(a.ids) == 30
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
    assert same(whole.published, lines.published)
