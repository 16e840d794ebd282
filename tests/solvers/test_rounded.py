from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.linalg import LinAlgError
from threadpoolctl import threadpool_limits

from cases import exact_gram, examples, rational_solve, whole
from traceless import LSSVC, LSSVR, ConditionError, RangeError
from traceless.arithmetic import integers
from traceless.features import Linear
from traceless.solvers import refinement, rounded
from traceless.solvers.rounded import Mixture, correctly_rounded_solve, ridge_in_steps


@st.composite
def systems(draw):
    """Grams of small rows, often singular, symmetric or with exact zeros, and any ridge."""
    n, J, K = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    F = draw(npst.arrays(np.int64, (n, J), elements=st.integers(-3, 3)))
    F = whole(F) * draw(st.sampled_from([1, 2**7, 2**14, 3 * 2**20]))
    y = draw(npst.arrays(np.int64, (n, K), elements=st.integers(-2, 2)))
    step = draw(st.sampled_from([1.0, 2.0**14]))
    ridge = draw(st.sampled_from([1.0, 0.1, 2.0**-10, 1e-3, 12345.678])) * step
    S, Q = integers.narrow(exact_gram(F)), integers.narrow(F.T @ whole(y))
    return S, np.full(J, ridge) * draw(st.sampled_from([1, 2.0 ** np.arange(J)])), Q


@examples(300)
@given(systems())
def test_every_coefficient_is_the_nearest_float(system):
    assert (correctly_rounded_solve(*system) == rational_solve(*system)).all()


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
    return integers.narrow(S), np.full(J, min(ridge, 1e300)), integers.narrow(Q)


@examples(300)
@given(wide_systems())
def test_targets_and_columns_far_from_zero(system):
    Z = correctly_rounded_solve(*system)
    assert (rational_solve(*system) == Z).all()
    assert not np.signbit(Z[Z == 0]).any()


@pytest.mark.parametrize("target", [2e7, 5e11])
def test_targets_may_be_as_large_as_their_grid_allows(rng, target):
    X, y = rng.normal(size=(200, 3)), target + rng.normal(size=200)
    model = LSSVR().fit(X, y)
    F = np.column_stack([np.rint(X * 2**14), np.ones(200)])
    ridge = np.append(np.full(3, 2.0**28), 1.0)
    exactly = rational_solve(exact_gram(F), ridge, whole(F).T @ whole(np.rint(y * 2**14))[:, None])
    assert np.append(model.coef_, model.intercept_ * 2**14).tolist() == exactly[:, 0].tolist()


def test_a_column_does_not_depend_on_the_others(rng):
    F = rng.integers(-9, 9, size=(20, 4))
    S, ridge = F.T @ F, np.full(4, 0.3)
    several = [F[:, 0] * 0 + 2**50, F[:, 1] * 3, F[:, 0] * 10**12 + F[:, 1]]
    Q = np.column_stack([F.T @ y for y in several] + [S[:, 0]])
    together = correctly_rounded_solve(S, ridge, Q)
    alone = [correctly_rounded_solve(S, ridge, Q[:, [k]]) for k in range(4)]
    assert (together == np.hstack(alone)).all()


SIZES = [5e-324, 1e-300, 1e-290, 1e-160, 1e-30, 1e30, 1e149, 1e155, 1e200, 1e290]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("weights", [(1.0, 1.0), (2.0**-60, 3.7e20)])
def test_a_ridge_of_any_size(rng, size, weights):
    parts = [rng.integers(-9, 9, size=(5, 3)) for _ in weights]
    S = Mixture.of([F.T @ F for F in parts], weights)
    sums = [F.T @ rng.integers(-2, 3, size=(5, 2)) for F in parts]
    Q = sum(w * whole(v) for w, v in zip(S.weights, sums, strict=True))
    ridge = np.full(3, size)
    ridge[1] *= 2
    Z = correctly_rounded_solve(S, ridge, Q)
    assert (rational_solve(S.integers(), [S.unit * Fraction(r) for r in ridge], Q) == Z).all()
    assert not np.signbit(Z[Z == 0]).any()


