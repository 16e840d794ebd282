import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from traceless import LSSVC, LSSVR
from traceless.model_selection import cross_val_score, influence, leave_one_out, select_rho


@pytest.mark.parametrize(
    ("model", "load"), [(LSSVR(), load_diabetes), (LSSVC(class_weight="balanced"), load_iris)]
)
def test_the_best_is_that_of_the_estimator(model, load):
    X, y = load(return_X_y=True)
    found = select_rho(model, X, y, method="evidence")
    assert found.best == type(model)(**model.get_params() | {"rho": "evidence"}).fit(X, y).rho_
    assert found.method == "evidence"
    assert repr(found).startswith("<RhoSelection by evidence\n")
    assert repr(found).count("best") == 1
    assert found.mean[found.rhos == found.best] > found.mean.max() - 0.026


def test_values_to_choose_from():
    X, y = load_diabetes(return_X_y=True)
    weight = np.arange(len(y)) % 3
    found = select_rho(LSSVR(), X, y, [100.0, 0.1, 13.0], method="evidence", sample_weight=weight)
    assert found.best == 13.0
    assert found.rhos.tolist() == [100.0, 0.1, 13.0]
    everything = select_rho(LSSVR(), X, y, [2.0**k for k in range(-5, 9)], method="evidence")
    whole = select_rho(LSSVR(), X, y, method="evidence")
    assert everything.best == whole.best
    np.testing.assert_allclose(everything.mean, whole.mean[np.isin(whole.rhos, everything.rhos)])


def test_what_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="'cross-validation' or 'evidence', got 'gcv'"):
        select_rho(LSSVC(), X, y, [1.0], method="gcv")
    with pytest.raises(ValueError, match="scoring and groups have no meaning"):
        select_rho(LSSVC(), X, y, scoring="accuracy", method="evidence")
    with pytest.raises(ValueError, match="needs rhos"):
        select_rho(LSSVC(), X, y)
    for closed in (leave_one_out, influence):
        with pytest.raises(ValueError, match="rho='evidence'"):
            closed(LSSVC(rho="evidence"), X, y)


def test_cross_validation_of_an_estimator_that_chooses_for_itself():
    X, y = load_diabetes(return_X_y=True)
    rhos = [0.1, 1.0, 10.0]
    for cv in (5, "loo"):
        scoring = "neg_mean_squared_error"
        ours, plain = (
            select_rho(LSSVR(rho=rho), X, y, rhos, cv, scoring).scores for rho in ("evidence", 1.0)
        )
        np.testing.assert_array_equal(ours, plain)


def test_every_fold_chooses_by_its_own_rows():
    X, y = load_diabetes(return_X_y=True)
    found = cross_val_score(LSSVR(rho="evidence"), X, y, cv=4)
    quarters = np.array_split(np.arange(len(y)), 4)
    for score, test in zip(found, quarters, strict=True):
        train = np.setdiff1d(np.arange(len(y)), test)
        assert score == LSSVR(rho="evidence").fit(X[train], y[train]).score(X[test], y[test])
