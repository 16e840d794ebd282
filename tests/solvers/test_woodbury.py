"""Live models: ready after each change, and never worse than a float64 retrain."""

import copy
import linecache
import pickle
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import cho_factor, cho_solve

from cases import PAPER, PENALTIES, examples, penalty_name, slow_plainly
from traceless import LSSVC, LSSVR, MismatchError, NotLearnedError, load
from traceless.checks import failures
from traceless.exceptions import ConditionError
from traceless.features import Linear, RandomFourier
from traceless.knowledge.sums import Recipe
from traceless.solvers import woodbury
from traceless.solvers.ridge import Penalty
from traceless.solvers.solve import solve
from traceless.solvers.woodbury import Woodbury

J = 40


class Stream:
    """A live regression with rows that come and go, beside exact and retrained answers."""

    def __init__(self, X, y, rho):
        self.phi, self.rho = Linear(bias=False).bind(X.shape[1]), rho
        recipe = Recipe(self.phi, "regression", 2**-14)
        self.state = Woodbury(recipe, recipe.knowledge((X, y, None)))
        self.state.inverse(Penalty(rho))

    def errors(self):
        """(error of the live coefficients, error of a float64 retrain), both relative."""
        U, known = self.state.inverse(Penalty(self.rho)).U, self.state.knowledge()
        steps = self.phi.steps[:, None]
        Z = solve(known.feature_gram, self.rho / steps[:, 0] ** 2, known.response_sums)
        exact = Z / steps
        S = known.feature_gram * steps * steps.T
        A = S + self.rho * np.eye(len(S))
        retrained = cho_solve(cho_factor(A), known.response_sums * steps)
        scale = np.linalg.norm(exact)
        return np.linalg.norm(U - exact) / scale, np.linalg.norm(retrained - exact) / scale

    def assert_as_good_as_retraining(self):
        ours, theirs = self.errors()
        assert ours <= 10 * max(theirs, 2e-16)


def rows(rng, n=1, size=1.0):
    return rng.normal(size=(n, J)) * size, rng.normal(size=n), None


# benchmarks.accuracy has 100 000 cycles
@pytest.mark.parametrize(("held", "cycles"), [(20, 300), (200, 3000)])
def test_cycles_of_adding_and_removing_at_a_tiny_rho(rng, held, cycles):
    stream = Stream(*rows(rng, held)[:2], rho=1e-6)
    some = [rows(rng) for _ in range(100)]
    for i in range(cycles):
        stream.state = stream.state.updated(some[i % 100], None, None)
        stream.state = stream.state.updated(None, some[i % 100], None)
        if i % (cycles // 20) == 0:
            stream.assert_as_good_as_retraining()
    stream.assert_as_good_as_retraining()


@pytest.mark.parametrize("rho", [1.0, 1e-2, 1e-6])
def test_a_window_shorter_than_the_number_of_features(rng, rho):
    window = [rows(rng) for _ in range(25)]
    stream = Stream(np.vstack([r[0] for r in window]), np.hstack([r[1] for r in window]), rho)
    for i in range(300):
        window.append(rows(rng))
        stream.state = stream.state.updated(window[-1], window.pop(0), None)
        if i % 20 == 0:
            stream.assert_as_good_as_retraining()
    assert stream.state.n_samples == 25
    stream.assert_as_good_as_retraining()


@pytest.mark.parametrize("rho", [1.0, 1e-3])
def test_outliers_that_come_and_go(rng, rho):
    window = [rows(rng) for _ in range(150)]
    stream = Stream(np.vstack([r[0] for r in window]), np.hstack([r[1] for r in window]), rho)
    for i in range(500):
        window.append(rows(rng, size=1e4 if rng.random() < 0.02 else 1.0))
        gone = window.pop(int(rng.integers(len(window) - 1)))
        stream.state = stream.state.updated(window[-1], gone, None)
        if i % 10 == 0:
            stream.assert_as_good_as_retraining()
    stream.assert_as_good_as_retraining()


# --- through the estimators ----------------------------------------------------------------------


def data(rng, n=300, classes=3):
    X = rng.normal(size=(n, 4))
    return X, rng.integers(0, classes, n)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * np.abs(b).max())


