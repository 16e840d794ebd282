"""predict_proba, priors and decision, and the tools that ask for them."""

import pickle

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import AdaBoostClassifier, VotingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.model_selection import cross_val_predict as their_predict
from sklearn.model_selection import cross_val_score as their_score

from traceless import ESVM, LPSVM, LSSVC, LSSVR, PathSVC, SlidingWindow, wESVM
from traceless.exceptions import UninformativeWarning
from traceless.features import RandomFourier
from traceless.model_selection import cross_val_predict, cross_validate

DATA = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}


@pytest.fixture(params=DATA)
def rows(request):
    return DATA[request.param](return_X_y=True)


def test_they_are_probabilities_of_some_use(rows):
    X, y = rows
    clf = LSSVC().fit(X[::2], y[::2])
    p = clf.predict_proba(X[1::2])
    assert np.allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    assert np.allclose(clf.predict_log_proba(X[1::2]), np.log(p), rtol=1e-12, atol=1e-14)
    assert log_loss(y[1::2], p) < 0.25


def test_predict_is_the_largest_probability(rows):
    X, y = rows
    for decision in ("scores", "posterior"):
        clf = LSSVC(decision=decision).fit(X, y)
        if len(clf.classes_) > 2 or decision == "posterior":
            assert np.array_equal(clf.classes_[clf.predict_proba(X).argmax(axis=1)], clf.predict(X))
    assert np.array_equal(
        LSSVC().fit(X, y).decision_function(X),
        LSSVC(decision="posterior").fit(X, y).decision_function(X),
    )


def test_the_posterior_decides_better_where_a_class_lies_between_others():
    X, y = load_iris(return_X_y=True)
    scores, posterior = (LSSVC(decision=way).fit(X, y) for way in ("scores", "posterior"))
    assert scores.score(X, y) < 0.9 < 0.96 < posterior.score(X, y)
    assert log_loss(y, posterior.predict_proba(X)) < log_loss(y, scores.predict_proba(X))


def test_decision_and_priors_take_effect_at_once():
    X, y = load_iris(return_X_y=True)
    clf = LSSVC().fit(X, y)
    found = clf._discriminant()
    clf.set_params(decision="posterior", priors=[0.0, 0.5, 0.5])
    assert clf._discriminant() is found
    assert set(clf.predict(X)) == {1, 2}
    p = clf.predict_proba(X)
    assert (p[:, 0] == 0.0).all()
    assert (clf.predict_log_proba(X)[:, 0] == -np.inf).all()
    assert np.allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    clf.set_params(decision="scores")
    assert set(clf.predict(X)) == {0, 1, 2}
    assert np.array_equal(clf.predict_proba(X), p)  # priors are for another population


