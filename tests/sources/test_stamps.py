"""What is learned is what was scanned: files that change in between are refused."""

import os

import numpy as np
import pandas as pd
import pytest

from traceless import LSSVC, scan
from traceless.features import Linear
from traceless.knowledge.sums import Recipe

LINEAR = Recipe(Linear().bind(2), task="classification", target_resolution=1.0)


def saved(place, n):
    """Rows of n classes in a file."""
    X, y = np.arange(1.0, 2.0 * n + 1).reshape(n, 2), np.arange(n) + 1
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y).to_parquet(f"{place}/X.parquet")
    return f"{place}/X.parquet", "y"


@pytest.mark.parametrize("n", [20, 50])
def test_files_that_change_between_scan_and_fit(n, tmp_path):
    model = LSSVC().fit(scan(*saved(tmp_path, 10)))
    digest = model.digest()
    source = scan(*saved(tmp_path, 50))
    assert source.knowledge(LINEAR).n_samples == 50
    saved(tmp_path, n)  # fewer rows, or the same again at another time
    with pytest.raises(ValueError, match=r"X\..*has changed since it was scanned"):
        model.partial_fit(source)
    assert model.digest() == digest


def test_a_deleted_file_is_called_deleted(tmp_path):
    path, target = saved(tmp_path, 5)
    source = scan(path, target)
    os.unlink(path)
    with pytest.raises(FileNotFoundError, match="is not there any more: it was deleted"):
        LSSVC().fit(source)


def test_a_file_that_changes_while_it_is_read(tmp_path):
    path, target = saved(tmp_path, 50)
    batches = scan(path, target, batch_rows=20).partitions[0].batches()
    next(batches)
    os.utime(path, ns=(1, 1))
    with pytest.raises(ValueError, match="has changed since it was scanned"):
        list(batches)
