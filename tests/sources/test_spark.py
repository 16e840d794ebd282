import base64
import os
import pickle
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import sabotage
import test_declared_tables as declared
import test_values
from traceless import LSSVC, LSSVR, MismatchError, RangeError, fit_by, on_spark, scan
from traceless.exceptions import EngineError, TableError
from traceless.features import Linear, RandomFourier
from traceless.knowledge.sums import Recipe
from traceless.sources import as_source, from_spark
from traceless.sources import spark as module
from traceless.sources.sent import sent

pytest.importorskip("pyspark", reason="pip install 'traceless[spark]'")
if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    pytest.skip("Spark needs Java", allow_module_level=True)

# of mapInArrow, which asks for pandas and does not use it
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
ONE_TASK = pytest.mark.parametrize("task", ["classification"], indirect=True)
LINEAR = Recipe(Linear().bind(2), task="classification", target_resolution=1.0)


@pytest.fixture(scope="session")
def spark():
    """Two cores, four attempts at every task."""
    from pyspark.sql import SparkSession

    here = str(Path(__file__).parent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        session = (
            SparkSession.builder.master("local[2,4]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.executorEnv.PYTHONPATH", here)  # for sabotage.py
            .config("spark.python.daemon.module", "loaded_daemon")
            .config("spark.log.level", "OFF")
            .getOrCreate()
        )
        yield session
        session.stop()


def frame(spark, rows, n):
    import pandas as pd

    X, y, weight = rows
    table = pd.DataFrame(X, columns=list("abcde"))
    targets = ["y"] if y.ndim == 1 else ["y", "z"]
    table[targets] = y.reshape(len(y), -1)
    table["w"] = weight
    records = table.to_dict("records")
    return spark.createDataFrame(records).repartition(n), targets if y.ndim == 2 else "y"


@pytest.mark.parametrize("n", [1, 3, 9])
def test_any_partitions(n, spark, recipe, rows, digest):
    df, target = frame(spark, rows, n)
    source = from_spark(df, target, columns=list("abcde"), sample_weight="w")
    assert (source.n_features, source.feature_names) == (5, list("abcde"))
    assert source.knowledge(recipe).digest() == digest


@ONE_TASK
def test_more_partitions_than_tasks_that_add(spark, recipe, rows, digest, unpickled, monkeypatch):
    found = []
    read = module.received
    monkeypatch.setattr(module, "received", lambda *given: found.append(read(*given)) or found[-1])
    df, target = frame(spark, rows, 33)
    assert from_spark(df, target, sample_weight="w").knowledge(recipe).digest() == digest
    assert len(found) == 1  # the driver collects the total only
    assert not unpickled
    few = frame(spark, tuple(a[:3] for a in rows), 9)[0]  # partitions without rows
    expected = recipe.knowledge(tuple(a[:3] for a in rows))
    assert from_spark(few, target, sample_weight="w").knowledge(recipe) == expected


def test_partial_sums_of_many_chunks(spark, monkeypatch):
    df = spark.range(300).selectExpr("id % 7 / 8 a", "id % 5 / 4 b", "id % 3 y").repartition(3)
    recipe = Recipe(RandomFourier(300).bind(2), task="classification", target_resolution=1.0)
    k = np.arange(300)
    expected = recipe.knowledge((np.column_stack([k % 7 / 8, k % 5 / 4]), k % 3, None))
    assert len(sent(expected)) > 40 * 2**13
    assert from_spark(df, "y").knowledge(recipe) == expected
    monkeypatch.setattr(module, "AT_ONCE", 2**17)  # of which several are fetched one by one
    assert from_spark(df, "y").knowledge(recipe) == expected


@pytest.mark.parametrize("kind", ["array<double>", "array<float>", "array<int>"])
def test_a_column_of_arrays(spark, kind):
    rows = [([1, 2], "a"), ([3, 4], "b"), ([5, 7], "a")]
    df = spark.createDataFrame(rows, "x array<int>, y string").repartition(2)
    df = df.select(df.x.cast(kind).alias("x.y"), "y")
    source = from_spark(df, "y")
    assert (source.n_features, source.feature_names) == (2, None)
    X, y = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows])
    assert source.knowledge(LINEAR) == LINEAR.knowledge((X, y, None))


