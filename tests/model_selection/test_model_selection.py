"""scikit-learn's own functions are the oracle: same estimator, same splits, same numbers."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_matrix
from sklearn import config_context, model_selection
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import Ridge
from sklearn.metrics import (
    make_scorer,
)
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cases import PENALTIES, penalty_name
from traceless import LSSVC, LSSVR, Knowledge
from traceless.features import Linear
from traceless.model_selection import (
    cross_val_predict,
    cross_val_score,
    cross_validate,
    influence,
    leave_one_out,
    select_rho,
)
from traceless.model_selection.held_out import FullModel
from traceless.model_selection.least_squares_folds import LeastSquaresFolds

N = 60
CLOSE = {"rtol": 1e-10, "atol": 1e-12}


def data(kind, rng=None, n=N):
    """Rows, labels or targets, and an estimator for them."""
    rng = rng or np.random.default_rng(7)
    X = rng.normal(size=(n, 4))
    if kind == "two":
        return X, np.where(X[:, 0] + rng.normal(size=n) > 0, "yes", "no"), LSSVC()
    if kind == "three":
        return X, np.argmax(X[:, :3] + rng.normal(size=(n, 3)), axis=1), LSSVC(rho=0.3)
    y = X[:, :2] + 0.3 * rng.normal(size=(n, 2))
    return X, (y[:, 0] if kind == "target" else y), LSSVR(rho=0.2)


KINDS = ["two", "three", "target", "targets"]
SPLITTERS = {
    "default": None,
    "int": 4,
    "KFold": KFold(5),
    "shuffled": KFold(7, shuffle=True, random_state=0),
    "Repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=1),
    "gaps": ShuffleSplit(4, train_size=0.5, test_size=0.2, random_state=2),
    "small train": ShuffleSplit(4, train_size=0.3, test_size=0.2, random_state=3),
    "TimeSeries": TimeSeriesSplit(4),
    "LeaveOneOut": LeaveOneOut(),
}
SCORE = {"two": "roc_auc", "three": None, "target": "r2", "targets": "neg_mean_squared_error"}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


# --- the same numbers as scikit-learn --------------------------------------------------------


@pytest.mark.parametrize("cv", SPLITTERS.values(), ids=SPLITTERS)
def test_subtracting_gives_the_bits_of_scikit_learn(kind, cv):
    X, y, estimator = data(kind)
    single = isinstance(cv, LeaveOneOut)
    scoring = (
        {"target": "neg_mean_absolute_error", "two": None}.get(kind) if single else SCORE[kind]
    )
    if single and kind == "targets":
        scoring = "neg_mean_squared_error"
    ours = cross_val_score(estimator, X, y, cv=cv, scoring=scoring, path="subtract")
    theirs = model_selection.cross_val_score(estimator, X, y, cv=cv, scoring=scoring)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("path", ["subtract", "hat", "auto"])
@pytest.mark.parametrize(
    "cv", [3, KFold(9), KFold(30, shuffle=True, random_state=1), LeaveOneOut()]
)
def test_held_out_values_are_those_of_scikit_learn(kind, cv, path):
    X, y, estimator = data(kind)
    methods = ["predict", "decision_function"] if kind in ("two", "three") else ["predict"]
    for method in methods:
        ours = cross_val_predict(estimator, X, y, cv=cv, method=method, path=path)
        theirs = model_selection.cross_val_predict(estimator, X, y, cv=cv, method=method)
        assert ours.dtype.kind == theirs.dtype.kind
        if path == "subtract" or ours.dtype.kind in "iU":
            assert ours.tolist() == theirs.tolist()
        else:
            assert_allclose(ours, theirs, **CLOSE)
            assert (ours != theirs).any() or path == "auto"  # else it was not the closed form


def test_groups_and_stratification(rng):
    X, y, estimator = data("three")
    groups = rng.integers(0, 12, size=N)
    for cv, g in ((GroupKFold(4), groups), (StratifiedKFold(4), None)):
        for path in ("subtract", "hat"):
            ours = cross_val_score(estimator, X, y, cv=cv, groups=g, path=path)
            assert (
                ours.tolist()
                == model_selection.cross_val_score(estimator, X, y, cv=cv, groups=g).tolist()
            )


def test_splits_of_any_kind():
    """Repeated rows, negative indices, masks, gaps, and rows both learned and tested."""
    X, y, estimator = data("target")
    everything = np.arange(N)
    splits = [
        (np.r_[0:30, 0:30, 31], np.arange(40, 60)),
        (np.arange(-50, 0), np.arange(5)),
        (everything > 20, everything <= 15),
        (np.arange(20, 60), np.arange(10, 30)),
        (np.arange(1, 60), np.array([0])),
        (everything, np.array([3, 3, 4])),
        (np.arange(2, 60), np.array([1, 0, 1])),
    ]
    scoring = "neg_mean_squared_error"
    theirs = model_selection.cross_val_score(estimator, X, y, cv=splits, scoring=scoring)
    ours = cross_val_score(estimator, X, y, cv=iter(splits), scoring=scoring, path="subtract")
    assert ours.tolist() == theirs.tolist()
    ours = cross_val_score(estimator, X, y, cv=splits, scoring=scoring, path="hat")
    assert_allclose(ours, theirs, **CLOSE)


@pytest.mark.parametrize("whole", [True, False])
def test_sample_weights(kind, rng, whole):
    X, y, estimator = data(kind)
    weight = rng.integers(0, 4, size=N) if whole else 3 * rng.random(N) * (rng.random(N) < 0.8)
    params = {"sample_weight": weight}
    method = "decision_function" if kind in ("two", "three") else "predict"
    for cv in (KFold(3), KFold(20)):
        args = {"X": X, "y": y, "cv": cv, "params": params, "method": method}
        theirs = model_selection.cross_val_predict(estimator, **args)
        assert np.array_equal(cross_val_predict(estimator, **args, path="subtract"), theirs)
        assert_allclose(cross_val_predict(estimator, **args, path="hat"), theirs, **CLOSE)


# --- options ------------------------------------------------------------------------------------


def half_right(estimator, X, y):
    """A scorer of one's own that asks the model for more than the test rows."""
    return {
        "half": np.mean(estimator.predict(X) == y) / 2,
        "size": float(np.abs(estimator.coef_).sum()),
        "copy": np.mean(estimator.predict(np.array(X)) == y),
        "rows": estimator.n_samples_ + len(estimator.digest()),
    }


