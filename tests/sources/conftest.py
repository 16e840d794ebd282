import pytest

from traceless.features import RandomFourier
from traceless.knowledge.sums import Knowledge, Recipe


@pytest.fixture(params=["classification", "regression"])
def task(request):
    return request.param


@pytest.fixture
def rows(task, rng):
    """X, y and weights of 400 rows: labels are text, targets two, weights fractions."""
    X = rng.normal(size=(400, 5))
    y = rng.choice(["a", "b", "c"], 400) if task == "classification" else rng.normal(size=(400, 2))
    return X, y, rng.integers(0, 40, 400) / 16


@pytest.fixture
def recipe(task):
    return Recipe(RandomFourier(20).bind(5), task=task, target_resolution=2**-10)


@pytest.fixture
def digest(recipe, rows):
    """What every engine must give."""
    return recipe.knowledge(rows).digest()


@pytest.fixture
def unpickled(monkeypatch):
    """The knowledge that came to this process from others."""
    found = []

    def setstate(self, state, original=Knowledge.__setstate__):
        found.append(self)
        original(self, state)

    monkeypatch.setattr(Knowledge, "__setstate__", setstate)
    return found
