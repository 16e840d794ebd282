"""The same rows mean the same, whatever brings them: `docs/cluster.md` has this table in words."""

import datetime as dt
from decimal import Decimal

import dask
import dask.array as da
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from traceless import LSSVC, LSSVR, PathOneClass, PathSVC, PathSVR, from_batches, scan

DAYS = [dt.date(2025, 1, 1 + k) for k in range(6)]
TIMES = [dt.datetime(2025, 1, 1 + k) for k in range(6)]
SPANS = [dt.timedelta(days=k) for k in range(6)]
HALVES = [0.5, 1.5, -2.0, 3.25, 0.0, 1.0]
CENTS = pa.array([Decimal(k) / 4 for k in range(6)], pa.decimal128(9, 2))
MONEY = pa.array([Decimal(k % 2) for k in range(6)], pa.decimal128(9, 2))
DIGITS = pa.array(list("123456"))
TRUTHS = pa.array([True, False] * 3)
GAPS = pa.array([1.0, None, 2.0, 3.0, 4.0, 5.0])
# halfway between two steps of the grid: with the last bit wrong the code is another one
TIES = [Decimal(f"{k}.000030517578125") for k in (0, 2, 4, 6, 8, 11)]


NUMBERS = {  # tried as a feature, as a target and as a weight
    "small integers": (pa.array([1, 2, 3, 4, 5, 6], pa.int8()), None),
    "truth values": (TRUTHS, None),
    "decimals": (CENTS, None),
    "fine decimals": (pa.array(TIES, pa.decimal128(20, 15)), None),
    "categories": (pa.array([3, 1, 2, 3, 1, 2]).dictionary_encode(), None),
    "wide floats": (pa.array([0.5, 1e5, 0.1, 3.7, 1.0, 2.0]), None),
    "numeric text": (DIGITS, TypeError),
    "times": (pa.array(TIMES, pa.timestamp("us")), TypeError),
    "nanoseconds": (pa.array(TIMES, pa.timestamp("ns")), TypeError),
    "days": (pa.array(DAYS), TypeError),
    "durations": (pa.array(SPANS), TypeError),
    "nulls": (GAPS, ValueError),
}


LABELS = {
    "integers": (pa.array([0, 1, 0, 1, 2, 2]), None),
    "text": (pa.array(list("abcabc")), None),
    "numeric text": (DIGITS, None),
    "truth values": (TRUTHS, None),
    "large integers": (pa.array([2**53 + 1, 2**53] * 3), None),
    "categories": (pa.array(list("abcabc")).dictionary_encode(), None),
    "categories of truth values": (TRUTHS.dictionary_encode(), None),
    "bytes": (pa.array([b"a", b"b"] * 3), None),
    "whole floats": (pa.array([1.0, 0.0] * 3), None),
    "whole decimals": (MONEY, None),
    "fractions": (pa.array(HALVES), ValueError),
    "decimal fractions": (CENTS, ValueError),
    "times": (pa.array(TIMES, pa.timestamp("us")), ValueError),
    "nanoseconds": (pa.array(TIMES, pa.timestamp("ns")), ValueError),
    "days": (pa.array(DAYS), ValueError),
    "nulls": (GAPS, ValueError),
    "text with nulls": (pa.array(["a", None, "b", "a", "b", "b"]), ValueError),
}
CASES = [
    pytest.param(kind, column, *case, id=f"{what}: {name}")
    for what, kind, column, table in [
        ("feature", LSSVC, "a", NUMBERS),
        ("target", LSSVR, "y", NUMBERS),
        ("weight", LSSVC, "w", NUMBERS),
        ("label", LSSVC, "y", LABELS),
    ]
    for name, case in table.items()
]


def array(column):
    """A column as NumPy has it: texts and bytes are arrays of their own type."""
    values = column.to_pylist()
    simple = pa.types.is_string(column.type) or pa.types.is_binary(column.type)
    if simple and None not in values:
        return np.array(values)
    if simple or pa.types.is_decimal(column.type):
        return np.array(values, dtype=object)
    return column.to_numpy()


def arrays(table):
    columns = [array(table[name]) for name in table.column_names]
    kinds = {column.dtype.kind for column in columns[:2]}
    if kinds & {*"mM"}:
        columns[1] = columns[0]  # NumPy has no array of times and numbers
    weight = columns[3] if len(columns) > 3 else None
    return np.column_stack(columns[:2]), columns[2], weight


def of_frame(frame):
    return frame[["a", "b"]], frame["y"], frame["w"] if "w" in frame.columns else None


def weighted(table):
    return {"sample_weight": "w" if "w" in table.column_names else None}


