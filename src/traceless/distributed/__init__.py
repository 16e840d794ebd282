"""Rows that are elsewhere: in files, in many processes, on a cluster.

Knowledge is a sum of integers, so it does not matter where the rows are, how they are cut
into parts, or in which order the parts are added: the result has the same bits. An engine
need only do two things, the knowledge of a part and ``+``.

- `scan` reads Parquet, NumPy and Zarr files that need not fit into memory, in this process
  or in several (joblib).
- Dask arrays and dataframes are learned where they are: pass them to ``fit``.
- `from_spark` does so for a Spark DataFrame.

Each gives a `Source`, which the estimators take in place of rows:
``fit(source)``, ``partial_fit(source)``, ``forget(source)``.
"""

from traceless.distributed.files import scan
from traceless.distributed.recognise import as_source
from traceless.distributed.source import Source
from traceless.distributed.spark import from_spark

__all__ = ["Source", "as_source", "from_spark", "scan"]