@pytest.mark.parametrize("path", ["subtract", "hat", "auto"])
@pytest.mark.parametrize(
    "scoring",
    [
        None,
        "roc_auc",
        "balanced_accuracy",
        ["accuracy", "roc_auc", "average_precision"],
        {"a": "accuracy", "f": make_scorer(lambda y, p: np.mean(y == p))},
        half_right,
    ],
    ids=["default", "auc", "name", "list", "dict", "callable"],
)
def test_any_scoring(scoring, path):
    X, y, estimator = data("two")
    y = (y == "yes").astype(int)
    args = {"X": X, "y": y, "cv": StratifiedKFold(20), "scoring": scoring}
    ours = cross_validate(estimator, **args, path=path)
    theirs = model_selection.cross_validate(estimator, **args)
    assert list(ours) == list(theirs)
    for key in theirs:
        if not key.endswith("_time"):
            assert ours[key].tolist() == theirs[key].tolist(), key


def tied_rows(kind, rng):
    """Rows of which many get exactly equal scores from any model."""
    if kind == "of twos":
        return rng.integers(0, 2, (N, 3)).astype(float)
    if kind == "once each":  # held out, its column is unknown
        return np.eye(N)[rng.permutation(N)]
    half = rng.normal(size=(N // 2, 3))
    return np.vstack([half, half])[rng.permutation(N)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["of twos", "once each", "twins"])
def test_ties_are_those_of_refits(kind, n_classes, weighted, rng):
    X, y = tied_rows(kind, rng), rng.permutation(np.arange(N) % n_classes)
    params = {"sample_weight": rng.integers(0, 3, N)} if weighted else None
    model = LSSVC(rho=0.5, standardize=kind == "of twos")
    scoring = ["accuracy"] + ["roc_auc", "average_precision"] * (n_classes == 2)
    args = {"cv": StratifiedKFold(6), "scoring": scoring, "params": params}
    ours = cross_validate(model, X, y, **args, path="hat")
    theirs = model_selection.cross_validate(model, X, y, **args)
    for metric in scoring:
        assert ours[f"test_{metric}"].tolist() == theirs[f"test_{metric}"].tolist()
    args = {"cv": LeaveOneOut(), "params": params}
    labels = model_selection.cross_val_predict(model, X, y, **args)
    assert cross_val_predict(model, X, y, **args, path="hat").tolist() == labels.tolist()


def test_everything_that_can_be_returned():
    X, y, estimator = data("three")
    estimator.set_params(feature_map=Linear())
    options = {"return_train_score": True, "return_estimator": True, "return_indices": True}
    args = {"X": X, "y": y, "cv": KFold(20), "scoring": ["accuracy", "f1_macro"], **options}
    ours = cross_validate(estimator, **args)
    theirs = model_selection.cross_validate(estimator, **args)
    assert list(ours) == list(theirs)
    for key in ("test_accuracy", "train_accuracy", "test_f1_macro", "train_f1_macro"):
        assert ours[key].tolist() == theirs[key].tolist()
    for a, b in zip(ours["estimator"], theirs["estimator"], strict=True):
        assert a.digest() == b.digest()
        assert np.array_equal(a.coef_, b.coef_)
        assert repr(a.get_params()) == repr(b.get_params())
    assert len({id(model.feature_map) for model in (estimator, *ours["estimator"])}) == 21
    for part in ("train", "test"):
        for a, b in zip(ours["indices"][part], theirs["indices"][part], strict=True):
            assert np.array_equal(a, b)
    assert (ours["fit_time"] > 0).all()
    assert (ours["score_time"] > 0).all()


class Renamed(LSSVR):
    """An estimator whose parameters are no attributes of these names."""

    def __init__(self, alpha=1.0, solver="auto"):
        super().__init__(rho=alpha)
        self._parameters = {"alpha": alpha, "solver": solver}

    def get_params(self, deep=True):  # noqa: ARG002
        return self._parameters


def test_parameters_may_have_other_names():
    X, y, _ = data("target")
    ours = cross_validate(Renamed(0.3), X, y, cv=3, return_estimator=True)
    theirs = model_selection.cross_validate(LSSVR(rho=0.3), X, y, cv=3, return_estimator=True)
    assert ours["test_score"].tolist() == theirs["test_score"].tolist()
    for a, b in zip(ours["estimator"], theirs["estimator"], strict=True):
        assert a.get_params() == {"alpha": 0.3, "solver": "auto"}
        assert np.array_equal(a.fit(X, y).coef_, b.fit(X, y).coef_)  # and learn on as its own


def test_pandas_keeps_its_names_and_sparse_rows_work(kind):
    X, y, estimator = data(kind)
    frame = pd.DataFrame(X, columns=list("abcd"))
    theirs = model_selection.cross_validate(
        estimator, frame, pd.Series(y) if y.ndim == 1 else y, cv=3
    )
    for rows in (frame, csr_matrix(X), X.tolist()):
        ours = cross_validate(estimator, rows, y.tolist(), cv=3, return_estimator=True)
        assert ours["test_score"].tolist() == theirs["test_score"].tolist()
    ours = cross_validate(estimator, frame, y, cv=3, return_estimator=True)
    assert list(ours["estimator"][0].feature_names_in_) == list("abcd")
    single = cross_val_predict(estimator, frame, y, cv=KFold(30))
    assert single.shape == y.shape


def test_what_has_no_score_fails_as_in_scikit_learn():
    X, y, estimator = data("two")
    estimator.set_params(class_weight="balanced", weighting="one_vs_rest")  # no probabilities
    for function in (cross_val_score, model_selection.cross_val_score):
        with pytest.warns(UserWarning, match="Scoring failed"):
            assert np.isnan(function(estimator, X, y, cv=2, scoring="neg_log_loss")).all()
        with pytest.raises(AttributeError, match="predict_proba"):
            function(estimator, X, y, cv=2, scoring="neg_log_loss", error_score="raise")
    for function in (cross_val_predict, model_selection.cross_val_predict):
        with pytest.raises(AttributeError, match="predict_proba"):
            function(estimator, X, y, cv=2, method="predict_proba")
        with pytest.raises(ValueError, match="only works for partitions"):
            function(estimator, X, y, cv=ShuffleSplit(2))


def test_a_fold_that_cannot_be_learned():
    X, y, estimator = data("target")
    params = {"sample_weight": np.r_[np.ones(20), np.zeros(40)]}
    for function in (cross_val_score, model_selection.cross_val_score):
        with pytest.warns(FitFailedWarning, match="1 fits failed out of a total of 3"):
            scores = function(estimator, X, y, cv=KFold(3), params=params, error_score=-7)
        assert (scores == -7).tolist() == [True, False, False]
        with pytest.raises(ValueError, match="nothing to learn"):
            function(estimator, X, y, cv=KFold(3), params=params, error_score="raise")


def test_a_fold_that_holds_all_of_a_class():
    X, y, estimator = data("three")
    y = np.where(np.arange(N) < 3, 3, y)  # a fourth class, all in one fold
    cv = KFold(20)
    theirs = model_selection.cross_val_predict(estimator, X, y, cv=cv)
    for path in ("hat", "auto", "subtract"):
        assert cross_val_predict(estimator, X, y, cv=cv, path=path).tolist() == theirs.tolist()
    with pytest.warns(RuntimeWarning, match="classes"):
        theirs = model_selection.cross_val_predict(
            estimator, X, y, cv=cv, method="decision_function"
        )
    with pytest.warns(RuntimeWarning, match="3 of 4 classes"):
        ours = cross_val_predict(estimator, X, y, cv=cv, method="decision_function")
    assert_allclose(ours, theirs, **CLOSE)
    assert np.array_equal(ours[:3], theirs[:3])  # the fold without the class was subtracted
    y = np.where(np.arange(N) < 3, "rare", "common")
    for function in (cross_val_predict, model_selection.cross_val_predict):
        assert (function(estimator, X, y, cv=cv)[:3] == "common").all()
        with (
            warnings.catch_warnings(action="ignore"),
            pytest.raises(ValueError, match=r"1 of 2 classes|Only 1 class"),
        ):
            function(estimator, X, y, cv=cv, method="decision_function")


def test_which_way_is_chosen(monkeypatch):
    X, y, estimator = data("target")  # 5 features
    seen = []
    original = FullModel.folds
    monkeypatch.setattr(
        FullModel,
        "folds",
        lambda self, folds, *a: seen.append(len(folds)) or original(self, folds, *a),
    )
    cross_val_predict(estimator, X, y, cv=KFold(12))
    assert seen == []  # 5 rows are no fewer than 5 features
    cross_val_predict(estimator, X, y, cv=KFold(15))
    assert seen == [15]
    cross_validate(estimator, X, y, cv=KFold(15), return_estimator=True)
    cross_val_predict(estimator, X, y, cv=KFold(15), path="subtract")
    assert seen == [15]
    cross_val_predict(estimator, X, y, cv=KFold(3), path="hat")
    assert seen == [15, 3]


def test_where_float64_is_not_enough_the_fold_is_subtracted(rng):
    X = rng.normal(size=(N, 5))
    X[0] *= 1e4
    estimator = LSSVR(Linear(resolution=2**-30), rho=1e-9)
    y = X[:, 0] + rng.normal(size=N)
    theirs = model_selection.cross_val_predict(estimator, X, y, cv=LeaveOneOut())
    ours = cross_val_predict(estimator, X, y, cv=LeaveOneOut(), path="hat")
    scale = np.abs(y).max()
    assert ours[0] == theirs[0]
    assert_allclose(ours, theirs, rtol=0, atol=1e-12 * scale)
    assert_allclose(leave_one_out(estimator, X, y), theirs, rtol=0, atol=1e-12 * scale)
    powers = np.vander(np.linspace(0, 1, N), 14)
    estimator = LSSVR(Linear(resolution=2**-40), rho=2**-45)
    theirs = model_selection.cross_val_predict(estimator, powers, y, cv=KFold(20))
    assert np.array_equal(cross_val_predict(estimator, powers, y, cv=KFold(20), path="hat"), theirs)


def test_the_estimator_is_never_changed(kind):
    X, y, estimator = data(kind)
    estimator.fit(X[:40], y[:40])
    before, state = estimator.digest(), dict(vars(estimator))
    rows = X.copy(), y.copy()
    cross_validate(estimator, X, y, cv=3, return_estimator=True)
    cross_val_predict(estimator, X, y, cv=KFold(20))
    influence(estimator, X, y)
    select_rho(estimator, X, y, [0.1, 1.0])
    assert estimator.digest() == before
    assert vars(estimator) == state
    assert np.array_equal(rows[0], X)
    assert np.array_equal(rows[1], y)


def test_what_is_refused():
    X, y, estimator = data("two")
    for other in (Ridge(), make_pipeline(StandardScaler(), LSSVC())):
        with pytest.raises(TypeError, match=r"sklearn\.model_selection"):
            cross_val_score(other, X, y)
        with pytest.raises(TypeError, match=r"sklearn\.model_selection"):
            influence(other, X, y)
    with pytest.raises(ValueError, match="path must be"):
        cross_val_score(estimator, X, y, path="quick")
    with pytest.raises(ValueError, match="makes no models"):
        cross_validate(estimator, X, y, path="hat", return_estimator=True)
    with pytest.raises(TypeError, match="sample_weight only, got colour"):
        cross_val_score(estimator, X, y, params={"colour": 1})
    with pytest.raises(ValueError, match=r"error_score.* must be"):
        cross_val_score(estimator, X, y, error_score="ignore")
    with pytest.raises(ValueError, match="must return a number"):
        cross_validate(estimator, X, y, scoring=lambda *_: None, error_score="raise")
    with config_context(enable_metadata_routing=True), pytest.raises(NotImplementedError):
        cross_val_score(estimator, X, y)
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        cross_val_score(estimator, X, y, params={"sample_weight": np.ones(3)})
    with pytest.raises(ValueError, match="All the 5 fits failed"):
        cross_val_score(LSSVC(rho=-1), X, y, path="subtract")


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, csr_matrix, np.ndarray.tolist])
def test_precomputed_answers_are_given_to_the_held_out_rows_only(make):
    """Other rows are answered by the exact model, also where they are equal once converted."""
    X, y, estimator = data("two")
    X = np.rint(X * 2**10).astype(np.int64)
    rows = make(X)

    def scorer(model, test, labels):
        right = model.score(test, labels)
        assert right == float((model.predict(test) == labels).mean())
        assert "_state" not in vars(model)
        with pytest.raises(ValueError, match="NaN"):
            model.decision_function(X[:1] * np.nan)
        assert "_state" in vars(model)
        return right

    ours = cross_val_score(estimator, rows, y, cv=LeaveOneOut(), scoring=scorer)
    assert ours.tolist() == cross_val_score(estimator, X, y, cv=LeaveOneOut()).tolist()
    folds = LeastSquaresFolds(estimator, (rows, y, None), LeaveOneOut(), None)
    folds.known_scores = {0: np.array([[7.0]])}
    model = folds.model(0)
    assert model.decision_function(rows[:1]) == 7.0
    assert model.decision_function(X[:1].astype(np.float64)) != 7.0


