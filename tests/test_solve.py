import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.linalg import LinAlgError
from threadpoolctl import threadpool_limits

from cases import exact_gram, rational_solve, whole
from traceless import ConditionError, exact, solve
from traceless.solve import correctly_rounded_solve


@st.composite
def systems(draw):
    """Grams of small rows, often singular, symmetric or with exact zeros, and any ridge."""
    n, J, K = draw(st.integers(1, 6)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    F = draw(npst.arrays(np.int64, (n, J), elements=st.integers(-3, 3)))
    F = whole(F) * draw(st.sampled_from([1, 2**7, 2**14, 3 * 2**20]))
    y = draw(npst.arrays(np.int64, (n, K), elements=st.integers(-2, 2)))
    step = draw(st.sampled_from([1.0, 2.0**14]))
    ridge = draw(st.sampled_from([1.0, 0.1, 2.0**-10, 1e-3, 12345.678])) * step
    S, Q = exact.narrow(exact_gram(F)), exact.narrow(F.T @ whole(y))
    return S, np.full(J, ridge) * draw(st.sampled_from([1, 2.0 ** np.arange(J)])), Q


@settings(max_examples=300)
@given(systems())
def test_every_coefficient_is_the_nearest_float(system):
    assert (correctly_rounded_solve(*system) == rational_solve(*system)).all()


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
    make = solve._approximate_inverse
    monkeypatch.setattr(
        solve,
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

    monkeypatch.setattr(solve, "_approximate_inverse", fail)
    with pytest.raises(ConditionError):
        correctly_rounded_solve(
            np.eye(2, dtype=np.int64), np.ones(2), np.ones((2, 1), dtype=np.int64)
        )


def test_threads_and_order_of_rows_do_not_matter(rng):
    F = np.rint(rng.normal(size=(900, 300)) * 2**14)
    S = exact.cross_product(F, F)
    Q = exact.cross_product(F, rng.integers(-1, 2, size=(900, 4)).astype(float))
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