@pytest.mark.parametrize("phi", [Linear(), RandomFourier(60, gamma=0.2)])
def test_ready_after_each_change_and_sealed_to_the_bit(rng, phi):
    X, y = data(rng)
    weights = rng.uniform(0.5, 2, 300)
    model = LSSVC(phi, solver="woodbury").fit(X[:100], y[:100], weights[:100])
    for step in (slice(100, 101), slice(101, 104), slice(104, 150), slice(150, 300)):
        model.partial_fit(X[step], y[step], sample_weight=weights[step])
        held = slice(0, step.stop)
        close(model.feature_coef_, LSSVC(phi).fit(X[held], y[held], weights[held]).feature_coef_)
    model.update(add=(X[:1], y[:1]), forget=(X[:90], y[:90], weights[:90]))
    order = np.r_[90:300, 0]
    w = np.r_[weights[90:], 1.0]
    fresh = LSSVC(phi).fit(X[order], y[order], w)
    close(model.feature_coef_, fresh.feature_coef_)
    close(model.intercept_, fresh.intercept_)
    assert model.digest() == fresh.digest()
    model.seal()
    assert (model.feature_coef_ == fresh.feature_coef_).all()
    assert (model.predict(X) == fresh.predict(X)).all()
    model.forget(X[:1], y[:1])
    close(model.feature_coef_, LSSVC(phi).fit(X[90:], y[90:], weights[90:]).feature_coef_)


def test_rho_and_solver_may_change_at_any_time(rng):
    X, y = data(rng)
    model = LSSVC(solver="woodbury").fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    close(model.set_params(rho=3.0).coef_, LSSVC(rho=3.0).fit(X, y).coef_)
    model.set_params(solver="cholesky")
    assert (model.coef_ == LSSVC(rho=3.0).fit(X, y).coef_).all()
    model.set_params(solver="woodbury").forget(X[:9], y[:9])
    close(model.coef_, LSSVC(rho=3.0).fit(X[9:], y[9:]).coef_)
    with pytest.raises(ValueError, match="'cholesky' or 'woodbury', got 'magic'"):
        LSSVC(solver="magic").fit(X, y)


LIVE = {
    "rows that wait": lambda model, X, y: model.partial_fit(X[:2], y[:2]),
    "rows that make others be taken in": lambda model, X, y: model.update((X[:8], y[:8])),
    "rows that are taken in": lambda model, X, y: model.partial_fit(X[:36], y[:36]),
    "both ways": lambda model, X, y: model.update((X[:3], y[:3]), (X[-2:], y[-2:])),
}


@slow_plainly
@pytest.mark.parametrize("change", LIVE.values(), ids=LIVE)
def test_a_fault_at_any_line_leaves_a_live_model_to_the_bit(rng, change):
    """Also P: the change that follows a fault gives the bits that it gives without one."""
    X, y = np.rint(rng.normal(size=(80, 200)) * 64) / 64, np.rint(rng.normal(size=80) * 8)
    model = LSSVR(solver="woodbury").fit(X[40:], y[40:])
    for k in range(30):
        _ = model.partial_fit(X[k : k + 1], y[k : k + 1]).coef_  # these wait
    before, right = model.coef_, copy.copy(model)
    with failures._Tracing({"traceless"}) as usual:
        change(right, X, y)
    after, first = right.coef_, {}
    further = right.partial_fit(X[7:8], y[7:8]).coef_
    for number, line in enumerate(usual._lines, start=1):
        if not linecache.getline(*line).lstrip().startswith("with "):
            first.setdefault(line, number)
    assert {Path(name).name for name, _ in first} >= {"least_squares.py", "inverse.py"}
    for number in first.values():
        one = copy.copy(model)
        tracing = failures._Tracing({"traceless"}, number, interrupt=number % 2 == 1)
        with pytest.raises((failures._FaultError, failures._Interrupt)), tracing:
            change(one, X, y)
        if (one.coef_ == before).all():
            change(one, X, y)
        assert (one.coef_ == after).all(), tracing.where
        assert (one.partial_fit(X[7:8], y[7:8]).coef_ == further).all(), tracing.where


def test_a_pickle_carries_no_rows(rng):
    X, y = data(rng)
    secret = np.full((1, 4), 1.2345678901234567)
    model = LSSVC(solver="woodbury").fit(X, y).partial_fit(secret, [1]).forget(secret, [1])
    raw = pickle.dumps(model)
    assert secret.tobytes()[:8] not in raw
    other = pickle.loads(raw)
    assert other.digest() == LSSVC().fit(X, y).digest()
    close(other.coef_, model.coef_)