# --- leave-one-out and influence ------------------------------------------------------------------


def refits(estimator, X, y, weight=None):
    """Held-out and fitted answers of every row, by fitting all models."""
    answer = "decision_function" if hasattr(estimator, "decision_function") else "predict"
    weight = np.ones(len(y)) if weight is None else weight
    full = getattr(clone(estimator).fit(X, y, weight), answer)(X)
    held_out = []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        model = clone(estimator).fit(X[rest], y[rest], weight[rest])
        held_out.append(getattr(model, answer)(X[[i]])[0])
    return np.array(held_out), full


@pytest.mark.parametrize("weighted", [False, True])
def test_influence_is_that_of_refits(kind, rng, weighted):
    X, y, estimator = data(kind)
    weight = rng.integers(0, 3, size=N) / 2 if weighted else None
    held_out, full = refits(estimator, X, y, weight)
    found = influence(estimator, X, y, weight)
    assert_allclose(found.held_out, held_out, **CLOSE)
    assert_allclose(found.change, held_out - full, **CLOSE)
    assert np.array_equal(leave_one_out(estimator, X, y, weight), found.held_out)
    if kind == "two":
        margin = np.where(y == "yes", 1, -1) * held_out
    elif kind == "three":
        margin = [s[c] - max(np.delete(s, c)) for s, c in zip(held_out, y, strict=True)]
    else:
        margin = -np.linalg.norm((y - held_out).reshape(N, -1), axis=1)
    assert_allclose(found.margin, margin, rtol=1e-4, atol=1e-4)  # targets are on a grid
    assert "60 rows" in repr(found)


