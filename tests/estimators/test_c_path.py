"""`c_path`: fits at any C, and the conditions of optimality, are the oracles."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from traceless import PathSVC

FAMILIES = ["normal", "zeros and ones", "duplicates", "lattice"]


def rows(rng, family):
    X = {
        "normal": lambda: rng.normal(size=(60, 4)),
        "zeros and ones": lambda: rng.integers(0, 2, (60, 5)),
        "duplicates": lambda: np.repeat(rng.normal(size=(15, 2)), 4, axis=0),
        "lattice": lambda: rng.integers(0, 4, (60, 2)),
    }[family]() * 1.0
    y = (X[:, 0] + rng.normal(size=60) > 0.3).astype(int)
    y[:2] = 0, 1
    return X, y


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("family", FAMILIES)
def test_dual_coefficients_anywhere(rng, family, kernel):
    X, y = rows(rng, family)
    svc = PathSVC(C=1.0, gamma=0.7, kernel=kernel).fit(X, y)
    before = svc.digest()
    path = svc.c_path(1e-2, 1e2)
    assert svc.digest() == before
    assert (path.C[0], path.C[-1]) == (1e-2, 1e2)
    assert (np.diff(path.C) > 0.0).all()
    assert path.alpha.shape == (len(path.C), 60)
    K = X @ X.T if kernel == "linear" else np.exp(-0.7 * ((X[:, None] - X) ** 2).sum(axis=-1))
    signs = np.where(y[path.ids] > 0, 1.0, -1.0)
    for C in (1e-2, *np.exp(rng.uniform(np.log(1e-2), np.log(1e2), 12)), path.C[len(path.C) // 2]):
        alpha = path.alpha_at(C)
        assert (alpha >= -1e-9 * C).all()
        assert (alpha <= (1 + 1e-9) * C).all()
        assert abs(signs @ alpha) < 1e-9 * C * 60
        fresh = PathSVC(C=C, gamma=0.7, kernel=kernel).fit(X, y)
        f = fresh.decision_function(X)
        own = K[:, path.ids] @ (signs * alpha) + fresh.intercept_
        np.testing.assert_allclose(own, f, atol=1e-8 * max(1.0, np.abs(f).max()))
        if not fresh.ambiguous_:
            assert (path.decision_function(X, C) == f).all()


def test_several_classes(rng):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    svc = PathSVC(gamma=0.3, class_weight={"b": 2.0}).fit(X, names)
    path = svc.c_path(0.1, 10.0, classes=("b", "c"))
    assert path.classes == ("b", "c")
    assert set(names[path.ids]) == {"b", "c"}
    assert (path.alpha.max(axis=0) <= np.where(names[path.ids] == "b", 20.0, 10.0)).all()
    fresh = PathSVC(C=3.0, gamma=0.3, class_weight={"b": 2.0}).fit(X, names)
    assert (path.decision_function(X, 3.0) == fresh.decision_function(X)).all()
    model = path.at(3.0)
    assert model.digest() == fresh.digest()
    model.forget(ids=[0, 1])  # a model of its own
    assert path.at(3.0).digest() == fresh.digest()
    assert svc.c_path(0.1, 1.0).classes == ("a", "b")


def test_what_cannot_be():
    X, y = load_iris(return_X_y=True)
    svc = PathSVC().fit(X, y)
    path = svc.c_path(0.5, 2.0)
    for C in (0.4, 2.1):
        with pytest.raises(ValueError, match=r"between 0\.5 and 2, the ends of this path"):
            path.decision_function(X, C)
    with pytest.raises(ValueError, match="low must be below high"):
        svc.c_path(2.0, 2.0)
    with pytest.raises(ValueError, match="low must be a positive"):
        svc.c_path(0.0, 2.0)
    with pytest.raises(ValueError, match="no binary problem"):
        svc.c_path(1.0, 2.0, classes=(7, 8))
    with pytest.raises(ValueError, match="not fitted"):
        PathSVC().c_path(1.0, 2.0)
