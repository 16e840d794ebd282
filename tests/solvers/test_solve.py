from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from threadpoolctl import threadpool_limits

from cases import (
    PAPER,
    PENALTIES,
    exact_gram,
    exact_model,
    examples,
    narrow,
    penalty_name,
    rational_solve,
    whole,
)
from traceless import LSSVC, LSSVR, RangeError
from traceless.arithmetic import plain
from traceless.exceptions import ConditionError
from traceless.features import Linear
from traceless.solvers import solve as module
from traceless.solvers.centring import whole_means
from traceless.solvers.ridge import Ridge, ridge_in_steps
from traceless.solvers.solve import System, solve, weighted


@st.composite
def systems(draw):
    """Grams of small rows, often singular, symmetric or with exact zeros, and any ridge."""
    n, J, K = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    F = draw(npst.arrays(np.int64, (n, J), elements=st.integers(-3, 3)))
    F = whole(F) * draw(st.sampled_from([1, 2**7, 2**14, 3 * 2**20]))
    y = draw(npst.arrays(np.int64, (n, K), elements=st.integers(-2, 2)))
    step = draw(st.sampled_from([1.0, 2.0**14]))
    ridge = draw(st.sampled_from([1.0, 0.1, 2.0**-10, 1e-3, 12345.678])) * step
    S, Q = narrow(exact_gram(F)), narrow(F.T @ whole(y))
    return S, np.full(J, ridge) * draw(st.sampled_from([1, 2.0 ** np.arange(J)])), Q


@examples(300)
@given(systems())
def test_every_coefficient_is_the_nearest_float(system):
    assert (solve(*system) == rational_solve(*system)).all()


@st.composite
def wide_systems(draw):
    """Targets and columns far from zero and of many sizes, as rows of a user's data have them."""
    n, J, K = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    noise = st.integers(-(2**16), 2**16)
    F = whole(draw(npst.arrays(np.int64, (n, J), elements=noise)))
    far = draw(st.lists(st.sampled_from([0, 0, int(1e6 * 2**14), 2**40]), min_size=J, max_size=J))
    F = F + whole(far)
    targets = st.sampled_from([0, int(2e7 * 2**14), int(5e11 * 2**14)])
    y = whole(draw(npst.arrays(np.int64, (n, K), elements=noise)))
    y = y + whole(draw(st.lists(targets, min_size=K, max_size=K)))
    S, Q = exact_gram(F), F.T @ y
    least = -12 if max(far) <= 2**35 else 0
    ridge = 10.0 ** draw(st.floats(least, 290)) * 2.0**28
    return narrow(S), np.full(J, min(ridge, 1e300)), narrow(Q)


@examples(300)
@given(wide_systems())
def test_targets_and_columns_far_from_zero(system):
    Z = solve(*system)
    assert (rational_solve(*system) == Z).all()
    assert not np.signbit(Z[Z == 0]).any()


def test_a_column_does_not_depend_on_the_others(rng):
    F = rng.integers(-9, 9, size=(20, 4))
    S, ridge = F.T @ F, np.full(4, 0.3)
    several = [F[:, 0] * 0 + 2**50, F[:, 1] * 3, F[:, 0] * 10**12 + F[:, 1]]
    Q = np.column_stack([F.T @ y for y in several] + [S[:, 0]])
    together = solve(S, ridge, Q)
    alone = [solve(S, ridge, Q[:, [k]]) for k in range(4)]
    assert (together == np.hstack(alone)).all()


SIZES = [5e-324, 1e-300, 1e-290, 1e-160, 1e-30, 1e30, 1e149, 1e155, 1e200, 1e290]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("weights", [(1.0, 1.0), (2.0**-60, 3.7e20)])
def test_a_ridge_of_any_size(rng, size, weights):
    parts = [rng.integers(-9, 9, size=(5, 3)) for _ in weights]
    S, whole_weights, unit = weighted([F.T @ F for F in parts], weights)
    sums = [F.T @ rng.integers(-2, 3, size=(5, 2)) for F in parts]
    Q = sum(w * whole(v) for w, v in zip(whole_weights, sums, strict=True))
    ridge = np.full(3, size)
    ridge[1] *= 2
    Z = solve(S, ridge, Q, unit=unit)
    expected = rational_solve(plain.integers(S), [Fraction(r) * 2**unit for r in ridge], Q)
    assert (expected == Z).all()
    assert not np.signbit(Z[Z == 0]).any()