def test_the_only_row_of_its_class_is_judged_by_the_others():
    X, y, estimator = data("three")
    y = np.where(np.arange(N) == 5, 9, y)
    found = influence(estimator, X, y)
    rest = np.arange(N) != 5
    without = LSSVR(rho=estimator.rho).fit(X[rest], np.full(N - 1, -1.0))  # never class 9
    assert_allclose(found.held_out[5, 3], without.predict(X[[5]])[0], rtol=1e-9)
    assert found.margin[5] < 0


def test_wrong_labels_and_targets_are_suspicious(rng):
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.sign(X[:, 0])
    wrong = rng.choice(300, size=12, replace=False)
    y[wrong] = 1 - y[wrong]
    found = influence(LSSVC(), X, y).suspicious(12)
    assert set(found) == set(wrong)
    target = X[:, 0] + 0.01 * rng.normal(size=300)
    target[wrong] += 5
    assert set(influence(LSSVR(), X, target).suspicious(12)) == set(wrong)
    with pytest.raises(ValueError, match="between 0 and the 300 rows"):
        influence(LSSVR(), X, target).suspicious(301)


# --- choosing rho -------------------------------------------------------------------------

RHOS = [1e-3, 0.1, 1.0, 30.0]


@pytest.mark.parametrize("cv", [3, KFold(30), ShuffleSplit(3, test_size=0.3, random_state=0)])
def test_choosing_rho_is_trying_each(kind, cv):
    X, y, estimator = data(kind)
    scoring = {"two": "roc_auc" if cv == 3 else None, "three": None}.get(
        kind, "neg_mean_squared_error"
    )
    result = select_rho(estimator, X, y, RHOS, cv=cv, scoring=scoring)
    for rho, scores in zip(RHOS, result.scores, strict=True):
        model = clone(estimator).set_params(rho=rho)
        theirs = model_selection.cross_val_score(model, X, y, cv=cv, scoring=scoring)
        assert_allclose(scores, theirs, **CLOSE)
    assert_allclose(result.mean, result.scores.mean(axis=1))
    assert_allclose(result.std, result.scores.std(axis=1))
    means = dict(zip(RHOS, result.mean, strict=True))
    assert result.best == max(rho for rho in RHOS if means[rho] == max(means.values()))
    assert clone(estimator).set_params(rho=result.best).fit(X, y).rho == result.best
    assert repr(result).count("best") == 1


