import matplotlib.pyplot as plt
import numpy as np
import pytest

from traceless import LSSVC, PathSVC
from traceless.displays import PathDisplay


@pytest.fixture
def data(rng):
    X = rng.normal(size=(90, 2))
    return X, np.where(X[:, 0] + rng.normal(size=90) > 0, "b", "a")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_a_path_begins_and_ends_at_the_models(data):
    X, y = data
    svc = PathSVC(C=2.0, gamma=0.5).fit(X[:60], y[:60])
    digest = svc.digest()
    display = PathDisplay.from_estimator(svc, add=(X[60:], y[60:]), forget=(X[:9], y[:9]))
    assert svc.digest() == digest  # on a copy
    assert (display.theta[0], display.theta[-1]) == (0.0, 1.0)
    assert (np.diff(display.theta) > 0).all()
    assert [(display.role == r).sum() for r in ("stays", "goes", "comes")] == [51, 9, 30]
    after = PathSVC(C=2.0, gamma=0.5).fit(X[9:], y[9:])
    for model, theta in ((svc, 0), (after, -1)):
        alpha = np.sort(display.alpha[theta][display.alpha[theta] > 1e-9])
        np.testing.assert_allclose(alpha, np.sort(np.abs(model.dual_coef_[0])), atol=1e-7)
    np.testing.assert_allclose(display.alpha[-1][display.role == "goes"], 0.0, atol=1e-12)


def test_between_breakpoints_the_path_is_straight(data):
    X, y = data
    svc = PathSVC(C=2.0, gamma=0.5).fit(X[:60], y[:60])
    display = PathDisplay.from_estimator(svc, ids=svc.ids_[:20])
    comes = display.alpha[:, display.role == "goes"]
    np.testing.assert_allclose(comes, np.outer(1 - display.theta, comes[0]), atol=1e-9)
    assert len(display.breakpoints) > 3


def test_what_is_drawn(data):
    X, y = data
    _, ax = plt.subplots()
    svc = PathSVC(gamma=0.5).fit(X[:60], y[:60])
    display = PathDisplay.from_estimator(svc, add=(X[60:], y[60:]), ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert len(display.lines_) == (np.ptp(display.alpha, axis=0) > 0).sum()
    assert ax.get_xlabel() == "θ"


def test_one_problem_of_several(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    svc = PathSVC(gamma=0.5).fit(X[:50], y[:50])
    display = PathDisplay.from_estimator(svc, add=(X[50:], y[50:]), classes=(0, 2))
    assert display.classes == (0, 2)
    assert display.alpha.shape[1] == (y != 1).sum()
    with pytest.raises(ValueError, match=r"no binary problem of \(0, 7\)"):
        PathDisplay.from_estimator(svc, add=(X[50:], y[50:]), classes=(0, 7))
    with pytest.raises(ValueError, match="does not touch the binary problem"):
        PathDisplay.from_estimator(svc, add=(X[50:51], y[50:51]), classes=(0, 1))
    with pytest.raises(TypeError, match="A PathSVC follows paths, got LSSVC"):
        PathDisplay.from_estimator(LSSVC().fit(X, y), add=(X, y))
