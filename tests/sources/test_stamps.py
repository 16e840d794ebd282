"""What is learned is what was scanned: files that change in between are refused."""

import os

import numpy as np
import pandas as pd
import pytest
import zarr

from traceless import LSSVC, scan
from traceless.features import Linear
from traceless.knowledge.sums import Recipe

LINEAR = Recipe(Linear().bind(2), task="classification", target_resolution=1.0)


def saved(kind, place, n):
    """Rows of n classes, in one file or in two."""
    X, y = np.arange(1.0, 2.0 * n + 1).reshape(n, 2), np.arange(n) + 1
    if kind == "parquet":
        pd.DataFrame(X, columns=["a", "b"]).assign(y=y).to_parquet(f"{place}/X.parquet")
        return f"{place}/X.parquet", "y"
    if kind == "npy":
        np.save(f"{place}/X.npy", X)
        np.save(f"{place}/y.npy", y)
    else:
        zarr.create_array(f"{place}/X.zarr", data=X, chunks=(2, 1), overwrite=True)
        zarr.create_array(f"{place}/y.zarr", data=y, chunks=(3,), overwrite=True)
    return f"{place}/X.{kind}", f"{place}/y.{kind}"


@pytest.mark.parametrize("kind", ["parquet", "npy", "zarr"])
@pytest.mark.parametrize("n", [20, 50])
def test_files_that_change_between_scan_and_fit(kind, n, tmp_path):
    model = LSSVC().fit(scan(*saved(kind, tmp_path, 10)))
    digest = model.digest()
    source = scan(*saved(kind, tmp_path, 50))
    assert source.knowledge(LINEAR).n_samples == 50
    saved(kind, tmp_path, n)  # fewer rows, or the same again at another time
    with pytest.raises(ValueError, match=r"(X|y)\..*has changed since it was scanned.*bytes"):
        model.partial_fit(source)
    assert model.digest() == digest


@pytest.mark.parametrize("kind", ["parquet", "npy", "zarr"])
def test_a_deleted_file_is_called_deleted(kind, tmp_path):
    path, target = saved(kind, tmp_path, 5)
    source = scan(path, target)
    gone = f"{path}/c/1/0" if kind == "zarr" else path
    os.unlink(gone)
    with pytest.raises(FileNotFoundError, match="is not there any more: it was deleted"):
        LSSVC().fit(source)


def test_rows_appended_to_zarr_are_not_left_out(tmp_path):
    path, target = saved("zarr", tmp_path, 6)
    source = scan(path, target)
    zarr.open_array(path, mode="r+").append(
        np.ones((2, 2))
    )  # the chunks before it stay as they are
    with pytest.raises(ValueError, match=r"zarr\.json has changed since it was scanned"):
        LSSVC().fit(source)


def test_a_chunk_that_comes_later(tmp_path):
    path, target = saved("zarr", tmp_path, 6)
    held = (tmp_path / "X.zarr/c/1/0").read_bytes()
    os.unlink(tmp_path / "X.zarr/c/1/0")
    source = scan(path, target, missing_chunks=True)
    (tmp_path / "X.zarr/c/1/0").write_bytes(held)
    with pytest.raises(ValueError, match="it was not there, and now is"):
        LSSVC().fit(source)


def test_a_file_that_changes_while_it_is_read(tmp_path):
    path, target = saved("parquet", tmp_path, 50)
    batches = scan(path, target, batch_rows=20).partitions[0].batches()
    next(batches)
    os.utime(path, ns=(1, 1))
    with pytest.raises(ValueError, match="has changed since it was scanned"):
        list(batches)


def test_another_number_of_rows_is_refused_even_if_the_time_is_the_same(tmp_path):
    path, target = saved("npy", tmp_path, 50)
    source, time = scan(path, target), os.stat(path).st_mtime_ns
    saved("npy", tmp_path, 20)
    with open(path, "ab") as file:
        file.write(b"\0" * (30 * 16))
    for file in (path, target):
        os.utime(file, ns=(time, time))
    with pytest.raises(ValueError, match="changed since it was scanned"):
        source.knowledge(LINEAR)


@pytest.mark.parametrize("options", [{}, {"shards": (4, 2)}, {"zarr_format": 2}])
def test_a_missing_chunk_is_not_learned_as_zeros(options, tmp_path):
    X = np.arange(20.0).reshape(10, 2)
    X[4:8] = 0  # a chunk that zarr does not write
    zarr.create_array(tmp_path / "X.zarr", data=X, chunks=(2, 2), **options)
    np.save(tmp_path / "y.npy", np.arange(10) % 2)
    places = tmp_path / "X.zarr", tmp_path / "y.npy"
    with pytest.raises(ValueError, match=r"has no file .*fill|has no file .*missing_chunks=True"):
        scan(*places)
    known = scan(*places, missing_chunks=True).knowledge(LINEAR)
    assert known == LINEAR.knowledge((X, np.arange(10) % 2, None))
    again = {"write_empty_chunks": True}
    zarr.create_array(
        tmp_path / "X.zarr", data=X, chunks=(2, 2), overwrite=True, config=again, **options
    )
    assert scan(*places).knowledge(LINEAR) == known
