"""scikit-learn's own checks, and its tools around our estimators."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from cases import MAPS
from traceless import LSSVC, LSSVR, PathSVC
from traceless.features import RandomFourier, Table

ESTIMATORS = [LSSVR(phi) for phi in [None, *MAPS[:-1]]]
# One check asks that a very large class weight makes nearly all predictions that class, which
# no classifier without an intercept can do: f(-x) = -f(x).
ESTIMATORS += [LSSVC(phi) for phi in [None, *MAPS[:-1]] if phi is None or phi.bias]
ESTIMATORS += [Table(), Table(resolution=2**-8)]
ESTIMATORS += [LSSVC(solver="woodbury"), LSSVR(solver="woodbury")]
ESTIMATORS += [LSSVC(class_weight="balanced"), LSSVR(n_jobs=2)]
ESTIMATORS += [LSSVC(class_weight="golden", weighting="one_vs_rest", n_jobs=2)]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_pipeline_with_names_and_set_output():
    X, y = load_iris(return_X_y=True, as_frame=True)
    pipe = make_pipeline(StandardScaler(), LSSVC(RandomFourier(100, gamma=0.3)))
    pipe.set_output(transform="pandas").fit(X, y)
    assert pipe[-1].feature_names_in_.tolist() == X.columns.tolist()
    assert pipe.score(X, y) > 0.9


def test_grid_search_over_rho_and_the_map(iris):
    grid = {"rho": [0.01, 1.0], "feature_map__gamma": [0.01, 0.3]}
    search = GridSearchCV(LSSVC(RandomFourier(60)), grid, cv=3).fit(*iris)
    assert search.best_score_ > 0.9
    assert set(search.best_params_) == set(grid)


def test_one_vs_rest_and_cross_validation(iris):
    X, y = iris
    assert cross_val_score(LSSVC(RandomFourier(60, gamma=0.3)), X, y, cv=3).mean() > 0.9
    direct, meta = LSSVC().fit(X, y), OneVsRestClassifier(LSSVC()).fit(X, y)
    assert np.array_equal(direct.decision_function(X), meta.decision_function(X))


@pytest.mark.parametrize("estimator", [LSSVC(), PathSVC(gamma=0.1)], ids=repr)
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_data_frames(estimator, frame, iris):
    X, y = iris
    names = [f"c{i}" for i in range(X.shape[1])]
    table = frame(dict(zip(names, X.T, strict=True)))
    target = table.__class__({"y": y})["y"]
    model, plain = clone(estimator).fit(table, target), clone(estimator).fit(X, y)
    assert model.digest() == plain.digest()
    assert model.feature_names_in_.tolist() == names
    assert np.array_equal(model.predict(table), plain.predict(X))
    before = model.digest()
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame(dict(zip(names[::-1], X.T, strict=True))), target)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame({"other": X[:, 0], **dict(zip(names[1:], X.T[1:], strict=True))}))
    assert model.digest() == before
    assert model.forget(table[:50], target[:50]).n_samples_ == 100


def test_string_and_categorical_labels():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for labels in (
        names,
        names.tolist(),
        names.astype(object),
        pd.Series(names, dtype="category"),
        pl.Series(names),
    ):
        model = LSSVC().fit(X, labels)
        assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
        assert model.digest() == LSSVC().fit(X, names).digest()
        assert set(model.predict(X)) <= set(names)


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
@pytest.mark.parametrize("choose", [RFE, SelectFromModel])
def test_columns_are_chosen_by_coefficients_of_columns_only(kind, choose, rng):
    """As with `SVC`, which has coef_ for a linear kernel only."""
    X = rng.normal(size=(80, 5))
    y = X[:, 3] + 0.2 * X[:, 1] > 0
    assert choose(kind()).fit(X, y).get_support()[3]
    for phi in MAPS:
        if phi.features_are_columns or phi.features_are_named:
            continue
        with pytest.raises((ValueError, AttributeError), match="coef_"):
            choose(kind(phi)).fit(X, y).get_support()


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
def test_coefficients_of_features_have_a_name_of_their_own(kind, iris):
    X, y = iris
    linear = kind().fit(X, y)
    assert np.array_equal(linear.coef_, linear.feature_coef_)
    model = kind(RandomFourier(9)).fit(X, y)
    with pytest.raises(AttributeError, match=r"RandomFourier are not the columns\. feature_coef_"):
        _ = model.coef_
    assert model.feature_coef_.shape[-1] == 9
    assert np.shape(model.intercept_) == np.shape(linear.intercept_)
