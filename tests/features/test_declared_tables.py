"""Frames of all kinds, in any batches, by any way: the same rows, the same digest."""

import datetime as dt
import decimal
import json

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from pyarrow.dataset import dataset
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score as plain_cross_val_score
from sklearn.pipeline import make_pipeline

from traceless import (
    LSSVC,
    LSSVR,
    PathOneClass,
    PathSVC,
    PathSVR,
    SlidingWindow,
    Store,
    from_batches,
    load,
    on_device,
    scan,
)
from traceless.exceptions import MismatchError, RangeError, TableError
from traceless.features import (
    Boolean,
    Category,
    Date,
    Hashed,
    Number,
    Polynomial,
    RandomFourier,
    RandomLayer,
    Table,
    cells,
)
from traceless.model_selection import cross_val_predict, cross_val_score, leave_one_out
from traceless.sources import Files, Schema

N = 60
ZONE = dt.timezone(dt.timedelta(hours=2))
RNG = np.random.default_rng(0)
TABLE = Table(
    [
        Number("age", shift=40, scale=12.5),
        Number("price", required=True),
        Boolean("member"),
        Category("island", ["Dream", "Biscoe"], unknown="zero"),
        Category("ward", [1, 2, 3]),
        Date("seen", origin="2024-01-01", unit="weeks"),
        Date("came", unit="hours"),
        Hashed("city", 5),
    ]
)


def some(values):
    """The values, some of them absent."""
    return [None if k % 7 == 3 else value for k, value in enumerate(values)]


DAYS = [dt.date(2023, 12, 20) + dt.timedelta(days=int(k)) for k in RNG.integers(0, 90, N)]
COLUMNS = {
    "age": some(RNG.integers(18, 90, N).tolist()),
    "price": [decimal.Decimal(int(k)) / 100 for k in RNG.integers(-10_000, 10_000, N)],
    "member": some(RNG.choice([True, False], N).tolist()),
    "island": some(RNG.choice(["Dream", "Biscoe", "Torgersen"], N).tolist()),
    "ward": some(RNG.integers(1, 4, N).tolist()),
    "seen": some(DAYS),
    "came": some(
        dt.datetime(2024, 1, 1, tzinfo=ZONE) + dt.timedelta(minutes=int(k))
        for k in RNG.integers(0, 9999, N)
    ),
    "city": some(RNG.choice(["Oslo", "Zürich", "Zu\u0308rich", "São Paulo"], N).tolist()),
}
Y = RNG.choice(["no", "yes"], N).tolist()
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
ARROW = pa.table(COLUMNS)
PANDAS = pd.DataFrame(COLUMNS)


def nullable(frame):
    return frame.astype(
        {"age": "Int64", "member": "boolean", "island": "category", "price": "float64"}
    ).assign(seen=pd.to_datetime(frame.seen), came=pd.to_datetime(frame.came, utc=True))


def text(frame):
    return frame.map(lambda v: None if v is None or v != v else str(v))


FRAMES = {
    "rows": ROWS,
    "columns": COLUMNS,
    "pandas objects": PANDAS,
    "pandas nullable": nullable(PANDAS),
    "pandas floats": PANDAS.assign(age=PANDAS.age.astype(float), ward=PANDAS.ward.astype(float)),
    "pandas Arrow": ARROW.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas text": text(PANDAS),
    "pandas with an index": PANDAS.assign(index=range(N)).set_index("index"),
    "other columns, other order": PANDAS.assign(more="x")[[*PANDAS.columns[::-1], "more"]],
    "polars": pl.DataFrame(ARROW),
    "polars categories": pl.DataFrame(ARROW).with_columns(pl.col("island").cast(pl.Categorical)),
    "Arrow": ARROW,
    "Arrow batch": ARROW.combine_chunks().to_batches()[0],
    "Arrow chunks": pa.concat_tables([ARROW[:7], ARROW[7:40], ARROW[40:]]),
    "Arrow dictionaries": ARROW.set_column(3, "island", ARROW["island"].dictionary_encode()),
    "Arrow stored by pandas": pa.Table.from_pandas(PANDAS.assign(i=range(N)).set_index("i")),
    "DuckDB": duckdb.from_arrow(ARROW),
    "narwhals": nw.from_native(PANDAS).to_native(),
    "npz": {
        name: np.array(values, dtype=object) if None in values else np.array(values, dtype=float)
        for name, values in COLUMNS.items()
    },
}
DIGEST = LSSVC(TABLE).fit(ROWS, Y).digest()


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_the_same_rows_have_the_same_digest(frame):
    assert LSSVC(TABLE).fit(frame, Y).digest() == DIGEST


