"""Partial sums as bytes: what was sent comes back, and anything else is refused."""

import os
import pickle
from dataclasses import replace

import numpy as np
import pytest

from traceless.exceptions import FileError, MismatchError
from traceless.features import Linear
from traceless.files.container import encoded
from traceless.knowledge.groups import GroupRecipe
from traceless.knowledge.sums import Recipe
from traceless.sources.first_look import LookingRecipe
from traceless.sources.sent import received, sent

KEYS = {
    "numbers": np.arange(40) % 3,
    "text": np.array(["süß", "b", ""])[np.arange(40) % 3],
    "several": np.rec.fromarrays([np.arange(40) % 2, np.array(["u", "v"])[np.arange(40) % 2]]),
    "none": np.zeros(0, dtype=int),
}


def rows(task, n=40):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 3))
    y = {"classification": rng.choice([b"a", b"b"], n), "regression": rng.normal(size=(n, 2))}[task]
    return X, y


def recipe(task, kind=Recipe, **more):
    return kind(Linear().bind(3), task=task, target_resolution=2**-10, **more)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("n", [0, 1, 40])
def test_sums_and_the_rows_that_stand_for_others(task, n):
    X, y = rows(task, n)
    weight = np.arange(n) / 8 + 0.125
    for made in (recipe(task, fingerprint=True), recipe(task, classwise=task == "classification")):
        known = made.knowledge((X, y, weight))
        assert received(sent(known), made) == known
    looking = LookingRecipe.of(recipe(task), np.full(3, 2.0**-14))
    looked = looking.knowledge((X, y, weight))
    found = received(sent(replace(looked, X=looked.X * np.nan)), looking)
    assert found.knowledge == looked.knowledge
    assert np.isnan(found.X).all()
    assert found.X.shape == looked.X.shape
    np.testing.assert_array_equal(found.y, looked.y)
    both = found + looked
    assert both.knowledge == looked.knowledge + looked.knowledge


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_sums_of_groups(key):
    made = recipe("classification", GroupRecipe)
    X, y = rows("classification", len(key))
    table = made.knowledge((1e6 * X, y, key))  # sums of two limbs
    assert received(sent(table), made) == table


def test_anything_else_is_refused(tmp_path):
    class Attack:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "run"),)

    made = recipe("classification")
    known = made.knowledge((*rows("classification"), None))
    data = sent(known)
    with pytest.raises(FileError, match="A partial sum is not a file of traceless"):
        received(pickle.dumps(Attack()), made)
    with pytest.raises(FileError, match="A partial sum is damaged"):
        received(data[:-1] + b"!", made)
    with pytest.raises(MismatchError):
        received(data, Recipe(Linear(resolution=0.5).bind(3), "classification", 2**-10))
    with pytest.raises((ValueError, KeyError)):
        received(encoded("knowledge", {}, {}), made)
    assert not (tmp_path / "run").exists()