def test_choosing_rho_where_a_class_vanishes_or_float64_is_not_enough(rng):
    X, y, estimator = data("three")
    y = np.where(np.arange(N) < 20, 3, np.where(y == 2, 1, y))  # class 3 is the first fold
    for cv in (KFold(3), KFold(2)):
        result = select_rho(estimator, X, y, RHOS, cv=cv)
        for rho, scores in zip(RHOS, result.scores, strict=True):
            model = clone(estimator).set_params(rho=rho)
            theirs = model_selection.cross_val_score(model, X, y, cv=cv)
            assert scores.tolist() == theirs.tolist()
    powers, target = np.vander(np.linspace(0, 1, N), 14), rng.normal(size=N)
    model = LSSVR(Linear(resolution=2**-40), rho=2**-45)
    for cv in (KFold(3), KFold(20)):
        result = select_rho(model, powers, target, [2**-45], cv, "neg_mean_squared_error")
        theirs = model_selection.cross_val_score(
            model, powers, target, cv=cv, scoring="neg_mean_squared_error"
        )
        assert result.scores[0].tolist() == theirs.tolist()


def test_what_select_rho_refuses():
    X, y, estimator = data("two")
    with pytest.raises(ValueError, match="rhos"):
        select_rho(estimator, X, y, [1.0, 0.0])
    with pytest.raises(ValueError, match="empty"):
        select_rho(estimator, X, y, [])
    with pytest.raises(ValueError, match="one score"):
        select_rho(estimator, X, y, RHOS, scoring=["accuracy"])
    tied = select_rho(estimator, X, y, [0.1, 0.2, 0.3], 3, lambda *_: 1.0)
    assert tied.best == 0.3


