"""Digests of rows and of ids."""

import hashlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from traceless.store.row_digests import HashedId, RowHasher

SECRET = bytes(range(32))
values = st.floats(allow_nan=False, allow_infinity=False, width=64)


@pytest.mark.parametrize(
    ("y", "weight", "classifies", "text", "numbers"),
    [
        ("yes", 2.0, True, b"2 str 'yes'", [2.0]),
        ("sì🫨", None, True, rb"2 str 's\xec\U0001fae8'", [1.0]),  # in ASCII, with any Python
        (3.25, None, False, b"2 targets 1", [3.25, 1.0]),
    ],
)
def test_a_digest_can_be_recomputed_by_hand(y, weight, classifies, text, numbers):
    batch = [[1.5, -0.0]], [y], None if weight is None else [weight]
    (found,) = RowHasher(SECRET, classifies)(batch).digests
    text += b"\0" + np.array([1.5, 0.0, *numbers], dtype="<f8").tobytes()
    by_hand = hashlib.blake2b(text, digest_size=16, key=SECRET, person=b"traceless row 01")
    assert found == by_hand.digest()


@given(arrays(np.float64, (7, 3), elements=values), st.lists(st.booleans(), min_size=7, max_size=7))
def test_a_digest_does_not_depend_on_the_batch(X, labels):
    hasher = RowHasher(SECRET, True)
    y = np.where(labels, "a", "b")
    together = hasher((X, y, None))
    alone = [hasher((X[i : i + 1], y[i : i + 1], None)).digests[0] for i in range(7)]
    assert together.digests == alone
    assert together.classes == {k: int((y == k).sum()) for k in np.unique(y).tolist()}
    differ = len({(x.tobytes(), label) for x, label in zip(X + 0.0, y, strict=True)})
    assert len(set(alone)) == differ


def test_rows_differ_by_label_type_weight_width_and_secret():
    def digest(X, y, weight=None, secret=SECRET, classifies=True):
        return RowHasher(secret, classifies)(
            ([X], [y], None if weight is None else [weight])
        ).digests[0]

    several = [
        digest([1.0], 1),
        digest([1.0], "1"),
        digest([1.0], True),
        digest([1.0], b"1"),
        digest([1.0], 1, 2.0),
        digest([1.0, 1.0], 1),
        digest([1.0], 1, secret=bytes(32)),
        digest([1.0], 1.0, classifies=False),
        digest([1.0], [1.0, 1.0], classifies=False),
    ]
    assert len(set(several)) == len(several)
    assert digest([1.0], 1.0) == digest([1.0], 1) == digest([1], 1, 1.0)


def test_many_rows_are_hashed_in_chunks(monkeypatch):
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10) % 3
    whole = RowHasher(SECRET, True)((X, y, None)).digests
    monkeypatch.setattr("traceless.store.row_digests._CHUNK", 3)
    assert RowHasher(SECRET, True)((X, y, None)).digests == whole


def test_without_a_secret_rows_are_counted_only():
    found = RowHasher(None, True)(([[1.0], [2.0]], ["a", "b"], [0.0, 1.0]))
    assert (found.digests, found.places.tolist(), found.classes) == ([], [1], {"b": 1})
    assert RowHasher(None, True).request("x") is None


@pytest.mark.parametrize("weight", [[-1.0], [np.nan], [np.inf], [1.0, 2.0], [[1.0]]])
def test_bad_weights_are_refused(weight):
    with pytest.raises(ValueError, match="sample_weight"):
        RowHasher(SECRET, True)(([[1.0]], ["a"], weight))


def test_ids_are_keyed_hashes_of_their_text():
    X, y = np.zeros((4, 1)), ["a"] * 4
    found = RowHasher(SECRET, True)((X, y, [1.0, 0.0, 1.0, 1.0], ["17", "x", None, "Zoë"]))

    def by_hand(text):
        key = {"digest_size": 16, "key": SECRET, "person": b"traceless id 001"}
        return hashlib.blake2b(text.encode(), **key).digest()

    assert found.ids == [by_hand("17"), b"", by_hand("Zoë")]
    assert len(found.digests) == 3
    assert found.spread(found.ids) == [by_hand("17"), b"", b"", by_hand("Zoë")]
    hasher = RowHasher(SECRET, True)
    assert hasher.id_hash(17) == hasher.id_hash(np.int64(17)) == by_hand("17")
    assert hasher.id_hash(HashedId(by_hand("17"))) == by_hand("17")
    assert hasher.id_hash("") == hasher.id_hash(None) == b""
    assert RowHasher(bytes(32), True).id_hash("17") != by_hand("17")
    assert hasher((X, y, None)).ids == [b""] * 4
    assert hasher((X, y, None, None)).digests == hasher((X, y, None)).digests

    forms = list, np.array, tuple, pd.Series, lambda v: pd.Series(v, index=range(len(v), 0, -1))
    for form in forms:
        assert hasher((X, y, None, form([17, 17, 18, 18]))).ids[::3] == [
            by_hand("17"),
            by_hand("18"),
        ]


@pytest.mark.parametrize(
    "ids",
    [
        *([1.5], [True], [b"raw bytes"], [np.nan], ["one", "two"], []),
        *([17, 17.0], [1, True], [pd.NA, "a"], [[1], [2]]),  # equal values of another type
    ],
)
def test_bad_ids_are_refused(ids):
    n = 2 if len(ids) == 2 and "two" not in map(str, ids) else 1
    with pytest.raises(ValueError, match=r"id.*Nothing was changed"):
        RowHasher(SECRET, True)(([[1.0]] * n, ["a"] * n, None, ids))