@pytest.mark.parametrize("settings", [PAPER, {}], ids=["papers", "default"])
def test_nor_sums_of_rows_that_have_gone(rng, settings):
    """BLAS works on one triangle of P: the other must not keep what the sums once were."""
    X, y = data(rng)
    model = LSSVC(solver="woodbury", **settings).fit(X, y)
    model.forget(X[:3], y[:3]).coef_  # noqa: B018
    for other in (model, pickle.loads(pickle.dumps(model))):
        P = other._state._inverse.__getstate__()["stored"].P()
        assert not np.tril(P, -1).any()


@pytest.mark.parametrize("settings", [PAPER, {"standardize": False}, {}], ids=str)
def test_whoever_reads_a_live_model_does_not_change_it(rng, settings, tmp_path):
    """To the last bit of all later coefficients; what is read has those of today."""
    X, y = rng.normal(size=(90, 20)) * np.arange(1.0, 21.0), rng.normal(size=90)
    read, alone = (LSSVR(solver="woodbury", **settings).fit(X[:40], y[:40]) for _ in range(2))
    for k in range(40, 90):
        for model in (read, alone):
            model.update(
                add=(X[k : k + 1], y[k : k + 1]), forget=(X[k - 40 : k - 39], y[k - 40 : k - 39])
            )
        others = pickle.loads(pickle.dumps(read)), copy.deepcopy(read)
        read.save(tmp_path / "model")
        read.digest()
        if settings == PAPER:
            read.export_state()
        if k % 3 == 0:
            for other in (*others, load(tmp_path / "model"), alone):
                assert (other.coef_ == read.coef_).all()
    assert (alone.coef_ == read.coef_).all()


def test_long_queues_are_folded(rng):
    X, y = data(rng)
    model = LSSVC(solver="woodbury").fit(X[:100], y[:100])
    for i in range(100, 300):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        assert sum(len(q.change.F) for q in model._state._exact[1]) <= 64
    assert model.digest() == LSSVC().fit(X, y).digest()


def test_a_queue_of_all_kinds_is_folded_at_once(rng, monkeypatch):
    monkeypatch.setattr(woodbury, "_FAR_ENOUGH", np.inf)  # nor does a look fold it
    X, y = data(rng)
    labels = np.array(["a", "bb", "c"])[y]
    phi = RandomFourier(80, gamma=0.2)
    model = LSSVC(phi, solver="woodbury").fit(X[:100], labels[:100])
    model.partial_fit(X[100:103], labels[100:103].tolist())
    model.partial_fit(X[103:105], labels[103:105].astype(object), sample_weight=[0.5, 3.0])
    model.update(add=(X[105:106], ["new"], 2.0), forget=(X[:4], labels[:4]))
    model.forget(X[103:104], labels[103:104], [0.5])
    rows = np.r_[4:103, 104, 105]
    fresh = LSSVC(phi).fit(
        X[rows], np.r_[labels[4:103], labels[104:105], ["new"]], np.r_[np.ones(99), 3, 2]
    )
    assert len(model._state._exact[1]) == 5
    assert model.digest() == fresh.digest()
    close(model.feature_coef_, fresh.feature_coef_)


@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
def test_ill_conditioned_systems_name_the_other_solver(rng):
    X = rng.integers(-(2**30), 2**30, size=(3, 6)).astype(float)
    with pytest.raises(ConditionError, match="solver='cholesky'"):
        LSSVC(rho=1e-6, solver="woodbury", **PAPER).fit(X, [0, 1, 0])
    with pytest.raises(ConditionError, match="solver='cholesky'"):
        LSSVC(rho=1e-30, solver="woodbury").fit(X, [0, 1, 0])


# --- all penalties -------------------------------------------------------------------------------

TABLE_ROWS, TABLE_COLUMNS = 50, 6


def table(rng, far):
    """Columns of many sizes, some far from zero, one that never varies, and targets."""
    size = 10.0 ** rng.integers(-1, 3, TABLE_COLUMNS)
    far = rng.choice([0, far / 100, far], TABLE_COLUMNS)
    X = rng.normal(size=(TABLE_ROWS, TABLE_COLUMNS)) * size + far
    y = (X - far) @ rng.normal(size=TABLE_COLUMNS) + rng.normal(size=TABLE_ROWS) + 100.0
    X[:, 3] = 5.0
    return X, y


