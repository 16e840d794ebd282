"""Guards: exactly the rows that a model holds can be forgotten, whatever its sums would allow."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris

import traceless
from cases import PAPER
from traceless import LSSVC, LSSVR, Knowledge, MismatchError, NotLearnedError

X, Y = load_iris(return_X_y=True)
SOLVERS = pytest.mark.parametrize("solver", ["cholesky", "woodbury"])


def guarded(kind=LSSVC, n=100, **parameters):
    return kind(guard=True, **parameters).fit(X[:n], Y[:n])


@SOLVERS
@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
def test_only_rows_that_are_held_can_be_forgotten(kind, solver):
    """The cases that sums let pass on iris: twice, invented, another label, another weight."""
    model = guarded(kind, solver=solver).forget(X[3:4], Y[3:4])
    digest, coef = model.digest(), model.coef_
    refused = {
        "twice": (X[3:4], Y[3:4]),
        "invented": (X[3:4] + 0.5, Y[3:4]),
        "label": (X[4:5], Y[4:5] + 1),
        "weight": (X[4:5], Y[4:5], [2.0]),
        "one step of the grid": (X[4:5] + 2**-14, Y[4:5]),
        "held once, asked for twice": (X[[50, 50]], Y[[50, 50]]),
    }
    for what, rows in refused.items():
        with pytest.raises(NotLearnedError, match="Nothing was changed"):
            model.forget(*rows)
        assert model.digest() == digest, what
        assert (model.coef_ == coef).all(), what
    with pytest.raises(NotLearnedError, match="1 of the 2 rows"):  # 101 comes by the same change
        model.update(add=(X[100:102], Y[100:102]), forget=(X[[101, 4]], Y[[101, 4]]))
    with pytest.raises(NotLearnedError):
        kind(guard=True, solver=solver).update(add=(X[:2], Y[:2]), forget=(X[:1], Y[:1]))
    model.update(add=(X[100:102], Y[100:102]), forget=(X[[4, 5]], Y[[4, 5]]))
    model.update(add=(X[5:6], Y[5:6]), forget=(X[101:102], Y[101:102]))
    rows = [i for i in range(101) if i not in (3, 4)]
    assert model.digest() == kind().fit(X[rows], Y[rows]).digest()


def test_the_message_names_the_first_row_that_is_missing():
    with pytest.raises(NotLearnedError, match=r"2 of the 4 rows .* the first of them is row 1 "):
        guarded().forget(X[[0, 120, 1, 130]], Y[[0, 120, 1, 130]])


def test_equal_rows_count_as_often_as_they_were_learned():
    model = LSSVC(guard=True).fit(X[[0, 0, 0, 60]], Y[[0, 0, 0, 60]])
    model.forget(X[[0, 0]], Y[[0, 0]]).forget(X[:1], Y[:1])
    with pytest.raises(NotLearnedError):
        model.forget(X[:1], Y[:1])
    assert model.n_samples_ == 1


def test_rows_without_weight_are_no_rows():
    weight = np.ones(100)
    weight[7] = 0.0
    model = LSSVC(guard=True).fit(X[:100], Y[:100], weight)
    with pytest.raises(NotLearnedError):
        model.forget(X[7:8], Y[7:8])
    assert model.forget(X[6:9], Y[6:9], weight[6:9]).n_samples_ == 97


def held(model):
    (found,) = model._guard.digests.values()
    return set(found.tolist())


def test_what_is_forgotten_leaves_no_digest():
    model = guarded()
    before = held(model)
    model.partial_fit(X[120:121], Y[120:121]).forget(X[120:121], Y[120:121])
    assert held(model) == before
    assert len(model.forget(X[:100], Y[:100])._guard) == 0


@SOLVERS
def test_merged_models_keep_their_digests(solver):
    a, b = guarded(n=60, solver=solver), LSSVC(guard=True).fit(X[60:], Y[60:])
    a.merge(b).forget(X[[5, 80]], Y[[5, 80]])
    with pytest.raises(NotLearnedError):
        a.forget(X[80:81], Y[80:81])
    rows = np.delete(np.arange(150), [5, 80])
    assert a.digest() == LSSVC().fit(X[rows], Y[rows]).digest()
    twin = copy.copy(b).forget(X[60:65], Y[60:65])
    c = LSSVC(guard=True).merge(twin)
    assert len(c._guard) == c.n_samples_ == 85
    for other in (Knowledge.of(traceless.features.Linear(), X[:3], Y[:3]), LSSVC().fit(X, Y)):
        with pytest.raises(MismatchError, match="guard=True"):
            a.merge(other)


def test_a_guard_goes_with_copies_pickles_and_files(tmp_path):
    model = guarded(rho=0.5)
    model.save(tmp_path / "m.safetensors")
    others = (
        copy.copy(model),
        pickle.loads(pickle.dumps(model)),
        traceless.load(tmp_path / "m.safetensors"),
    )
    for other in others:
        with pytest.raises(NotLearnedError):
            other.forget(X[120:121], Y[120:121])
        assert other.forget(X[:10], Y[:10]).n_samples_ == 90
    assert model.n_samples_ == len(model._guard) == 100
    raw = (tmp_path / "m.safetensors").read_bytes()
    assert others[2].fit(X[:100], Y[:100]).save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() != raw  # another key


def test_a_guard_must_know_all_rows(tmp_path):
    model = LSSVC().fit(X[:50], Y[:50])
    with pytest.raises(ValueError, match="digests of all 50 rows held, and there are 0"):
        model.set_params(guard=True).forget(X[:1], Y[:1])
    model.set_params(guard=False).forget(X[:1], Y[:1])
    known = [Knowledge.of(traceless.features.Linear(), X[k : k + 1], Y[k : k + 1]) for k in (0, 60)]
    model = guarded(n=50).set_params(guard=False).merge(-known[0]).merge(known[1])
    with pytest.raises(ValueError, match="all 50 rows held, and there are 0"):
        model.set_params(guard=True).forget(X[:1], Y[:1])
    live = guarded(solver="woodbury", **PAPER)
    state = live.set_params(guard=False).export_state()
    with pytest.raises(ValueError, match="which guard=True needs"):
        LSSVC(guard=True, solver="woodbury", **PAPER).import_state(state)
    source = traceless.from_batches([(X, Y)])
    with pytest.raises(ValueError, match="needs rows in memory"):
        LSSVC(guard=True).fit(source)
