"""The compiled functions for sums against their plain twins: all widths, signs and shapes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import examples
from traceless.arithmetic import plain
from traceless.arithmetic.core import COMPILED, core

pytestmark = pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
edges = st.sampled_from([0, 7, 8, 31, 52, 53, 62, 63, 64, 65, 71, 118, 125, 126])
sizes = st.integers(0, 3) | st.tuples(edges, st.integers(-2, 2)).map(lambda a: (1 << a[0]) + a[1])
signed = st.tuples(sizes, st.sampled_from([1, -1])).map(lambda a: a[0] * a[1])


def limbs(numbers, n_limbs):
    out = np.empty((n_limbs, *numbers.shape), dtype=np.uint64)
    plain.put(out, numbers)
    return out


@st.composite
def numbers(draw, *shape):
    n_limbs = draw(st.integers(1, 2))
    most = 2 ** (64 * n_limbs - 1) - 1
    values = st.lists(signed, min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
    flat = [max(-most, min(most, v)) for v in draw(values)]
    return limbs(np.array(flat, dtype=object).reshape(shape), n_limbs)


def both(name, *arguments, out):
    """What both write, where both say that it fits."""
    wrote = out.copy(), out.copy()
    said = [getattr(m, name)(*arguments, o) for m, o in zip((core, plain), wrote, strict=True)]
    assert said[0] == said[1]
    if said[0] is not False:
        np.testing.assert_array_equal(*wrote)
    return wrote[0]


@examples(300)
@given(st.data(), st.integers(0, 5), st.integers(1, 2), st.booleans())
def test_sums_of_sums(data, n, n_limbs, minus):
    a, b = data.draw(numbers(n)), data.draw(numbers(n))
    out = np.zeros((n_limbs, n), dtype=np.uint64)
    both("combined", a, b, minus, out=out)
    both("shifted", a, data.draw(st.integers(-140, 140)), out=out)
    both("nearest", a, out=np.zeros(n))


@examples(100)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from([3, 20, 40, 52]))
def test_features_counted_from_near_their_means(seed, J, bits):
    rng = np.random.default_rng(seed)
    Z = rng.integers(-(2**bits), 2**bits, (9, J)).astype(object)
    Z[:, -1], m = 1, rng.integers(-(2 ** min(bits, 51)), 2 ** min(bits, 51), J)
    m[-1] = 0
    S = limbs(Z.T @ Z, 1 if 2 * bits < 56 else 2)
    found = both("centred", S, m, out=np.zeros((2, J, J), dtype=np.uint64))
    assert (plain.integers(found) == (Z - m).T @ (Z - m)).all()
    both("centred", S, m, out=np.zeros((1, J, J), dtype=np.uint64))


@st.composite
def blocks(draw):
    """Rows of codes, each column of its own size and zeros, and weights."""
    n, J, seed = draw(st.integers(1, 40)), draw(st.integers(1, 5)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    size, zeros = rng.integers(0, 53, J), rng.choice([0, 0, 3, 14, 30], J)
    Z = np.rint(rng.uniform(-1, 1, (n, J)) * 2.0 ** np.maximum(size - zeros, 0)) * 2.0**zeros
    w = rng.integers(0, 2 ** rng.integers(1, 21), n) * 2.0 ** rng.integers(0, 30, n)
    return np.clip(Z, -(2.0**53), 2.0**53), draw(st.sampled_from([None, w, np.minimum(w, 3.0)]))


def parts_of(Z, w, b):
    """All parts of b bits, made by both."""
    J = Z.shape[1]
    found, energy = np.zeros((2, J), dtype=np.int64), np.zeros((2, J))
    core.survey(Z, J, w, found, energy)
    also, almost = found.copy(), energy.copy()
    plain.survey(Z, J, w, also, almost)
    np.testing.assert_array_equal(found, also)
    np.testing.assert_allclose(energy, almost, rtol=1e-12)
    zeros, bits = found.tolist()
    several = [
        (j, s, s + b > bits[j])
        for j in range(J)
        for s in range(min(zeros[j], bits[j]), bits[j] + 1, b)
    ]
    columns, shifts, last = (np.array(v, dtype=np.int64) for v in zip(*several, strict=True))
    arguments = Z, w, columns, shifts, last, b, max(bits)
    parts = both("cut", *arguments, out=np.ones((len(Z), len(columns) + 3)))
    return parts, columns, shifts


@examples(150)
@given(blocks(), st.integers(2, 27), st.integers(1, 2))
def test_products_of_parts_add_up(block, b, n_limbs):
    Z, w = block
    J = Z.shape[1]
    L, rows, up = parts_of(Z, w, b)
    R, columns, across = parts_of(Z, None, b)
    assert np.abs(R).max() <= 2 ** (b - 1)
    V, whole = plain._whole(Z, w), plain._whole(Z, None)
    held = np.arange(J * J).reshape(J, J).astype(object)
    start, product = limbs(held, n_limbs), V.T @ whole

    def check(found, expected):
        np.testing.assert_array_equal(found, limbs(expected, n_limbs))

    if b < 21:
        found = both("place", L.T @ R, rows, up, columns, across, False, out=start)
        check(found, held + np.tril(product))
    if b < 21 and w is None:
        found = both("place", R.T @ R, columns, across, columns, across, True, out=start)
        check(found, held + np.tril(product))
    if w is None or w.max() < 2**62:
        starts, where = np.arange(len(Z) + 1) * J, np.tile(np.arange(J), len(Z))
        found = both("sparse_gram", starts, where, Z.reshape(-1), w, out=start)
        check(found, held + np.tril(product))


@examples(60)
@given(blocks(), st.integers(1, 4), st.booleans(), st.sampled_from([1, 2**61, -(2**62), 2**62]))
def test_rows_are_added_to_the_sums_of_groups(block, n_groups, leave, held):
    Z, w = block
    Z[0, 0] = [np.nan, np.inf, 2.0**54, 7.0][n_groups - 1]
    group = np.arange(len(Z)) % n_groups
    if leave:
        w = -np.ones(len(Z)) if w is None else -w
    both("add_rows", Z, w, group, out=np.full((n_groups, Z.shape[1], Z.shape[1]), held))
    assert core.add_rows(Z[:0], None, group[:0], np.full((1, 1, 1), held))
    fits = core.add_rows(np.zeros((1, 1)), None, group[:1], np.full((1, 1, 1), held))
    assert fits == (-(2**62) <= held < 2**62)


@examples(60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 150), st.integers(1, 150), st.booleans())
def test_a_wrong_product_is_noticed(seed, n, J, weighted):
    rng = np.random.default_rng(seed)
    Z = rng.integers(-(2**16), 2**16, (n, J)).astype(float)
    L = rng.integers(-(2**16), 2**16, (n, J + 2)).astype(float)
    w = rng.integers(0, 2**8, n).astype(float) if weighted else None
    heavy = Z if w is None else Z * w[:, None]
    for left, product, symmetric in ((Z, np.tril(heavy.T @ Z), True), (L, heavy.T @ L, False)):
        for module in (core, plain):
            seen = np.zeros(left.shape[1])
            module.fold(left, Z, w, seen)
            assert module.agrees(product, symmetric, seen)
            wrong = product.copy()
            wrong[rng.integers(J), 0] += rng.choice([-1.0, 1.0, 2.0**40])
            assert not module.agrees(wrong, symmetric, seen)