@pytest.mark.parametrize("rho", [1e-300, 1e-200, 1e150, 1e200, 6e299])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_estimators_take_rho_of_any_size(rng, rho, class_weight):
    X = rng.normal(size=(30, 2))
    y = rng.integers(0, 3, size=30)
    model = LSSVC(rho=rho, class_weight=class_weight).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert model.coef_.any()
    assert set(model.predict(X)) <= {0, 1, 2}


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
            LSSVR(rho=rho).fit(X, [1.0, 2.0])


def test_a_solution_beyond_float64_is_refused():
    for sign in (1, -1):
        Q = np.array([[sign * 2**1030]], dtype=object)
        with pytest.raises(RangeError, match="Scale the targets down"):
            correctly_rounded_solve(np.array([[1]]), np.ones(1), Q)


@pytest.mark.parametrize("solver", ["cholesky", "woodbury"])
def test_zero_is_positive_everywhere(rng, solver):
    for _ in range(60):
        resolution = 2.0 ** rng.choice([-14, 0, 10])
        X = rng.integers(-1, 2, size=(6, 3)) * max(resolution, 1.0)
        y, rho = rng.permutation([0, 0, 1, 1, 2, 2]), float(rng.choice([1e-3, 1.0, 1e160, 1e290]))
        for kind in (LSSVC, LSSVR):
            model = kind(Linear(resolution=resolution), rho=rho, solver=solver)
            model.fit(X, y).partial_fit(X[:2], y[:2]).forget(X[1:3], y[1:3])
            for values in (model.coef_, model.intercept_, model._weights()[0].Z):
                values = np.atleast_1d(values)
                assert not np.signbit(values[values == 0]).any()


def test_a_solution_halfway_between_two_floats_is_rounded_to_even():
    # (1 + 1) z = 2^54 + 2 m: z = 2^53 + m lies between two floats for odd m
    for m in (1, 3, 5, -1):
        Q = np.array([[2**54 + 2 * m]])
        z = correctly_rounded_solve(np.array([[1]]), np.array([1.0]), Q)[0, 0]
        assert z == float(2**53 + m)


def test_an_exact_zero_among_others_that_never_end():
    # [[3, 3], [3, 6]] z = [1, 1] has the solution [1/3, 0]
    z = correctly_rounded_solve(np.array([[2, 3], [3, 5]]), np.ones(2), np.array([[1], [1]]))
    assert z.tolist() == [[1 / 3], [0.0]]


def test_a_tie_beside_a_solution_that_never_ends():
    S, Q = np.diag([1, 2]), np.array([[2**54 + 2], [1]])
    assert correctly_rounded_solve(S, np.ones(2), Q).tolist() == [[2.0**53], [1 / 3]]


def test_a_tiny_coefficient_is_not_taken_for_zero():
    S = np.diag(np.array([1, 2**230], dtype=object))
    z = correctly_rounded_solve(S, np.ones(2), np.array([[1], [1]]))
    assert z.tolist() == [[0.5], [2.0**-230]]


def test_features_and_responses_that_are_always_zero():
    S = np.array([[4, 0, 2], [0, 0, 0], [2, 0, 9]])
    Q = np.array([[1, 0], [0, 0], [5, 0]])
    Z = correctly_rounded_solve(S, np.ones(3), Q)
    assert (rational_solve(S, np.ones(3), Q) == Z).all()
    assert (
        correctly_rounded_solve(np.zeros((2, 2), dtype=np.int64), np.ones(2), Q[:2] * 0) == 0
    ).all()


def test_python_integers_beyond_int64(rng):
    F = whole(rng.integers(-(2**45), 2**45, size=(9, 3)))
    S, Q = F.T @ F, F.T @ whole(rng.integers(-5, 5, size=(9, 2)))
    ridge = np.full(3, 2.0**60)
    assert (correctly_rounded_solve(S, ridge, Q) == rational_solve(S, ridge, Q)).all()