def test_no_rows(spark, recipe, rows):
    X, y, _ = rows
    df, target = frame(spark, rows, 3)
    for empty in (df.where("a > 99"), spark.createDataFrame([], df.schema)):
        source = from_spark(empty, target, columns=list("abcde"), sample_weight="w")
        assert source.knowledge(recipe) == recipe.knowledge((X[:0], y[:0], None))


@pytest.mark.parametrize(("kind", "name", "values", "error"), test_values.CASES)
def test_the_same_rows_mean_the_same(kind, name, values, error, spark, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    if pa.types.is_duration(values.type) or values.type == pa.timestamp("ns"):
        pytest.skip("Spark reads no such files, or reads integers")

    def by_spark(table, folder):
        pq.write_table(table, folder / "t.parquet", row_group_size=4)
        df = spark.read.parquet(str(folder / "t.parquet"))
        return (from_spark(df, "y", **test_values.weighted(table)),)

    test_values.check(by_spark, kind, name, values, error, tmp_path)


# --- answers ------------------------------------------------------------------------------


@pytest.fixture
def iris(spark):
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    names = ["a.b", "c", "d", "e"]
    rows = [(*map(float, x), int(k), f"row {i}") for i, (x, k) in enumerate(zip(X, y, strict=True))]
    return X, y, names, spark.createDataFrame(rows, [*names, "y", "id"]).repartition(3)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_answers_are_columns(iris):
    X, y, names, df = iris
    model = LSSVC().fit(from_spark(df, "y", columns=names))
    assert model.digest() == LSSVC().fit(X, y).digest()
    found = on_spark(model, df, scores="s", probability="p")
    assert found.columns == [*df.columns, "prediction", "s", "p"]
    rows = sorted(found.collect(), key=lambda row: int(row["id"][4:]))
    assert [row["prediction"] for row in rows] == model.predict(X).tolist()
    assert np.array_equal([row["s"] for row in rows], model.decision_function(X))
    assert np.array_equal([row["p"] for row in rows], model.predict_proba(X))
    with pytest.raises(ValueError, match="has no column 'z'"):
        on_spark(model, df, ["z"])
    with pytest.raises(ValueError, match="'y' more than once"):
        on_spark(model, df, prediction="y")
    with pytest.raises(TypeError, match="'c' of the Spark DataFrame is of type string"):
        on_spark(model, df.withColumn("c", df["c"].cast("string")))
    with pytest.raises(TypeError, match=r"on_spark\(model, df\)"):
        model.predict(df)


def test_a_declared_table_gives_the_digest_of_the_frame(spark, tmp_path):
    """Words, dates with and without zones, decimals, truth values and nulls."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"price": pa.decimal128(9, 2), "came": pa.timestamp("us", "UTC"), "ward": pa.int16()}
    named = declared.ARROW.append_column("y", [declared.Y])
    for name, kind in kinds.items():
        named = named.set_column(named.schema.get_field_index(name), name, named[name].cast(kind))
    pq.write_table(named, tmp_path / "t.parquet")
    df = spark.read.parquet(str(tmp_path / "t.parquet")).repartition(3)
    source = from_spark(df, "y", columns=declared.TABLE)
    assert source.feature_names == declared.TABLE.names
    model = LSSVC(declared.TABLE).fit(source)
    assert model.digest() == declared.DIGEST
    there = scan(tmp_path, "y", columns=declared.TABLE).on(spark)
    assert LSSVC(declared.TABLE).fit(there).digest() == declared.DIGEST
    scored = [row.asDict() for row in on_spark(model, df.drop("y"), scores="s").collect()]
    assert [row["prediction"] for row in scored] == model.predict(scored).tolist()
    assert [row["s"] for row in scored] == model.decision_function(scored).tolist()
    assert {row["s"] for row in scored} == {*model.decision_function(declared.ARROW).tolist()}
    gone = from_spark(df.where("price < 0"), "y", columns=declared.TABLE)
    left = [row for row in declared.ROWS if row["price"] >= 0]
    labels = [y for row, y in zip(declared.ROWS, declared.Y, strict=True) if row["price"] >= 0]
    assert model.forget(gone).digest() == LSSVC(declared.TABLE).fit(left, labels).digest()
    bad = df.replace("Dream", "Oz", ["island"]).withColumn("ward", df["ward"] * 2)
    with pytest.raises(
        TableError, match=r"DataFrame, a row, column 'ward': one of the categories '1', .* got [46]"
    ):
        LSSVC(declared.TABLE).fit(from_spark(bad, "y", columns=declared.TABLE))


@pytest.mark.parametrize("kind", ["columns", "vectors", "arrays"])
def test_nothing_is_computed_twice(kind, spark):
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql.functions import udf

    computed = spark.sparkContext.accumulator(0)

    def counted(value):
        computed.add(1)
        return value / 8

    df = spark.range(0, 60, 1, 3).selectExpr("id % 7 a", "id % 2 y").repartition(3, "y")
    df = df.withColumn("b", udf(counted, "double")("a")).repartition(2, "y")
    if kind == "vectors":
        df = VectorAssembler(inputCols=["a", "b"], outputCol="x").transform(df).select("x", "y")
    if kind == "arrays":  # whose length is said as stages of Spark ML say it
        df = df.selectExpr("array(a, b) x", "y").withMetadata("x", {"ml_attr": {"num_attrs": 2}})
    assert LSSVC().fit(from_spark(df, "y")).n_samples_ == 60
    assert computed.value == 60


def test_models_by_group(iris):
    X, y, names, df = iris
    df = df.withColumn("key", df["y"] % 2)
    models = fit_by(LSSVR(), df, "key", "c", columns=names[2:])
    for key in (0, 1):
        rows = y % 2 == key
        assert models.model(key).digest() == LSSVR().fit(X[rows][:, 2:], X[rows][:, 1]).digest()
    df = df.withColumn("w", df["y"] + 0.5)
    models = fit_by(LSSVR(), df, ["key", "y"], "c", columns=names[2:], sample_weight="w")
    assert models.keys == ((0, 0), (0, 2), (1, 1))
    rows = y == 2
    alone = LSSVR().fit(X[rows][:, 2:], X[rows][:, 1], [2.5] * 50)
    assert models.model((0, 2)).digest() == alone.digest()


# --- what can be wrong ------------------------------------------------------------------------


@ONE_TASK
@pytest.mark.parametrize("kind", [sabotage.Failing, sabotage.Deadly, sabotage.Unreadable])
def test_a_task_that_fails_is_tried_again(kind, spark, recipe, rows, digest, tmp_path):
    marker = tmp_path / "failed"
    df, target = frame(spark, rows, 4)
    source = from_spark(df, target, sample_weight="w")
    known = source.knowledge(sabotage.of(recipe, kind, marker=str(marker)))
    assert marker.exists()
    assert known.digest() == digest


@ONE_TASK
@pytest.mark.parametrize(
    ("kind", "said"),
    [(sabotage.Failing, "RuntimeError: the disk is full"), (sabotage.Deadly, "crashed")],
)
def test_a_task_that_always_fails_is_an_engine_error(kind, said, spark, recipe, rows):
    df, target = frame(spark, rows, 1)
    source = from_spark(df, target, sample_weight="w")
    with pytest.raises(EngineError, match=f"aborted: .*{said}.*Nothing was changed") as caught:
        source.knowledge(sabotage.of(recipe, kind))
    assert "\n" not in str(caught.value)


@ONE_TASK
@pytest.mark.parametrize("n", [1, 9])
def test_bad_rows_raise_their_own_error_at_once(n, spark, recipe, rows):
    rows[0][250, 3] = np.nan
    df, target = frame(spark, rows, n)
    source = from_spark(df, target, sample_weight="w")
    with pytest.raises(RangeError, match="NaN"):
        source.knowledge(recipe)
    df = spark.createDataFrame([(1.0, 2.0, "a"), (1.0, 2.0, None)], "a double, b double, y string")
    source = from_spark(df.repartition(n), "y")
    with pytest.raises(ValueError, match="Column 'y' of the Spark DataFrame has nulls"):
        source.knowledge(LINEAR)


class Attack:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_what_a_cell_holds_is_never_unpickled(spark, tmp_path):
    """The text of an error may quote a cell, and the driver reads that text."""
    content = base64.b64encode(pickle.dumps(Attack(tmp_path / "run"))).decode()
    label = f"=traceless={content}=traceless=\0"
    df = spark.createDataFrame([(1.0, 2.0, label)], "a double, b double, y string")
    with pytest.raises(ValueError, match=r"traceless=.* ends with NUL"):
        LSSVC().fit(from_spark(df, "y"))
    assert not (tmp_path / "run").exists()


def test_errors_of_adding_are_raised_here(spark):
    df = spark.createDataFrame([([1, 2], 0), ([3, 4], 1)], "x array<int>, y int")
    source = from_spark(df.repartitionByRange(2, "y"), "y")
    assert source.knowledge(LINEAR).class_counts == {0: 1, 1: 1}
    with pytest.raises(MismatchError, match="one type, got int and str"):
        source.knowledge(sabotage.of(LINEAR, sabotage.TwoTypes))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"target": "label"}, ValueError, "Spark DataFrame has no column 'label'; it has 'x', 't'"),
        ({"target": "y"}, TypeError, "Column 't' of the Spark DataFrame is of type string"),
        ({"target": "y", "columns": ["x", "v"]}, TypeError, "'v' of .* is of type array<double>"),
        ({"target": "y", "columns": ["x", "l"]}, TypeError, "array<int>"),
    ],
)
def test_columns(options, error, message, spark):
    from pyspark.ml.linalg import Vectors, VectorUDT
    from pyspark.sql.types import ArrayType, DoubleType, IntegerType, StringType, StructType

    schema = StructType().add("x", DoubleType()).add("t", StringType()).add("v", VectorUDT())
    schema = schema.add("l", ArrayType(IntegerType())).add("y", IntegerType())
    df = spark.createDataFrame([(1.0, "a", Vectors.dense([1.0]), [1], 0)], schema)
    with pytest.raises(error, match=message):
        from_spark(df, **options)


def test_a_column_of_vectors(spark):
    from pyspark.ml.linalg import Vectors

    rows = [(Vectors.dense([1.0, 2.0]), 0), (Vectors.sparse(2, {1: 3.0}), 1)]
    known = from_spark(spark.createDataFrame(rows, ["v.w", "y"]), "y").knowledge(LINEAR)
    assert known == LINEAR.knowledge((np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([0, 1]), None))


def test_arrays_of_other_lengths_and_columns_of_one_name(spark):
    schema = "x array<int>, y int"
    for other in (None, [3]):
        df = spark.createDataFrame([(other, 0), ([1, 2], 1)][:: 1 if other is None else -1], schema)
        source = from_spark(df.coalesce(1), "y")
        assert source.n_features == 2
        with pytest.raises(ValueError, match="'x' of the Spark DataFrame must hold 2 numbers"):
            source.knowledge(LINEAR)
    with pytest.raises(ValueError, match="no rows with an array in 'x'"):
        from_spark(df.where("y > 1"), "y")
    with pytest.raises(ValueError, match="has the column 'id' more than once"):
        from_spark(spark.range(2).select("id", "id"), "id")


def test_a_bare_dataframe_is_named_with_the_way_to_pass_it(spark):
    with pytest.raises(TypeError, match=r"from_spark\(df, target\)"):
        as_source(spark.range(3), None)


@ONE_TASK
def test_partitions_of_files_opened_by_the_tasks(spark, recipe, rows, digest, tmp_path):
    import pandas as pd

    X, y, weight = rows
    frame = pd.DataFrame(X, columns=list("abcde")).assign(y=y, w=weight)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=60)
    source = scan(tmp_path, "y", sample_weight="w", batch_rows=60).on(spark)
    assert (source.n_features, source.feature_names) == (5, list("abcde"))
    assert source.knowledge(recipe).digest() == digest
    failing = sabotage.of(recipe, sabotage.Failing, marker=str(tmp_path / "failed"))
    assert source.knowledge(failing).digest() == digest


def test_the_version_of_a_delta_table_goes_with_its_files(spark, tmp_path):
    deltalake = pytest.importorskip("deltalake", reason="pip install 'traceless[delta]'")
    import pyarrow as pa

    deltalake.write_deltalake(tmp_path, pa.table({"a": [1.0, 2.0], "y": [0, 1]}))
    here = scan(tmp_path, "y")
    there = here.on(spark)
    assert (there.table_version, there.name) == (0, here.name)
    model = LSSVC().fit(there)
    assert (model.merged_, model.digest()) == ({here.name: 1}, LSSVC().fit(here).digest())


def test_the_page_on_clusters_runs_by_copy_and_paste(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "cluster.md"
    blocks = re.findall(r"```python(?: spark)?\n(.*?)```", page.read_text(), flags=re.DOTALL)
    assert any("from_spark" in block for block in blocks)
    script = tmp_path / "page.py"
    script.write_text("if __name__ == '__main__':\n" + textwrap.indent("\n".join(blocks), "    "))
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    subprocess.run([sys.executable, script], env=environment, check=True, capture_output=True)
