"""What is written of a PathSVC, and what of it is checked when it is read."""

import numpy as np
import pytest

from traceless import PathSVC
from traceless.hinge.file_format import pieces, restore_hinge
from traceless.knowledge.file_format import classes_of


@pytest.fixture
def written(rng):
    X = rng.normal(size=(40, 2))
    model = PathSVC(gamma=0.5).fit(X, np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)])
    said, tensors = pieces(model._model)
    return model, said, tensors | {"last_ids": model.last_ids_}


def restored(said, tensors, **parameters):
    model = PathSVC(**{"gamma": 0.5} | parameters)
    model.n_features_in_ = 2
    restore_hinge(model, said, tensors)
    return model


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [  # tests/files forges the other tensors in whole files
        ("rows", lambda a: a[:, :1], "rows of 1 columns"),
        ("alpha", lambda a: a[1:], "one number for each row"),
        ("intercepts", lambda a: np.r_[a, a], "one intercept for each problem"),
        ("last_ids", lambda a: a + 40, "'last_ids' has values"),
        ("gram", np.zeros_like, "expected the tensors"),
    ],
)
def test_what_cannot_be_is_refused(written, name, change, words):
    _, said, tensors = written
    with pytest.raises(ValueError, match=words):
        restored(said, tensors | {name: change(tensors.get(name, np.zeros(3)))})


def test_classes_from_the_numbers_of_rows():
    assert classes_of(["a", "b"], np.array([1, 0, 1])).tolist() == ["a", "b"]
    assert classes_of([], np.zeros(0, dtype=np.int64)).dtype == np.int64
    with pytest.raises(ValueError, match="not in order"):
        classes_of(["b", "a"], np.array([0, 1]))
