import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cases import whole
from traceless.arithmetic import integers as exact

LARGE = 2**53


UP_TO_4, UP_TO_6 = st.integers(1, 4), st.integers(1, 6)


def matrices(largest=LARGE, rows=UP_TO_6, columns=UP_TO_4):
    shape = st.tuples(rows, columns)
    bits = st.integers(0, int(largest).bit_length() - 1)
    return st.tuples(shape, bits).flatmap(
        lambda a: npst.arrays(np.int64, a[0], elements=st.integers(-(2 ** a[1]), 2 ** a[1]))
    )


@given(matrices())
def test_limbs_add_up_and_are_small(A):
    total = np.zeros(A.shape, dtype=object)
    for columns, shift, part in exact.parts(A.astype(float)):
        assert np.abs(part).max() <= 2**20
        total[:, columns] += whole(part) << shift
    assert (total == whole(A)).all()


def test_limbs_of_a_row_do_not_depend_on_its_neighbours():
    small, large = np.array([[1.5 * 2**20, 3.0]]), np.array([[2.0**50, 3.0]])
    alone = [(c.tolist(), s, p.tolist()) for c, s, p in exact.parts(small)]
    beside = [
        (c[keep].tolist(), s, p[:1, keep].tolist())
        for c, s, p in exact.parts(np.vstack([small, large]))
        if (keep := p[0] != 0).any()
    ]
    assert [(s, np.sum(p)) for _, s, p in alone] == [(s, np.sum(p)) for _, s, p in beside]


near_the_end = st.sampled_from([2**53, 2**53 - 1, 2**52, 1, 0]).flatmap(
    lambda v: st.sampled_from([v, -v])
)


def test_mirror_over_several_tiles(rng):
    lower = np.tril(rng.integers(-9, 9, size=(300, 300)))
    full = exact.mirror(lower.copy())
    assert (full == full.T).all()
    assert (np.tril(full) == lower).all()


wide_numbers = st.integers(-(2**127) + 1, 2**127 - 1) | st.integers(0, 126).flatmap(
    lambda bits: st.sampled_from([2**bits, -(2**bits), 2**bits - 1])
)


@given(st.lists(wide_numbers, min_size=3, max_size=3))
def test_wide_numbers_take_the_bytes_that_the_largest_needs_with_its_sign(numbers):
    a, b, c = numbers
    sums = exact.as_sums(np.array([[a, b], [b, c]], dtype=object))
    rows = [b"".join(exact.triangle_bytes(sums))]
    expected = b""
    for row in ([a], [b, c]):
        width = 1 + max(abs(v).bit_length() for v in row) // 8
        raw = b"".join(v.to_bytes(width, "little", signed=True) for v in row)
        expected += b"wide%d:" % width + raw
    if isinstance(sums, exact.Wide):
        assert rows == [expected]
    back = exact.from_tensor(np.array(exact.to_tensor(sums)))
    assert (np.asarray(back) == np.asarray(sums)).all()
