"""Small files that declare much: they are refused before anything is made of them."""

import os
import resource

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from traceless import scan
from traceless.exceptions import TableError
from traceless.features import Linear, Number, Table
from traceless.knowledge.sums import Recipe
from traceless.sources import Files, Schema

SCHEMA = Schema(Table([Number("x")]), ["y"])
MIB = 2**20


@pytest.fixture
def little(monkeypatch):
    """64 MiB are allowed, so that attacks can be small and their absence is found."""
    monkeypatch.setenv("TRACELESS_MEMORY_LIMIT", str(64 / 1024))


@pytest.fixture(autouse=True)
def _bounded_process():
    """Whatever takes three gibibytes more than there are now fails, and not the machine."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + 3072 * MIB, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def repeated(n, length):
    """A label of many letters that all rows share."""
    indices = pa.array(np.zeros(n, np.int32))
    return pa.table(
        {
            "x": np.arange(n) % 7.0,
            "y": pa.DictionaryArray.from_arrays(indices, pa.array(["a" * length])),
        }
    )


def refused(path):
    assert os.path.getsize(path) < 200_000
    with pytest.raises(TableError, match="TRACELESS_MEMORY_LIMIT") as caught:
        Files([str(path)], SCHEMA).arrays()
    assert "Nothing was changed" in str(caught.value)
    return str(caught.value)


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("stored", [True, False])
def test_a_text_that_all_rows_of_a_parquet_file_share(tmp_path, stored):
    path = tmp_path / "t.parquet"
    pq.write_table(repeated(60_000, 100_000), path, compression="zstd", store_schema=stored)
    assert "would take" in refused(path)  # 6 GB of letters
    recipe = Recipe(Linear().bind(1), task="classification", target_resolution=1.0)
    with pytest.raises(ValueError, match="TRACELESS_MEMORY_LIMIT"):
        scan(str(path), "y").knowledge(recipe)


def test_the_limit_can_be_raised(tmp_path, monkeypatch):
    pq.write_table(repeated(3000, 5000), tmp_path / "t.parquet")  # 57 MiB of UTF-32
    monkeypatch.setenv("TRACELESS_MEMORY_LIMIT", "0.05")
    assert "0.05 are allowed" in refused(tmp_path / "t.parquet")
    monkeypatch.setenv("TRACELESS_MEMORY_LIMIT", "0.06")
    assert len(Files([str(tmp_path / "t.parquet")], SCHEMA).arrays()[1]) == 3000
    for wrong in ("much", "-1", "nan", "inf"):
        monkeypatch.setenv("TRACELESS_MEMORY_LIMIT", wrong)
        with pytest.raises(ValueError, match="must be a number of gibibytes"):
            Files([str(tmp_path / "t.parquet")], SCHEMA).arrays()


@pytest.mark.usefixtures("little")
def test_zeros_that_a_parquet_file_compressed(tmp_path):
    n = 10_000_000
    table = pa.table({"x": np.zeros(n), "y": np.zeros(n, np.int64)})
    pq.write_table(
        *(table, tmp_path / "t.parquet"), compression="zstd", use_dictionary=False, row_group_size=n
    )
    assert "What is compressed" in refused(tmp_path / "t.parquet")


@pytest.mark.usefixtures("little")
def test_many_texts_of_usual_length_are_read_in_whole_batches(tmp_path):
    """Steps are small where a dictionary is long; what comes out is as before."""
    n = 150_000
    words = [f"word {k:06d}" for k in range(n)]
    pq.write_table(pa.table({"x": np.arange(n) * 1.0, "y": words}), tmp_path / "t.parquet")
    batches = list(Files([str(tmp_path / "t.parquet")], SCHEMA).batches())
    assert batches[0].n_rows >= 65_536
    assert np.concatenate([batch.y for batch in batches]).tolist() == words
    X = np.concatenate([batch.X for batch in batches])
    np.testing.assert_array_equal(X[:, 0], np.arange(n))


@pytest.mark.usefixtures("little")
def test_one_long_label_among_short_ones(tmp_path):
    """NumPy would give each label as much room as the longest needs."""
    lines = ["x,y", *["1,a"] * 20_000, f"1,{'a' * 2000}"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert "the labels of column 'y' would take 0.1 GiB" in refused(tmp_path / "t.csv")
