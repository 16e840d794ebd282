import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cases import exact_gram, examples, narrow
from traceless import Knowledge, RangeError
from traceless.arithmetic import gram, integers
from traceless.arithmetic.gram import GramSum
from traceless.features import Polynomial

WIDTH = 3


@st.composite
def columns(draw, n, largest=53):
    """Codes of n rows, each of its own size, sign and number of trailing zeros; some are rare."""
    zeros = draw(st.sampled_from([0, 0, 1, 6, 7, 14, 20, 28, 40]))
    size = draw(st.integers(0, largest - zeros))
    codes = draw(npst.arrays(np.int64, n, elements=st.integers(-(2**size), 2**size)))
    if draw(st.booleans()):
        codes *= np.arange(n) % draw(st.integers(1, 5)) == 0
    return codes << zeros


@st.composite
def blocks(draw):
    """Blocks of rows whose columns differ in size and in trailing zeros, from block to block."""
    several = draw(st.lists(st.integers(1, 40), min_size=1, max_size=4))
    return [np.column_stack([draw(columns(n)) for _ in range(WIDTH)]) for n in several]


def summed(several, weights=None):
    total = GramSum(several[0].shape[1])
    for i, codes in enumerate(several):
        Z = total.block(len(codes))
        Z[:, : codes.shape[1]] = codes
        given_weights = None if weights is None else weights[i].astype(float)
        total.add(Z, integers.energy(Z), given_weights)
    return total.total()


def check(several, weights=None):
    expected = exact_gram(np.vstack(several), None if weights is None else np.concatenate(weights))
    if expected.max() > 2**127 * (1 - 1e-8):
        with pytest.raises(RangeError, match="beyond 2\\^127"):
            summed(several, weights)
        return
    found = summed(several, weights)
    assert (found == expected).all()
    assert found.dtype == narrow(expected).dtype


@examples(120)
@given(blocks())
def test_sums_are_those_of_python_integers(several):
    check(several)


@examples(120)
@given(blocks(), st.data())
def test_weighted_sums_are_those_of_python_integers(several, data):
    bits = data.draw(st.sampled_from([0, 3, 11, 12, 20, 32]))
    elements = st.integers(0, 2**bits)
    check(several, [data.draw(npst.arrays(np.int64, len(b), elements=elements)) for b in several])


@examples(80)
@given(blocks(), st.sampled_from([1, 2, 16]), st.sampled_from([None, 20]))
def test_blocks_of_few_rows(several, fewest, bits):
    """As many blocks and moves to integers as long data have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gram, "_FEWEST", fewest)
        weights = None if bits is None else [np.arange(len(b)) << bits for b in several]
        check(several, weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("J", [5, 20])
def test_many_rows_of_columns_as_they_come(rng, weighted, J):
    """Whole numbers, fine grids and large offsets in one table; blocks that differ."""
    several = []
    for n in (4100, 3, 300):
        codes = np.rint(rng.normal(size=(n, J)) * 2**14).astype(np.int64)
        codes[:, 1] = rng.integers(-255, 256, size=n) << 14
        codes[:, 2] = (10**6 << 14) + codes[:, 2]
        codes[:, 3] <<= rng.integers(0, 20)
        codes[:, J - 1] = rng.integers(-(2**53), 2**53, size=n)
        several.append(codes)
    weights = [rng.integers(0, 2**20, size=len(b)) for b in several] if weighted else None
    check(several, weights)


def test_a_float_sum_is_moved_to_integers_before_it_rounds():
    ones = np.full((1, 1), 2**26 - 1)  # two such squares pass 2^52, and their sum is odd
    assert summed([ones] * 5)[0, 0] == 5 * (2**26 - 1) ** 2


def test_a_product_just_beyond_the_bound_is_not_trusted():
    """2^53 + 1 is rounded to 2^53, which would look exact."""
    several = [np.array([[2**26, 2**26], [2**26, -(2**26)], [1, 1]])]
    check(several)


@pytest.mark.parametrize(("size", "parts"), [(2**14, 1), (2**22, 2), (2**26, 2), (2**40, 2)])
def test_a_column_is_cut_only_where_it_is_too_large(rng, size, parts):
    """Exactness would hide a product that is cut for nothing: how wide it is, is counted here."""
    Z = rng.integers(-(2**15), 2**15, size=(4096, 20)).astype(float)
    Z[:, 7] = rng.integers(-size, size, size=4096)
    for raw in (Z, Z * 2.0**12):  # zeros are divided out
        columns = gram._Columns(raw, 20, None)
        columns.cut()
        assert np.bincount(columns.columns).tolist() == [1] * 7 + [parts] + [1] * 12


@pytest.mark.parametrize(("name", "zeros"), [("dsyrk", 0), ("dsyrk", 30), ("dgemm", 0)])
def test_products_that_blas_gets_wrong_are_noticed(rng, monkeypatch, name, zeros):
    """Strassen's, emulated or faulty ones: here one number is off by one."""
    honest = getattr(gram, name)

    def wrong(*args, **options):
        product = honest(*args, **options)
        product[0, 3] += 1.0
        return product

    monkeypatch.setattr(gram, name, wrong)
    codes, weights = rng.integers(-9, 9, (9, 5)) << zeros, np.ones(9, dtype=np.int64)
    with pytest.raises(ArithmeticError, match="BLAS"):
        summed([codes], [weights] if name == "dgemm" else None)


@pytest.mark.parametrize("width", [8, 11, 16])
@pytest.mark.parametrize("weighted", [False, True])
@examples(60)
@given(st.integers(0, 2**32))
def test_columns_of_many_sizes_in_any_order(width, weighted, seed):
    """Parts of one shift come from several levels then, so their columns are not in order."""
    rng = np.random.default_rng(seed)
    several, weights = [], []
    for n in rng.choice([1, 2, 7, 40], size=rng.integers(1, 4)):
        size, zeros = rng.integers(0, 53, width), rng.choice([0, 7, 14, 21, 28], width)
        codes = np.rint(rng.uniform(-1, 1, (n, width)) * 2.0 ** np.maximum(size - zeros, 0))
        several.append(codes.astype(np.int64) << np.minimum(zeros, 52 - size + zeros))
        weights.append(rng.integers(0, 2 ** rng.integers(1, 33), n))
    check(several, weights if weighted else None)


def test_a_polynomial_of_raw_columns_once_summed_wrongly():
    X, y = np.array([[5424.0, 64.8125, 0.0]]), ["a"]
    codes = Polynomial().bind(3).codes(X)
    expected = exact_gram(np.column_stack([codes, [1]]).astype(np.int64))
    assert (Knowledge.of(Polynomial(), X, y).sums == expected).all()
