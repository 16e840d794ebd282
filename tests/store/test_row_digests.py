"""Digests of rows and of ids."""

import numpy as np
import pandas as pd
import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from traceless.store.row_digests import RowHasher, Tally

SECRET = bytes(range(32))
values = st.floats(allow_nan=False, allow_infinity=False, width=64)


def keyed(purpose, content, secret=SECRET):
    """By hand: each purpose has a key that is made of the secret."""
    key = blake3(b"traceless 1 " + purpose, key=secret).digest()
    return blake3(content, key=key).digest(16)


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
    row = np.array([1.5, 0.0, *numbers], dtype="<f8").tobytes()
    assert found == keyed(b"row", keyed(b"start", text) + row)


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
        return keyed(b"id", text.encode())

    assert found.names == [by_hand("17"), b"", by_hand("Zoë")]
    assert len(found.digests) == 3
    hasher = RowHasher(SECRET, True)
    assert hasher.names([17, np.int64(17), "", None]) == [by_hand("17")] * 2 + [b""] * 2
    assert RowHasher(bytes(32), True).names(["17"]) == [keyed(b"id", b"17", bytes(32))]
    assert hasher((X, y, None)).names == [b""] * 4
    assert hasher((X, y, None, None)).digests == hasher((X, y, None)).digests

    forms = list, np.array, tuple, pd.Series, lambda v: pd.Series(v, index=range(len(v), 0, -1))
    for form in forms:
        assert hasher((X, y, None, form([17, 17, 18, 18]))).names[::3] == [
            by_hand("17"),
            by_hand("18"),
        ]


@given(st.lists(st.integers(0, 9), max_size=30), st.randoms())
def test_a_request_is_recognised_in_any_order_and_only_then(rows, chance):
    def request(rows):
        X = np.array(rows, dtype=float).reshape(-1, 1)
        batches = (X[i : i + 7] for i in range(0, len(X), 7))
        tally = hasher.tally((some, ["a"] * len(some), None) for some in batches)
        return hasher.request(tally, Tally())

    hasher = RowHasher(SECRET, True)
    assert request(chance.sample(rows, len(rows))) == request(rows)
    assert request([*rows, 3]) != request(rows)
    assert request([*rows, 3, 4]) != request([*rows, 3, 3])


def test_different_rows_count_and_not_copies():
    X, y = np.arange(40.0)[:, None] // 2, ["a", "b"] * 20
    hasher = RowHasher(SECRET, True)
    assert hasher.tally([(X, y, None)]).are_enough()  # 20 of each class
    assert not hasher.tally([(X // 2, y, None)]).are_enough()
    assert not hasher.tally([(X[:1].repeat(99, axis=0), ["a"] * 99, None)]).are_enough()
    regressions = RowHasher(SECRET, False)
    assert regressions.tally([(X, np.zeros(40), None)]).are_enough()
    assert not regressions.tally([(X * 0, np.zeros(40), None)]).are_enough()


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