def test_weighted_sums_have_room():
    part, weights = np.full((2, 2), 2**63 - 1), [*[1.9] * 6, 1.9 * 2.0**-10]
    S, whole_weights, _ = weighted([part] * 7, weights)
    assert (plain.integers(S) == sum(whole_weights) * whole(part)).all()


@pytest.mark.parametrize("rho", [1e-100, 1e90, 1e150, 1e300])
@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
def test_any_penalty_may_be_of_any_size(rng, rho, penalty):
    table = (
        whole(rng.integers(-99, 99, (8, 2))),
        whole(rng.integers(-9, 9, (8, 2))),
        np.ones(8),
        rho,
    )
    assert_exact(table, penalty)


def test_a_ridge_beyond_float64_is_refused_with_what_would_do():
    steps = np.array([2.0**-14, 1.0])
    with pytest.raises(RangeError, match=r"rho=1e\+305 is too large.*at most 3e\+299"):
        ridge_in_steps(1e305, steps, 0)
    with pytest.raises(RangeError, match=r"too small.*at least 5e-302"):
        ridge_in_steps(5e-324, np.array([2.0**10]), 0)  # it would be rounded to 0
    with pytest.raises(RangeError, match="too small"):
        ridge_in_steps(3 * 2.0**-1065, np.array([2.0**5]), 0)  # it would be rounded
    assert ridge_in_steps(3.0, steps, 2).tolist() == [3 * 2.0**30, 12.0]


def test_a_tiny_ridge_of_a_singular_system_says_what_to_do():
    X = np.array([[1.0, 1.0], [2.0, 2.0]])
    for rho in (1e-200, 1e-300):
        with pytest.raises(ConditionError, match="Increase rho"):
            LSSVR(rho=rho, **PAPER).fit(X, [1.0, 2.0])


def test_a_solution_beyond_float64_is_refused():
    for large in (2**1030, -(2**1030), 2**1025 - 2**971):  # the last is halfway to infinity
        Q = np.array([[large], [1]], dtype=object)
        with pytest.raises(RangeError, match="Scale the targets down"):
            solve(np.diag([1, 2]), np.ones(2), Q)


@pytest.mark.parametrize("solver", ["cholesky", "woodbury"])
def test_zero_is_positive_everywhere(rng, solver):
    for _ in range(20):
        resolution = 2.0 ** rng.choice([-14, 0, 10])
        X = rng.integers(-1, 2, size=(6, 3)) * max(resolution, 1.0)
        y, rho = rng.permutation([0, 0, 1, 1, 2, 2]), float(rng.choice([1e-3, 1.0, 1e160, 1e290]))
        for kind in (LSSVC, LSSVR):
            model = kind(Linear(resolution=resolution), rho=rho, solver=solver)
            model.fit(X, y).partial_fit(X[:2], y[:2]).forget(X[1:3], y[1:3])
            for values in (model.coef_, model.intercept_, model._weights()[0].Z):
                values = np.atleast_1d(values)
                assert not np.signbit(values[values == 0]).any()


@pytest.mark.parametrize(
    ("S", "Q", "Z"),
    [  # (S + I) Z = Q
        *(([[1]], [[2**54 + 2 * m]], [[float(2**53 + m)]]) for m in (1, 3, 5, -1)),  # halfway
        ([[2, 3], [3, 5]], [[1], [1]], [[1 / 3], [0.0]]),  # an exact zero beside one without end
        ([[1, 0], [0, 2]], [[2**54 + 2], [1]], [[2.0**53], [1 / 3]]),  # and a tie
        ([[1, 0], [0, 2**126]], [[1], [1]], [[0.5], [2.0**-126]]),  # which is not zero
    ],
)
def test_ties_and_zeros(S, Q, Z):
    S, Q = (narrow(np.array(a, dtype=object)) for a in (S, Q))
    assert solve(S, np.ones(len(S)), Q).tolist() == Z


