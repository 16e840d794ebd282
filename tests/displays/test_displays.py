import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_iris

from traceless import LSSVC, LSSVR, PathSVC
from traceless.displays import (
    ForgetDisplay,
    HistoryDisplay,
    RhoDisplay,
    UpdateCostDisplay,
)
from traceless.model_selection import select_rho


@pytest.fixture
def data(rng):
    X = rng.normal(size=(90, 2))
    return X, np.where(X[:, 0] + rng.normal(size=90) > 0, "b", "a")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture
def axes():
    return plt.subplots()[1]


# --- HistoryDisplay ----------------------------------------------------------------------------


def test_a_history_is_that_of_the_model(data):
    X, y = data
    site = LSSVC().fit(X[40:60], y[40:60])
    start = LSSVC().fit(X[:20], y[:20])
    digest = start.digest()
    display = HistoryDisplay.from_estimator(
        start,
        [
            ("more", "partial_fit", (X[20:40], y[20:40])),
            ("a site", "merge", (site,)),
            ("less", "forget", (X[:10], y[:10])),
        ],
        X[60:],
        y[60:],
    )
    assert start.digest() == digest  # on a copy
    held = (slice(0, 40), slice(0, 60), slice(10, 60))
    assert display.scores.tolist() == [
        LSSVC().fit(X[rows], y[rows]).score(X[60:], y[60:]) for rows in held
    ]
    assert display.n_samples.tolist() == [40, 60, 50]
    above, below = display.ax_
    assert display.figure_ is above.figure
    assert above.get_ylabel() == "accuracy"
    assert [t.get_text() for t in below.get_xticklabels()] == ["more", "a site", "less"]
    shown = [t.get_text() for t in above.get_legend().get_texts()]
    assert shown == ["partial_fit", "merge", "forget"]


def test_a_long_history_has_no_names(data):
    X, _ = data
    steps = [(str(k), "partial_fit", (X[k : k + 2], X[k : k + 2, 0])) for k in range(50)]
    display = HistoryDisplay.from_estimator(
        LSSVR(), steps, X, X[:, 0], scoring="neg_mean_absolute_error", ax=plt.subplots(2)[1]
    )
    above, below = display.ax_
    assert above.get_legend() is None
    assert (above.get_ylabel(), below.get_xlabel()) == ("neg_mean_absolute_error", "step")


def test_a_history_has_steps(data):
    with pytest.raises(ValueError, match="at least one step"):
        HistoryDisplay.from_estimator(LSSVC(), [], *data)


# --- UpdateCostDisplay -------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [LSSVC(solver="woodbury"), LSSVR(), PathSVC(gamma=0.5)])
def test_costs_are_measured_for_every_size(data, axes, estimator):
    X, y = data
    target = X[:, 0] if isinstance(estimator, LSSVR) else y
    display = UpdateCostDisplay.from_estimator(
        estimator, X, target, sizes=(40, 1), rounds=1, ax=axes
    )
    assert not hasattr(estimator, "n_samples_")  # a clone has learned
    assert (display.update > 0).all()
    np.testing.assert_array_equal(display.ratio, display.refit / display.update)
    assert (display.ax_, display.figure_) == (axes, axes.figure)
    assert [t.get_text() for t in axes.get_xticklabels()] == ["1", "40"]
    assert axes.get_xlabel() == "rows that go, of 90"


@pytest.mark.parametrize("sizes", [[], [0], [90]])
def test_sizes_leave_rows_to_fit(data, sizes):
    with pytest.raises(ValueError, match="between 1 and 89"):
        UpdateCostDisplay.from_estimator(LSSVC(), *data, sizes=sizes)


def test_costs_are_measured_at_least_once(data):
    with pytest.raises(ValueError, match="rounds must be 1 or more, got 0"):
        UpdateCostDisplay.from_estimator(LSSVC(), *data, sizes=[1], rounds=0)


# --- ForgetDisplay -----------------------------------------------------------------------------


@pytest.mark.parametrize("new_model", [LSSVC, lambda: PathSVC(gamma=0.5)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_boundaries_are_those_of_the_models_before_and_after(data, axes, new_model, n_classes):
    X, _ = data
    y = np.digitize(X[:, 0] + X[:, 1], [0.0, 1.0][: n_classes - 1])
    model = new_model().fit(X, y)
    digest = model.digest()
    goes = np.arange(90) < 30
    display = ForgetDisplay.from_estimator(model, X, y, goes, grid_resolution=20, ax=axes)
    assert model.digest() == digest  # on a copy
    grid = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    after = new_model().fit(X[30:], y[30:])
    for said, fitted in ((display.before, model), (display.after, after)):
        np.testing.assert_array_equal(said.ravel(), fitted.predict(grid))
    np.testing.assert_array_equal(display.forgotten, goes)
    assert (display.ax_, display.figure_) == (axes, axes.figure)


@pytest.mark.parametrize("estimator", [LSSVC(), PathSVC(gamma=0.5)])
def test_columns_have_names_and_the_others_their_median(estimator):
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = estimator.fit(X, y)
    display = ForgetDisplay.from_estimator(model, X, y, range(50, 80), columns=(3, 1))
    assert display.ax_.get_xlabel() == "petal width (cm)"
    grid = np.tile(X.median(), (display.xx0.size, 1))
    grid[:, 3], grid[:, 1] = display.xx0.ravel(), display.xx1.ravel()
    said = model.predict(type(X)(grid, columns=X.columns))
    np.testing.assert_array_equal(display.before.ravel(), said)


@pytest.mark.parametrize("n_left", [1, 2])
def test_classes_may_be_gone_afterwards(n_left):
    X, y = load_iris(return_X_y=True)
    display = ForgetDisplay.from_estimator(LSSVC().fit(X, y), X, y, y >= n_left)
    assert display.classes.tolist() == [0, 1, 2]
    assert display.after.max() == n_left - 1


def test_only_classifiers_have_boundaries(data):
    X, _ = data
    with pytest.raises(TypeError, match="Only classifiers have a decision boundary, got LSSVR"):
        ForgetDisplay.from_estimator(LSSVR().fit(X, X[:, 0]), X, X[:, 0], [1])


# --- RhoDisplay --------------------------------------------------------------------------------


def test_rhos_are_shown_in_order_with_the_best_one(data, axes):
    X, y = data
    selection = select_rho(LSSVC(), X, y, [10.0, 0.1, 1000.0])
    display = RhoDisplay.from_selection(selection, score_name="accuracy", ax=axes)
    assert display.rhos.tolist() == [0.1, 10.0, 1000.0]
    assert display.mean.tolist() == selection.mean[[1, 0, 2]].tolist()
    assert display.std.tolist() == selection.std[[1, 0, 2]].tolist()
    assert display.best == selection.best
    assert (display.ax_, display.figure_) == (axes, axes.figure)
    assert axes.get_ylabel() == "accuracy, cross-validated"


# --- all ---------------------------------------------------------------------------------------


def test_without_matplotlib_the_extra_is_named(data, monkeypatch):
    X, y = data
    selection = select_rho(LSSVC(), X, y, [0.1, 1.0])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'traceless\[plots\]'"):
        RhoDisplay.from_selection(selection)