def test_closed_forms_need_a_number():
    X, y = load_iris(return_X_y=True)
    for closed in (leave_one_out, influence):
        with pytest.raises(ValueError, match="rho='evidence'"):
            closed(LSSVC(rho="evidence"), X, y)


def test_cross_validation_of_an_estimator_that_chooses_for_itself():
    X, y = load_diabetes(return_X_y=True)
    rhos = [0.1, 1.0, 10.0]
    ours, plain = (select_rho(LSSVR(rho=rho), X, y, rhos).scores for rho in ("evidence", 1.0))
    np.testing.assert_array_equal(ours, plain)


def test_every_fold_chooses_by_its_own_rows():
    X, y = load_diabetes(return_X_y=True)
    found = cross_val_score(LSSVR(rho="evidence"), X, y, cv=4)
    quarters = np.array_split(np.arange(len(y)), 4)
    for score, test in zip(found, quarters, strict=True):
        train = np.setdiff1d(np.arange(len(y)), test)
        assert score == LSSVR(rho="evidence").fit(X[train], y[train]).score(X[test], y[test])


# --- memory ------------------------------------------------------------------------


def test_folds_are_gathered_again_where_keeping_them_would_cost_too_much(monkeypatch):
    X, y, estimator = data("two")
    theirs = model_selection.cross_val_score(estimator, X, y, cv=6).tolist()
    monkeypatch.setattr("traceless.model_selection.least_squares_folds._MEMORY", 0)
    assert cross_val_score(estimator, X, y, cv=6, path="subtract").tolist() == theirs