def test_features_and_responses_that_are_always_zero():
    S = np.array([[4, 0, 2], [0, 0, 0], [2, 0, 9]])
    Q = np.array([[1, 0], [0, 0], [5, 0]])
    Z = solve(S, np.ones(3), Q)
    assert (rational_solve(S, np.ones(3), Q) == Z).all()
    assert solve(S[::2, ::2], np.ones(2), Q[::2, :0]).shape == (2, 0)
    assert (solve(np.zeros((2, 2), dtype=np.int64), np.ones(2), Q[:2] * 0) == 0).all()


def test_twofold_precision_takes_over_where_float64_breaks_down(rng, monkeypatch):
    F = rng.integers(-(2**20), 2**20, size=(3, 5))  # rank 3 of 5, tiny ridge: cond 1e21
    S, Q = F.T @ F, F.T @ rng.integers(-2, 3, size=(3, 2))
    ridge = np.full(5, 1e-8)
    made = []
    for name in ("_Factor", "_Twofold"):
        kind = getattr(module, name)
        monkeypatch.setattr(module, name, lambda A, kind=kind: made.append(kind) or kind(A))
    assert (solve(S, ridge, Q) == rational_solve(S, ridge, Q)).all()
    assert len(made) == 2


def test_a_large_system_is_not_begun_in_twofold_precision(rng, monkeypatch):
    F = rng.integers(-(2**20), 2**20, size=(3, 5))
    monkeypatch.setattr(module, "_TWOFOLD", 4)
    monkeypatch.setattr(module, "_Twofold", None)
    with pytest.raises(ConditionError, match="5 features is too ill-conditioned"):
        solve(F.T @ F, np.full(5, 1e-8), F.T @ F[:, :2])
    F = rng.integers(-(2**20), 2**20, size=(9, 5))  # which needs no ridge
    S, Q, ridge = F.T @ F, F.T @ F[:, :2] + 1, np.full(5, 1e-8)
    assert (solve(S, ridge, Q) == rational_solve(S, ridge, Q)).all()


def test_beyond_twofold_precision_it_says_so(rng):
    F = whole(rng.integers(-(2**50), 2**50, size=(2, 4)))
    with pytest.raises(ConditionError, match="Increase rho"):
        solve(F.T @ F, np.full(4, 1e-30), F.T @ whole(np.ones((2, 1))))


@pytest.mark.parametrize("J", [1, 2, 7, 8])
@pytest.mark.parametrize("size", [2**10, 2**40])
def test_a_factor_in_half_the_memory_gives_the_same_bits(rng, monkeypatch, J, size):
    F = rng.integers(-size, size, (30, J)).astype(object)
    F[:, -1] = 1
    S, Q = F.T @ F, F.T @ rng.integers(-9, 9, (30, 3)).astype(object)
    ridge = np.append(np.full(J - 1, 0.5), 0.0)
    m = np.rint((S[-1] / 30).astype(float)).astype(np.int64)
    m[-1] = 0
    for shift in (None, m):
        expected = module.solve(S, ridge, Q, shift, shift is not None)
        with monkeypatch.context() as patch:
            patch.setattr(module, "_PACKED", 0)
            assert (module.solve(S, ridge, Q, shift, shift is not None) == expected).all()


def test_threads_and_order_of_rows_do_not_matter(rng):
    F = np.rint(rng.normal(size=(900, 300)) * 2**14).astype(np.int64)
    S, Q = F.T @ F, F.T @ rng.integers(-1, 2, size=(900, 4))
    ridge = np.full(300, 0.37 * 2.0**28)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            results.append(solve(S, ridge, Q))
    order = rng.permutation(300)
    permuted = solve(S[np.ix_(order, order)], ridge, Q[order])
    assert (results[0] == results[1]).all()
    assert (permuted == results[0][order]).all()


# --- a free intercept, and standardised ridges ---------------------------------------------------


@st.composite
def tables(draw):
    """Whole features and targets of a few rows with weights, as users have them."""
    n, J, K = draw(st.integers(1, 7)), draw(st.integers(1, 4)), draw(st.integers(1, 2))
    size = draw(st.sampled_from([1, 1, 2**10, 3 * 2**16]))
    F = whole(draw(npst.arrays(np.int64, (n, J), elements=st.integers(-3, 3)))) * size
    far = st.sampled_from([0, 0, 0, 7, 1000 * 2**14, -(10**6) * 2**14])
    F = F + whole(draw(st.lists(far, min_size=J, max_size=J)))
    if draw(st.booleans()):
        F[:, draw(st.integers(0, J - 1))] = draw(st.sampled_from([0, 5, 10**6 * 2**14]))
    Y = whole(draw(npst.arrays(np.int64, (n, K), elements=st.integers(-2, 2))))
    Y = Y + draw(st.sampled_from([0, 0, 1, 10**4 * 2**14]))
    weights = draw(npst.arrays(np.int64, n, elements=st.integers(1, 3)))
    return F, Y, weights, draw(st.sampled_from([1.0, 0.1, 7.3, 2.0**-20, 1e6]))


