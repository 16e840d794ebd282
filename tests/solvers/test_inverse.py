from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgError

from traceless.solvers import inverse as module
from traceless.solvers.inverse import Change, Frame, Inverse, update_flops, worth_updating


def inverse_of(S, V, rho):
    J = len(S)
    return Inverse.of(np.asfortranarray(S + rho * np.eye(J)), V, Frame.plain(rho, J))


def changed(inverse, F, Y, weights, sign):
    return inverse.after([Change(F, Y, weights, sign)])


def dense(F, Y, weights, rho):
    A = (F.T * weights) @ F + rho * np.eye(F.shape[1])
    return np.linalg.inv(A), np.linalg.solve(A, (F.T * weights) @ Y)


def assert_is(inverse, F, Y, weights):
    P, U = dense(F, Y, weights, inverse.frame.penalty.rho)
    np.testing.assert_allclose(inverse.full(), P, rtol=0, atol=1e-10 * np.abs(P).max())
    np.testing.assert_allclose(inverse.U, U, rtol=0, atol=1e-9)


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.lists(st.tuples(st.sampled_from([1, -1]), st.integers(1, 40)), max_size=6),
    at_once=st.booleans(),
    block=st.sampled_from([5, 16, 128]),
)
def test_any_sequence_of_batches_equals_a_dense_inverse(seed, steps, at_once, block):
    rng = np.random.default_rng(seed)
    F, Y = rng.normal(size=(300, 7)), rng.normal(size=(300, 2))
    weights = rng.uniform(0.5, 2, size=300)
    held = list(range(20))
    inverse = inverse_of(
        (F[held].T * weights[held]) @ F[held], (F[held].T * weights[held]) @ Y[held], 0.3
    )
    fresh = iter(range(20, 300))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "block_rows", lambda _: block)
        changes = []
        for sign, n in steps:
            rows = [next(fresh) for _ in range(n)] if sign > 0 else held[: min(n, len(held))]
            changes.append(Change(F[rows], Y[rows], weights[rows], sign))
            held = held + rows if sign > 0 else held[len(rows) :]
        for several in [changes] if at_once else [[change] for change in changes]:
            before = inverse, inverse.full(), inverse.U.copy()
            inverse = inverse.after(several)
            assert (before[2] == before[0].U).all()
            assert (before[0].full() == before[1]).all()
    assert_is(inverse, F[held], Y[held], weights[held])


def test_a_change_that_is_refused_changes_nothing(rng):
    F, Y = rng.normal(size=(5, 30)), rng.normal(size=(5, 1))
    inverse = inverse_of(F.T @ F, F.T @ Y, 0.1)
    P, U = inverse.full(), inverse.U.copy()
    strange = Change(rng.normal(size=(3, 30)), np.ones((3, 1)), np.ones(3), -1)
    known = Change(F[:2], Y[:2], np.ones(2), -1)
    with pytest.raises(LinAlgError, match="not in the data"):
        inverse.after([known, strange])
    assert (inverse.full() == P).all()
    assert (inverse.U == U).all()


def test_theorem_1_as_the_paper_states_it(rng):
    """Equations (5) and (6) with C, both ways at once, against our update of P."""
    rho, J = 0.5, 6
    F, y = rng.normal(size=(40, J)), rng.normal(size=(40, 1))
    inverse = inverse_of(F[:30].T @ F[:30], F[:30].T @ y[:30], rho)
    C, w = np.eye(J) - rho * inverse.full(), inverse.U.copy()
    added, removed = slice(30, 40), slice(0, 5)
    Fc, Fs = np.vstack([F[added], F[removed]]).T, np.vstack([F[added], -F[removed]]).T
    yc = np.vstack([y[added], -y[removed]])
    small = np.linalg.inv(rho * np.eye(15) - Fs.T @ (C - np.eye(J)) @ Fc)
    w_new = w + (C - np.eye(J)) @ Fc @ small @ (Fs.T @ w - yc)
    C_new = C + (C - np.eye(J)) @ Fc @ small @ Fs.T @ (C - np.eye(J))
    for rows, sign in ((added, 1), (removed, -1)):
        inverse = changed(inverse, F[rows], y[rows], np.ones(len(F[rows])), sign)
    np.testing.assert_allclose(inverse.U, w_new, rtol=1e-9)
    np.testing.assert_allclose(np.eye(J) - rho * inverse.full(), C_new, rtol=1e-9, atol=1e-12)


def test_not_positive_definite():
    with pytest.raises(LinAlgError, match="not positive definite"):
        inverse_of(-np.eye(2), np.ones((2, 1)), 0.5)


def test_small_batches_are_updated_and_large_ones_factored_anew():
    for J in (784, 4096):
        assert worth_updating(J, 1)
        assert worth_updating(J, J // 6)
        assert not worth_updating(J, J // 2)
        crossing = next(L for L in range(1, J) if not worth_updating(J, L))
        assert J / 6 < crossing < J / 3
    assert update_flops(784, 100) == pytest.approx(3 * 784**2 * 100 + 3 * 784 * 100**2 + 100**3 / 3)


def test_changes_of_one_inverse_do_not_disturb_each_other(rng):
    """Also in threads: columns that wait are shared, and appended to by the first change only."""
    J, K = 30, 2
    F, Y = rng.normal(size=(90, J)), rng.normal(size=(90, K))
    base = changed(inverse_of(F.T @ F, F.T @ Y, 1.0), F[:3], Y[:3], np.ones(3), 1)

    def life(start: int) -> list[Inverse]:
        out = [base]
        for i in range(start, start + 20):
            out.append(changed(out[-1], F[i : i + 1], Y[i : i + 1], np.ones(1), 1))
        return out

    starts = range(0, 60, 10)
    right = [life(start) for start in starts]
    kept = [[it.U.copy() for it in lives] for lives in right]
    with ThreadPoolExecutor(6) as pool:
        again = [*pool.map(life, starts)]
    for lives, others, numbers, start in zip(right, again, kept, starts, strict=True):
        for one, two, U in zip(lives, others, numbers, strict=True):
            assert (one.U == U).all()
            assert (two.U == U).all()
        rows = np.vstack([F, F[:3], F[start : start + 20]])
        np.testing.assert_allclose(
            lives[-1].full(), np.linalg.inv(np.eye(J) + rows.T @ rows), rtol=1e-9, atol=1e-13
        )
