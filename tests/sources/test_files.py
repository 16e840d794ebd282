import subprocess
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from traceless import LSSVC, from_batches, scan
from traceless.exceptions import TableError
from traceless.features import Category, Linear, Table
from traceless.knowledge.sums import Recipe

EDGES = [0, 30, 30, 170, 400]  # of files; one holds nothing
ONE, LINEAR = (
    Recipe(Linear().bind(n), task="classification", target_resolution=1.0) for n in (1, 2)
)


def parts(rows):
    return [tuple(a[i:j] for a in rows) for i, j in pairwise(EDGES)]


def as_table(X, y, weight, order="abcde"):
    columns = {name: X[:, "abcde".index(name)] for name in order}
    targets = {"y": y} if y.ndim == 1 else {"y": y[:, 0], "z": y[:, 1]}
    return pa.table(columns | targets | {"w": weight})


def write_parquet(folder, rows, **options):
    for k, part in enumerate(parts(rows)):
        order = "abcde" if k == 0 else "cdeab"  # columns are found by name
        pq.write_table(as_table(*part, order), folder / f"{k}.parquet", **options)
    return ["y", "z"] if rows[1].ndim == 2 else "y"


# --- the same knowledge ---------------------------------------------------------------------


@pytest.mark.parametrize(("n_jobs", "batch_rows"), [(1, None), (1, 64), (1, 7), (2, 64)])
def test_parquet(n_jobs, batch_rows, recipe, rows, digest, tmp_path):
    target = write_parquet(tmp_path, rows, row_group_size=50)
    (tmp_path / "_SUCCESS").touch()
    source = scan(tmp_path, target, sample_weight="w", batch_rows=batch_rows)
    assert source.n_features == 5
    assert source.feature_names == list("abcde")
    assert source.knowledge(recipe, n_jobs).digest() == digest


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 2), pa.large_list(pa.int8())]
)
def test_a_column_of_lists(kind, tmp_path):
    X = np.array([[1.0, 2], [3, 4], [5, 7]])
    table = pa.table({"x": pa.array(X.tolist(), kind), "y": ["a", "b", "a"]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    source = scan(tmp_path, "y")
    assert (source.n_features, source.feature_names) == (2, None)
    assert source.knowledge(LINEAR) == LINEAR.knowledge((X, np.array(["a", "b", "a"]), None))


def test_files_without_rows(recipe, rows, tmp_path):
    target = write_parquet(tmp_path, rows)
    files = [tmp_path / "1.parquet", tmp_path / "0.parquet"]  # the first has no rows
    source = scan(files, target, columns=list("abcde"), sample_weight="w")
    assert source.knowledge(recipe) == recipe.knowledge(tuple(a[:30] for a in rows))
    X, y, _ = rows
    nothing = scan(tmp_path / "1.parquet", target, sample_weight="w")
    assert nothing.knowledge(recipe) == recipe.knowledge((X[:0], y[:0], None))


def test_folders_below_are_found_by_a_pattern(tmp_path):
    for year in ("2024", "2025"):
        (tmp_path / year).mkdir()
        pq.write_table(pa.table({"a": [1], "b": [2], "y": [year]}), tmp_path / year / "t.parquet")
    with pytest.raises(ValueError, match=r"subfolder 2024.*\*\*"):
        scan(tmp_path, "y")
    for pattern in ("**/*.parquet", "**", "*/t.parquet"):
        known = scan(str(tmp_path / pattern), "y").knowledge(LINEAR)
        assert known.class_counts == {"2024": 1, "2025": 1}


@pytest.mark.skipif(sys.platform != "linux", reason="reads VmHWM from /proc")
def test_memory_does_not_grow_with_the_rows(tmp_path):
    group = pa.table({f"x{k}": np.arange(20_000) % 7.0 for k in range(20)} | {"y": [0, 1] * 10_000})
    with pq.ParquetWriter(tmp_path / "few.parquet", group.schema) as few:
        for _ in range(10):
            few.write_table(group)
    with pq.ParquetWriter(tmp_path / "many.parquet", group.schema) as many:
        for _ in range(60):  # 202 MB in memory
            many.write_table(group)
    code = """if True:
        import re, sys
        from pathlib import Path
        from traceless import scan
        from traceless.features import Linear
        from traceless.knowledge.sums import Recipe

        recipe = Recipe(Linear().bind(20), task="classification", target_resolution=1.0)
        for name in ("few", "many"):
            known = scan(f"{sys.argv[1]}/{name}.parquet", "y").knowledge(recipe)
            status = Path("/proc/self/status").read_text()
            print(known.n_samples, re.search(r"VmHWM:\\s*(\\d+) kB", status)[1])
    """
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True
    )
    (n_few, few), (n_many, many) = (map(int, line.split()) for line in done.stdout.splitlines())
    assert (n_few, n_many) == (200_000, 1_200_000)
    assert many - few < 60_000  # kB, where the further rows are 168 MB


# --- what can be wrong ------------------------------------------------------------------------


@pytest.fixture
def table():
    return pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": [0, 1]})


def test_files_that_are_not_there(tmp_path, table):
    with pytest.raises(FileNotFoundError, match=r"no file .*gone\.parquet"):
        scan(tmp_path / "gone.parquet", "y")
    with pytest.raises(FileNotFoundError, match=r"matches the pattern .*\*\.parquet"):
        scan(f"{tmp_path}/*.parquet", "y")
    with pytest.raises(FileNotFoundError, match="no files to scan in the folder"):
        scan(tmp_path, "y")
    with pytest.raises(FileNotFoundError, match="list of paths is empty"):
        scan([], "y")
    with pytest.raises(TypeError, match="path, a pattern or a list"):
        scan(3, "y")


@pytest.mark.parametrize("path", ["", "*", "**/*.parquet"])
def test_what_is_no_file_is_not_left_out_silently(path, tmp_path, table):
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "_pipe").symlink_to(tmp_path / "gone")
    assert len(scan(tmp_path / path, "y").partitions) == 1
    (tmp_path / "k=1").mkdir()
    lost = [tmp_path / "s.parquet", tmp_path / "k=1" / "s.parquet"]
    for place in lost[: 1 if path == "*" else 2]:
        place.symlink_to(tmp_path / "gone")
        with pytest.raises(ValueError, match=r"s\.parquet is no file: it is a link to nothing"):
            scan(tmp_path / path, "y")
        place.unlink()


