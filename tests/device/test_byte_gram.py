"""Products of bytes on the CPU: the same sums, and only where they are exact and faster."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

from cases import exact_gram, examples  # noqa: E402
from traceless import Knowledge, RangeError  # noqa: E402
from traceless.arithmetic.gram import GramSum  # noqa: E402
from traceless.device import byte_gram  # noqa: E402
from traceless.device.byte_gram import ByteGram  # noqa: E402
from traceless.features import Linear  # noqa: E402

MOST = 64 * 128 + 63


@examples(60)
@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.integers(2, 7),
    st.integers(1, 9),
    st.lists(st.sampled_from([0, 8192, -8192, 16300, 24000, 24512, -24512, 40000]), max_size=4),
)
def test_sums_are_those_of_python_integers(seed, width, batch, full, middles):
    """Blocks of codes here and there: the number that they are counted from has to move."""
    rng, held, taken = np.random.default_rng(seed), GramSum(width), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(byte_gram, "_ROWS", batch)
        patch.setattr(byte_gram, "_FULL", max(full, batch))
        patch.setattr(byte_gram, "_PANEL", 16)
        patch.setattr(byte_gram, "blocks", lambda n, _: [slice(i, i + 2) for i in range(0, n, 2)])
        gram = ByteGram(width)
        for middle in middles:
            block = held.block(4)
            size = int(rng.choice([1, 400, MOST]))
            block[:, :width] = middle + rng.integers(-size, size, (4, width), endpoint=True)
            done = gram.add(block)
            assert done == 4 or abs(middle) > 24000 or len({*middles}) > 1 or width % 8
            taken += block[:done, :width].tolist()
        total = gram.total()
    if taken:
        assert (total == exact_gram(np.array(taken, dtype=np.int64))).all()
    else:
        assert total is None


@pytest.mark.parametrize("value", [-MOST, MOST, 0, 2 * MOST])
def test_the_largest_sums_fit(value):
    """Rows as many as products are added up in int32, of the largest digits."""
    gram = ByteGram(3)
    block = GramSum(3).block(4096)
    block[:, :3] = [value, value, 2 * MOST - value if value > 0 else -value]
    for _ in range(33):
        assert gram.add(block) == len(block)
    assert (gram.total() == 33 * 4096 * np.outer(block[0, :3], block[0, :3])).all()


@pytest.mark.parametrize("width", [1, 7, 8, 9, 16, 17])
def test_rows_of_few_columns(width, rng):
    """Blocks that stay in the cache have more of them than are multiplied at a time."""
    gram, held = ByteGram(width), GramSum(width)
    block = held.block(20_000)
    block[:, :width] = rng.integers(-MOST, MOST, (20_000, width), endpoint=True)
    assert gram.add(block) == len(block)
    codes = block[:, :width].astype(np.int64)
    assert (gram.total() == codes.T @ codes).all()


@pytest.mark.parametrize("value", [-(2**15) + 1, -(2**15) + 60, -32703, 2**15 - 1])
def test_codes_at_the_ends_of_int16(value):
    gram, block = ByteGram(8), GramSum(8).block(40)
    block[:] = value
    assert gram.add(block) == len(block)
    assert (gram.total() == 40 * value**2).all()


def test_codes_that_are_too_large_or_no_numbers_are_left_to_others():
    gram = ByteGram(2)
    for value in (2 * MOST + 1.0, 40000.0, -40000.0, np.nan, np.inf):
        assert gram.add(np.array([[0.0, value]])) == 0
    assert gram.total() is None


@pytest.fixture
def at_once(monkeypatch):
    """As if all rows were many, and the product faster; counts the rows that took this way."""
    taken, way = [], ByteGram.add
    monkeypatch.setattr(byte_gram, "_WORTH", 0.0)
    monkeypatch.setattr(byte_gram, "_is_faster", lambda: True)
    monkeypatch.setattr(ByteGram, "add", lambda *args: (taken.append(way(*args)), taken[-1])[1])
    return taken


def test_knowledge_has_the_same_bits(at_once, monkeypatch, rng):
    few = [slice(i, i + 50) for i in range(0, 500, 50)]
    monkeypatch.setattr(byte_gram, "blocks", lambda n, _: [s for s in few if s.start < n])
    X, y = rng.random((500, 20)), rng.integers(0, 3, 500)
    X[300:] *= 5.0  # beyond what bytes can hold
    several = [
        ({}, None),
        ({"classwise": True}, None),
        ({"fingerprint": True}, None),
        ({}, rng.integers(0, 4, 500)),
        ({"task": "regression"}, None),
    ]
    ours = [Knowledge.of(Linear(), X, y, w, **options).digest() for options, w in several]
    assert sum(at_once) > 0
    assert Knowledge.of(Linear(), torch.from_numpy(X), y).digest() == ours[0]
    monkeypatch.setattr(byte_gram, "_is_faster", lambda: False)
    before = len(at_once)
    assert ours == [Knowledge.of(Linear(), X, y, w, **options).digest() for options, w in several]
    assert len(at_once) == before
    X[7, 3] = np.nan
    monkeypatch.setattr(byte_gram, "_is_faster", lambda: True)
    with pytest.raises(RangeError, match="NaN"):
        Knowledge.of(Linear(), X, y)


def test_wrong_products_are_not_used(monkeypatch):
    byte_gram._is_faster.cache_clear()
    monkeypatch.setattr(torch, "_int_mm", lambda a, b: (a.int() @ b.int()).clamp(-(2**15), 2**15))
    assert not byte_gram._is_faster()
    byte_gram._is_faster.cache_clear()
    monkeypatch.delattr(torch, "_int_mm")
    assert not byte_gram._is_faster()
    byte_gram._is_faster.cache_clear()


def test_torch_is_not_loaded_for_it():
    program = """
import sys, numpy
from traceless import Knowledge
from traceless.device import byte_gram
from traceless.features import Linear
byte_gram._WORTH = 0.0
Knowledge.of(Linear(), numpy.ones((50, 4)), numpy.arange(50) % 2)
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
