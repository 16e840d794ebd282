"""Labels come back in the type they came in, and no digest depends on it."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix

from traceless import LSSVC, PathSVC, load

X = np.random.default_rng(0).normal(size=(30, 3))
K = (X[:, 0] > 0).astype(np.int64)
WORDS = np.array(["no", "yes"])[K]

LABELS = {
    "bool": K.astype(bool),
    "int8": K.astype(np.int8),
    "uint8": K.astype(np.uint8),
    "int64": K,
    "uint64": K.astype(np.uint64),
    "big-endian": K.astype(">i2"),
    "float32": K.astype(np.float32),
    "float64": K.astype(np.float64),
    "list of floats": K.astype(np.float64).tolist(),
    "text": WORDS,
    "list of text": WORDS.tolist(),
    "objects": WORDS.astype(object),
    "categories": pd.Categorical(WORDS),
    "column of categories": pd.Series(pd.Categorical(WORDS)),
    "categories of int8": pd.Series(pd.Categorical(K.astype(np.int8))),
    "pandas string": pd.Series(WORDS, dtype="string"),
    "polars text": pl.Series(WORDS.tolist()),
    "polars categories": pl.Series(WORDS.tolist(), dtype=pl.Categorical),
    "polars int8": pl.Series(K.astype(np.int8)),
}


@pytest.mark.parametrize("model", [LSSVC(), PathSVC(gamma=0.5)], ids=repr)
@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
def test_the_type_that_scikit_learn_gives(y, model, tmp_path):
    theirs = LogisticRegression().fit(X, y)
    ours = clone(model).fit(X, y)
    wanted = theirs.classes_.dtype.newbyteorder("=")
    ours.save(tmp_path / "model")
    later = copy.copy(ours).partial_fit(X[:9], y[:9]).forget(X[:9], y[:9])
    several = [ours, later, load(tmp_path / "model"), pickle.loads(pickle.dumps(ours))]
    several += [LSSVC().merge(ours)] if isinstance(ours, LSSVC) else []
    for each in several:
        assert each.classes_.dtype == each.predict(X).dtype == wanted
        assert each.classes_.tolist() == theirs.classes_.tolist()
        assert each.score(X, y) == ours.score(X, y) > 0.8


def test_nullable_integers_stay_integers():
    """scikit-learn makes floats of them."""
    for kind in ("Int64", "Int8", "UInt8"):
        assert LSSVC().fit(X, pd.Series(K).astype(kind)).predict(X).dtype == np.int64
    assert LSSVC().fit(X, pd.Series(K).astype("boolean")).predict(X).dtype == bool
    assert LSSVC().fit(X, pd.Series(K, dtype="Float64")).predict(X).dtype == np.float64


def test_digests_know_nothing_of_it():
    numbers = [K, K.astype(np.int8), K.astype(np.uint64), K.astype(np.float32)]
    assert len({LSSVC().fit(X, y).digest() for y in numbers}) == 1
    assert len({LSSVC().fit(X, y).digest() for y in (WORDS, WORDS.astype(object))}) == 1


def test_the_first_labels_decide():
    model = LSSVC().fit(X, K.astype(np.int8)).partial_fit(X, K)
    assert model.classes_.dtype == np.int8
    model.forget(X, K)
    assert model.classes_.dtype == np.int8
    assert model.fit(X, K).classes_.dtype == np.int64
    assert LSSVC().fit(X, WORDS.astype(object)).fit(X, WORDS).classes_.dtype == "<U3"


def test_labels_that_the_type_cannot_hold():
    """They are never wrapped or rounded; once they are gone, the type is back."""
    beyond = [(np.int8, 300), (np.uint8, -1), (np.float16, 2049), (np.float16, 10**6)]
    beyond += [(np.float32, 2**24 + 1), (np.float64, 2**53 + 1), (np.float64, 2**63 - 1)]
    for dtype, large in beyond:
        model = LSSVC().fit(X, K.astype(dtype)).partial_fit(X[:1], [large])
        assert set(model.classes_.tolist()) == {0, 1, large}
        assert model.classes_.dtype == np.int64
        assert model.forget(X[:1], [large]).classes_.dtype == dtype
    huge = 2**63 + 1
    model = LSSVC().fit(X[:2], np.array([huge, 5], dtype=np.uint64))
    assert model.classes_.tolist() == [5, huge]
    assert model.partial_fit(X[:1], [-1]).classes_.tolist() == [-1, 5, huge]


def test_another_kind_of_label_after_all_rows_have_gone():
    model = LSSVC().fit(X, K.astype(np.int8)).forget(X, K).partial_fit(X, WORDS)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.predict(X).dtype == "<U3"


def test_metrics_take_objects_and_text_together():
    predicted = LSSVC().fit(X, WORDS.astype(object)).predict(X)
    assert confusion_matrix(WORDS, predicted).sum() == len(X)