def test_kinds(tmp_path, table):
    (tmp_path / "t.csv").write_text("1,2")
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"t\.csv is of no known kind.*\.parquet.*mmap_mode"):
        scan(tmp_path, "y")
    with pytest.raises(ValueError, match="batch_rows must be at least 1, got 0"):
        scan(tmp_path / "t.parquet", "y", batch_rows=0)


def test_a_file_listed_twice_would_be_learned_twice(tmp_path, table):
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "t.parquet")
    for paths in (
        [tmp_path / "t.parquet"] * 2,
        [f"{tmp_path}/*.parquet"],
        [tmp_path / "t.parquet", tmp_path / ".." / tmp_path.name / "t.parquet"],
    ):
        with pytest.raises(ValueError, match=r"t\.parquet is listed twice"):
            scan(paths, "y")
    (tmp_path / "again.parquet").hardlink_to(tmp_path / "t.parquet")
    for other in (tmp_path / "again.parquet", f"file://{tmp_path}/again.parquet"):
        paths = [tmp_path / "t.parquet", other]
        with pytest.raises(ValueError, match=r"again\.parquet is listed twice, .* /.*/t\.parquet"):
            scan(paths, "y")


@pytest.mark.parametrize("name", [None, "a patient"])
def test_an_index_of_pandas_is_no_feature(name, tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2, 4], "y": [0, 1, 0]}, pd.Index([7, 9, 8], name=name))
    expected = LSSVC().fit(frame[["a"]], frame["y"])
    path = tmp_path / "0.parquet"
    frame.to_parquet(path)
    ways = [scan(path, "y"), from_batches([frame], "y"), from_batches(frame, "y")]
    ways += [from_batches(pyarrow.dataset.dataset(path), "y")]
    if name is None:  # other libraries do not know what a column with a name of its own was
        ways += [from_batches(pl.scan_parquet(path), "y")]
    for source in ways:
        model = LSSVC().fit(source)
        assert (model.digest(), list(model.feature_names_in_)) == (expected.digest(), ["a"])
    plain = tmp_path / "1.parquet"
    pq.write_table(pa.table({"a": [3.0], "y": [1]}), plain)
    one, other = (scan(paths, "y").knowledge(ONE) for paths in ([path, plain], [plain, path]))
    assert one == other
    stored = pq.read_schema(path).names[-1]
    assert scan(path, "y", columns=["a", stored]).feature_names == ["a", stored]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "label"}, r"t\.parquet has no column 'label'; it has 'a', 'b', 'y'"),
        ({"target": "y", "sample_weight": "w"}, "no column 'w'"),
        ({"target": "y", "columns": ["a", "c"]}, "no column 'c'"),
        ({"target": "y", "columns": ["a", "y"]}, "'y' both as a feature and as target"),
        ({"target": ["a", "b", "y"]}, "no columns left"),
        ({"target": "y", "columns": []}, "no columns left"),
    ],
)
def test_columns_that_are_not_there(options, message, tmp_path, table):
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=message):
        scan(tmp_path, **options)


