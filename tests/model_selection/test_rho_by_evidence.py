import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from traceless import LSSVC, LSSVR
from traceless.model_selection import cross_val_score, influence, leave_one_out, select_rho


def test_what_is_refused():
    X, y = load_iris(return_X_y=True)
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
