import copy
import hashlib
import pickle
import sys

import blake3
import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import Parallel, delayed

import traceless
from traceless import Knowledge, MismatchError
from traceless.features import Linear
from traceless.knowledge.fingerprint import Fingerprint, to_bytes

PHI = Linear(resolution=1.0)


def known(X, y, weights=None, **options):
    X = np.array(X, dtype=float)
    X = X[:, None] if X.ndim == 1 else X
    return Knowledge.of(PHI, X, y, weights, **({"fingerprint": True} | options))


def lanes(*args, **options):
    return known(*args, **options).fingerprint.tolist()


def test_equal_sums_of_other_rows_are_told_apart():
    """0 + 3 + 5 + 6 = 1 + 2 + 4 + 7, and so do the squares."""
    a, b = [0, 3, 5, 6], [1, 2, 4, 7]
    one_class = ["x"] * 4
    assert known(a, one_class, fingerprint=False) == known(b, one_class, fingerprint=False)
    assert known(a, one_class).digest() != known(b, one_class).digest()
    assert known(a, one_class) != known(b, one_class)
    assert known(a, one_class).sums.tolist() == known(b, one_class).sums.tolist()


def test_it_is_what_is_written_down():
    k = Knowledge.of(PHI, [[3.0, -2.0]], ["ä"], [0.5], fingerprint=True)
    spec = k.specification
    frame = lambda *parts: b"".join(b"%d:%b," % (len(p), p) for p in parts)  # noqa: E731
    digest = traceless.features.bound_map.specification_digest(spec).encode()
    key = hashlib.sha256(frame(b"traceless row 1", digest, b"classification")).digest()
    label = hashlib.sha256(b"str:\xc3\xa4").digest()
    row = label + np.array([0.5], "<f8").tobytes() + np.array([3, -2, 1], "<i8").tobytes()
    assert to_bytes(k.fingerprint) == blake3.blake3(row, key=key).digest(2048)


rows = st.tuples(
    st.integers(-3, 3), st.sampled_from(["a", "b"]), st.sampled_from([0.0, 0.5, 1.0, 2.0])
)


@st.composite
def data(draw, classwise=False):
    several = draw(st.lists(rows, max_size=6))
    X = np.array([[r[0]] for r in several], dtype=float).reshape(len(several), 1)
    return X, np.array([r[1] for r in several], dtype="U1"), np.array([r[2] for r in several])


@given(data(), data(), st.booleans())
def test_it_adds_and_subtracts_as_rows_come_and_go(a, b, classwise):
    ours, theirs = (known(*part, classwise=classwise) for part in (a, b))
    both = known(*(np.concatenate(pair) for pair in zip(a, b, strict=True)), classwise=classwise)
    assert ours + theirs == both
    assert (ours + theirs).digest() == both.digest()
    assert both - theirs == ours
    assert not (both - both).fingerprint.any()
    assert (-ours) + both == theirs
    assert ours.pooled() == known(*a)
    assert sum([ours, theirs]) == both


@given(data(), data())
def test_equal_fingerprints_are_equal_rows(a, b):
    ours, theirs = (
        sorted((x, label, w) for (x,), label, w in zip(*part, strict=True) if w) for part in (a, b)
    )
    assert (lanes(*a) == lanes(*b)) == (ours == theirs)


def test_what_makes_rows_different():
    cases = [
        lanes([1], ["1"]),
        lanes([1], [1]),
        lanes([1], [True]),
        lanes([1], [b"1"]),
        lanes([1], ["1"], [2.0]),
        lanes([1, 1], ["1", "1"]),  # twice is not once with weight 2
        lanes([1], ["1"], [0.5]),
        lanes([2], ["1"]),
        lanes([[1, 2]], ["1"]),
        lanes([[2, 1]], ["1"]),
        lanes([1], [1.0], task="regression", target_resolution=1.0),
        lanes([1], [2.0], task="regression", target_resolution=1.0),
        lanes([1], [1.0], task="regression", target_resolution=0.5),
        lanes([1], [[1.0, 0.0]], task="regression", target_resolution=1.0),
        lanes([1], [[0.0, 1.0]], task="regression", target_resolution=1.0),
        lanes([2**53], ["1"]),
        lanes([2**53 - 1], ["1"]),
        Knowledge.of(Linear(resolution=0.5), [[1.0]], ["1"], fingerprint=True).fingerprint.tolist(),
    ]
    assert len({tuple(case) for case in cases}) == len(cases)


