"""What a model says of a Dask collection stays with Dask, and has the same bits."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from traceless import LSSVC, LSSVR, from_batches

NAMES = list("abc")


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(60, 3))
    return X, np.where(X[:, 0] > 0, np.where(X[:, 1] > 0, "u", "v"), "w")


METHODS = ["predict", "decision_function", "predict_proba", "predict_log_proba"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_arrays(method, n_classes, rows):
    X, y = rows if n_classes == 3 else (rows[0], rows[1] == "u")
    model = LSSVC().fit(X, y)
    lazy = da.from_array(X, chunks=(25, 2))
    found = getattr(model, method)(lazy)
    expected = getattr(model, method)(X)
    assert isinstance(found, da.Array)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    model.forget(X[:5], y[:5])  # what was asked for is the model as it was
    assert np.array_equal(found.compute(), expected)


@pytest.mark.parametrize("method", METHODS)
def test_frames(method, rows):
    X, y = pd.DataFrame(rows[0], columns=NAMES, index=np.arange(60) * 2), rows[1]
    model = LSSVC().fit(X, y)
    lazy = dd.from_pandas(X, npartitions=3)
    found = getattr(model, method)(lazy)
    expected = getattr(model, method)(X)
    assert isinstance(found, dd.Series if expected.ndim == 1 else dd.DataFrame)
    values = found.compute()
    assert values.index.equals(X.index)
    assert np.array_equal(np.asarray(values, dtype=expected.dtype), expected)
    if expected.ndim == 2:
        assert list(found.columns) == ["u", "v", "w"]
    empty = getattr(model, method)(lazy[lazy["a"] > 99])
    assert empty.compute().shape == (0, *expected.shape[1:])


@pytest.mark.parametrize("n_targets", [1, 2])
def test_regression(n_targets, rows):
    X = rows[0]
    Y = X[:, :n_targets] if n_targets > 1 else X[:, 0]
    model = LSSVR().fit(X, Y)
    found = model.predict(da.from_array(X, chunks=(25, 3)))
    assert np.array_equal(found.compute(), model.predict(X))
    table = dd.from_pandas(pd.DataFrame(X), npartitions=2)
    assert np.array_equal(model.predict(table).compute(), model.predict(X))
    with pytest.raises(TypeError, match="no options"):
        model.predict(table, return_std=True)


def test_chunks_of_unknown_length(rows):
    X, y = rows
    model = LSSVC().fit(X, y)
    lazy = da.from_array(X, chunks=(20, 3))
    some = lazy[lazy[:, 0] > 0]
    assert np.array_equal(model.predict_proba(some).compute(), model.predict_proba(X[X[:, 0] > 0]))


def test_a_single_column_is_no_table(rows):
    X, y = rows
    with pytest.raises(ValueError, match="two dimensions, rows and columns, got 1"):
        LSSVC().fit(X, y).predict(da.from_array(X)[:, 0])


def test_nothing_is_computed_until_it_is_asked_for(rows):
    X, y = rows
    model = LSSVC().fit(X, y)

    def fail(block):
        raise RuntimeError("computed")

    lazy = da.from_array(X, chunks=(20, 3)).map_blocks(fail, meta=X[:0])
    found = model.predict(lazy)
    with pytest.raises(RuntimeError, match="computed"):
        found.compute()


def test_a_source_is_no_rows(rows):
    with pytest.raises(TypeError, match="takes rows, and got a source"):
        LSSVC().fit(*rows).predict(from_batches([rows]))
