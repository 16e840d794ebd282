"""The (w, C) state of Lee et al. 2019: handed out, taken over, and rows that are only estimated."""

import numpy as np
import pytest

from cases import PAPER
from traceless import LSSVC, NotLearnedError
from traceless.exceptions import UnsealableError
from traceless.features import RandomFourier


def data(rng, n=300, classes=3):
    X = rng.normal(size=(n, 4))
    return X, rng.integers(0, classes, n)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * np.abs(b).max())


def test_export_and_import_of_the_papers_state(rng, tmp_path):
    X, y = data(rng)
    labels = np.array(["a", "b", "c"])[y]
    server = LSSVC(RandomFourier(40), rho=0.5, solver="woodbury", **PAPER).fit(
        X[:200], labels[:200]
    )
    np.savez(tmp_path / "state.npz", **server.export_state())
    with np.load(tmp_path / "state.npz") as file:
        user = LSSVC(RandomFourier(40), rho=0.5, solver="woodbury", **PAPER).import_state(file)
    assert user.classes_.tolist() == ["a", "b", "c"]
    assert user.n_samples_ == 200
    assert (user.decision_function(X) == server.decision_function(X)).all()
    user.update(add=(X[200:], labels[200:]), forget=(X[:50], labels[:50]))
    close(
        user.feature_coef_,
        LSSVC(RandomFourier(40), rho=0.5, **PAPER).fit(X[50:], labels[50:]).feature_coef_,
    )
    for ask in (user.seal, user.digest, lambda: user.merge(server), lambda: user.knowledge_):
        with pytest.raises(UnsealableError, match="cannot be sealed"):
            ask()
    with pytest.raises(UnsealableError, match="rho and the penalty cannot be changed"):
        user.set_params(rho=1.0).predict(X)
    assert user.set_params(rho=0.5).n_samples_ == 250
    with pytest.raises(UnsealableError, match="rho and the penalty cannot be changed"):
        user.set_params(free_intercept=True).predict(X)


def test_an_imported_state_is_all_or_nothing(rng):
    X, y = data(rng, n=30)
    phi = RandomFourier(100, gamma=0.2)
    state = LSSVC(phi, solver="woodbury", **PAPER).fit(X, y).export_state()
    user = LSSVC(phi, solver="woodbury", **PAPER).import_state(state)
    before = user.decision_function(X)
    with pytest.raises(NotLearnedError, match="not in the data"):
        user.update(add=(X[:2], y[:2]), forget=(X[:3] + 9, y[:3]))
    assert (user.decision_function(X) == before).all()
    assert user.n_samples_ == 30