def same(live, exact, X):
    a, b = live.predict(X), exact.predict(X)
    assert np.abs(a - b).max() <= 1e-10 * np.abs(b).max()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
@examples(8)
@given(seed=st.integers(0, 2**32 - 1))
def test_live_histories_of_all_penalties(penalty, bias, seed):
    rng = np.random.default_rng(seed)
    X, y = table(rng, 1e5 if bias and penalty["free_intercept"] else 1.0)  # which float64 can hold
    weights = rng.choice([0.5, 1.0, 2.0], TABLE_ROWS)
    live, exact = (LSSVR(Linear(bias=bias), solver=s, **penalty) for s in ("woodbury", "cholesky"))
    held = list(range(30))
    for model in (live, exact):
        model.fit(X[held], y[held], weights[held])
    for i in range(30, TABLE_ROWS):
        gone = [held.pop(int(rng.integers(len(held)))) for _ in range(rng.integers(0, 3))]
        held.append(i)
        for model in (live, exact):
            model.partial_fit(X[i : i + 1], y[i : i + 1], weights[i : i + 1])
            if gone:
                model.forget(X[gone], y[gone], weights[gone])
        same(live, exact, X)
    assert live.digest() == exact.digest()
    assert (live.seal().coef_ == exact.coef_).all()
    assert (live.predict(X) == exact.predict(X)).all()


@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
def test_a_column_that_begins_constant_and_one_that_ends_so(rng, penalty):
    X, y = rng.integers(-9, 9, size=(40, 3)).astype(float), rng.normal(size=40)
    X[:20, 0], X[20:, 1] = 7.0, -3.0
    live, exact = (LSSVR(solver=s, **penalty) for s in ("woodbury", "cholesky"))
    for model in (live, exact):
        model.fit(X[:20], y[:20])
    for i in range(20, 40):  # one comes, and one goes: in the end column 1 is constant
        for model in (live, exact):
            model.partial_fit(X[i : i + 1], y[i : i + 1]).forget(
                X[i - 20 : i - 19], y[i - 20 : i - 19]
            )
        same(live, exact, X)
        np.testing.assert_allclose(live.coef_, exact.coef_, rtol=1e-9, atol=1e-12)
    if penalty["standardize"]:
        assert abs(live.coef_[1]) < 1e-25  # its ridge is 2^100
        assert live.coef_[0] != 0.0


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
def test_forgetting_down_to_one_row_and_to_none(rng, penalty, bias):
    X, y = rng.normal(size=(12, 3)) + 50.0, rng.normal(size=12)
    live = LSSVR(Linear(bias=bias), solver="woodbury", **penalty).fit(X, y)
    for i in range(11):
        live.forget(X[i : i + 1], y[i : i + 1])
        same(live, LSSVR(Linear(bias=bias), **penalty).fit(X[i + 1 :], y[i + 1 :]), X)
    live.forget(X[11:], y[11:])
    assert live.n_samples_ == 0
    assert not live.knowledge_.gram.any()
    live.partial_fit(X, y)
    same(live, LSSVR(Linear(bias=bias), **penalty).fit(X, y), X)


@pytest.mark.parametrize("rho", [1.0, 1e-3])  # the smaller, the more strain has a last row
def test_all_rows_of_all_classes_may_go_while_columns_of_p_wait(rng, rho):
    X, y = rng.normal(size=(8, 4)), np.arange(8) % 3
    live = LSSVC(solver="woodbury", rho=rho, free_intercept=False, standardize=False).fit(X, y)
    for i in range(8):
        live.predict(X[:1])
        live.forget(X[i : i + 1], y[i : i + 1])
    assert live.n_samples_ == 0
    live.partial_fit(X, y)
    assert live.digest() == LSSVC().fit(X, y).digest()


@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
def test_rows_never_learned_are_refused_with_any_penalty(rng, penalty):
    far = 1000.0 if penalty["free_intercept"] else 0.0
    X, y = rng.normal(size=(10, 20)) + far, rng.normal(size=10)
    live = LSSVR(solver="woodbury", rho=1e-3, **penalty).fit(X, y)
    live.partial_fit(X[:1], y[:1])
    digest, before = live.digest(), live.predict(X)
    for strange in (X[:1] + 1.0, 2 * X[:1], rng.normal(size=(3, 20))):
        with pytest.raises(NotLearnedError, match="not those of any data set"):
            live.forget(strange, np.ones(len(strange)))
    assert live.digest() == digest
    assert (live.predict(X) == before).all()
    live.forget(X[:1], y[:1])
    same(live, LSSVR(rho=1e-3, **penalty).fit(X, y), X)