@pytest.mark.parametrize(
    "kind", ["rows", "columns", "pandas objects", "pandas nullable", "pandas text", "polars", "npz"]
)
def test_they_have_it_without_pyarrow(kind, monkeypatch):
    monkeypatch.setattr(cells, "find_spec", lambda name: None)
    assert LSSVC(TABLE).fit(FRAMES[kind], Y).digest() == DIGEST


@pytest.mark.filterwarnings("ignore::traceless.exceptions.RevealingWarning")
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_files_and_stores_have_it(form, tmp_path):
    path = str(tmp_path / f"t.{form}")
    if form == "parquet":
        pq.write_table(ARROW.append_column("y", [Y]), path, row_group_size=11)
        source = scan(path, "y", columns=TABLE)
        assert LSSVC(TABLE).fit(source).digest() == DIGEST
        assert on_device(source, "cpu").table is TABLE
    elif form == "csv":
        PANDAS.assign(y=Y).to_csv(path, index=False)
    else:
        with open(path, "w") as file:
            for row, label in zip(ROWS, Y, strict=True):
                file.write(json.dumps({**row, "y": label}, default=str) + "\n")
    files = Files([path], Schema(TABLE, ["y"]))
    X, y, _ = files.arrays()
    assert LSSVC(TABLE).fit(X, y).digest() == DIGEST
    store = Store.new(tmp_path / "s", LSSVC(TABLE))
    store.learn(X[:20], y[:20])
    store.learn(X[20:], y[20:])
    wanted = LSSVC(TABLE, fingerprint=True).fit(PANDAS, Y)
    assert store.model().digest() == wanted.digest()
    store.forget(X[:30], y[:30])  # also rows with absent values are recognised
    assert store.model().digest() == wanted.forget(PANDAS[:30], Y[:30]).digest()


def test_streams_and_dask_have_it(tmp_path):
    import dask.dataframe as dd

    named = ARROW.append_column("y", [Y])
    feather.write_feather(named, str(tmp_path / "t.arrow"), chunksize=7)
    stored = dataset(tmp_path / "t.arrow", format="arrow")
    assert LSSVC(TABLE).fit(from_batches(stored, "y", columns=TABLE)).digest() == DIGEST
    parts = [named[:9], named[9:50].to_pandas(), pl.DataFrame(named[50:])]
    assert LSSVC(TABLE).fit(from_batches(parts, "y", columns=TABLE)).digest() == DIGEST
    frame = dd.from_pandas(named.to_pandas(), npartitions=3)
    model = LSSVC(TABLE).fit(frame, frame["y"])
    assert model.digest() == DIGEST
    assert model.predict(frame).compute().tolist() == model.predict(PANDAS).tolist()
    with pytest.raises(MismatchError, match="not read by the table of the model"):
        LSSVC().fit(from_batches(parts, "y", columns=TABLE))
    with pytest.raises(MismatchError, match="not read by the table of the model"):
        LSSVC(TABLE).fit(from_batches([named.select(["ward", "y"])], "y"))


