"""Files of rows as a source: learned in this process, in several, or by the tasks of a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traceless.sources.batches import Source
from traceless.sources.dask import sum_on_dask
from traceless.sources.files import File, listed
from traceless.sources.layouts import delta_files, hive_columns, is_delta
from traceless.sources.parquet import scan_parquet
from traceless.sources.partitions import Partition, sum_partitions
from traceless.sources.spark import partitions_on_spark

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe


@dataclass(frozen=True)
class Partitioned(Source):
    """A source that is a sequence of partitions."""

    partitions: Sequence[Partition]
    n_features: int
    feature_names: list[str] | None = None
    n_targets: int | None = None
    table_version: int | None = None
    name: str | None = None
    table: Any = None
    client: Any = None  # of Dask, if its workers are to open the partitions

    def knowledge(self, recipe: Recipe, n_jobs: int | None = None) -> Knowledge:
        """The knowledge of all partitions; see `sum_partitions`."""
        if self.client is not None:
            return sum_on_dask(recipe, self.partitions, self.client)
        return sum_partitions(recipe, self.partitions, n_jobs)

    def on(self, engine: Any) -> Source:
        """The same rows, read by the tasks of an engine.

        Parameters
        ----------
        engine : distributed.Client or pyspark.sql.SparkSession
            Its workers must find the files under the same paths.

        Returns
        -------
        Source
        """
        kind = type(engine).__module__.partition(".")[0]
        if kind == "pyspark":
            return partitions_on_spark(self, self.partitions, engine)
        if kind == "distributed":
            return replace(self, client=engine)
        raise TypeError(
            "on() takes a distributed.Client or a SparkSession, got "
            f"{type(engine).__name__}. For processes of this machine set n_jobs."
        )


def scan(
    path: Any,
    target: Any,
    *,
    sample_weight: Any = None,
    columns: Any = None,
    batch_rows: int | None = None,
    version: int | None = None,
    filesystem: Any = None,
) -> Partitioned:
    """Open Parquet files of rows that need not fit into memory, to learn or forget them.

    Parameters
    ----------
    path : path, or list of paths
        A file, a folder of files, or a pattern such as ``"data/**/*.parquet"``. Also the folder
        of a Delta table, and an address such as ``"s3://bucket/folder"``.
        Folders such as ``year=2025`` are a column of the files in them; files and folders
        whose names start with ``_`` or ``.`` are left out.
    target : str or list of str
        The name of a column, or a list of names for a regression with several targets.
    sample_weight : str, optional
        The column of the weights.
    columns : list of str or Table, optional
        The features; all other columns by default, without an index of pandas. One
        column of lists will do; words, dates and absent values are declared by a `Table`, that of
        the model.
    batch_rows : int, optional
        Rows read at a time; by default about 64 MB of them.
    version : int, optional
        Of a Delta table; the newest by default. The source's ``table_version`` says which, and
        ``merged_`` of a model that has learned it.
    filesystem : pyarrow.fs.FileSystem or fsspec filesystem, optional
        Where the files are. By default the address says it.

    Returns
    -------
    Source
        To be passed to ``fit``, ``partial_fit`` or ``forget`` in place of X and y. Its rows
        are read then, by ``n_jobs`` processes; files that have changed in between are refused.
        Its method ``on(engine)`` lets a Dask client or a Spark session read them.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> from pyarrow import parquet
    >>> path = f"{tempfile.mkdtemp()}/rows.parquet"
    >>> parquet.write_table(pa.table({"a": [0.5, 1.5], "b": [2.0, 0.0], "ill": [1, 0]}), path)
    >>> scan(path, target="ill").feature_names
    ['a', 'b']
    """
    if batch_rows is not None and batch_rows < 1:
        raise ValueError(f"batch_rows must be at least 1, got {batch_rows}.")
    number, name = None, None
    if filesystem is None and is_delta(path):
        folder = File.here(Path(path).expanduser().resolve())
        files, constants, number, name = delta_files(folder, version)
    elif version is not None:
        raise ValueError(f"version={version} is one of a Delta table, and {path} is none.")
    else:
        files = listed(path, filesystem)
        _check_parquet(files)
        constants = hive_columns(files)
    found = scan_parquet(files, constants, target, sample_weight, columns, batch_rows)
    partitions, layout = found
    about = layout.width, layout.feature_names, layout.n_targets, number, name, layout.table
    return Partitioned(partitions, *about)


def _check_parquet(files: Sequence[File]) -> None:
    """Raise if a file is of another kind."""
    for file in files:
        if file.path.suffix != ".parquet":
            raise ValueError(
                f"{file} is of no known kind: scan reads .parquet. In a folder of several kinds, "
                "name the files with a pattern such as 'folder/*.parquet'. An array of NumPy need "
                "not fit into memory either: pass numpy.load(file, mmap_mode='r') in place of X."
            )
