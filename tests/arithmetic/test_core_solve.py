"""The compiled functions of the solve against their plain twins, to the bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import examples
from traceless.arithmetic import plain
from traceless.arithmetic.core import COMPILED, core

pytestmark = pytest.mark.skipif(not COMPILED, reason="nothing is compiled: there is only the twin")

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 4)


def numbers(rng, *shape):
    """Limbs of numbers of all sizes and both signs, often with runs of zeros and ones."""
    a = rng.integers(0, 2**64, shape, dtype=np.uint64)
    a[rng.random(shape) < 0.2] = 0
    a[rng.random(shape) < 0.2] = 2**64 - 1
    a[-1] = a[-1].view(np.int64) >> rng.integers(1, 64, shape[1:])
    return a


def digits(rng, bits, *shape):
    """Numbers of up to so many bits, and both signs."""
    return rng.integers(-(2**bits) + 1, 2**bits, shape) >> rng.integers(0, bits, shape)


def agree(name, outputs, *arguments, seen=np.asarray):
    """Both functions write the same into copies of their outputs, as far as these are read."""
    several = []
    for made in (core, plain):
        own = {id(a): a.copy() for a in outputs}
        result = getattr(made, name)(*(own.get(id(a), a) for a in arguments))
        several.append([result, *(np.asarray(seen(a)).tobytes() for a in own.values())])
    assert several[0] == several[1]


@examples(200)
@given(seeds, sizes, sizes, sizes, sizes)
def test_numbers_in_limbs(seed, n, L, J, K):
    rng = np.random.default_rng(seed)
    X, up, d = numbers(rng, n, J, K), rng.integers(0, 150, K), numbers(rng, L, J, K)
    r, w = np.abs(numbers(rng, L, J).view(np.int64)).view(np.uint64), numbers(rng, L)
    w[-1] >>= np.uint64(1)
    r[-1] >>= np.uint64(1)
    agree("advance", [X], X, up, d, w)
    S, last = numbers(rng, n, J, J) << rng.choice(np.array([0, 30], np.uint64)), numbers(rng, 2, K)
    threads = int(rng.integers(1, 4))
    for other in (last, last[:0]):
        agree("residual", [X], X, up, S, d, other, w, r, threads)


@examples(200)
@given(seeds, sizes, sizes, st.sampled_from([0, 40, 70, 1000]))
def test_digits_of_corrections(seed, J, K, size):
    rng = np.random.default_rng(seed)
    y = np.ldexp(rng.normal(size=(J, K)), rng.integers(-size, size + 1, (J, K)))
    y[rng.random((J, K)) < 0.1] = 0.0
    y[0, 0] = rng.choice([1.0, 0.0, -1e300, np.inf, np.nan])
    e, x, m = (rng.integers(-30, 30, n) for n in (J, K, J))
    m = m * rng.choice([0, 1, 2**46])
    out = (
        np.zeros((2, K), int),
        np.zeros(K, int),
        np.zeros((J, K), int),
        np.zeros((2, K), np.uint64),
    )
    with np.errstate(all="ignore"):
        fits = [f.digits(y, e, m, x, 47, *out) for f in (core, plain)]
    assert fits[0] == fits[1]
    if fits[0]:
        agree("digits", out, y, e, m, x, 47, *out)


@examples(5)
@given(seeds, st.sampled_from([1, 127, 128, 129, 300]))
def test_products_of_the_largest_numbers(seed, J):
    rng = np.random.default_rng(seed)
    S = rng.choice(np.array([0, 2**63 - 1, 2**63, 2**64 - 1], np.uint64), (2, J, J))
    d = rng.choice(np.array([2**63 - 1, 2**63, 2**64 - 2**22 - 1], np.uint64), (2, J, 5))
    X, none = np.zeros((3, J, 5), np.uint64), np.zeros((1, 5), np.uint64)
    one, r = np.array([1], np.uint64), np.full((1, J), 2**63 - 1, np.uint64)
    for other in (none[:0], S[:, 0, :1] + none):
        agree("residual", [X], X, np.arange(5), S, d, other, one, r, 2)


@examples(200)
@given(seeds, sizes, sizes, sizes)
def test_views_in_floats(seed, n, J, K):
    rng = np.random.default_rng(seed)
    m = np.append(digits(rng, 51, J - 1), 0) * rng.integers(0, 2)
    R, e = numbers(rng, n + 1, J, K), rng.integers(-5, 40, J)
    R[-1] = R[-1].view(np.int64) >> 62  # m R must fit
    agree("leading", V := [np.empty((2, J, K)), np.empty(K, np.int64)], R, m, e, *V)
    F = digits(rng, 60, 5, J).astype(object)
    S, t = np.empty((3, J, J), np.uint64), np.empty((3, J), np.uint64)
    plain.put(S, F.T @ F)
    plain.put(t, (F.T @ F)[-1] - 5 * m.astype(object))
    near, unit = rng.choice([0.0, 1e-9, 1.0, 1e30], J), int(rng.integers(0, 60))
    packed = 1, J + 1 - J % 2, J - J // 2
    for shape in ((1, J, J), (2, J, J), packed):
        out = [np.empty(shape), np.empty(J, np.int64), np.empty(J, bool)]
        agree("matrix", out, S, m, S[:, -1].copy(), t, near, unit, *out)


@examples(300)
@given(seeds, sizes, st.integers(-1000, 1300))
def test_what_is_decided(seed, n, E):
    rng = np.random.default_rng(seed)
    X, bound, places = numbers(rng, n, 3, 4), rng.random((3, 4)), rng.integers(-80, 64 * n, (3, 4))
    X[-1] = X[-1].view(np.int64) >> 3
    bound[rng.random((3, 4)) < 0.3] = 0
    Z = np.empty((3, 4))
    agree("decide", [Z], X, bound, places, np.full(4, E) + np.arange(4), Z)


@examples(60)
@given(seeds, st.integers(1, 40))
def test_twofold_factors(seed, J):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(J, J))
    A = np.array([F @ F.T, np.zeros((J, J))])
    A[1] = A[0] * 2.0**-54 * rng.random((J, J))
    n = int(rng.integers(0, J + 1))
    agree("twofold_factor", [A], A, n, 2, seen=np.tril)
    plain.twofold_factor(A, J, 1)
    B = rng.normal(size=(2, J, 3)) * np.array([1.0, 2.0**-54])[:, None, None]
    agree("twofold_solve", [B], A, B)
    A[0, J // 2, J // 2] = -1.0
    agree("twofold_factor", [A], A, J, 1, seen=np.size)


@examples(60)
@given(seeds, sizes, st.integers(1, 6), st.integers(0, 40), st.booleans())
def test_distances(seed, K, D, n, shared):
    rng = np.random.default_rng(seed)
    A, M = np.tril(rng.normal(size=(1 if shared else K, D, D))), rng.normal(size=(K, D))
    agree("distances", [out := np.empty((K, n))], rng.normal(size=(D, n)), A, M, out, 1 + n % 3)
