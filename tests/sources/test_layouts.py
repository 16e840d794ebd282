"""Folders that are more than their files: no deleted row comes back, no column is lost."""

import json
import pickle
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from traceless import LSSVC, from_batches, load, on_device, scan
from traceless.exceptions import AlreadyMergedError
from traceless.features import Linear
from traceless.knowledge.sums import Recipe
from traceless.sources.files import File
from traceless.sources.layouts import hive_columns

LINEAR = Recipe(Linear().bind(2), task="classification", target_resolution=1.0)


def write(path, a, y, **more):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"a": a, **more, "y": y}), path)


@pytest.fixture
def hive(tmp_path):
    """Two partitions, as Spark, Dask and pandas write them, and what they leave beside them."""
    write(tmp_path / "k=1" / "p.parquet", [1.0, 2.0], ["u", "v"])
    write(tmp_path / "k=-2" / "p.parquet", [3.0], ["v"])
    for junk in ("_temporary/0", "_delta", ".staging", "k=1/_temporary"):
        write(tmp_path / junk / "p.parquet", [99.0], ["w"])
    (tmp_path / "_SUCCESS").touch()
    return tmp_path


@pytest.mark.parametrize("pattern", ["", "**/*.parquet", "k=*/*", "**"])
def test_hive_columns_are_columns_and_hidden_folders_are_not_read(hive, pattern):
    source = scan(hive / pattern, "y")
    assert source.feature_names == ["a", "k"]
    X = np.array([[1, 1], [2, 1], [3, -2]])
    assert source.knowledge(LINEAR) == LINEAR.knowledge((X, np.array(["u", "v", "v"]), None))
    assert LSSVC().fit(source).forget(scan(hive / "k=1", "y")).n_samples_ == 1


def test_a_hive_column_as_target_or_text(tmp_path):
    write(tmp_path / "y=r%20s" / "p.parquet", [1.0], [0])
    write(tmp_path / "y=__HIVE_DEFAULT_PARTITION__" / "p.parquet", [2.0], [0])
    for file in tmp_path.glob("*/*"):
        pq.write_table(pa.table({"a": [1.0], "b": [2.0]}), file)
    with pytest.raises(ValueError, match=r"'y' of .*nulls"):
        scan(tmp_path, "y").knowledge(LINEAR)
    known = scan(tmp_path / "y=r%20s", "y").knowledge(LINEAR)
    assert known.class_counts == {"r s": 1}
    with pytest.raises(TypeError, match=r"'y' of .* is of type"):
        scan(tmp_path / "y=r%20s", "a")


def test_a_column_that_the_file_has_itself_stays(tmp_path):
    write(tmp_path / "b=7" / "p.parquet", [1.0], [0], b=[5.0])
    ((X, _, _),) = scan(tmp_path, "y").partitions[0].batches()
    assert X.tolist() == [[1.0, 5.0]]


def test_partitions_must_have_the_same_columns(tmp_path):
    write(tmp_path / "k=1" / "p.parquet", [1.0], [0])
    write(tmp_path / "p.parquet", [1.0], [0])
    with pytest.raises(ValueError, match=r"p\.parquet has the partition columns \[\].*\['k'\]"):
        scan(tmp_path, "y")


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["1", "2"], [1, 2]),
        (["1", "0.5"], [1.0, 0.5]),
        (["1", "a"], ["1", "a"]),
        (["1", "1_000"], ["1", "1_000"]),  # which Python would read as a number
        (["1", "nan"], ["1", "nan"]),
    ],
)
def test_values_have_one_type(values, found, tmp_path):
    files = [File.here(tmp_path / f"k={value}" / "f") for value in values]
    assert [columns[0][1] for columns in hive_columns(files)] == found


def test_links_keep_their_names_and_the_columns_of_their_folders(tmp_path):
    write(tmp_path / "store" / "0f3a", [1.0, 2.0], [0, 1])  # as in caches that name by content
    (tmp_path / "rows" / "k=3").mkdir(parents=True)
    link = tmp_path / "rows" / "k=3" / "p.parquet"
    link.symlink_to(tmp_path / "store" / "0f3a")
    source = scan(tmp_path / "rows", "y")
    assert source.feature_names == ["a", "k"]
    expected = LINEAR.knowledge((np.array([[1, 3], [2, 3]]), np.array([0, 1]), None))
    assert source.knowledge(LINEAR) == expected
    link.with_name("q.parquet").symlink_to(link)
    with pytest.raises(ValueError, match="listed twice"):
        scan(tmp_path / "rows", "y")


def test_folders_further_up_are_no_columns(tmp_path):
    write(tmp_path / "lr=0.1" / "data" / "k=1" / "p.parquet", [1.0], [0])
    assert scan(tmp_path / "lr=0.1" / "data", "y").feature_names == ["a", "k"]


@pytest.mark.parametrize("path", ["t", "t/*.parquet", "t/p.parquet"])
@pytest.mark.parametrize("mark", ["_delta_log/0.json", ".hoodie/x", "metadata/v1.metadata.json"])
def test_the_files_of_tables_are_refused(path, mark, tmp_path):
    write(tmp_path / "t" / "p.parquet", [1.0], [0])
    (tmp_path / "t" / mark).parent.mkdir()
    (tmp_path / "t" / mark).write_text("{}")
    there = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    ways = [{"path": f"file://{tmp_path}/{path}"}, {"path": path, "filesystem": there}]
    if path != "t" or "delta" not in mark:  # whose own folder is taken
        ways.append({"path": tmp_path / path})
    for options in ways:
        with pytest.raises(
            ValueError, match=r"belongs to the (Delta|Hudi|Iceberg) table .*Nothing"
        ):
            scan(target="y", **options)


