"""Where rows come from: arrays, tables, files, many processes, a cluster.

Knowledge is a sum of integers, so it does not matter where the rows are, how they are cut
into partitions, or in which order the partitions are added: the result has the same bits. An
engine computes the knowledge of a partition and ``+``, nothing else.

- `scan` reads Parquet files that need not fit into memory, in this process or in
  several (joblib).
- Dask arrays and dataframes are learned where they are: pass them to ``fit``.
- `from_spark` does so for a Spark DataFrame.
- `from_batches` takes any stream of batches: an iterator, a query, a loader.
- `on_device` lets a GPU work on any of these, and on arrays that do not fit there.

Each gives a `Source`, which the estimators take in place of rows:
``fit(source)``, ``partial_fit(source)``, ``forget(source)``.

Columns of words, dates and absent values are read by a declared table: ``columns=table`` of
each of these (`traceless.features.Table`).

The command line reads `Files` by a `Schema`: the table, the target, ids, and how CSV is written.
"""

from traceless.sources.devices import on_device
from traceless.sources.reader import Batch, Files, column_names
from traceless.sources.scanning import scan
from traceless.sources.schema import Schema, TextFormat
from traceless.sources.selection import Selection
from traceless.sources.source import Source, as_source
from traceless.sources.spark import from_spark
from traceless.sources.spark_answers import on_spark
from traceless.sources.streams import from_batches

__all__ = [
    "Batch",
    "Files",
    "Schema",
    "Selection",
    "Source",
    "TextFormat",
    "as_source",
    "column_names",
    "from_batches",
    "from_spark",
    "on_device",
    "on_spark",
    "scan",
]
