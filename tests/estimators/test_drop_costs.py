"""What columns cost, against fits without them; and summaries."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from cases import PENALTIES
from traceless import LSSVC, LSSVR
from traceless.features import Linear, Polynomial, RandomFourier


def loss(model, X, y, weight):
    """Penalised losses of each problem, from the rows, and those of the means alone."""
    phi = model._map().transform(X)
    has_bias = model._bind().has_bias
    if isinstance(model, LSSVC):
        one_hot = (
            np.hstack([y, np.ones((len(y), 1))]) if y.ndim == 2 else y[:, None] == model.classes_
        )
        y = model._code(one_hot.astype(float))
        scores = model.decision_function(X)
    else:
        scores = model.predict(X)
    Y, scores = y.reshape(len(y), -1), scores.reshape(len(y), -1)
    W = np.atleast_2d(model.feature_coef_).T
    phi = phi[:, : len(W)]
    centre = np.average(phi, axis=0, weights=weight) if has_bias else 0.0
    G = np.ones(len(W))
    if model._problem()[
        2
    ].standardize:  # without a constant feature the weight of all rows is not known
        G = weight @ (phi - centre) ** 2 / (weight.sum() if has_bias else len(y))
    penalty = model.rho_ * (G @ W**2)
    if has_bias and not model.free_intercept:
        penalty = penalty + model.rho_ * np.atleast_1d(model.intercept_) ** 2
    worst = weight @ (Y - (np.average(Y, axis=0, weights=weight) if has_bias else 0.0)) ** 2
    return weight @ (Y - scores) ** 2 + penalty, worst


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(
    "feature_map",
    [Linear(resolution=2**-20), Linear(False, 2**-20), Polynomial(2, resolution=2**-20)],
)
@pytest.mark.parametrize("kind", ["targets", "two classes", "three classes", "labels"])
def test_costs_are_those_of_fits_without_the_column(rng, penalty, feature_map, kind):
    X = np.round(rng.normal(size=(90, 4)) * [1.0, 2.0, 0.5, 1.0], 3)
    weight = rng.integers(1, 4, 90).astype(float)
    score = X @ [1.0, 0.5, 0.0, -1.0] + 0.3 * rng.normal(size=90)
    if kind == "targets":
        y = np.round(np.column_stack([score, 50 + score**2]) * 2**14) / 2**14
    elif kind == "labels":
        y = np.column_stack([score > 0, X[:, 1] > 1]).astype(int)
    else:
        y = np.digitize(score, [0.0, 1.0][: 1 + (kind == "three classes")])
    estimator = LSSVR if kind == "targets" else LSSVC
    model = estimator(feature_map, **penalty).fit(X, y, weight)
    before, worst = loss(model, X, y, weight)
    costs = model.drop_costs()
    for j in range(4):
        without = np.delete(X, j, axis=1)
        after, _ = loss(
            estimator(feature_map, **penalty).fit(without, y, weight), without, y, weight
        )
        np.testing.assert_allclose(costs[j], np.mean((after - before) / worst), atol=1e-9)


def test_costs_with_class_weights():
    X, y = load_iris(return_X_y=True)
    X, y = X[:120], y[:120]
    model = LSSVC(class_weight="balanced").fit(X, y)
    weights = (len(y) / (3 * np.bincount(y)))[y]

    def total(model, X):
        coded = model._code((y[:, None] == model.classes_).astype(float))
        W = model.feature_coef_
        fit = weights @ (coded - model.decision_function(X)) ** 2
        worst = weights @ (coded - np.average(coded, axis=0, weights=weights)) ** 2
        return fit + (W**2 * X.var(axis=0)).sum(axis=1), worst

    before, worst = total(model, X)
    for j, cost in enumerate(model.drop_costs()):
        without = np.delete(X, j, axis=1)
        after, _ = total(LSSVC(class_weight="balanced").fit(without, y), without)
        np.testing.assert_allclose(cost, np.mean((after - before) / worst), atol=1e-4)  # grid


def test_a_column_that_never_varied_costs_nothing():
    X, y = load_diabetes(return_X_y=True)
    wider = np.column_stack([X, np.ones(len(X))])
    costs = LSSVR().fit(wider, y).drop_costs()
    assert costs[-1] == 0.0
    np.testing.assert_allclose(costs[:-1], LSSVR().fit(X, y).drop_costs(), rtol=1e-12)


def test_targets_that_never_vary_cost_nothing():
    X = np.arange(6.0)[:, None]
    assert LSSVR().fit(X, np.full(6, 3.0)).drop_costs().tolist() == [0.0]
    assert LSSVC().fit(X, ["a"] * 6).drop_costs().tolist() == [0.0]


def test_maps_that_mix_columns_do_not_know():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="RandomFourier mix all columns"):
        LSSVC(RandomFourier(20)).fit(X, y).drop_costs()


# --- summary ---------------------------------------------------------------------------------


@pytest.fixture
def model():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return LSSVR(rho="evidence").fit(X, y)


def test_a_summary_has_the_numbers_of_the_model(model):
    frame = model.summary(level=0.9).to_frame()
    assert frame.index.tolist() == ["intercept", *model.feature_names_in_]
    assert frame.columns.tolist() == ["coefficient", "error", "90 % from", "90 % to"]
    assert frame["coefficient"].tolist() == [model.intercept_, *model.coef_]
    assert frame["error"].tolist() == [model.intercept_std_, *model.coef_std_]
    middle = (frame["90 % from"] + frame["90 % to"]) / 2
    np.testing.assert_allclose(middle, frame["coefficient"])


def test_several_targets_and_no_intercept():
    X, y = load_diabetes(return_X_y=True)
    model = LSSVR(Linear(bias=False)).fit(X[:, :2], np.column_stack([y, -y]))
    frame = model.summary().to_frame()
    assert frame.index.names == ["target", "name"]
    assert frame.loc[(1, "column 0"), "coefficient"] == model.coef_[1, 0]
    assert len(frame) == 4


@pytest.mark.parametrize(
    ("feature_map", "names"),
    [
        (
            Polynomial(2),
            ["1.414 a", "1.414 b", "a^2", "1.414 a × b", "b^2"],
        ),
        (Polynomial(1), ["a", "b"]),
        (RandomFourier(4), [f"feature {j}" for j in range(4)]),
    ],
)
def test_features_have_names(feature_map, names):
    assert feature_map.feature_names(["a", "b"]) == names
    X = np.random.default_rng(0).normal(size=(20, 2))
    shown = LSSVR(feature_map).fit(X, X[:, 0]).summary().columns["name"]
    assert shown == ["intercept", *feature_map.feature_names(["column 0", "column 1"])]


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_a_classifier_shows_coefficients_of_classes(load):
    X, y = load(return_X_y=True)
    model = LSSVC().fit(X, y)
    frame = model.summary().to_frame()
    assert frame.columns.tolist() == (["0", "1", "2"] if load is load_iris else ["1"])
    np.testing.assert_array_equal(frame.to_numpy()[1:], model.coef_.T)
    np.testing.assert_array_equal(frame.to_numpy()[0], model.intercept_)
    assert "no errors" in repr(model.summary())