@pytest.mark.parametrize(
    "make",
    [
        LSSVC(TABLE),
        LSSVC(TABLE, guard=True, fingerprint=True),
        LSSVC(TABLE, solver="woodbury"),
        LSSVC(RandomFourier(20, gamma=0.1, table=TABLE)),
        LSSVC(RandomLayer(9, table=TABLE)),
        LSSVC(Polynomial(table=TABLE)),
        PathSVC(table=TABLE, gamma=0.1),
        PathOneClass(table=TABLE, gamma=0.1, nu=0.3),
    ],
    ids=lambda e: type(e).__name__ + type(getattr(e, "feature_map", None)).__name__,
)
@pytest.mark.parametrize("kind", ["pandas nullable", "polars", "Arrow", "rows"])
def test_every_estimator_learns_and_forgets_frames(make, kind, tmp_path):
    frame = FRAMES[kind]
    model = clone(make).fit(frame[:40], Y[:40]).update(add=(frame[40:], Y[40:]))
    assert model.digest() == clone(make).fit(PANDAS, Y).digest()
    assert model.feature_names_in_.tolist() == TABLE.names
    assert model.n_features_in_ == len(TABLE.names)
    assert model.predict(frame).tolist() == clone(make).fit(ROWS, Y).predict(ROWS).tolist()
    model.forget(frame[:10], Y[:10])
    assert model.digest() == clone(make).fit(PANDAS[10:], Y[10:]).digest()
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").digest() == model.digest()
    window = SlidingWindow(make, size=25).partial_fit(frame[:40], Y[:40])
    window.partial_fit(frame[40:], Y[40:])
    assert window.digest() == clone(make).fit(PANDAS[-25:], Y[-25:]).digest()
    window.forget(frame[50:55], Y[50:55]).save(tmp_path / "w")
    assert load(tmp_path / "w").digest() == window.digest()
    assert len(window.predict(frame)) == N


@pytest.mark.parametrize("kind", ["pandas nullable", "polars", "Arrow", "rows"])
def test_cross_validation_takes_frames(kind):
    for make in (LSSVC(TABLE), PathSVC(table=TABLE, gamma=0.1)):
        found = cross_val_score(make, FRAMES[kind], Y, cv=3)
        assert found.tolist() == plain_cross_val_score(make, PANDAS, Y, cv=3).tolist()
    wanted = cross_val_predict(LSSVC(TABLE), ROWS, Y, cv=3)
    assert cross_val_predict(LSSVC(TABLE), FRAMES[kind], Y, cv=3).tolist() == wanted.tolist()
    assert len(leave_one_out(LSSVC(TABLE), FRAMES[kind], Y)) == N


def test_regressions_and_their_names():
    target = RNG.normal(size=N)
    model = LSSVR(TABLE).fit(PANDAS, target)
    assert len(model.coef_) == len(TABLE.get_feature_names_out()) == 19
    assert model.summary().to_frame().index.tolist()[1:] == TABLE.feature_names()
    assert PathSVR(table=TABLE, gamma=0.1).fit(PANDAS, target).predict(PANDAS).shape == (N,)


def test_nan_of_any_bits_is_one_absent_value():
    other = np.frombuffer(np.array([0xFFF8000000000001], "<u8").tobytes(), "<f8")
    table = Table([Number("a")])
    for X in ({"a": other}, other[:, None], pa.table({"a": other})):
        assert table.rows(X).tobytes() == np.array([np.nan]).tobytes()


def test_columns_and_categories_can_be_forgotten():
    model = LSSVC(TABLE).fit(PANDAS, Y)
    left = [column for column in TABLE.columns if column.name != "city"]
    model.forget_columns("city")
    assert model.digest() == LSSVC(Table(left)).fit(PANDAS, Y).digest()
    model.forget_columns(["ward=2", "member", "island=Dream"])
    left = [column for column in left if column.name != "member"]
    left[2:4] = [
        Category("island", ["Biscoe"], unknown="zero"),
        Category("ward", [1, 3], unknown="zero"),
    ]
    assert model.digest() == LSSVC(Table(left)).fit(PANDAS, Y).digest()
    assert model.feature_names_in_.tolist() == [column.name for column in left]
    known = LSSVC(TABLE).fit(PANDAS, Y).knowledge_
    assert known.forget_columns(["ward=2"]).n_outputs == known.n_outputs - 1
    with pytest.raises(ValueError, match="no column 'ward=9'"):
        model.forget_columns("ward=9")


