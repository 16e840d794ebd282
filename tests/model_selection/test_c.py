"""`select_C`: scikit-learn's cross-validation at each C is the oracle."""

import numpy as np
import pytest
from sklearn import model_selection
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import KFold, LeaveOneOut

from traceless import LSSVC, PathOneClass, PathSVC, PathSVR
from traceless.model_selection import select_C

CS = [10.0, 0.1, 1.0]


@pytest.fixture(scope="module")
def data():
    X, y = load_iris(return_X_y=True)
    return X[::2], y[::2]


@pytest.mark.parametrize("model", [PathSVC(gamma=0.3), PathSVC(gamma="scale"), PathSVR(gamma=0.3)])
@pytest.mark.parametrize("cv", [4, KFold(3, shuffle=True, random_state=0)], ids=["4", "KFold"])
def test_scores_of_folds(model, cv, data):
    found = select_C(model, *data, CS, cv=cv)
    assert found.Cs.tolist() == CS
    for C, scores in zip(CS, found.scores, strict=True):
        other = clone(model).set_params(C=C)
        theirs = model_selection.cross_val_score(other, *data, cv=cv)
        np.testing.assert_allclose(scores, theirs, atol=1e-8)
    assert model.C == 1.0
    assert found.best in CS
    assert found.mean[CS.index(found.best)] == found.mean.max()


@pytest.mark.parametrize("model", [PathSVC(gamma=0.3), PathSVC(gamma="scale"), PathSVR(gamma=0.3)])
def test_leave_one_out(model, data):
    X, y = data
    found = select_C(model, X, y, CS[:2], cv="loo")
    for C, (score,) in zip(CS, found.scores, strict=False):
        other = clone(model).set_params(C=C)
        answers = model_selection.cross_val_predict(other, X, y, cv=LeaveOneOut())
        expected = 1 - ((y - answers) ** 2).sum() / ((y - y.mean()) ** 2).sum()
        expected = np.mean(answers == y) if isinstance(model, PathSVC) else expected
        assert score == pytest.approx(expected, abs=1e-8)


def test_scoring_and_weights(data, rng):
    X, y = data
    weight = rng.choice([0.5, 1.0, 2.0], size=len(y))
    (score,) = select_C(
        PathSVC(gamma=0.3), X, y, 2.0, cv="loo", scoring="balanced_accuracy", sample_weight=weight
    ).scores[0]
    answers = [
        PathSVC(C=2.0, gamma=0.3)
        .fit(*(np.delete(v, i, axis=0) for v in (X, y, weight)))
        .predict(X[[i]])[0]
        for i in range(len(y))
    ]
    assert score == pytest.approx(balanced_accuracy_score(y, answers))


def test_the_smallest_of_equals_is_best(data):
    X, y = data
    found = select_C(PathSVC(gamma=0.3), X, (y > 0) * 1, [100.0, 10.0, 30.0], cv=3)
    assert found.mean.tolist() == [1.0] * 3
    assert found.best == 10.0
    assert "  10            1.00000 ± 0.00000  best" in repr(found)


def test_what_cannot_be(data):
    for model in (LSSVC(), PathOneClass()):
        with pytest.raises(TypeError, match="takes a PathSVC or a PathSVR"):
            select_C(model, *data, CS)
    with pytest.raises(ValueError, match="Cs is empty"):
        select_C(PathSVC(), *data, [])
    with pytest.raises(ValueError, match="Cs must be a positive"):
        select_C(PathSVC(), *data, [1.0, 0.0])
    with pytest.raises(ValueError, match="one score"):
        select_C(PathSVC(), *data, CS, scoring=["accuracy", "f1"])
