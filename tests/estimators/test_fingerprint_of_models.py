"""Models with `fingerprint=True`: equal digests mean equal rows, whatever happened on the way."""

import numpy as np
import pytest

import traceless
from traceless import LSSVC, LSSVR, Knowledge, SlidingWindow, from_batches
from traceless.estimators.loading import from_description
from traceless.exceptions import MismatchError
from traceless.features import Linear, RandomFourier
from traceless.files.saving import described
from traceless.model_selection import cross_validate

MODELS = [
    LSSVC(fingerprint=True),
    LSSVC(RandomFourier(5), solver="woodbury", fingerprint=True),
    LSSVC(class_weight="balanced", fingerprint=True),
    LSSVC(n_jobs=2, fingerprint=True),
    LSSVR(fingerprint=True),
    LSSVR(solver="woodbury", fingerprint=True),
]


@pytest.fixture(params=MODELS, ids=repr)
def new(request):
    """A way to make the model again."""
    return lambda: from_description(described(request.param))


@pytest.fixture
def rows(rng, new):
    X = rng.normal(size=(60, 3))
    y = X[:, :2] if isinstance(new(), LSSVR) else np.array(["a", "b", "c"])[np.arange(60) % 3]
    return X, y, 1.0 + np.arange(60) % 4 / 4


def test_the_sums_without_it_are_those_of_a_plain_model(new, rows):
    model, plain = new().fit(*rows), new().set_params(fingerprint=False).fit(*rows)
    assert plain.digest() != model.digest()
    assert plain.digest() == model.knowledge_.without_fingerprint().digest()


def test_other_rows_with_equal_sums_have_another_digest(new):
    ours, theirs = ([[float(x)] for x in xs] for xs in ((0, 3, 5, 6), (1, 2, 4, 7)))
    y = [0, 0, 0, 0]
    assert new().fit(ours, y).digest() != new().fit(theirs, y).digest()
    plain = new().set_params(fingerprint=False, feature_map=Linear())
    assert plain.fit(ours, y).digest() == plain.fit(theirs, y).digest()


def test_it_is_decided_when_learning_starts(new, rows):
    """A parameter that is changed later can neither mix nor lock what is held."""
    X, y, w = rows
    for at_first in (True, False):
        model = new().set_params(fingerprint=at_first).fit(X[:30], y[:30], w[:30])
        model.set_params(fingerprint=not at_first)
        model.partial_fit(X[30:], y[30:], sample_weight=w[30:])
        assert (model.knowledge_.fingerprint is not None) is at_first
        expected = new().set_params(fingerprint=at_first).fit(X, y, w)
        assert model.digest() == expected.digest()
        assert (model.fit(X, y, w).knowledge_.fingerprint is None) is at_first


def test_slices(new, rows):
    X, y, w = rows
    plain = new().set_params(fingerprint=False)
    part = new().fit(X[:30], y[:30], w[:30])
    whole = new().fit(X, y, w).digest()
    for other in (part, part.knowledge_):
        assert new().fit(X[30:], y[30:], w[30:]).merge(other).digest() == whole
        merged = plain.fit(X[30:], y[30:], w[30:]).merge(other)  # what is not kept is left out
        assert merged.knowledge_.fingerprint is None
        assert merged.digest() == plain.fit(X, y, w).digest()
    without = part.knowledge_.without_fingerprint()
    for model in (new(), new().fit(X[30:], y[30:], w[30:])):
        before = model.digest() if hasattr(model, "n_samples_") else None
        with pytest.raises(MismatchError, match=r"fingerprint=True too.*Nothing was changed"):
            model.merge(without)
        assert (model.digest() if hasattr(model, "n_samples_") else None) == before


def test_windows_files_and_cross_validation(rng, tmp_path):
    X = rng.normal(size=(60, 3))
    y = np.arange(60) % 3
    clf = LSSVC(fingerprint=True)
    window = SlidingWindow(clf, size=25).fit(X, y)
    window.save(tmp_path / "x")
    again = traceless.load(tmp_path / "x")
    assert window.digest() == again.digest() == clf.fit(X[-25:], y[-25:]).digest()
    assert clf.fit(from_batches([(X, y)])).digest() == clf.fit(X, y).digest()
    plain = cross_validate(LSSVC(), X, y, cv=3, return_estimator=True)
    found = cross_validate(clf, X, y, cv=3, return_estimator=True)
    assert found["test_score"].tolist() == plain["test_score"].tolist()
    assert all(model.knowledge_.fingerprint is not None for model in found["estimator"])


def test_it_is_that_of_the_knowledge(rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    known = Knowledge.of(Linear(), X, y, fingerprint=True)
    assert LSSVC(fingerprint=True).fit(X, y).knowledge_ == known