@pytest.mark.parametrize("size", [1.0, 2.0**22])  # the last is too large for float64
@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
@pytest.mark.parametrize("kind", ["three", "target"])
def test_folds_have_the_bits_and_the_knowledge_of_refits(size, penalty, kind):
    X, y, estimator = data(kind)
    X = np.column_stack([X * size, np.zeros(N)])  # and a column without a coefficient
    estimator.set_params(**penalty)
    folds = LeastSquaresFolds(estimator, (X, y, None), KFold(4, shuffle=True, random_state=3), None)
    for k, split in enumerate(folds.splits):
        train = np.setdiff1d(np.arange(N), split.test)
        theirs, ours = clone(estimator).fit(X[train], y[train]), folds.model(k)
        assert np.array_equal(ours.coef_, theirs.coef_)
        assert np.array_equal(ours.intercept_, theirs.intercept_)
        assert ours.predict(X).tolist() == theirs.predict(X).tolist()
        assert ours.digest() == theirs.digest() == folds.training(k).digest()
        assert ours.n_samples_ == len(train)
        assert ours.forget(X[train[:5]], y[train[:5]]).digest() == (
            theirs.forget(X[train[:5]], y[train[:5]]).digest()
        )
        known = folds.training(k)
        assert type(pickle.loads(pickle.dumps(known))) is Knowledge
        assert (
            known + (folds.total - known) == folds.total == pickle.loads(pickle.dumps(folds.total))
        )
    assert folds.total.digest() == clone(estimator).fit(X, y).digest()


