"""Parquet files in other places: an object store, and any filesystem of fsspec or pyarrow."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from traceless import LSSVC, scan
from traceless.features import Number, Table
from traceless.sources import Files, Schema


@pytest.fixture
def table(rng):
    return pa.table({"a": rng.normal(size=90), "b": rng.normal(size=90), "y": np.arange(90) % 3})


def digest(table):
    return LSSVC().fit(np.column_stack([table["a"], table["b"]]), np.array(table["y"])).digest()


def write(table, filesystem, base):
    for k in range(3):
        place = f"{base}/k={k}/p.parquet"
        filesystem.create_dir(f"{base}/k={k}", recursive=True)
        pq.write_table(table.slice(30 * k, 30), place, filesystem=filesystem, row_group_size=10)
    filesystem.create_dir(f"{base}/_temporary", recursive=True)
    pq.write_table(table, f"{base}/_temporary/p.parquet", filesystem=filesystem)


def check(table, filesystem, address):
    columns = {"columns": ["a", "b"], "filesystem": filesystem}
    for path in (address, f"{address}/**/*.parquet", f"{address}/k=*/p.parquet"):
        assert LSSVC().fit(scan(path, "y", **columns)).digest() == digest(table)
    assert scan(address, "y", filesystem=filesystem).feature_names == ["a", "b", "k"]
    one = scan(f"{address}/k=1/p.parquet", "y", **columns)
    assert LSSVC().fit(one).digest() == digest(table.slice(30, 30))
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nothing"):
        scan(f"{address}/nothing", "y", filesystem=filesystem)


@pytest.mark.parametrize("kind", ["pyarrow", "fsspec"])
def test_a_filesystem_that_is_given(kind, table, tmp_path):
    memory = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    given = memory
    if kind == "fsspec":
        given = pytest.importorskip("fsspec").filesystem("memory")
        memory = fs.PyFileSystem(fs.FSSpecHandler(given))
    write(table, memory, "bucket/rows")
    check(table, given, "bucket/rows")


def test_what_an_address_names_is_not_hidden_and_folders_below_are_not_guessed(table, tmp_path):
    there = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    write(table, there, ".cache/_rows")
    for path in (".cache/_rows", ".cache/_rows/k=0/p.parquet", ".cache/_rows/*/p.parquet"):
        assert scan(path, "y", filesystem=there).feature_names == ["a", "b", "k"]
    pq.write_table(table, "top.parquet", filesystem=there)
    assert scan("*.parquet", "y", filesystem=there).feature_names == ["a", "b"]
    with pytest.raises(ValueError, match=r"pyarrow does not know .*filesystem=fsspec"):
        scan("memory://rows/p.parquet", "y")
    there.create_dir(".cache/_rows/old")
    pq.write_table(table, ".cache/_rows/old/p.parquet", filesystem=there)
    with pytest.raises(ValueError, match=r"has the subfolder old; say which .*_rows/\*\*/\*"):
        scan(".cache/_rows", "y", filesystem=there)


def test_files_that_change(table, tmp_path):
    there = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    write(table, there, "rows")
    source = scan("rows", "y", filesystem=there)
    pq.write_table(table, "rows/k=1/p.parquet", filesystem=there)
    with pytest.raises(ValueError, match="has changed since it was scanned"):
        LSSVC().fit(source)
    there.delete_file("rows/k=0/p.parquet")
    with pytest.raises(FileNotFoundError, match="deleted or moved"):
        LSSVC().fit(source)


def test_an_object_store(table, monkeypatch):
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "testing")
        place = f"{host}:{port}".replace("0.0.0.0", "127.0.0.1")
        options = {"endpoint_override": place, "scheme": "http", "region": "us-east-1"}
        store = fs.S3FileSystem(allow_bucket_creation=True, **options)
        write(table, store, "bucket/rows")
        check(table, store, "s3://bucket/rows")
        said = f"endpoint_override={place}&scheme=http&region=us-east-1"
        known = LSSVC().fit(scan(f"s3://bucket/rows?{said}", "y", columns=["a", "b"]), None)
        assert known.digest() == digest(table)
        lines = [
            "a,b,y",
            *(f"{a},{b},{y}" for a, b, y in zip(*table.to_pydict().values(), strict=True)),
        ]
        with store.open_output_stream("bucket/t.csv") as file:
            file.write("\n".join(lines).encode())
        schema = Schema(Table([Number("a"), Number("b")]), ["y"])
        X, y, _ = Files([f"s3://bucket/*.csv?{said}"], schema).arrays()
        assert (X.shape, y.tolist()) == ((90, 2), [str(k) for k in table["y"].to_pylist()])
    finally:
        server.stop()
