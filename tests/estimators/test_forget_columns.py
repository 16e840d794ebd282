"""A model without some columns is that of a fit without them, whatever its history."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cases import Cubes, examples
from traceless import LSSVC, LSSVR, MismatchError, load
from traceless.exceptions import UnsealableError
from traceless.features import Linear, Polynomial, RandomFourier

N = 4
STEPS = [2.0**-12, 2.0**-14, 2.0**-16, 2.0**-10]
MODELS = [
    LSSVC(),
    LSSVC(Polynomial(2), rho=0.3),
    LSSVC(class_weight="balanced"),
    LSSVC(Linear(resolution=STEPS), classwise=True),
    LSSVC(solver="woodbury"),
    LSSVR(Linear(bias=False, resolution=np.array(STEPS)), rho=2.0),
    LSSVR(Polynomial(3, resolution=2**-8)),
    LSSVR(solver="woodbury"),
]


def data(n, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, N)), rng.integers(0, 3, size=n)
    return X, y, rng.choice([0.3, 1.0, 2.5], size=n) if weighted else None


def fewer(model, kept):
    """The estimator as a user would write it for these columns."""
    out = clone(model)
    phi = getattr(out, "feature_map", None)
    if phi is not None and np.ndim(phi.resolution):
        out.set_params(feature_map__resolution=[STEPS[k] for k in kept])
    return out


def part(rows, index, columns=slice(None)):
    X, y, w = rows
    return X[index][:, columns], y[index], None if w is None else w[index]


def assert_equal(ours, theirs, X):
    assert ours.digest() == theirs.digest()
    ours, theirs = copy.copy(ours).seal(), copy.copy(theirs).seal()
    assert np.array_equal(ours.feature_coef_, theirs.feature_coef_)
    assert np.array_equal(ours.intercept_, theirs.intercept_)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


STEP = st.sampled_from(["partial_fit", "forget", "merge", "columns", "save", "pickle", "solver"])


@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")  # of the few rows that are left
@given(st.sampled_from(MODELS), st.lists(STEP, max_size=8), st.booleans(), st.data())
@examples(60)
def test_whatever_the_history(tmp_path_factory, model, steps, weighted, choose):
    rows = data(60, weighted=weighted)
    held, kept, free = list(range(6)), list(range(N)), list(range(6, 60))
    ours = clone(model).fit(*part(rows, held))
    for step in steps:
        if step == "columns" and len(kept) > 1:
            places = st.lists(st.integers(0, len(kept) - 1), min_size=1, max_size=len(kept) - 1)
            gone = choose.draw(places.map(set))
            assert ours.forget_columns([*gone]) is ours
            kept = [column for k, column in enumerate(kept) if k not in gone]
        elif step == "partial_fit":
            ours.update(add=part(rows, free[:5], kept))
            held, free = held + free[:5], free[5:]
        elif step == "merge":
            other = fewer(model, kept).fit(*part(rows, free[:4], kept))
            ours.merge(other, name=f"slice {len(free)}")
            held, free = held + free[:4], free[4:]
        elif step == "forget":
            gone = choose.draw(st.lists(st.sampled_from(held), min_size=1, max_size=3, unique=True))
            if len(gone) < len(held):
                ours.forget(*part(rows, gone, kept))
                held = [i for i in held if i not in gone]
        elif step == "save":
            path = tmp_path_factory.mktemp("models") / "model"
            ours.save(path)
            ours = load(path)
        elif step == "pickle":
            ours = pickle.loads(pickle.dumps(ours))
        elif step == "solver":
            ours.set_params(solver="woodbury" if ours.solver == "cholesky" else "cholesky")
    theirs = fewer(model, kept).set_params(solver=ours.solver)
    assert_equal(ours, theirs.fit(*part(rows, held, kept)), rows[0][:, kept])


def test_names_follow():
    X, y, _ = data(30)
    frame = pd.DataFrame(X, columns=["age", "city", "income", "x"])
    ours = LSSVC().fit(frame, y).forget_columns(["income", "age"])
    assert ours.feature_names_in_.tolist() == ["city", "x"]
    assert ours.n_features_in_ == ours.coef_.shape[1] == 2
    theirs = LSSVC().fit(frame[["city", "x"]], y)
    assert ours.digest() == theirs.digest()
    assert np.array_equal(ours.predict(frame[["city", "x"]]), theirs.predict(frame[["city", "x"]]))
    with pytest.raises(ValueError, match="feature names"):
        ours.predict(frame)
    ours.merge(theirs, again=True)
    with pytest.raises(MismatchError, match="n_features is 2 here and 4 there"):
        ours.merge(LSSVC().fit(X, y))
    with pytest.raises(ValueError, match="There is no column 'age'; the columns are city, x"):
        ours.forget_columns("age")


def test_sparse_rows_and_masks():
    X, y, _ = data(30)
    ours = LSSVC().fit(sparse.csr_matrix(X), y).forget_columns([True, False, False, True])
    assert ours.digest() == LSSVC().fit(X[:, 1:3], y).digest()


def test_the_map_of_the_caller_is_left_alone():
    """An array of resolutions is cut in a new map; where nothing changes, the map stays."""
    X, y, _ = data(30)
    phi, plain = Linear(resolution=np.array(STEPS)), Polynomial()
    ours = LSSVC(phi).fit(X, y).forget_columns(-1)
    assert phi.resolution.tolist() == STEPS
    assert ours.feature_map is not phi
    assert ours.feature_map.resolution.tolist() == STEPS[:3]
    assert LSSVC(plain).fit(X, y).forget_columns(0).feature_map is plain
    assert LSSVC().fit(X, y).forget_columns(0).feature_map is None


@pytest.mark.parametrize(
    ("model", "columns", "error", "said"),
    [
        (LSSVC(RandomFourier(9)), 0, TypeError, "every feature of RandomFourier"),
        (LSSVC(Cubes()), 0, TypeError, "Define without_columns in that class"),
        (LSSVC(guard=True), 0, ValueError, r"guard=True .* set_params\(guard=False\)"),
        (LSSVR(), [0, 0], ValueError, "given twice"),
        (LSSVR(), [4], ValueError, "There is no column 4"),
        (LSSVR(), range(4), ValueError, "All 4 columns"),
        (LSSVR(), "age", ValueError, "had no column names"),
    ],
)
def test_refused_and_unchanged(model, columns, error, said):
    X, y, _ = data(30)
    model = clone(model).fit(X, y)
    before, digest = dict(model.__dict__), model.digest()
    with pytest.raises(error, match=said):
        model.forget_columns(columns)
    assert model.__dict__ == before
    assert model.digest() == digest


def test_before_anything_is_learned():
    with pytest.raises(NotFittedError):
        LSSVC().forget_columns(0)


def test_a_map_that_was_changed_after_learning():
    X, y, _ = data(30)
    model = LSSVC(Linear()).fit(X, y).set_params(feature_map__resolution=2**-3)
    with pytest.raises(MismatchError, match="resolution is"):
        model.forget_columns(0)


def test_guard_and_fingerprint_are_given_up_by_saying_so():
    pytest.importorskip("blake3")
    X, y, _ = data(30)
    model = LSSVC(guard=True, fingerprint=True).fit(X, y)
    for name in ("guard", "fingerprint"):
        with pytest.raises(ValueError, match=f"{name}=True keeps hashes of whole rows"):
            model.forget_columns(0)
        model.set_params(**{name: False})
    model.forget_columns(0)
    assert model.knowledge_.fingerprint is None
    assert "_guard" not in model.__dict__
    assert model.digest() == LSSVC().fit(X[:, 1:], y).digest()
    model.partial_fit(X[:3, 1:], y[:3])
    assert model.knowledge_.fingerprint is None


def test_merged_slices_keep_their_names():
    X, y, _ = data(30)
    parts = [LSSVC().fit(X[i : i + 10], y[i : i + 10]) for i in (0, 10)]
    model = LSSVC().fit(X[20:], y[20:]).merge(parts[0], name="north")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.forget_columns(0)
    assert model.merged_ == {"north": 1}
    with pytest.raises(ValueError, match="'north' was merged before"):
        model.merge(parts[0].forget_columns(0), name="north")
    model.merge(parts[1].forget_columns(0))
    with pytest.warns(UserWarning, match="merged without a name") as caught:
        model.forget_columns(0)
    assert caught[0].filename == __file__
    assert model.digest() == LSSVC().fit(X[:, 2:], y).digest()
    assert len(model.merged_) == 2


def test_a_state_without_knowledge():
    X, y, _ = data(30)
    model = LSSVC(solver="woodbury", free_intercept=False, standardize=False)
    bare = clone(model).import_state(model.fit(X, y).export_state())
    with pytest.raises(UnsealableError):
        bare.forget_columns(0)
    assert bare.n_features_in_ == N
