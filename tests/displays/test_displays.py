import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_iris

from traceless import LSSVC, LSSVR
from traceless.displays import ForgetDisplay, HistoryDisplay


@pytest.fixture
def data(rng):
    X = rng.normal(size=(90, 2))
    return X, np.where(X[:, 0] + rng.normal(size=90) > 0, "b", "a")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_a_history_is_that_of_the_model(data):
    X, y = data
    start = LSSVC().fit(X[:20], y[:20])
    digest = start.digest()
    steps = [
        ("more", "partial_fit", (X[20:40], y[20:40])),
        ("a site", "merge", (LSSVC().fit(X[40:60], y[40:60]),)),
        ("less", "forget", (X[:10], y[:10])),
    ]
    axes = plt.subplots(2)[1]
    display = HistoryDisplay.from_estimator(start, steps, X[60:], y[60:], ax=axes)
    assert start.digest() == digest  # on a copy
    held = (slice(0, 40), slice(0, 60), slice(10, 60))
    expected = [LSSVC().fit(X[rows], y[rows]).score(X[60:], y[60:]) for rows in held]
    assert display.scores.tolist() == display.line_.get_ydata().tolist() == expected
    assert display.n_samples.tolist() == [40, 60, 50]
    assert display.ax_ == tuple(axes)
    with pytest.raises(ValueError, match="at least one step"):
        HistoryDisplay.from_estimator(start, [], X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_boundaries_are_those_of_the_models_before_and_after(data, n_classes):
    X, _ = data
    y = np.digitize(X[:, 0] + X[:, 1], [0.0, 1.0][: n_classes - 1])
    model = LSSVC().fit(X, y)
    digest = model.digest()
    ax = plt.subplots()[1]
    display = ForgetDisplay.from_estimator(model, X, y, range(30), grid_resolution=20, ax=ax)
    assert model.digest() == digest  # on a copy
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    after = LSSVC().fit(X[30:], y[30:])
    for predicted, fitted in ((display.before, model), (display.after, after)):
        np.testing.assert_array_equal(predicted.ravel(), fitted.predict(grid))
    np.testing.assert_array_equal(display.forgotten, np.arange(90) < 30)
    assert (display.ax_, display.figure_) == (ax, ax.figure)


def test_columns_have_names_and_the_others_their_median():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = LSSVC().fit(X, y)
    display = ForgetDisplay.from_estimator(model, X, y, y >= 1, columns=(3, 1))
    assert display.ax_.get_xlabel() == "petal width (cm)"
    grid = np.tile(X.median(), (display.xx0.size, 1))
    grid[:, 3], grid[:, 1] = display.xx0.ravel(), display.xx1.ravel()
    predicted = model.predict(type(X)(grid, columns=X.columns))
    np.testing.assert_array_equal(display.before.ravel(), predicted)
    assert display.after.max() == 0  # the other classes are gone


def test_what_has_no_boundary(data):
    with pytest.raises(AttributeError, match="classes_"):
        ForgetDisplay.from_estimator(LSSVR().fit(data[0], data[0][:, 0]), *data, [1])


def test_without_matplotlib_the_extra_is_named(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'traceless\[plots\]'"):
        HistoryDisplay.from_estimator(LSSVC(), [("all", "fit", data)], *data)
