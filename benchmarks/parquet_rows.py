"""Rows for the benchmarks of engines: a folder of Parquet files, made once and kept."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet


def make_rows(folder: Path, n_rows: int, n_features: int, n_files: int) -> Path:
    """Float32 columns x0, x1, … and a label y of two classes that are not quite separable."""
    finished = folder / f"{n_rows}x{n_features}"
    if finished.exists():
        return finished
    unfinished = finished.with_suffix(".unfinished")
    unfinished.mkdir(parents=True, exist_ok=True)
    w = np.random.default_rng(0).normal(size=n_features).astype(np.float32)
    names = [f"x{j}" for j in range(n_features)]
    for k in range(n_files):
        sys.stderr.write(f"\rwriting {n_rows} × {n_features} rows: file {k + 1} of {n_files} ")
        rng = np.random.default_rng([1, k])
        n = n_rows * (k + 1) // n_files - n_rows * k // n_files
        X = rng.standard_normal((n_features, n), dtype=np.float32)
        score = (X * w[:, None]).sum(axis=0) + 4 * rng.standard_normal(n)
        columns = [pa.array(column) for column in X]
        table = pa.table([*columns, pa.array((score > 0).astype(np.int64))], [*names, "y"])
        path = unfinished / f"{k:03}.parquet"
        parquet.write_table(
            table, path, row_group_size=2**16, compression=None, use_dictionary=False
        )
    sys.stderr.write("\n")
    unfinished.rename(finished)
    return finished
