"""A table of models is, group by group, the models of the groups' rows."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceless import LSSVC, LSSVR, NotLearnedError, RangeError, fit_by

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


CARRIERS = {
    "polars": pl.from_pandas,
    "Dask": lambda frame: dd.from_pandas(frame, npartitions=3),
    "batches": lambda frame: [frame[:50], frame[50:]],
}


@pytest.mark.parametrize("carry", [*CARRIERS.values(), None], ids=[*CARRIERS, "files"])
def test_any_carrier(carry, tmp_path):
    frame = table(200, 2).assign(key=lambda t: "shop " + t["key"].astype(str))
    expected = fit_by(LSSVR(), frame, "key", "y").digest()
    if carry is None:
        for k in range(2):
            frame[k::2].to_parquet(tmp_path / f"{k}.parquet", index=False)
        assert fit_by(LSSVR(), tmp_path, "key", "y").digest() == expected
    else:
        with dask.config.set(scheduler="sync"):
            found = fit_by(LSSVR(), carry(frame), "key", "y", columns=NAMES)
        assert found.digest() == expected


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


def test_thousands_of_groups_in_one_pass():
    frame = table(20_000, 4, groups=3000)
    models = fit_by(LSSVR(), frame, "key", "y")
    assert len(models) == frame["key"].nunique()
    found = models.predict(frame["key"], frame[NAMES])
    assert np.isfinite(found).all()
    part = frame[frame["key"] == 17]
    expected = LSSVR().fit(part[NAMES], part["y"]).predict(part[NAMES])
    assert close(found[frame["key"] == 17], expected)


def test_sums_beyond_float64():
    frame = table(100, 5)
    frame["a"] = np.rint(frame["a"] * 1e7)
    models = fit_by(LSSVR(), frame, "key", "y")
    for key, part in frame.groupby("key"):
        alone = LSSVR().fit(part[NAMES], part["y"])
        assert models.table[key].digest() == alone.digest()


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