def test_the_penalty_may_change_at_any_time(rng):
    X, y = data(rng)
    live = LSSVC(solver="woodbury").fit(X, y)
    for penalty in [*PENALTIES, PENALTIES[0]]:
        live.set_params(**penalty).forget(X[:1], y[:1]).partial_fit(X[:1], y[:1])
        fresh = LSSVC(**penalty).fit(X, y)
        close(live.coef_, fresh.coef_)
        close(live.intercept_, fresh.intercept_)
        assert live.digest() == fresh.digest()


def test_a_zero_last_column_without_a_constant_feature(rng):
    X, y = rng.normal(size=(20, 3)) * [1, 1, 0], rng.normal(size=20)
    live, exact = (LSSVR(Linear(bias=False), solver=s).fit(X, y) for s in ("woodbury", "cholesky"))
    same(live, exact, X)
    assert exact.coef_[2] == 0.0


# --- the paper's state, without the knowledge -----------------------------------------------------


def test_import_checks_what_it_is_given(rng):
    X, y = data(rng)
    state = LSSVC(solver="woodbury", **PAPER).fit(X, y).export_state()
    for model, error, message in (
        (
            LSSVC(Linear(bias=False), solver="woodbury", **PAPER),
            MismatchError,
            "bias is False here",
        ),
        (LSSVC(rho=2.0, solver="woodbury", **PAPER), MismatchError, r"rho is 2\.0 here and 1\.0"),
        (LSSVC(**PAPER), ValueError, "needs solver='woodbury'"),
        (LSSVC(solver="woodbury"), ValueError, "free_intercept=False and standardize=False"),
        (LSSVR(solver="woodbury", **PAPER), MismatchError, "target_resolution|classification"),
    ):
        with pytest.raises(error, match=message):
            model.import_state(state)
        assert vars(model) == vars(copy.copy(model))
        assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match="format"):
        LSSVC(solver="woodbury", **PAPER).import_state({})


def test_p_is_seldom_built_anew(rng, monkeypatch):
    """Also where nobody asks for coefficients: without P each removal would be checked anew."""
    X, y = rng.normal(size=(80, 12)), rng.normal(size=80)
    live = LSSVR(solver="woodbury", **PAPER).fit(X[:60], y[:60])
    assert live.coef_.shape == (12,)
    built, build = [], Woodbury._built

    def counted(state, penalty):
        built.append(penalty)
        return build(state, penalty)

    monkeypatch.setattr(Woodbury, "_built", counted)
    for i in range(1500):
        come, go = [(60 + i) % 80], [i % 80]
        live.update(add=(X[come], y[come]), forget=(X[go], y[go]))
    assert 0 < len(built) < 150
    assert live._state._inverse is not None


def test_many_rows_are_learned_and_forgotten_in_little_memory():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40_000, 64)), rng.normal(size=40_000)
    model = LSSVR(solver="woodbury").fit(X[:200], y[:200])
    tracemalloc.start()
    try:
        model.partial_fit(X[200:], y[200:]).forget(X[300:], y[300:])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes / 2  # codes of all rows would take as much as the rows
    assert model.digest() == LSSVR().fit(X[:300], y[:300]).digest()


@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
def test_a_row_that_hides_all_others_leaves_nothing_when_it_goes(rng, penalty):
    """P has lost their digits then, and is blind to what it lacks: it must be made anew."""
    X = np.rint(rng.normal(size=(50, 5)) * 2**10) / 2**10
    y = X[:, 0] + rng.normal(size=50)
    for size in (1e4, 1e6, 3e7):
        live = LSSVR(solver="woodbury", **penalty).fit(X, y)
        outlier = np.round(rng.normal(size=(1, 5)) * size)
        for target in ([1.0], live.predict(outlier)):  # which moves no coefficient
            live.partial_fit(outlier, target).forget(outlier, target)
            same(live, LSSVR(**penalty).fit(X, y), X)
