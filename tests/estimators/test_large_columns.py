"""One column of seconds since 1970 beside others: exact as they are, and reported."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from cases import exact_gram, whole
from traceless import LSSVC, LSSVR, Knowledge, ResolutionWarning, load
from traceless.arithmetic.integers import Wide
from traceless.features import Linear


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(60, 4))
    X[:, 2] = 1.7e9 + rng.integers(0, 3e7, size=60)
    return X, rng.integers(0, 3, size=60)


def test_by_its_name_where_it_has_one(rows):
    X = pd.DataFrame(rows[0], columns=["a", "b", "seen at", "d"])
    with pytest.warns(ResolutionWarning, match=r"Column 2 \('seen at'\) is so large"):
        LSSVC().fit(X, rows[1])
    with pytest.warns(ResolutionWarning, match=r"Column 3 \('d'\) varies by less than"):
        LSSVC().fit(X[["a", "b"]].assign(c=0.0, d=X["d"] * 1e-6), rows[1])


@pytest.mark.parametrize(
    "model", [LSSVC(), LSSVC(classwise=True), LSSVR(), LSSVR(solver="woodbury")]
)
def test_a_large_column_is_named_once(rows, model):
    with pytest.warns(ResolutionWarning, match="Column 2 is so large") as seen:
        model.fit(*rows)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(*rows)
        model.set_params(feature_map=Linear(resolution=[2**-14, 2**-14, 64.0, 2**-14])).fit(*rows)


def test_large_weights_are_no_large_columns(rows, rng):
    X, y = rows
    weights = rng.uniform(1, 2, size=60)
    many = Knowledge.of(Linear(), X[:, :2] * 2**12, y, weights)
    assert Knowledge.of(Linear(), X, y, weights).large_features().tolist() == [2]
    assert isinstance(many.total, Wide)
    assert not many.large_features().size


@pytest.mark.parametrize("classwise", [False, True])
def test_sums_in_words_are_those_of_python_integers(rows, classwise, tmp_path):
    X, y = rows
    F = np.column_stack([np.rint(X * 2**14), np.ones(60)])
    known = Knowledge.of(Linear(), X, y, classwise=classwise)
    half = Knowledge.of(Linear(), X[::2], y[::2], classwise=classwise)
    rest = Knowledge.of(Linear(), X[1::2], y[1::2], classwise=classwise)
    assert isinstance(known.total, Wide)
    one_hot = np.column_stack([F, *(y == k for k in range(3))])
    pooled = known.pooled()
    assert (pooled.sums == exact_gram(one_hot)).all()
    assert (known.feature_gram == exact_gram(F)).all()
    assert known.response_sums.tolist() == (whole(F).T @ whole(one_hot[:, 5:])).tolist()
    assert known - half == rest
    assert (known - half).digest() == rest.digest()
    assert half + rest == known == rest + half
    minus = -known
    assert -minus == known
    assert pickle.loads(pickle.dumps(known)) == known
    known.save(tmp_path / "k")
    assert load(tmp_path / "k") == known
    assert not (known - known).total.any()
    assert not isinstance((known - known).total, Wide)
    fewer = Knowledge.of(Linear(), np.delete(X, 2, 1), y, classwise=classwise)
    assert known.forget_columns(2) == fewer


@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
def test_a_new_class_makes_room_in_words(rows):
    X, y = rows
    parts = [Knowledge.of(Linear(), X[y == k], y[y == k]) for k in (2, 0, 1)]
    assert sum(parts) == Knowledge.of(Linear(), X, y)
    model = LSSVC(class_weight="balanced").fit(X, y)
    again = LSSVC(class_weight="balanced").fit(X[y > 0], y[y > 0]).partial_fit(X[y == 0], y[y == 0])
    assert again.digest() == model.digest()
    assert (again.coef_ == model.coef_).all()
