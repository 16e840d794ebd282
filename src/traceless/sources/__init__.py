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

The command line reads files with a declared `Schema` instead: a `Table` reads CSV, TSV, JSON
lines, Parquet and data frames in batches, by the names of the columns. No type is
inferred, no category collected and no mean taken, so a schema holds nothing of the rows.
"""

from traceless.sources.dates import Date
from traceless.sources.devices import on_device
from traceless.sources.scanning import scan
from traceless.sources.schema import Boolean, Category, Hashed, Number, Schema, TextFormat
from traceless.sources.selection import Selection
from traceless.sources.source import Source, as_source
from traceless.sources.spark import from_spark
from traceless.sources.spark_answers import on_spark
from traceless.sources.streams import from_batches
from traceless.sources.table import Batch, Table, column_names

__all__ = [
    "Batch",
    "Boolean",
    "Category",
    "Date",
    "Hashed",
    "Number",
    "Schema",
    "Selection",
    "Source",
    "Table",
    "TextFormat",
    "as_source",
    "column_names",
    "from_batches",
    "from_spark",
    "on_device",
    "on_spark",
    "scan",
]
