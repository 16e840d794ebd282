import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from traceless import LSSVC, LSSVR, SlidingWindow
from traceless.displays import CoefficientDisplay, IntervalDisplay, RhoDisplay
from traceless.features import Linear, RandomFourier
from traceless.model_selection import select_rho


@pytest.fixture
def rows():
    return load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture
def axes():
    yield plt.subplots()[1]
    plt.close("all")


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: SlidingWindow(model, 300)])
def test_targets_against_predictions(rows, axes, wrap):
    X, y = rows
    model = wrap(LSSVR()).fit(X[:300], y[:300])
    display = IntervalDisplay.from_estimator(model, X[300:], y[300:], level=0.8, ax=axes)
    low, high = model.predict_interval(X[300:], 0.8)
    assert display.covered == np.mean((low <= y[300:]) & (y[300:] <= high))
    np.testing.assert_array_equal(display.x, np.sort(model.predict(X[300:])))
    np.testing.assert_array_equal(np.sort(display.low), np.sort(low))
    np.testing.assert_array_equal(display.points, model.predict(X[300:]))
    assert (display.ax_, display.figure_) == (axes, axes.figure)
    assert axes.get_xlabel() == "prediction"
    assert axes.get_legend().get_texts()[0].get_text() == "80 % interval"


@pytest.mark.parametrize("named", [True, False])
def test_a_column_with_the_others_at_their_medians(rows, axes, named):
    X, y = rows if named else (rows[0].to_numpy(), rows[1].to_numpy())
    model = LSSVR(RandomFourier(50)).fit(X, y)
    display = IntervalDisplay.from_estimator(model, X, y, column=2, grid_resolution=30, ax=axes)
    grid = np.tile(np.median(rows[0], axis=0), (30, 1))
    grid[:, 2] = display.x
    asked = type(rows[0])(grid, columns=rows[0].columns) if named else grid
    np.testing.assert_array_equal(display.mean, model.predict(asked))
    np.testing.assert_array_equal(display.high, model.predict_interval(asked)[1])
    np.testing.assert_array_equal(display.points, rows[0]["bmi"])
    assert axes.get_xlabel() == ("bmi" if named else "column 2")


def test_intervals_are_for_regressors_with_one_target(rows):
    X, y = rows
    with pytest.raises(TypeError, match="Only regressors have intervals, got LSSVC"):
        IntervalDisplay.from_estimator(LSSVC().fit(X, y > 100), X, y)
    Y = np.column_stack([y, y])
    model = LSSVR().fit(X, Y)
    with pytest.raises(ValueError, match=r"got y of shape \(442, 2\)"):
        IntervalDisplay.from_estimator(model, X, Y)


@pytest.mark.parametrize("penalty", [{}, {"free_intercept": False}])
def test_coefficients_of_one_standard_deviation(rows, axes, penalty):
    X, y = rows
    model = LSSVR(Linear(resolution=2**-30), **penalty).fit(X, y)
    display = CoefficientDisplay.from_estimator(model, level=0.9, n_largest=4, ax=axes)
    scaled = model.coef_ * X.std(ddof=0).to_numpy()
    order = np.argsort(-np.abs(scaled))[:4]
    assert display.names == X.columns[order].tolist()
    np.testing.assert_allclose(display.coefficients, scaled[order], rtol=1e-6)
    assert [t.get_text() for t in axes.get_yticklabels()] == display.names
    frame = model.summary(0.9).to_frame().loc[display.names]
    raw = CoefficientDisplay.from_estimator(model, level=0.9, scaled=False, ax=axes)
    for name, low in zip(raw.names, raw.low, strict=True):
        if name in frame.index:
            assert low == frame.loc[name, "90 % from"]


def test_coefficients_have_errors(rows):
    X, y = rows
    with pytest.raises(TypeError, match="LSSVC with coefficients of shape"):
        CoefficientDisplay.from_estimator(LSSVC().fit(X, y > 100))
    with pytest.raises(TypeError, match=r"LSSVR with coefficients of shape \(2, 10\)"):
        CoefficientDisplay.from_estimator(LSSVR().fit(X, np.column_stack([y, y])))


def test_evidence_is_drawn_as_what_it_is(rows, axes):
    selection = select_rho(LSSVR(), *rows, method="evidence")
    display = RhoDisplay.from_selection(selection, ax=axes)
    assert axes.get_ylabel() == "log evidence"
    assert display.best == LSSVR(rho="evidence").fit(*rows).rho_
