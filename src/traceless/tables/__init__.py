"""Tables: files and streams of rows, read in batches, as a declared schema says.

A `Schema` says which columns are features and how each becomes numbers, which is the target
and which the weight. It is declared, never learned: no type is inferred, no category
collected, no mean taken, so nothing of the rows stays in it. A `Table` reads CSV, TSV,
Parquet, Arrow and npz by the names of the columns, with memory bounded by a batch, and says
file, row and column of whatever does not fit.
"""

from traceless.tables.schema import Category, Hashed, Number, Schema
from traceless.tables.table import Batch, Table, column_names

__all__ = ["Batch", "Category", "Hashed", "Number", "Schema", "Table", "column_names"]
