"""Several labels for each row: as many binary problems with one matrix."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import cross_val_score
from sklearn.utils import get_tags

from cases import MAPS, exact_gram, examples, name
from traceless import (
    LSSVC,
    LSSVR,
    FileError,
    Knowledge,
    MismatchError,
    NotLearnedError,
    SlidingWindow,
    load,
)
from traceless.estimators.onnx import to_onnx
from traceless.features import Linear, RandomFourier
from traceless.files import container
from traceless.model_selection import cross_val_predict

L = 3


def data(n=60, seed=0, weighted=False):
    """Rows of which some have no label, and some all."""
    rng = np.random.default_rng(seed)
    X, Y = make_multilabel_classification(n, 4, n_classes=L, random_state=seed)
    return X / 8.0, Y, rng.choice([0.3, 1.0, 2.5], size=n) if weighted else None


def part(rows, index):
    return tuple(None if a is None else a[index] for a in rows)


# --- right ---------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("phi", MAPS, ids=name)
def test_the_bits_of_one_model_for_each_label(phi, weighted):
    X, Y, w = data(weighted=weighted)
    ours = LSSVC(phi, rho=0.3).fit(X, Y, w)
    each = [LSSVC(phi, rho=0.3).fit(X, Y[:, k], w) for k in range(L)]
    assert np.array_equal(ours.feature_coef_, np.vstack([m.feature_coef_ for m in each]))
    assert np.array_equal(ours.intercept_, np.hstack([m.intercept_ for m in each]))
    scores = np.column_stack([m.decision_function(X) for m in each])
    assert np.array_equal(ours.decision_function(X), scores)
    predicted = np.column_stack([m.predict(X) for m in each])
    assert np.array_equal(ours.predict(X), predicted)
    assert ours.score(X, Y) == (predicted == Y).all(axis=1).mean()
    assert ours.classes_.tolist() == [0, 1, 2]


def test_what_is_kept(rng):
    """Σφφᵀ, Σφy, Σφ, Σyyᵀ, Σy and Σ1, against Python integers; and rows with each label."""
    X, Y = rng.integers(-9, 9, size=(20, 2)), rng.integers(0, 2, size=(20, L))
    w = rng.integers(0, 3, size=20)
    known = Knowledge.of(Linear(bias=False, resolution=1), X, Y, w, task="multilabel")
    Z = np.hstack([X, Y, np.ones((20, 1))])
    assert np.array_equal(known.sums, exact_gram(Z, w))
    assert known.counts[:-1] == tuple((Y[w > 0]).sum(axis=0).tolist())
    assert known.n_samples == (w > 0).sum()
    assert known.responses == (0, 1, 2, 3)
    assert known.n_outputs == 2
    assert "labels 3" in repr(known)
    with pytest.raises(AttributeError, match="multi-label classification has no classes"):
        known.class_counts  # noqa: B018


# --- whatever the history ------------------------------------------------------------------

MODELS = [LSSVC(), LSSVC(RandomFourier(9), rho=0.2), LSSVC(Linear(bias=False)), LSSVC(n_jobs=2)]
MODELS += [LSSVC(solver="woodbury"), LSSVC(guard=True, fingerprint=True)]
STEP = st.sampled_from(["partial_fit", "forget", "update", "merge", "save", "pickle"])


@given(st.sampled_from(MODELS), st.lists(STEP, max_size=7), st.booleans(), st.data())
@examples(25)
def test_the_same_digest_and_bits(tmp_path_factory, model, steps, weighted, choose):
    rows = data(70, weighted=weighted)
    held, free = list(range(6)), list(range(6, 70))
    ours = clone(model).fit(*part(rows, held))
    for step in steps:
        some = choose.draw(st.lists(st.sampled_from(held), min_size=1, max_size=3, unique=True))
        some = some if len(some) < len(held) else []
        if step in ("partial_fit", "update"):
            add, gone = part(rows, free[:5]), part(rows, some) if step == "update" else None
            ours.update(add=add, forget=gone if some else None)
            held = [i for i in held if i not in some or step != "update"] + free[:5]
            free = free[5:]
        elif step == "merge":
            ours.merge(clone(model).fit(*part(rows, free[:4])))
            held, free = held + free[:4], free[4:]
        elif step == "forget" and some:
            ours.forget(*part(rows, some))
            held = [i for i in held if i not in some]
        elif step == "save":
            path = tmp_path_factory.mktemp("models") / "model"
            ours.save(path)
            ours = load(path)
        elif step == "pickle":
            ours = copy.deepcopy(pickle.loads(pickle.dumps(ours)))
    theirs = clone(model).fit(*part(rows, held))
    assert ours.digest() == theirs.digest()
    assert ours.n_samples_ == len(held)
    ours, theirs = copy.copy(ours).seal(), copy.copy(theirs).seal()
    assert np.array_equal(ours.feature_coef_, theirs.feature_coef_)
    assert np.array_equal(ours.predict(rows[0]), theirs.predict(rows[0]))


@given(st.integers(0, 5), st.booleans(), st.booleans())
@examples(5)
def test_knowledge_is_a_group(seed, weighted, prints):
    rows = data(30, seed, weighted)
    options = {"task": "multilabel", "fingerprint": prints}
    of = lambda index: Knowledge.of(Linear(), *part(rows, index), **options)  # noqa: E731
    a, b = of(slice(13)), of(slice(13, 30))
    assert a + b == b + a == of(slice(30))
    assert (a + b) - b == a
    assert (a - a).n_samples == 0
    assert (a - a).check_possible() + b == b
    assert pickle.loads(pickle.dumps(a)) == a
    with pytest.raises(NotLearnedError):
        (a - b).check_possible()


def test_merge_into_an_empty_model_and_the_papers_state(tmp_path):
    X, Y, _ = data()
    papers = LSSVC(solver="woodbury", free_intercept=False, standardize=False)
    model = clone(papers).fit(X, Y.astype(bool))
    taken = LSSVC().merge(model)
    assert taken.digest() == model.digest()
    assert taken.predict(X).dtype == bool
    assert LSSVC().merge(model.knowledge_).predict(X).dtype == np.int64
    bare = clone(papers).import_state(model.export_state())
    np.testing.assert_allclose(bare.decision_function(X), model.decision_function(X), rtol=1e-12)
    bare.save(tmp_path / "bare")
    again = load(tmp_path / "bare").partial_fit(X[:2], Y[:2])
    assert again.n_samples_ == 62
    assert np.array_equal(
        again.decision_function(X), bare.partial_fit(X[:2], Y[:2]).decision_function(X)
    )


@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_matrix])
def test_a_window(rows, tmp_path):
    X, Y, _ = data()
    window = SlidingWindow(LSSVC(), size=30)
    for i in range(0, 60, 9):
        window.partial_fit(rows(X[i : i + 9]), Y[i : i + 9])
    assert window.digest() == LSSVC().fit(X[-30:], Y[-30:]).digest()
    window.forget(rows(X[40:44]), sparse.csr_matrix(Y[40:44]))
    assert window.predict(X).shape == Y.shape
    window.save(tmp_path / "window")
    again = load(tmp_path / "window").forget(rows(X[50:51]), Y[50:51])
    assert again.n_samples_ == 25
    for y in (Y[:2, 0], Y[:2, :2]):
        with pytest.raises(MismatchError, match="as many labels"):
            window.partial_fit(rows(X[:2]), y)
    with pytest.raises(NotLearnedError):
        window.forget(rows(X[50:51]), 1 - Y[50:51])


# --- how labels come, and go back -----------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (np.asarray, np.int64),
        (np.ndarray.tolist, np.int64),
        (list, np.int64),
        (lambda Y: Y.astype(bool), bool),
        (lambda Y: Y.astype(np.uint8), np.uint8),
        (lambda Y: Y.astype(np.float32), np.float32),
        (sparse.csr_matrix, np.int64),
        (lambda Y: sparse.coo_array(Y.astype(np.int8)), np.int8),
        (lambda Y: pd.DataFrame(Y, columns=["a", "b", "c"]), np.int64),
        (lambda Y: pl.DataFrame(Y.astype(np.int8), schema=["a", "b", "c"]), np.int8),
        (lambda Y: pd.DataFrame(Y.astype(bool)), bool),
    ],
)
def test_matrices_of_any_kind(given, dtype, tmp_path):
    X, Y, _ = data()
    model = LSSVC().fit(X, given(Y))
    assert model.digest() == LSSVC().fit(X, Y).digest()
    for each in (model, copy.copy(model).partial_fit(X, Y), pickle.loads(pickle.dumps(model))):
        predicted = each.predict(X)
        assert type(predicted) is np.ndarray
        assert predicted.dtype == dtype
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").predict(X).dtype == dtype


@pytest.mark.parametrize(
    ("y", "error", "said"),
    [
        (np.full((60, L), 2), ValueError, r"matrix of 0 and 1, got .*2.* in it"),
        (np.full((60, L), 0.5), ValueError, r"a regressor for several targets"),
        (np.full((60, L), -1), ValueError, r"matrix of 0 and 1"),
        (np.full((60, L), "a"), ValueError, r"matrix of 0 and 1"),
        (np.full((60, L), np.nan), ValueError, r"NaN"),
        (np.zeros((59, L)), ValueError, r"inconsistent numbers of samples"),
        (np.zeros((60, L, 2)), ValueError, r"dim"),
    ],
)
def test_other_matrices_are_refused(y, error, said):
    X, _, _ = data()
    with pytest.raises(error, match=said):
        LSSVC().fit(X, y)


def test_one_label_and_several_do_not_mix():
    X, Y, _ = data()
    several, one = LSSVC().fit(X, Y), LSSVC().fit(X, Y[:, 0])
    before = several.digest(), one.digest()
    for change in ("partial_fit", "forget"):
        with pytest.raises(MismatchError, match="several labels for each row, and got one"):
            getattr(several, change)(X, Y[:, 0])
        with pytest.raises(MismatchError, match="one label for each row here"):
            getattr(one, change)(X, Y)
        with pytest.raises(MismatchError, match="3 labels on one side and 2 on the other"):
            getattr(several, change)(X, Y[:, :2])
        with pytest.raises(MismatchError, match="3 labels on one side and 2 on the other"):
            getattr(copy.copy(several).set_params(solver="woodbury"), change)(X, Y[:, :2])
    for a, b in ((several, one), (one, several)):
        with pytest.raises(MismatchError, match="multi-label classification"):
            a.merge(b)
        with pytest.raises(MismatchError, match="multi-label classification"):
            a.knowledge_ + b.knowledge_
    with pytest.raises(MismatchError, match="LSSVR is for a regression"):
        LSSVR().merge(several)
    assert (several.digest(), one.digest()) == before
    assert several.fit(X, Y[:, 0]).digest() == before[1]
    assert one.fit(X, Y).digest() == before[0]


def test_what_cannot_have_been_learned():
    X, Y, _ = data()
    model = LSSVC().fit(X[:3], Y[:3])
    with pytest.raises(NotLearnedError, match="label 0: "):
        model.forget(X[:3], np.ones((3, L)))
    with pytest.raises(NotLearnedError, match="rows: 57 too many"):
        model.forget(X, np.zeros_like(Y))
    guarded = LSSVC(guard=True).fit(X, Y)
    with pytest.raises(NotLearnedError, match="1 of the 1 rows"):
        guarded.forget(X[:1], 1 - Y[:1])
    assert guarded.forget(X[:1], Y[:1]).n_samples_ == 59


def test_class_weights_are_refused():
    X, Y, _ = data()
    for options in ({"class_weight": "balanced"}, {"classwise": True}, {"class_weight": {0: 2}}):
        with pytest.raises(ValueError, match="one label per row"):
            LSSVC(**options).fit(X, Y)
        with pytest.raises(ValueError, match="one label per row"):
            LSSVC(**options).merge(LSSVC().fit(X, Y))
        model = LSSVC().fit(X, Y).set_params(**options)
        with pytest.raises(ValueError, match="one label per row"):
            model.predict(X)
        assert not get_tags(model).classifier_tags.multi_label
        model.set_params(class_weight=None, classwise=None).predict(X)
        assert get_tags(model).classifier_tags.multi_label
    with pytest.raises(ValueError, match="multi-label classification has no classes to keep"):
        Knowledge.of(Linear(), X, Y, task="multilabel", classwise=True)


def test_the_classes_of_partial_fit_are_columns():
    X, Y, _ = data()
    model = (
        LSSVC().partial_fit(X, Y, classes=range(L)).partial_fit(X, Y.tolist(), classes=[0, 1, 2])
    )
    assert model.n_samples_ == 120
    with pytest.raises(ValueError, match=r"classes \[2\] that are not in classes=\[0, 1\]"):
        model.partial_fit(X, Y, classes=[0, 1])


def test_what_does_not_take_several_labels_says_so():
    X, Y, _ = data()
    with pytest.raises(MismatchError, match="scikit-learn's functions both"):
        cross_val_predict(LSSVC(), X, Y)
    with pytest.raises(TypeError, match="models of one label per row"):
        to_onnx(LSSVC().fit(X, Y))
    assert cross_val_score(LSSVC(), X, Y, cv=3).mean() > 0


def test_a_label_that_nobody_has_stays_a_column():
    X, Y, _ = data()
    Y[:, 1] = 0
    model = LSSVC(solver="woodbury").fit(X, Y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert not model.predict(X)[:, 1].any()
    model.partial_fit(X[:1], [[0, 1, 0]]).forget(X[:1], [[0, 1, 0]]).forget(X, Y)
    assert model.n_samples_ == 0
    assert model.knowledge_.counts == (0, 0, 0, 0)


def test_a_forged_file_is_refused(tmp_path):
    X, Y, _ = data()
    LSSVC().fit(X, Y.astype(np.int8)).save(tmp_path / "model")
    found = container.read(tmp_path / "model")
    state, known = found.facts["state"], found.facts["state"]["knowledge"]
    twice = known | {"counts": [61, *known["counts"][1:]]}
    for forged, said in (
        ({"labels": "os.system"}, "no labels are of type"),
        ({"state": state | {"task": "multilabel"}}, "not in canonical form"),
        ({"state": state | {"knowledge": known | {"task": "regression"}}}, "no specification"),
        ({"state": state | {"knowledge": known | {"task": "classification"}}}, "of two classes"),
        ({"state": state | {"knowledge": twice}}, "more rows with a label than there are"),
    ):
        container.write(tmp_path / "forged", "LSSVC", found.facts | forged, found.tensors)
        with pytest.raises(FileError, match=said):
            load(tmp_path / "forged")
    sums = found.tensors["sums"].copy()
    sums[-3] += 1  # how often the last two labels come together, so that a label counts twice
    sums[-2] += 1
    container.write(tmp_path / "forged", "LSSVC", found.facts, found.tensors | {"sums": sums})
    with pytest.raises(FileError, match="a label more than once"):
        load(tmp_path / "forged")
