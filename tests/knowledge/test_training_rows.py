"""Training rows: found by content or id, and never changed in place."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from traceless import MismatchError, NotLearnedError
from traceless.knowledge.responses import label_array
from traceless.knowledge.training_rows import TrainingRows, digests, places_of, plain_labels

NO_IDS = np.zeros(0, dtype=np.int64)


def batch(values, labels, weights=None):
    X = np.array(values, dtype=float)[:, None]
    return X, np.array(labels), np.ones(len(X)) if weights is None else np.array(weights)


def test_of_equal_rows_the_oldest_is_found_first():
    rows = TrainingRows.of(batch([1, 2, 1, 1], [0, 1, 0, 1]))
    assert rows.find(batch([1, 1, 2], [0, 0, 1])).tolist() == [0, 2, 1]
    for missing in (batch([1, 1, 1], [0, 0, 0]), batch([1], [0], [2.0]), batch([3], [0])):
        with pytest.raises(NotLearnedError, match="not held"):
            rows.find(missing)


def test_a_change_leaves_the_rows_before_alone():
    rows = TrainingRows.of(batch([1, 2, 1], [0, 1, 0]))
    after = rows.changed(np.array([0]), batch([1, 5], [2, 0]))
    assert rows.ids.tolist() == [0, 1, 2]
    assert after.ids.tolist() == [1, 2, 3, 4]
    assert after.next_id == 5
    assert after.classes.tolist() == [0, 1, 2]
    assert after.find(batch([1], [0])).tolist() == [2]
    assert rows.find(batch([1], [0])).tolist() == [0]
    none = after.changed(after.ids, None)
    assert len(none) == 0
    assert none.changed(NO_IDS, batch([1], [1])).ids.tolist() == [5]


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 5), max_size=4)), max_size=20))
def test_digests_are_a_multiset_of_which_the_oldest_go_first(steps):
    names = digests(bytes([k]) for k in range(6))
    held, ages, expected = names[:0], [], []
    for age, (add, which) in enumerate(steps):
        if add:
            held, ages = np.concatenate([held, names[which]]), ages + [age] * len(which)
            expected += [(k, age) for k in which]
            continue
        at = places_of(held, names[which])
        assert (at < 0).sum() == sum((Counter(which) - Counter(k for k, _ in expected)).values())
        for k, place in zip(which, at.tolist(), strict=True):
            if place >= 0:
                oldest = next(row for row in expected if row[0] == k)
                assert ages[place] == oldest[1]
                expected.remove(oldest)
        held = np.delete(held, at[at >= 0])
        ages = np.delete(ages, at[at >= 0]).tolist()
    assert Counter(held.tolist()) == Counter(names[k].item() for k, _ in expected)


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 3), max_size=3)), max_size=12))
def test_what_is_kept_between_changes_is_what_is_found_anew(steps):
    """Digests and classes follow each change, whichever classes come and go."""
    rows = TrainingRows.of(batch([0, 1, 1], [0, 1, 1]))
    for add, which in steps:
        assert (rows.places(rows.batch(slice(None))) >= 0).all()
        assert len(rows.classes) <= 4
        new = batch(which, which) if add else None
        rows = rows.changed(NO_IDS if add else rows.ids[: len(which)], new)
        fresh = TrainingRows.of(rows.batch(slice(None)), rows.ids, rows.next_id)
        assert rows.classes.tolist() == fresh.classes.tolist()
        assert (rows._digests == fresh._digests).all()
        assert "_digests" in vars(rows)


def test_sparse_rows_are_found_among_dense_ones_and_the_reverse():
    dense = np.array([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]])
    beside = np.arange(3), np.ones(3)
    thin = sparse.csr_matrix(dense)
    for held, asked in ((dense, thin), (thin, dense), (thin, thin)):
        rows = TrainingRows.of((held, *beside))
        assert rows.places((asked[[2, 0]], np.array([2, 0]), np.ones(2))).tolist() == [2, 0]
        assert rows.places((asked[[2, 0]], np.array([2, 1]), np.ones(2))).tolist() == [2, -1]


def test_labels_together_lose_nothing():
    big = 2**60 + 1
    rows = TrainingRows.of(batch([1], [-big])).changed(
        NO_IDS, batch([2], np.array([big], np.uint64))
    )
    assert rows.classes.tolist() == [-big, big]
    rows = TrainingRows.of(batch([1, 2], ["a", "long"]))
    assert rows.changed(np.array([1]), None).y.dtype == "U1"  # not as wide as those that have left


def test_rows_of_weight_zero_are_counted_but_not_looked_for():
    rows = TrainingRows.of(batch([1, 2], [0, 1]))
    assert rows.find(batch([9, 2], [0, 1], [0.0, 1.0])).tolist() == [1]
    with pytest.raises(NotLearnedError, match=r"1 of the 2 rows .* row 2 "):
        rows.find(batch([9, 2, 3], [0, 1, 1], [0.0, 1.0, 1.0]))


def test_ids_are_checked():
    rows = TrainingRows.of(batch([1, 2, 3], [0, 1, 0])).changed(np.array([1]), None)
    assert rows.check_ids([2, 0]).tolist() == [2, 0]
    assert rows.check_ids([]).tolist() == []
    for ids, words in (([1], "id 1 is not held"), ([0, 0], "twice")):
        with pytest.raises(NotLearnedError, match=words):
            rows.check_ids(ids)
    for ids in ([0.0], [[0]], 0):
        with pytest.raises(ValueError, match="whole numbers in one dimension"):
            rows.check_ids(ids)


def test_labels_of_two_types_are_refused():
    rows = TrainingRows.of(batch([1], ["a"]))
    with pytest.raises(MismatchError, match="one type"):
        rows.changed(NO_IDS, batch([2], [1]))


def test_content_does_not_depend_on_the_order():
    a = TrainingRows.of(batch([1, 2, 3], list("xyx"), [1.0, 2.0, 1.0]))
    b = TrainingRows.of(batch([3, 2, 1], list("xyx"), [1.0, 2.0, 1.0]))
    c = TrainingRows.of(batch([3, 2, 1], list("xyx")))
    assert list(a.content()) == list(b.content()) != list(c.content())


def test_labels_are_of_one_plain_type():
    assert plain_labels([1.0, 2.0]).dtype == np.int64
    assert plain_labels(np.array([True, False])).dtype == bool
    assert plain_labels(np.array(["b", "a"], dtype=object)).tolist() == ["b", "a"]
    assert label_array(("a", "b" * 2000)).dtype == object  # not 2000 characters for each row