def column_of_targets(table, _):
    X, y, weight = arrays(table)
    return X, y[:, None], weight


def parquet(table, folder):
    pq.write_table(table, folder / "t.parquet", row_group_size=4)
    return (scan(folder, "y", **weighted(table)),)


def dask_arrays(table, _):
    return [a if a is None else da.from_array(a, chunks=(4, *a.shape[1:])) for a in arrays(table)]


BY = {  # what `fit` takes
    "NumPy, y a column": column_of_targets,
    "Arrow": lambda t, _: (t.select(["a", "b"]), t["y"], t["w"] if "w" in t.column_names else None),
    "pandas": lambda t, _: of_frame(t.to_pandas()),
    "pandas of Arrow": lambda t, _: of_frame(t.to_pandas(types_mapper=pd.ArrowDtype)),
    "polars": lambda t, _: of_frame(pl.from_arrow(t)),
    "Parquet": parquet,
    "a Dask frame": lambda t, _: of_frame(
        dd.from_pandas(t.to_pandas(types_mapper=pd.ArrowDtype), npartitions=2)
    ),
    "Dask arrays": dask_arrays,
    "batches": lambda t, _: (from_batches(t.to_reader(4), "y", **weighted(t)),),
    "DuckDB": lambda t, _: (from_batches(duckdb.from_arrow(t), "y", **weighted(t)),),
}


def check(by, kind, name, values, error, folder):
    columns = {"a": HALVES, "b": [1.0, 2, 3, 4, 5, 6], "y": [0, 1, 0, 1, 2, 2]} | {name: values}
    table = pa.table(columns)
    if error is None:
        expected = kind().fit(*arrays(table)).digest()
        assert kind().fit(*by(table, folder)).digest() == expected
    else:
        for ways in (lambda t, _: arrays(t), by):
            with pytest.raises(error):
                kind().fit(*ways(table, folder))


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("by", BY.values(), ids=BY)
@pytest.mark.parametrize(("kind", "name", "values", "error"), CASES)
def test_the_same_rows_mean_the_same(by, kind, name, values, error, tmp_path):
    with dask.config.set(scheduler="sync"):
        check(by, kind, name, values, error, tmp_path)


NUL = [
    ["a\0", "a", "a\0", "a"],
    [b"a\0", b"a", b"a\0", b"a"],
    [1, "1", 1, "1"],
    [1, True, 0, 0],
]


@pytest.mark.parametrize("y", NUL, ids=str)
def test_no_two_labels_become_one(y):
    """NumPy drops NULs at the end, and makes text of numbers that stand beside text."""
    X = np.arange(8.0).reshape(4, 2)
    for make in (LSSVC, PathSVC):
        model = make().fit(X, [0, 1, 0, 1])
        for rows in (y, tuple(y), np.array(y, dtype=object)):
            with pytest.raises((ValueError, TypeError), match=r"NUL|one type|one sortable type"):
                make().fit(X, rows)
            with pytest.raises((ValueError, TypeError)):
                model.partial_fit(X, rows)
    with pytest.raises(ValueError, match="of one type"):
        LSSVC().fit(from_batches([(X, y)]))
    if isinstance(y[0], str):
        for carried in (pl.Series(y), pd.Series(y), pl.Series(y, dtype=pl.Categorical)):
            with pytest.raises(ValueError, match="NUL"):
                LSSVC().fit(X, carried)
        with pytest.raises(ValueError, match="NUL"):
            LSSVC().fit(from_batches([pl.DataFrame({"x": X[:, 0], "y": y})], "y"))


@pytest.mark.parametrize("make", [PathSVC, PathSVR, PathOneClass])
@pytest.mark.parametrize("values", [DAYS, TIMES, SPANS, DIGITS], ids=range(4))
def test_nor_has_the_path_family_dates_or_text_as_features(make, values):
    with pytest.raises(TypeError, match=r"Column 'a' of X is of type \w+.*, and must be numbers"):
        make().fit(pa.table({"a": values}), [0, 1] * 3)


def test_structs_are_neither_labels_nor_numbers():
    X, y = np.arange(4.0)[:, None], pl.Series([{"a": 0}, {"a": 1}] * 2)
    for make in (LSSVC, LSSVR):
        with pytest.raises(TypeError, match=r"y is of type Struct.*Select one"):
            make().fit(X, y)
    with pytest.raises(TypeError, match="Column 's' of X is of type Struct"):
        LSSVR().fit(pl.DataFrame({"s": y}), [1.0, 2.0, 3.0, 4.0])
    assert LSSVC().fit(X, y.struct.field("a")).digest() == LSSVC().fit(X, [0, 1, 0, 1]).digest()