def test_files_must_have_the_same_columns(tmp_path, table):
    pq.write_table(table, tmp_path / "1.parquet")
    pq.write_table(table.append_column("c", [[1, 2]]), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet has a column 'c' that the first"):
        scan(tmp_path, "y")
    assert scan(tmp_path, "y", columns=["b", "a"]).feature_names == ["b", "a"]
    pq.write_table(table.drop_columns("b"), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet has no column 'b'"):
        scan(tmp_path, "y")


def test_lists_of_different_lengths(tmp_path):
    for lists in ([[1, 2], [3]], [[1, 2], None]):
        pq.write_table(pa.table({"x": lists, "y": [0, 1]}), tmp_path / "t.parquet")
        with pytest.raises(ValueError, match=r"'x' of .*t\.parquet must hold 2 numbers"):
            scan(tmp_path, "y").knowledge(LINEAR)
    pq.write_table(pa.table({"x": lists, "y": [0, 1]}).slice(0, 0), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="how long the lists in 'x' are"):
        scan(tmp_path, "y")


def test_a_bad_value_is_found_by_its_row_in_the_file(tmp_path):
    words = ["u"] * 25 + ["w"] + ["u"] * 4
    pq.write_table(
        pa.table({"c": words, "y": [0, 1] * 15}), tmp_path / "t.parquet", row_group_size=10
    )
    table = Table([Category("c", ["u"])])
    for rows in (None, 4):
        with pytest.raises(TableError, match=r"t\.parquet, row 26, column 'c': .* got 'w'"):
            LSSVC(table).fit(scan(tmp_path, "y", columns=table, batch_rows=rows))


def test_damaged_files(tmp_path, table, rng):
    whole = pa.table({"a": rng.normal(size=5000), "b": rng.normal(size=5000), "y": [0, 1] * 2500})
    file = tmp_path / "t.parquet"
    pq.write_table(whole, file)
    source, content = scan(file, "y"), file.read_bytes()
    for damaged in (content[:-100], content[:100], b"", b"not at all"):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"t\.parquet cannot be read.*truncated"):
            scan(file, "y")
        with pytest.raises(ValueError, match=r"t\.parquet has changed since it was scanned"):
            source.knowledge(LINEAR)
    file.write_bytes(content[:4] + b"\0" * 20_000 + content[20_004:])
    with pytest.raises(ValueError, match=r"t\.parquet cannot be read"):
        scan(file, "y").knowledge(LINEAR)


def test_the_extra_is_named_when_it_is_not_installed(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'traceless\[files\]'"):
        scan(tmp_path / "t.parquet", "y")
