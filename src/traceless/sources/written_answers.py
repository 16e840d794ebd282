"""What a model says of the rows of files, written to Parquet files beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from traceless.sources.partitions import Partition
from traceless.sources.threads import one_thread


def write_answers(
    model: Any,
    partitions: Sequence[Partition],
    folder: Any,
    methods: Sequence[str],
    n_jobs: int | None,
) -> list[Path]:
    """One file for each partition, in the order of the rows; see `Partitioned.answers`.

    All or nothing: after an error the folder is empty.
    """
    there = Path(folder)
    for method in methods:
        if not hasattr(model, method):
            raise ValueError(
                f"{type(model).__name__} has no {method!r}: ask for predict, decision_function or "
                "predict_proba, as far as it has them. Nothing was written."
            )
    there.mkdir(parents=True, exist_ok=True)
    if any(there.iterdir()):
        raise FileExistsError(
            f"{there} is not empty: answers are written to a folder of their own."
        )
    files = [there / f"part-{k:06}.parquet" for k in range(len(partitions))]
    tasks = (
        delayed(_write)(model, one, file, tuple(methods))
        for one, file in zip(partitions, files, strict=True)
    )
    try:
        Parallel(n_jobs=n_jobs)(tasks)
    except BaseException:
        for file in there.iterdir():
            file.unlink(missing_ok=True)
        raise
    return files


def _write(model: Any, partition: Partition, file: Path, methods: tuple[str, ...]) -> None:
    """Read a partition a batch at a time, and write what the model says of it."""
    import pyarrow.parquet as pq

    unfinished = file.with_name(f"_{file.name}")  # hidden from those who read the folder
    schema = _table(model, np.zeros((1, model.n_features_in_)), methods).schema
    with one_thread(), pq.ParquetWriter(unfinished, schema) as writer:
        for X, _, _ in partition.batches():
            if X.shape[0]:
                writer.write_table(_table(model, X, methods))
    unfinished.rename(file)


def _table(model: Any, X: Any, methods: tuple[str, ...]) -> Any:
    import warnings

    import pyarrow as pa

    columns: dict[str, Any] = {}
    with warnings.catch_warnings():  # columns were found by their names
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        for method in methods:
            found = getattr(model, method)(X)
            if found.ndim == 1:
                columns[method] = found
                continue
            labels = getattr(model, "classes_", range(found.shape[1]))
            columns |= {f"{method} {label}": found[:, k] for k, label in enumerate(labels)}
    return pa.table(columns)