def test_what_does_not():
    one = lanes([1], ["1"])
    assert one == lanes([1, 5], ["1", "1"], [1, 0])  # a row of weight 0 is no row
    assert one == lanes([1.2], np.array(["1"], dtype=object))  # the same code
    assert lanes([0.0], [1]) == lanes([-0.0], [1.0])
    third = lanes([1], ["1"], [1 / 3])
    assert third == lanes([1, 1], ["1", "2"], [1 / 3, 0.0])
    assert third == lanes([1], ["1"], [1 / 3 * (1 + 1e-9)])  # rounded to the same weight
    assert lanes([1, 2], ["a", "b"], [1e9, 1e-9]) == lanes([2, 1], ["b", "a"], [1e-9, 1e9])


def test_many_copies_wrap():
    """The limit that the module states: of 2^16 copies nothing is left in any lane."""
    one = known([1], ["x"])
    total = one
    for _ in range(16):
        total = total + total
    assert not total.fingerprint.any()
    assert total.n_samples == 2**16


def test_with_and_without_cannot_be_mixed():
    a, b = known([1], ["x"]), known([2], ["x"], fingerprint=False)
    for mix in (lambda: a + b, lambda: b + a, lambda: a - b, lambda: b - a):
        with pytest.raises(MismatchError, match=r"fingerprint=True, or .* without_fingerprint\(\)"):
            mix()
    assert a.without_fingerprint() + b == b + a.without_fingerprint()
    assert b.without_fingerprint() is b
    assert a.without_fingerprint() == known([1], ["x"], fingerprint=False)
    assert a != a.without_fingerprint()
    assert a.digest() != a.without_fingerprint().digest()


def roundtrips(k, tmp_path):
    joblib.dump(k, tmp_path / "dumped")
    yield joblib.load(tmp_path / "dumped")
    yield joblib.load(tmp_path / "dumped", mmap_mode="r")
    yield pickle.loads(pickle.dumps(k))
    buffers = []
    text = pickle.dumps(k, protocol=5, buffer_callback=buffers.append)
    yield pickle.loads(text, buffers=[bytearray(b.raw()) for b in buffers])
    yield copy.deepcopy(k)
    yield copy.copy(k)
    yield Parallel(n_jobs=2)(delayed(copy.copy)(k) for _ in range(1))[0]
    k.save(tmp_path / "saved.traceless")
    yield traceless.load(tmp_path / "saved.traceless")


@pytest.mark.parametrize("classwise", [False, True])
def test_it_travels(tmp_path, rng, classwise):
    k = known(rng.normal(size=(30, 2)), np.arange(30) % 3, classwise=classwise)
    for again in roundtrips(k - known([[1, 1]], [0], classwise=classwise), tmp_path):
        assert again + known([[1, 1]], [0], classwise=classwise) == k
        assert not again.fingerprint.flags.writeable
        assert not again.sums.flags.writeable


def test_nobody_elses_memory_is_kept(rng):
    k = known(rng.normal(size=(9, 2)), np.arange(9) % 2)
    sums, prints = k.sums.copy(), k.fingerprint.copy()
    made = Knowledge(k.specification, k.task, k.responses, k.counts, sums, 0, prints)
    read_only = sums[:]
    read_only.setflags(write=False)
    seen = Knowledge(k.specification, k.task, k.responses, k.counts, read_only, 0, prints)
    sums[:], prints[:] = 0, 0
    assert made == seen == k
    buffers = []
    text = pickle.dumps(k, protocol=5, buffer_callback=buffers.append)
    raw = [bytearray(b.raw()) for b in buffers]
    again = pickle.loads(text, buffers=raw)
    for buffer in raw:
        buffer[:] = bytes(len(buffer))
    assert again == k


def test_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "blake3", None)
    with pytest.raises(ImportError, match=r"pip install 'traceless\[store\]'"):
        Fingerprint(b"")