def test_models_of_different_tables_do_not_merge_and_the_column_is_named():
    model = LSSVC(TABLE).fit(PANDAS, Y)
    for column in (Hashed("city", 6), Hashed("town", 5)):
        other = LSSVC(Table([*TABLE.columns[:-1], column]))
        frame = PANDAS.assign(town=PANDAS.city)
        with pytest.raises(MismatchError, match=column.name):
            clone(model).fit(PANDAS, Y).merge(other.fit(frame, Y))


def test_a_transformer_in_other_peoples_tools():
    names = TABLE.feature_names()
    for output, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        table = clone(TABLE).set_output(transform=output)
        found = table.fit_transform(FRAMES["pandas nullable"])
        assert isinstance(found, kind)
        assert list(found.columns) == names
    chosen = ColumnTransformer([("t", Table([Number("age"), Hashed("city", 3)]), ["age", "city"])])
    chosen.fit(PANDAS)
    assert chosen.get_feature_names_out().tolist()[:3] == ["t__age", "t__age missing", "t__city#0"]
    pipe = make_pipeline(TABLE, Ridge()).fit(PANDAS, np.arange(N))
    assert pipe.predict(ROWS).tolist() == pipe.predict(PANDAS).tolist()
    assert TABLE.transform(PANDAS).shape == (N, len(names))  # nothing to fit


def test_a_declaration_is_what_its_file_says(tmp_path):
    table = Table(TABLE.columns, bias=False, resolution=2**-10)
    for one in (TABLE, table, Table.suggest(PANDAS)):
        one.save(tmp_path / "t.toml")
        assert Table.load(tmp_path / "t.toml").digest() == one.digest()
    (tmp_path / "t.toml").write_text("[table]\n")
    with pytest.raises(TableError, match=r"t.toml: a section \[table.columns\] is needed"):
        Table.load(tmp_path / "t.toml")
    (tmp_path / "t.toml").write_text("[table")
    with pytest.raises(TableError, match="is not a TOML file"):
        Table.load(tmp_path / "t.toml")


def test_errors_name_row_column_value_and_remedy():
    frame = pd.DataFrame({"a": ["1", "1.078,4"]}, index=["Ann", "Bob"])
    with pytest.raises(ValueError, match=r"row 'Bob', column 'a': a number .*'1.078,4'. Write"):
        LSSVC(Table([Number("a")])).fit(frame, [0, 1])
    with pytest.raises(ValueError, match="The data frame has no column 'b'; it has 'a'"):
        LSSVC(Table([Number("b")])).fit(frame, [0, 1])
    named = frame.rename_axis("b")
    with pytest.raises(TableError, match=r"'b' is its index: X.reset_index\(\) makes a column"):
        LSSVC(Table([Number("b")])).fit(named, [0, 1])
    with pytest.raises(ValueError, match=r"'1.078,4'. Give a frame that has 'a', by name"):
        Table([Number("a")]).rows(frame.to_numpy())
    for single in (frame.a, pl.Series("a", [1.0])):
        with pytest.raises(TypeError, match="needs a frame with named columns, got Series"):
            Table.suggest(single)
    for bad, kind in ((frame, TypeError), (pd.DataFrame({"a": [1.0, np.nan]}), RangeError)):
        for model in (LSSVC(), PathSVC(), PathOneClass(), SlidingWindow(LSSVC(), 9)):
            with pytest.raises(kind, match=r"Table.suggest\(X\) proposes"):
                model.fit(bad, [0, 1])


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ([], "declares no columns"),
        ([Number("a"), Number("a")], "are called 'a"),
        ([Number("a"), Number("a missing")], "are called 'a missing'"),
        (["a"], "columns must be None or a list of declared columns"),
    ],
)
def test_tables_that_are_none(columns, said):
    with pytest.raises(ValueError, match=said):
        Table(columns).rows({"a": [1.0]})


def test_arrays_of_another_width_are_refused():
    for call in (TABLE.rows, TABLE.bind(8).codes, LSSVC(TABLE).fit(PANDAS, Y).predict):
        with pytest.raises((ValueError, IndexError)):
            call(np.zeros((2, 3)))
    with pytest.raises(RangeError, match=r"NaN \(column 1\): 'price' is declared as required"):
        TABLE.transform(np.full((1, 8), np.nan))
