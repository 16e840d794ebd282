"""Many classes: which points are in which problem, votes, and LIBSVM's layout."""

import numpy as np
import pytest
from sklearn.utils.multiclass import _ovr_decision_function

from traceless.hinge import multiclass
from traceless.hinge.machines import REST, Classifier
from traceless.knowledge.training_rows import TrainingRows


def rows_of(labels, weight=None):
    y = np.array(labels)
    weight = np.ones(len(y)) if weight is None else np.array(weight)
    return TrainingRows.of((np.arange(len(y))[:, None] + 0.0, y, weight))


def targets(rows, strategy="ovo", class_weight=None):
    return Classifier(2.0, class_weight, strategy).targets(rows, None)


def test_pairs_and_the_rest():
    rows = rows_of(list("bacba"))
    found = targets(rows)
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found["a", "b"].ids.tolist() == [0, 1, 3, 4]
    assert found["a", "b"].y.tolist() == [1.0, -1.0, 1.0, -1.0]
    rest = targets(rows, "ovr")
    assert list(rest) == [(REST, "a"), (REST, "b"), (REST, "c")]
    assert rest[REST, "c"].y.tolist() == [-1.0, -1.0, 1.0, -1.0, -1.0]
    assert list(targets(rows_of(list("aab")), "ovr")) == [("a", "b")]
    assert targets(rows_of(list("aa"))) == {}


def test_bounds_are_c_times_both_weights():
    rows = rows_of(list("aab"), [1.0, 0.5, 3.0])
    (plain,) = targets(rows).values()
    assert plain.bounds.tolist() == [2.0, 1.0, 6.0]
    (even,) = targets(rows, class_weight="balanced").values()
    assert even.bounds.tolist() == [3.0, 1.5, 4.5]
    (without,) = targets(rows, class_weight={"a": 0.0}).values()
    assert without.ids.tolist() == [2]
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="make one smaller"):
        targets(rows_of(list("ab"), [1e308, 1.0]))


def test_votes_and_values_are_those_of_scikit_learn(rng):
    pairs = rng.normal(size=(50, 6))
    theirs = _ovr_decision_function(pairs < 0, -pairs, 4)
    np.testing.assert_allclose(multiclass.class_values(pairs, 4), theirs)
    assert (multiclass.votes(pairs, 4).sum(axis=1) == 6).all()
    assert multiclass.votes(np.zeros((1, 3)), 3).tolist() == [[0, 1, 2]]  # at 0 the second wins
