"""Training rows: found by content or id, and never changed in place."""

import numpy as np
import pytest

from traceless import MismatchError, NotLearnedError
from traceless.hinge.rows import TrainingRows, is_plain, label_array, plain_labels

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
    assert none.places == {}
    assert none.changed(NO_IDS, batch([1], [1])).ids.tolist() == [5]


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


def test_plain_rows_need_no_check_of_scikit_learn(rng):
    class Fitted:
        n_features_in_ = 2

    X, y = rng.normal(size=(5, 2)), np.arange(5)
    assert is_plain(Fitted(), X)
    assert is_plain(Fitted(), X, y)
    assert is_plain(Fitted(), X, y + 0.0)
    for other in (
        X[:, :1],
        X.astype(np.float32),
        X.T[:2].T[:, ::-1],
        X * np.nan,
        X[:0],
        X.tolist(),
    ):
        assert not is_plain(Fitted(), other)
    for labels in (None, y[:3], y + 0.5, y.tolist(), y.astype(str)):
        assert not is_plain(Fitted(), X, labels)