@pytest.mark.parametrize("n_classes", [2, 3])
def test_priors_change_the_odds_by_their_ratio(n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[50 * (3 - n_classes) :], y[50 * (3 - n_classes) :]
    given = np.array([0.7, 0.2, 0.1][:n_classes])
    given /= given.sum()
    clf = LSSVC(decision="posterior").fit(X, y)
    before = clf.predict_log_proba(X)
    after = clf.set_params(priors=given).predict_log_proba(X)
    change = (after - before)[:, 1:] - (after - before)[:, :1]
    assert np.allclose(change, np.log(given[1:] / given[0]), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "priors",
    [[0.5, 0.5], [0.5, 0.6, -0.1], [0.2, 0.2, 0.2], [[0.2, 0.3, 0.5]], [np.nan, 0.5, 0.5]],
    ids=str,
)
def test_wrong_priors_are_refused(priors):
    X, y = load_iris(return_X_y=True)
    clf = LSSVC(priors=priors).fit(X, y)
    with pytest.raises(ValueError, match="priors must be 3 numbers ≥ 0 that add up to 1"):
        clf.predict_proba(X)


def test_one_class_is_certain():
    clf = LSSVC().fit([[0.0], [1.0]], ["a", "a"])
    assert clf.predict_proba([[5.0]]).tolist() == [[1.0]]
    assert clf.predict_log_proba([[5.0]]).tolist() == [[0.0]]


def test_a_model_that_only_repeats_its_rows_gives_the_priors():
    X = np.random.default_rng(0).normal(size=(8, 40))
    clf = LSSVC(rho=1e-9).fit(X, [0, 0, 0, 1, 1, 1, 2, 2])
    with pytest.warns(UninformativeWarning, match="Increase rho, or use fewer features"):
        p = clf.predict_proba(X)
    assert np.allclose(p, [3 / 8, 3 / 8, 2 / 8])


def test_a_class_without_weight_is_never_expected():
    X, y = load_iris(return_X_y=True)
    for n in (100, 150):
        clf = LSSVC(class_weight={0: 0.0}).fit(X[:n], y[:n])
        assert (clf.predict_proba(X)[:, 0] == 0.0).all()
        assert np.allclose(clf.predict_proba(X).sum(axis=1), 1.0)


def test_one_row_of_each_class():
    for n in (2, 3):
        clf = LSSVC().fit(np.eye(n), np.arange(n))
        assert np.array_equal(clf.predict_proba(np.eye(n)).argmax(axis=1), np.arange(n))


def test_columns_that_never_vary_change_nothing():
    X, y = load_iris(return_X_y=True)
    more = np.column_stack([X, np.full(150, 3.0)])
    assert np.array_equal(
        LSSVC().fit(more, y).predict_proba(more), LSSVC().fit(X, y).predict_proba(X)
    )
    alone = LSSVC().fit(more[:, 4:], y)
    assert np.allclose(alone.predict_proba(more[:, 4:]), 1 / 3, atol=1e-3)


def test_pickles_do_not_have_what_can_be_made_again():
    X, y = load_iris(return_X_y=True)
    clf = LSSVC().fit(X, y)
    before = len(pickle.dumps(clf))
    clf.predict_proba(X)
    assert len(pickle.dumps(clf)) == before


def test_who_has_probabilities():
    for machine in (LPSVM(), ESVM(), wESVM(), LSSVC(weighting="one_vs_rest")):
        assert hasattr(machine, "predict_proba")
    assert not hasattr(LSSVR(), "predict_proba")
    assert not hasattr(PathSVC(), "predict_proba")
    with pytest.raises(AttributeError):
        LSSVC(class_weight="balanced", weighting="one_vs_rest").predict_proba  # noqa: B018
    X, y = load_iris(return_X_y=True)
    clf = LSSVC(class_weight="balanced", weighting="one_vs_rest", decision="posterior").fit(X, y)
    with pytest.raises(ValueError, match="there is no one covariance of the rows"):
        clf.predict(X)


def test_a_window_passes_them_on():
    X, y = load_iris(return_X_y=True)
    window = SlidingWindow(LSSVC(), size=120).fit(X, y)
    alone = LSSVC().fit(X[30:], y[30:])
    assert np.array_equal(window.predict_proba(X), alone.predict_proba(X))
    assert np.array_equal(window.predict_log_proba(X), alone.predict_log_proba(X))
    assert not hasattr(SlidingWindow(LSSVR()), "predict_proba")


# --- the tools of others ----------------------------------------------------------------------


def test_scikit_learns_tools(rows):
    X, y = rows
    members = [("linear", LSSVC()), ("random", LSSVC(RandomFourier(50, gamma=1e-4)))]
    for tool in (
        CalibratedClassifierCV(LSSVC(), cv=3),
        VotingClassifier(members, voting="soft"),
        AdaBoostClassifier(LSSVC(rho=1e-3), n_estimators=5),
        GridSearchCV(LSSVC(), {"rho": [0.1, 10.0]}, scoring="neg_log_loss", cv=3),
    ):
        assert log_loss(y, tool.fit(X, y).predict_proba(X)) < 1.0
    assert their_score(LSSVC(), X, y, scoring="neg_brier_score", cv=3).shape == (3,)


@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba"])
@pytest.mark.parametrize(("cv", "path"), [(3, "subtract"), (3, "auto"), (30, "auto"), (30, "hat")])
def test_cross_validation_has_them(rows, method, cv, path):
    X, y = rows
    ours = cross_val_predict(LSSVC(), X, y, cv=cv, method=method, path=path)
    theirs = their_predict(LSSVC(), X, y, cv=cv, method=method)
    if path == "subtract":
        assert np.array_equal(ours, theirs)
    assert np.allclose(ours, theirs, rtol=1e-7, atol=1e-8)


def test_the_posterior_decides_in_cross_validation_too():
    X, y = load_iris(return_X_y=True)
    clf = LSSVC(decision="posterior")
    for cv in (3, 50):
        ours = cross_validate(clf, X, y, cv=cv)["test_score"]
        assert np.array_equal(ours, their_score(clf, X, y, cv=cv))


def test_a_class_that_a_training_part_lacks_has_probability_zero():
    X, y = load_iris(return_X_y=True)
    splits = [(np.arange(100), np.arange(100, 150)), (np.arange(50, 150), np.arange(100))]
    splits[1] = (np.arange(100, 150), np.arange(100))
    with pytest.warns(RuntimeWarning, match="the others get 0, the smallest number"):
        p = cross_val_predict(LSSVC(), X, y, cv=splits, method="predict_proba")
    assert (p[100:, 2] == 0.0).all()
    assert (p[:100, 2] == 1.0).all()
