import numpy as np
import pytest
from sklearn.base import clone

from traceless import ESVM, LPSVM, LSSVC, wESVM
from traceless.features import RandomLayer


def algorithm_1(X, y, C):
    """Algorithm 1 of Zhu et al. 2018, line by line."""
    e = np.ones(len(X))
    F = np.c_[X, -e]
    D = np.diag(y.astype(float))
    eye = np.eye(F.shape[1])
    return np.linalg.solve(eye / C + F.T @ F, F.T @ D @ e)


@pytest.fixture
def two_classes(rng):
    y = np.where(rng.random(80) < 0.3, 1, -1)
    X = np.rint((rng.normal(size=(80, 5)) + 0.7 * y[:, None]) * 2**14) / 2**14  # on the grid
    return X, y


@pytest.mark.parametrize("C", [0.01, 1.0, 300.0])
def test_lpsvm_is_algorithm_1(C, two_classes):
    X, y = two_classes
    model = LPSVM(C).fit(X, y)
    w_b = algorithm_1(X, y, C)
    np.testing.assert_allclose(np.r_[model.coef_[0], -model.intercept_], w_b, rtol=1e-9)
    np.testing.assert_allclose(model.decision_function(X), X @ w_b[:-1] - w_b[-1], rtol=1e-8)
    assert (model.predict(X) == np.sign(X @ w_b[:-1] - w_b[-1])).all()


@pytest.mark.parametrize("activation", ["sigmoid", "tanh", "relu", "sine"])
def test_esvm_is_algorithm_1_in_the_space_of_the_layer(activation, two_classes):
    X, y = two_classes
    model = ESVM(30, C=10.0, activation=activation, random_state=4).fit(X, y)
    layer = RandomLayer(30, activation=activation, random_state=4, bias=False)
    w_b = algorithm_1(layer.transform(X), y, 10.0)
    np.testing.assert_allclose(np.r_[model.feature_coef_[0], -model.intercept_], w_b, rtol=1e-7)


@pytest.mark.parametrize("rule", ["balanced", "inverse", "golden"])
def test_wesvm_is_a_direct_weighted_solve(rule, two_classes):
    X, y = two_classes
    model = wESVM(30, C=100.0, class_weight=rule).fit(X, y)
    n = np.array([(y == -1).sum(), (y == 1).sum()])
    omega = {"balanced": len(y) / (2 * n), "inverse": 1 / n}
    omega["golden"] = np.where(n > len(y) / 2, 0.618, 1.0) / n
    weight = omega[rule][(y == 1).astype(int)]
    F = np.c_[RandomLayer(30, bias=False).transform(X), -np.ones(len(X))]
    w_b = np.linalg.solve(np.eye(31) / 100 + (F.T * weight) @ F, F.T @ (weight * y))
    np.testing.assert_allclose(np.r_[model.feature_coef_[0], -model.intercept_], w_b, rtol=1e-7)


def test_they_are_estimators_like_any_other(two_classes):
    X, y = two_classes
    for machine in (LPSVM(), ESVM(10), wESVM(10)):
        assert isinstance(machine, LSSVC)
        half = clone(machine).fit(X[:40], y[:40])
        other = clone(machine).fit(X[40:], y[40:])
        assert half.merge(other).digest() == machine.fit(X, y).digest()
    assert wESVM(10, C=4.0).get_params()["rho"] == 0.25


def test_what_they_refuse():
    with pytest.raises(ValueError, match="C must be"):
        LPSVM(C=0.0)
    with pytest.raises(TypeError, match="rho is what C"):
        ESVM(rho=1.0)
