"""Changes that are published whole, after errors at any line; `traceless.checks` has threads."""

import copy
import pickle
import random
import sys

import joblib
import numpy as np
import pytest

from traceless import LSSVC, LSSVR, MismatchError, NotLearnedError
from traceless.features import RandomFourier
from traceless.transaction import Changeable, changing, snapshot


class Counter(Changeable):
    def __init__(self, step=1):
        self.step = step

    def add(self, then=None):
        with changing(self) as draft:
            draft.total_ = getattr(draft, "total_", 0) + draft.step
            if then is not None:
                then()
            draft.twice_ = 2 * draft.total_
        return self


def fail():
    raise KeyboardInterrupt


def test_a_change_is_published_whole_or_not_at_all():
    counter = Counter().add()
    before = vars(counter)
    with pytest.raises(KeyboardInterrupt):
        counter.add(then=fail)
    assert vars(counter) is before
    seen = []
    counter.add(then=lambda: seen.append((counter.total_, counter.twice_)))
    assert seen == [(1, 2)]
    assert (counter.total_, counter.twice_) == (2, 4)


def test_a_snapshot_stays_and_parameters_set_meanwhile_are_kept():
    counter = Counter().add()
    view = snapshot(counter)
    counter.add(then=lambda: setattr(counter, "step", 5))
    assert (view.total_, counter.total_, counter.step) == (1, 2, 5)


def test_each_copy_has_a_lock_of_its_own():
    counter = Counter().add()
    copies = copy.copy(counter), copy.deepcopy(counter), pickle.loads(pickle.dumps(counter))
    locks = {id(c._lock) for c in (counter, *copies)}
    assert len(locks) == 4
    assert all(vars(c) == vars(counter) for c in copies)


# --- live models: memory that is somebody else's ------------------------------------------------


def data(seed=0, n=260, width=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, width)), rng.integers(0, 3, n), rng.integers(1, 5, n).astype(float)


@pytest.fixture(params=[LSSVC, LSSVR])
def kind(request):
    return request.param


def live(kind, *rows):
    return kind(solver="woodbury").fit(*rows)


@pytest.mark.parametrize("solver", ["cholesky", "woodbury"])
def test_models_in_memory_that_must_not_be_written(kind, tmp_path, solver):
    X, y, _ = data()
    model = kind(RandomFourier(400, gamma=0.2), solver=solver).fit(X[:200], y[:200])
    model.predict(X)
    joblib.dump(model, tmp_path / "model.joblib")
    others = [
        joblib.load(tmp_path / "model.joblib", mmap_mode="r"),
        joblib.load(tmp_path / "model.joblib", mmap_mode="r+"),
        joblib.load(tmp_path / "model.joblib", mmap_mode="r"),
    ]
    expected = copy.copy(model).update(add=(X[200:], y[200:]), forget=(X[:3], y[:3])).digest()
    for other in others[:-1]:
        other.partial_fit(X[200:201], y[200:201])
        other.update(add=(X[201:], y[201:]), forget=(X[:3], y[:3]))
        assert other.digest() == expected
    last = others[-1].partial_fit(X[200:201], y[200:201]).forget(X[200:201], y[200:201])
    assert last.digest() == model.digest()
    np.testing.assert_allclose(last.decision_function(X) if kind is LSSVC else last.predict(X),
                               model.decision_function(X) if kind is LSSVC else model.predict(X),
                               atol=1e-9)  # fmt: skip


# --- what is accepted can be held ---------------------------------------------------------------


def test_targets_of_another_width_are_refused_at_once():
    X, y, _ = data()
    model = live(LSSVR, X[:200], y[:200]).partial_fit(X[200:210], y[200:210, None])
    coef = model.coef_
    for rows in ((X[:1], np.ones((1, 2))), (X[:2], np.ones((2, 2)))):
        with pytest.raises(MismatchError, match="1 targets on one side and 2"):
            model.partial_fit(*rows)
    assert (model.coef_ == coef).all()
    model.partial_fit(X[210:], y[210:]).forget(X[:5], y[:5, None])
    assert model.digest() == LSSVR().fit(X[5:], y[5:]).digest()


def test_large_labels_of_two_types_keep_their_last_digit():
    X, _, _ = data()
    many = np.array([2**63 + 1, 2**63 + 3, 5] * 66, dtype=np.uint64)
    few = np.array([5, 2**62 + 1], dtype=np.int64)
    model = live(LSSVC, X[:198], many).partial_fit(X[198:200], few)
    labels = [5, 2**62 + 1, 2**63 + 1, 2**63 + 3]
    assert model.classes_.tolist() == labels
    assert model.knowledge_.responses == tuple(labels)
    model.partial_fit(X[200:201], [-1])
    assert model.classes_.tolist() == [-1, *labels]
    assert set(model.predict(X).tolist()) <= {-1, *labels}


# --- errors at any line -------------------------------------------------------------------------


class Injected(BaseException):
    pass


def interrupted(call, at):
    """Run a call and raise at the line of traceless with this number; whether it was reached."""
    left = [at]

    def trace(frame, event, _):
        if not frame.f_globals["__name__"].startswith("traceless."):
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise Injected
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except Injected:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("solver", ["cholesky", "woodbury"])
@pytest.mark.parametrize("case", ["one row", "both ways", "new class", "class gone", "many"])
def test_an_error_at_any_line_leaves_the_model_as_it_was(solver, case):
    X, y, _ = data(n=120)
    y[:2], y[2:] = 0, np.where(y[2:] == 0, 1, y[2:])
    one = (X[100:101], y[100:101])
    add, forget = {
        "one row": (one, None),
        "both ways": (one, (X[5:8], y[5:8])),
        "new class": ((X[100:102], np.array([7, 8])), None),
        "class gone": (None, (X[:2], y[:2])),
        "many": ((X[100:], y[100:]), (X[5:50], y[5:50])),
    }[case]
    expected = LSSVC().fit(X[:100], y[:100]).update(add=add, forget=forget)
    random.seed(case)
    lines = [*range(1, 40), *sorted(random.sample(range(40, 900), 60))]
    late = 0
    for at in lines:
        model = LSSVC(solver=solver).fit(X[:100], y[:100]).partial_fit(X[100:103], y[100:103])
        model.forget(X[100:103], y[100:103])
        digest, scores = model.digest(), model.decision_function(X)
        if not interrupted(lambda m=model: m.update(add=add, forget=forget), at):
            break
        if model.digest() == expected.digest():  # at the `return` behind the publication
            assert (model.seal().coef_ == expected.coef_).all()
            late += 1
            continue
        assert (model.decision_function(X) == scores).all(), at
        assert model.classes_.tolist() == [0, 1, 2]
        assert model.n_samples_ == 100
        assert model.digest() == digest, at
        model.update(add=add, forget=forget)
        assert model.digest() == expected.digest(), at
        assert (model.seal().coef_ == expected.coef_).all()
    assert at > 40
    assert late <= 2


def test_a_refused_forget_leaves_the_bits_of_a_live_model():
    for seed in range(20):
        X, y, _ = data(seed, n=30)
        model = LSSVC(RandomFourier(60, gamma=0.2), solver="woodbury").fit(X, y)
        coef = model.partial_fit(X[:3] + 1, y[:3]).feature_coef_
        wrong = (X[:20] * 9, y[:20]), (X[:1] * 9, y[:1]), (X[[0] * 40], y[[0] * 40])
        for rows in wrong:
            with pytest.raises(NotLearnedError):
                model.update(add=(X[:2], y[:2]), forget=rows)
            assert (model.feature_coef_ == coef).all()