def system_of(F, Y, weights, rho, penalty):
    """What `solve` takes, for a table in the units of its whole numbers."""
    J, n = F.shape[1], int(weights.sum())
    C = np.column_stack([F, whole(np.ones(len(F)))])
    S, Q = narrow(exact_gram(C, weights)), (C.T * whole(weights)) @ Y
    ridge = np.full(J + 1, Fraction(rho))
    if penalty["standardize"]:
        variances = [Fraction(n * int(S[j, j]) - int(S[j, -1]) ** 2, n * n) for j in range(J)]
        ridge[:J] = ridge[:J] * np.array(variances, dtype=object)
    if penalty["free_intercept"]:
        ridge[-1] = Fraction(0)
    denominator = int(np.lcm.reduce(np.array([r.denominator for r in ridge], dtype=object)))
    numerators = np.array([int(r * denominator) for r in ridge], dtype=object)
    shift = (whole_means(S), True) if penalty["free_intercept"] else ()
    return S, Ridge.of_fractions(numerators, denominator), narrow(Q), *shift


def assert_exact(table, penalty):
    F, Y, weights, rho = table
    Z = solve(*system_of(*table, penalty))
    coef, intercept = exact_model(F, Y, rho, penalty, np.ones(F.shape[1]), weights)
    assert (Z[: len(coef)] == coef).all()
    assert (Z[-1] == intercept).all()
    assert not np.signbit(Z[Z == 0]).any()


@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
@examples(100)
@given(tables())
def test_all_penalties_give_the_nearest_floats(penalty, table):
    assert_exact(table, penalty)


@pytest.mark.parametrize("far", [0, 1, -5, 2**30])
def test_ties_and_zeros_of_a_free_intercept(far):
    """Features far ± 1 with ridge 2: coefficient t/2, intercept the mean less far t/2."""
    for t, mean in ((2**54 + 2, 2**53 + 1), (2**54 + 6, 2**53 + 3), (0, 2**53 + 1), (0, 0)):
        F = whole([[far - 1], [far + 1]])
        Y = whole([[mean - t], [mean + t]])
        assert_exact((F, Y, np.ones(2, dtype=np.int64), 2.0), PENALTIES[1])
        assert_exact((F, Y, np.ones(2, dtype=np.int64), 2.0), PENALTIES[0])


@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
def test_numbers_beyond_int64_with_any_penalty(penalty, rng):
    F = whole(rng.integers(-(2**45), 2**45, size=(9, 3))) + 2**48
    table = F, whole(rng.integers(-5, 5, size=(9, 2))), rng.integers(1, 3, 9), 2.0**40
    assert_exact(table, penalty)


@pytest.mark.parametrize("bits", [10, 40])
def test_a_residual_is_rounded_once(rng, bits):
    """Where float64 would have no digit left: of the float64 nearest to the solution."""
    F = rng.integers(-(2**bits) // 2, 2**bits // 2, size=(40, 5)).astype(object)
    F[:, -1] = 1
    S, Q, m = F.T @ F, F.T @ rng.integers(-9, 9, size=(40, 2)).astype(object), 3 * np.arange(5)
    m[-1] = 0
    ridge = Ridge(np.array([0.75, 1.0, 2.0**20, 3.0, 0.0]))
    Z = solve(S, ridge, Q, m)
    rounded, R = System(S, ridge, m).residual(Q, Z)
    assert np.abs(rounded - Z).max() <= 2.0**-58 * np.abs(Z).max()
    moved, exactly = F - m, np.vectorize(Fraction, otypes=[object])
    A = exactly(moved.T @ moved) + np.diag(exactly(ridge.near))
    whole = exactly(Q - m[:, None] * Q[-1]) - A @ exactly(rounded)
    assert (whole.astype(np.float64) == R).all()
