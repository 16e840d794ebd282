"""A table of models is, group by group, the models of the groups' rows."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceless import LSSVC, LSSVR, Knowledge, MismatchError, NotLearnedError, RangeError, fit_by
from traceless.knowledge.groups import numbered

NAMES = ["a", "b"]


def table(n, seed, task="regression", groups=7):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 2)) + 3, columns=NAMES)
    frame["key"] = rng.integers(0, groups, n)
    noise = rng.normal(size=n) + frame["a"] * frame["key"]
    return frame.assign(y=noise if task == "regression" else np.digitize(noise, [0, 9]))


def single(kind, frame):
    return {key: kind.fit(part[NAMES], part["y"]).digest() for key, part in frame.groupby("key")}


def close(found, expected):
    return np.allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("far", [0.0, 1e6, 1.7e9])
@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
def test_columns_far_from_zero_lose_no_digits(far):
    frame = table(120, 3, groups=3)
    frame["a"] += far
    models = fit_by(LSSVR(), frame, "key", "y")
    for key, coef in zip(models.keys, models.coef_, strict=True):
        exact = models.model(key).coef_
        np.testing.assert_allclose(coef[0], exact, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("options", [{}, {"free_intercept": False, "standardize": False}])
@pytest.mark.parametrize("kind", [LSSVR, LSSVC])
def test_each_group_is_a_model_of_its_own(kind, options):
    frame = table(300, 1, "regression" if kind is LSSVR else "classes")
    models = fit_by(kind(**options), frame, "key", "y")
    assert models.keys == tuple(range(7))
    for key, part in frame.groupby("key"):
        alone = kind(**options).fit(part[NAMES], part["y"])
        model = models.model(key)
        assert model.digest() == alone.digest()
        assert model.feature_names_in_.tolist() == NAMES
        assert np.array_equal(model.coef_, alone.coef_)
        found = models.predict(part["key"], part[NAMES])
        expected = alone.predict(part[NAMES])
        assert close(found, expected) if kind is LSSVR else np.array_equal(found, expected)
        if kind is LSSVR:
            assert close(models.coef_[key, 0], alone.coef_)
            assert close(models.intercept_[key, 0], alone.intercept_)


def duck(frame):
    return pytest.importorskip("duckdb").from_df(frame)


CARRIERS = {
    "polars": pl.from_pandas,
    "a LazyFrame": lambda frame: pl.from_pandas(frame).lazy(),
    "DuckDB": duck,
    "Dask": lambda frame: dd.from_pandas(frame, npartitions=3),
    "batches": lambda frame: [frame[:50], frame[50:]],
}


KEYS = ["key", "item", "is new"]


def several(n, seed, kind):
    """Rows with three keys of three types, and weights."""
    frame = table(n, seed, "regression" if kind is LSSVR else "classes", groups=3)
    rng = np.random.default_rng(seed)
    items = rng.choice(["tea", "te", "1"], n)
    return frame.assign(item=items, **{"is new": rng.random(n) < 0.5}, w=rng.integers(1, 9, n) / 4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [LSSVR, LSSVC])
def test_groups_by_several_columns(kind, weighted, tmp_path):
    frame = several(300, 10, kind)
    weights = {"sample_weight": "w"} if weighted else {"columns": NAMES}
    models = fit_by(kind(), frame, KEYS, "y", **weights)
    found = models.predict(frame[KEYS], frame[NAMES])
    parts = list(frame.groupby(KEYS))
    assert models.keys == tuple(key for key, _ in parts)
    for key, part in parts:
        alone = kind().fit(part[NAMES], part["y"], part["w"] if weighted else None)
        assert models.model(key).digest() == alone.digest()
        expected = alone.predict(part[NAMES])
        some = found[part.index]
        assert close(some, expected) if kind is LSSVR else np.array_equal(some, expected)
    for keys in ([*frame[KEYS].itertuples(index=False, name=None)], pl.from_pandas(frame[KEYS])):
        assert np.array_equal(models.predict(keys, frame[NAMES]), found)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    for rows in (*(carry(frame) for carry in CARRIERS.values()), tmp_path):
        with dask.config.set(scheduler="sync"):
            one = fit_by(kind(), rows, tuple(KEYS), "y", **weights)
        assert (one.keys, one.digest()) == (models.keys, models.digest())
    first, last = (fit_by(kind(), part, KEYS, "y", **weights) for part in (frame[:90], frame[90:]))
    assert (last + first).digest() == models.digest()
    assert (models - first).digest() == last.digest()
    by_one = fit_by(kind(), frame, ["key"], "y", columns=NAMES)
    assert by_one.keys == ((0,), (1,), (2,))
    for other in (by_one, fit_by(kind(), frame, "key", "y", columns=NAMES)):
        with pytest.raises(MismatchError, match="of the same types, and of as many columns"):
            models + other
    wholes = frame.astype({"is new": int})  # 1 == True
    with pytest.raises(MismatchError, match="same types"):
        models + fit_by(kind(), wholes, KEYS, "y", **weights)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from(["regression", "classes"]))
def test_any_history(first, last, task):
    kind = LSSVR if task == "regression" else LSSVC
    frame = table(60, 3, task)
    first, last = min(first, last), max(first, last)
    parts = [frame[:first], frame[first:last], frame[last:]]
    made = [fit_by(kind(), part, "key", "y") for part in parts if len(part)]
    whole = made[0]
    for one in made[1:]:
        whole = one + whole
    assert whole.digest() == fit_by(kind(), frame, "key", "y").digest()
    if first > 0:
        rest = whole - made[0]
        assert {key: rest.model(key).digest() for key in rest.keys} == single(kind(), frame[first:])


WEIGHTS = {
    "counts": [0, 1, 3, 70_000],
    "fractions": [0.1, 1 / 3, 2.5, 0.0],
    "of any size": [1e-6, 1e9, 0.7, 5.0],
}


@pytest.mark.parametrize("kind", [LSSVR, LSSVC])
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_weighted_rows(kind, weights, tmp_path):
    frame = table(300, 8, "regression" if kind is LSSVR else "classes")
    frame["w"] = np.array(weights)[np.arange(300) % 4]
    frame.loc[frame["key"] == 3, "w"] = 0.0  # a group without rows
    models = fit_by(kind(), frame, "key", "y", sample_weight="w")
    assert models.keys == (0, 1, 2, 4, 5, 6)
    for key, part in frame[frame["key"] != 3].groupby("key"):
        alone = kind().fit(part[NAMES], part["y"], part["w"])
        assert models.model(key).digest() == alone.digest()
        found, expected = models.predict(part["key"], part[NAMES]), alone.predict(part[NAMES])
        assert close(found, expected) if kind is LSSVR else np.array_equal(found, expected)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    for rows in (pl.from_pandas(frame), dd.from_pandas(frame, npartitions=3), tmp_path):
        with dask.config.set(scheduler="sync"):
            found = fit_by(kind(), rows, "key", "y", sample_weight="w", columns=NAMES)
        assert (found.digest(), found.feature_names) == (models.digest(), ("a", "b"))
    rest = models - fit_by(kind(), frame[:100], "key", "y", sample_weight="w")
    assert rest.digest() == fit_by(kind(), frame[100:], "key", "y", sample_weight="w").digest()


def test_sums_beyond_float64():
    frame = table(100, 5)
    frame["a"] = np.rint(frame["a"] * 1e7)
    models = fit_by(LSSVR(), frame, "key", "y")
    for key, part in frame.groupby("key"):
        alone = LSSVR().fit(part[NAMES], part["y"])
        assert models.table[key].digest() == alone.digest()


def test_only_groups_that_lose_rows_are_checked(monkeypatch):
    """Whoever forgets one row must not wait for thousands of groups that it is not of."""
    frame, checked = table(200, 3, groups=50), []
    gone = frame[frame["key"] == 7][:1]
    models, less = (fit_by(LSSVR(), part, "key", "y") for part in (frame, gone))
    check = Knowledge.check_possible
    monkeypatch.setattr(Knowledge, "check_possible", lambda k: checked.append(k) or check(k))
    left = models - less
    assert checked == [left.table[7]]
    with pytest.raises(NotLearnedError):
        left - less
    with pytest.raises(NotLearnedError):
        left - fit_by(LSSVR(), gone.assign(key=99), "key", "y")  # of a group that is not held


def test_what_can_be_wrong():
    frame = table(50, 6)
    models = fit_by(LSSVR(), frame, "key", "y")
    with pytest.raises(KeyError, match="no group 99 among the 7"):
        models.predict([99], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="2 keys and 1 rows"):
        models.predict([1, 2], [[1.0, 2.0]])
    with pytest.raises(NotLearnedError):
        models - fit_by(LSSVR(), table(60, 7), "key", "y")
    with pytest.raises(ValueError, match="no class weights"):
        fit_by(LSSVC(class_weight="balanced"), frame, "key", "y")
    with pytest.raises(ValueError, match="share one number rho"):
        fit_by(LSSVR(rho="evidence"), frame, "key", "y").predict([1], [[1.0, 2.0]])
    with pytest.raises(RangeError, match="NaN"):
        fit_by(LSSVR(), frame.assign(a=np.nan), "key", "y")
    with pytest.raises(ValueError, match=r"'key' of .* has nulls|missing"):
        fit_by(LSSVR(), frame.assign(key=None), "key", "y")
    with pytest.raises(ValueError, match="no column 'shop'"):
        fit_by(LSSVR(), frame, "shop", "y")
    lazy = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(ValueError, match="the Dask dataframe has no column 'shop'"):
        fit_by(LSSVR(), lazy, "shop", "y")
    lazy["key"] = lazy["key"].where(lazy["key"] > 0)
    with dask.config.set(scheduler="sync"), pytest.raises(ValueError, match="with fit_by, the key"):
        fit_by(LSSVR(), lazy, "key", "y")
    with pytest.raises(ValueError, match="no column 'w' of weights"):
        fit_by(LSSVR(), frame, "key", "y", sample_weight="w")
    with pytest.raises(ValueError, match="weights included, has the column 'w' more than once"):
        fit_by(LSSVR(), frame.assign(w=1.0), "key", "y", sample_weight="w", columns=["a", "w"])
    with pytest.raises(ValueError, match="has nulls"):
        fit_by(LSSVR(), frame.assign(key=frame["key"].where(frame["key"] > 0)), "key", "y")
    with pytest.raises(ValueError, match="group of some rows is missing"):
        numbered(np.array([1.0, np.nan]))
    for key in (7, []):
        with pytest.raises(TypeError, match="name of a column, or a list of names, got"):
            fit_by(LSSVR(), frame, key, "y")
    with pytest.raises(ValueError, match="list of keys has the column 'key' more than once"):
        fit_by(LSSVR(), frame, ["key", "key"], "y")
    with pytest.raises(ValueError, match="'a' of the batch has nulls"):
        fit_by(LSSVR(), frame.assign(a=frame["a"].where(frame["a"] > 3)), ["key", "a"], "y")
    for wrong in (frame.assign(key=frame["key"] > 1), frame.astype({"key": str})):
        for key in ("key", ["key"]):
            with pytest.raises(MismatchError, match="must be of the same types"):  # 1 == True
                fit_by(LSSVR(), [wrong[:30], frame[30:]], key, "y")
    with pytest.raises(TypeError, match=r"named by tuples, such as \(0,\)"):
        fit_by(LSSVR(), frame, ["key"], "y").predict([1], [[1.0, 2.0]])
    with pytest.raises(KeyError, match=r"no group \(1, 99\) among"):
        fit_by(LSSVR(), frame.assign(item=1), ["key", "item"], "y").predict([(1, 99)], [[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"columns \['b', 'a'\], and the models .*\['a', 'b'\]"):
        models.predict(frame["key"], frame[["b", "a"]])
    with pytest.raises(ValueError, match="X has 1 columns, and the models were fitted with 2"):
        models.predict([1], [[1.0]])
    with pytest.raises(TypeError, match="must be numbers"):
        models.predict([1], np.array([["1", "2"]]))
    nanoseconds = pd.Series(pd.Timestamp("2025-01-01"), frame.index).astype("datetime64[ns]")
    for key in (frame["key"] + 0.5, pd.Timestamp("2025-01-01"), nanoseconds):
        with pytest.raises(ValueError, match=r"key of a group must be .* got (0.5|.*2025)"):
            fit_by(LSSVR(), frame.assign(key=key), "key", "y")
    with pytest.raises(ValueError, match="finite and not negative"):
        fit_by(LSSVR(), frame.assign(w=-1.0), "key", "y", sample_weight="w")