def test_a_table_of_this_machine_is_not_one_of_another_filesystem(tmp_path, monkeypatch):
    (tmp_path / "here" / "t" / "_delta_log").mkdir(parents=True)
    write(tmp_path / "there" / "t" / "p.parquet", [1.0], [0])
    monkeypatch.chdir(tmp_path / "here")
    there = fs.SubTreeFileSystem(str(tmp_path / "there"), fs.LocalFileSystem())
    assert len(scan("t", "y", filesystem=there).partitions) == 1


def test_the_extra_of_delta_tables_is_named(tmp_path, monkeypatch):
    (tmp_path / "_delta_log").mkdir()
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(ImportError, match=r"Delta table.*traceless\[delta\]"):
        scan(tmp_path, "y")


def test_delta_tables(tmp_path):
    deltalake = pytest.importorskip("deltalake", reason="pip install 'traceless[delta]'")
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "k": [1, 1, 2, 2], "y": ["u", "v", "u", "v"]})
    place = tmp_path / "table"
    deltalake.write_deltalake(place, table, partition_by=["k"])
    deltalake.DeltaTable(place).delete("a = 2")
    assert len(list(place.glob("**/*.parquet"))) > 2  # the old file is still there
    source = scan(place, "y")
    assert (source.table_version, source.feature_names) == (1, ["a", "k"])
    left = table.filter(pa.compute.field("a") != 2)
    X = np.column_stack([left["a"], left["k"]])
    assert source.knowledge(LINEAR) == LINEAR.knowledge((X, np.array(left["y"]), None))
    model = LSSVC().fit(scan(place, "y", version=0))
    assert model.n_samples_ == 4
    model.update(add=source, forget=scan(place, "y", version=0))
    assert model.digest() == LSSVC().fit(source).digest()
    whole = deltalake.DeltaTable(place)  # the way that an error names
    for rows in (whole, whole.to_pyarrow_dataset()):
        assert LSSVC().fit(from_batches(rows, "y")).digest() == model.digest()
    with pytest.raises(ValueError, match="cannot be read"):
        scan(place, "y", version=9)
    deltalake.write_deltalake(tmp_path / "empty", table)
    deltalake.DeltaTable(tmp_path / "empty").delete()
    with pytest.raises(ValueError, match=r"Version 1 of the Delta table .* has no files"):
        scan(tmp_path / "empty", "y")
    with pytest.raises(ValueError, match="version=1 is one of a Delta table"):
        scan(tmp_path, "y", version=1)
    log = place / "_delta_log" / f"{2:020}.json"
    needed = {f"{who}Features": ["deletionVectors"] for who in ("reader", "writer")}
    needed |= {"minReaderVersion": 3, "minWriterVersion": 7}
    log.write_text(json.dumps({"protocol": needed}))
    with pytest.raises(ValueError, match=r"uses deletionVectors.*from_spark"):
        scan(place, "y")


def test_a_model_says_which_versions_of_a_table_it_has_learned(tmp_path):
    deltalake = pytest.importorskip("deltalake", reason="pip install 'traceless[delta]'")
    place = tmp_path / "a table"
    for mode in ("error", "append", "append"):
        rows = {"a": [1.0, 2.0], "y": ["u", "v"]}
        deltalake.write_deltalake(place, pa.table(rows), mode=mode)
    v0, v1, v2 = (scan(place, "y", version=k) for k in range(3))
    names = [f"{place.as_uri()}@v{k}" for k in range(3)]
    assert [v.name for v in (v0, v1, v2)] == names
    there = from_batches(deltalake.DeltaTable(place, version=1), "y")
    assert (there.name, there.table_version) == (names[1], 1)
    assert (on_device(v1, "cpu").name, on_device(v1, "cpu").table_version) == (names[1], 1)

    model = LSSVC().fit(v0)
    assert model.merged_ == {names[0]: 1}
    X, y = pd.DataFrame({"a": [1.0, 2.0]}), ["u", "v"]
    assert model.digest() == LSSVC().fit(X, y).digest()  # its name is no part of it
    model.update(add=v1, forget=v0)
    assert model.merged_ == {names[1]: 1}
    model.partial_fit(X, y)  # other rows have no name
    model.save(tmp_path / "model")
    for copy in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert copy.merged_ == model.merged_
    with pytest.raises(AlreadyMergedError, match=r"itself merged the slice .*@v1"):
        model.merge(LSSVC().fit(v1))
    newest = LSSVC().fit(v2).forget(v1)
    assert newest.merged_ == {names[2]: 1, names[1]: -1}
    newest.save(tmp_path / "newest")
    both = LSSVC().merge(load(tmp_path / "newest")).merge(model)  # v2 - v1 + v1
    assert (both.merged_[names[2]], names[1] in both.merged_) == (1, False)
    assert both.merge(-newest.knowledge_).merged_[names[1]] == 1  # takes along what it brought
    assert both.digest() == model.digest()
    assert model.fit(X, y).merged_ == {}
