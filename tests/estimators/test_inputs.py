import numpy as np
import pytest

from traceless import LSSVC, MismatchError
from traceless.estimators.inputs import check_classes, checked, n_rows, sides, take_names


def test_a_side_without_rows_is_none_beside_another():
    some, none = (np.ones((2, 1)), [0, 1]), (np.ones((0, 1)), [])
    assert sides(some, none) == (some, None)
    assert sides(none, some) == (None, some)
    assert sides(none, none) == (None, None)
    assert sides(None, none) == (None, none)  # alone it is for scikit-learn to refuse
    with pytest.raises(ValueError, match="got neither"):
        sides(None, None)


@pytest.mark.parametrize(
    ("rows", "n"),
    [(None, 0), (([[1.0]], [0]), 1), ((np.ones((3, 2)), None), 3), (7, 1), ((5, 5), 1)],
)
def test_rows_are_counted_whatever_they_are(rows, n):
    assert n_rows(rows) == n


def test_rows_come_as_a_tuple():
    with pytest.raises(ValueError, match=r"tuple \(X, y\) or \(X, y, sample_weight\).* got list"):
        checked(LSSVC(), [[1.0], [2.0]], "classification", reset=True)


def test_rows_in_memory_are_checked_as_scikit_learn_does():
    model = LSSVC()
    X, y, weight = checked(model, ([[1, 2]], ["a"], 0.5), "classification", reset=True)
    assert (X.shape, y.tolist(), weight, model.n_features_in_) == ((1, 2), ["a"], 0.5, 2)
    with pytest.raises(ValueError, match="expecting 2 features"):
        checked(model, ([[1.0]], ["a"]), "classification", reset=False)


def test_names_of_columns_are_taken_once_and_compared():
    model = LSSVC()
    take_names(model, np.array(["a", "b"], dtype=object))
    assert model.feature_names_in_.tolist() == ["a", "b"]
    model.fit([[1.0, 2.0], [2.0, 1.0]], [0, 1])
    model.feature_names_in_ = np.array(["a", "b"], dtype=object)
    with pytest.raises(MismatchError, match="The columns differ"):
        take_names(model, np.array(["b", "a"], dtype=object))


def test_labels_outside_of_classes_are_named():
    check_classes(["x"], None)
    check_classes([1, 2], [2, 1, 3])
    with pytest.raises(ValueError, match=r"contains classes \[5\]"):
        check_classes([1, 5], [1, 2])