class TestClassWeights:
    """Weights follow the counts of each training part, so folds are taken out exactly."""

    def data(self, rng):
        y = np.repeat([0, 1, 2], [70, 30, 12])
        return rng.normal(size=(112, 20)) + y[:, None] / 3, y

    @pytest.mark.parametrize("weighting", ["shared", "one_vs_rest"])
    def test_scores_are_those_of_scikit_learn(self, weighting, rng):
        X, y = self.data(rng)
        model = LSSVC(class_weight="balanced", weighting=weighting)
        cv = StratifiedKFold(12, shuffle=True, random_state=0)  # folds of fewer rows than features
        ours = cross_val_predict(model, X, y, cv=cv, method="decision_function")
        theirs = model_selection.cross_val_predict(model, X, y, cv=cv, method="decision_function")
        assert np.array_equal(ours, theirs)
        found = select_rho(model, X, y, [0.1, 10.0], cv=cv)
        for rho, mean in zip(found.rhos, found.mean, strict=True):
            assert (
                mean
                == model_selection.cross_val_score(model.set_params(rho=rho), X, y, cv=cv).mean()
            )

    def test_closed_forms_say_why_not(self, rng):
        X, y = self.data(rng)
        model = LSSVC(class_weight="balanced")
        for ask in (
            lambda: leave_one_out(model, X, y),
            lambda: influence(model, X, y),
            lambda: cross_val_score(model, X, y, path="hat"),
        ):
            with pytest.raises(
                ValueError, match="which class weights and rho='evidence' do not allow"
            ):
                ask()


# --- all penalties -------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
def test_closed_forms_equal_refits_for_all_penalties(penalty, bias, weighted, rng):
    X = rng.normal(size=(40, 5)) * [1, 10, 0.1, 1, 3] + [0, 1000 if bias else 0, 0, 5, 0]
    y = X @ rng.normal(size=5) + rng.normal(size=40)
    X[:, 3] = 5.0
    X[7, 0] *= 50  # without this row the scale of its column is another
    w = rng.choice([1.0, 2.0, 0.5], 40) if weighted else None
    three = (y > np.median(y)).astype(int) + (y > np.quantile(y, 0.8))

    def refitted(model, folds, targets, ask):
        out = []
        for train, test in folds:
            model.fit(X[train], targets[train], None if w is None else w[train])
            out.append(getattr(model, ask)(X[test]))
        return np.concatenate(out)

    ones, tens = (list(KFold(k).split(X)) for k in (40, 10))
    regressor = LSSVR(Linear(bias=bias), rho=3.0, **penalty)
    classifier = LSSVC(Linear(bias=bias), rho=0.5, **penalty)
    params = None if w is None else {"sample_weight": w}
    for found, expected in (
        (leave_one_out(regressor, X, y, w), refitted(regressor, ones, y, "predict")),
        (
            cross_val_predict(regressor, X, y, cv=KFold(10), params=params),
            refitted(regressor, tens, y, "predict"),
        ),
        (
            leave_one_out(classifier, X, three, w),
            refitted(classifier, ones, three, "decision_function"),
        ),
    ):
        assert np.abs(found - expected).max() <= 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize("size", [1, 2, 5, 12, 30])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
def test_closed_forms_of_all_sizes_equal_subtraction(penalty, weighted, size, rng):
    """Folds of a few rows go by their own answers, larger ones by the matrix without them."""
    n, J = 240, 36
    X = rng.normal(size=(n, J)) * 10.0 ** rng.integers(-2, 3, J)
    X[:, :6] *= rng.random((n, 6)) < 0.03  # columns that few rows tell apart
    X[:, 0], X[:, 1] = 0.0, 0.0
    X[11, 0] = 3.0  # one row alone
    y = X[:, 5:9] @ rng.normal(size=(4, 2)) + rng.normal(size=(n, 2))
    w = rng.choice([1.0, 3.0, 0.25, 0.0], n) if weighted else None
    params, cv = None if w is None else {"sample_weight": w}, KFold(n // size)
    model = LSSVR(rho=2.0, **penalty)
    by_hat, exact = (
        cross_val_predict(model, X, y, cv=cv, params=params, path=path)
        for path in ("hat", "subtract")
    )
    assert np.abs(by_hat - exact).max() <= 1e-10 * np.abs(exact).max()


# --- rows that are not copied ----------------------------------------------------------------