def test_twofold_precision_takes_over_where_float64_breaks_down(rng, monkeypatch):
    F = rng.integers(-(2**20), 2**20, size=(3, 5))  # rank 3 of 5, tiny ridge: cond 1e21
    S, Q = F.T @ F, F.T @ rng.integers(-2, 3, size=(3, 2))
    ridge = np.full(5, 1e-8)
    used = []
    make = refinement._approximate_inverse
    monkeypatch.setattr(
        refinement,
        "_approximate_inverse",
        lambda S, r, twofold: (used.append(twofold), make(S, r, twofold))[1],
    )
    assert (correctly_rounded_solve(S, ridge, Q) == rational_solve(S, ridge, Q)).all()
    assert used == [False, True]


def test_beyond_twofold_precision_it_says_so(rng):
    F = whole(rng.integers(-(2**50), 2**50, size=(2, 4)))
    with pytest.raises(ConditionError, match="Increase rho"):
        correctly_rounded_solve(F.T @ F, np.full(4, 1e-30), F.T @ whole(np.ones((2, 1))))


def test_no_precision_at_all_ends_in_a_condition_error(monkeypatch):
    def fail(*_):
        raise LinAlgError

    monkeypatch.setattr(refinement, "_approximate_inverse", fail)
    monkeypatch.setattr(rounded, "dpotrf", lambda A, **_: (A, 1))
    with pytest.raises(ConditionError):
        correctly_rounded_solve(
            np.eye(2, dtype=np.int64), np.ones(2), np.ones((2, 1), dtype=np.int64)
        )


@examples(300)
@given(wide_systems())
def test_both_ways_give_the_same_bits(system):
    S, ridge, Q = system
    used, asked = np.flatnonzero(S.diagonal()), np.flatnonzero(Q.any(axis=0))
    if not used.size or not asked.size:
        return
    S, ridge, Q = S[np.ix_(used, used)], ridge[used], Q[np.ix_(used, asked)]
    try:
        Z, decided = rounded._System(S, ridge).solve(Q)
    except (rounded._HardError, OverflowError):
        return
    assert (refinement.refined(S, ridge, Q) == Z)[decided].all()


def test_usual_systems_need_no_python_integers(rng, monkeypatch):
    F = np.rint(rng.normal(size=(300, 20)) * 2**14).astype(np.int64)
    S, Q = F.T @ F, F.T @ np.sign(F[:, :3])
    expected = refinement.refined(S, np.full(20, 0.3 * 2.0**28), Q)
    monkeypatch.setattr(rounded, "refined", None)
    assert (correctly_rounded_solve(S, np.full(20, 0.3 * 2.0**28), Q) == expected).all()


def test_threads_and_order_of_rows_do_not_matter(rng):
    F = np.rint(rng.normal(size=(900, 300)) * 2**14).astype(np.int64)
    S, Q = F.T @ F, F.T @ rng.integers(-1, 2, size=(900, 4))
    ridge = np.full(300, 0.37 * 2.0**28)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            results.append(correctly_rounded_solve(S, ridge, Q))
    order = rng.permutation(300)
    permuted = correctly_rounded_solve(S[np.ix_(order, order)], ridge, Q[order])
    assert (results[0] == results[1]).all()
    assert (permuted == results[0][order]).all()


def test_arguments_are_not_written_to(rng):
    F = rng.integers(-50, 50, size=(20, 4))
    S, Q, ridge = F.T @ F, F.T @ F[:, :2], np.ones(4)
    for a in (S, Q, ridge):
        a.setflags(write=False)
    before = S.copy(), Q.copy()
    correctly_rounded_solve(S, ridge, Q)
    assert (before[0] == S).all()
    assert (before[1] == Q).all()
