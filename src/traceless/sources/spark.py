"""Spark: the knowledge of each partition where it is, added up in a tree.

Each task turns its Arrow batches into one partial sum, 16 tasks add these up if they are many,
one adds the rest, and only the total comes to the driver. A partial sum travels as many small
chunks, which Java can stream, sort and spill; one row of a gigabyte it could not. A large total
is fetched a part at a time, each below the limit of ``spark.driver.maxResultSize``. The chunks are
those of a file (`traceless.sources.sent`): nothing that comes back is unpickled.

An error in the *data* ends the job as soon as Spark has tried that task as often as it is set to,
not after the whole pass, and is raised again on the driver. Its type and message travel as JSON in
the text of the error that ends the task, between two marks that are drawn for each job: a cell that
the text quotes cannot know them, and nothing in it is ever unpickled. Whatever else fails, reading
a file included, is tried again too.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from operator import itemgetter
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import numpy as np

from traceless.exceptions import EngineError, MismatchError, RangeError, TableError
from traceless.sources.arrow import Columns, check_once, choose, not_numbers, rows_of, table_in
from traceless.sources.batches import (
    Rows,
    Source,
    quiet,
    sum_batches,
)
from traceless.sources.partitions import TASKS_PER_WORKER, Partition, all_batches, grouped
from traceless.sources.sent import received, sent
from traceless.sources.threads import one_thread

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe

WIDTH = 16  # tasks that add first, where there are many sums
AT_ONCE = 2**27  # bytes of the total that are fetched together
CHUNKS = "task int, chunk int, data binary"  # rows that make up the result of a task
WHERE = "the Spark DataFrame"
# Errors in the data that are raised again on the driver, the special ones first.
RAISED = (RangeError, MismatchError, TableError, ArithmeticError, TypeError, ValueError)


def from_spark(
    df: Any, target: Any, *, columns: Any = None, sample_weight: str | None = None
) -> Source:
    """A Spark DataFrame as a source of rows, to be learned or forgotten where they are.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        traceless must be installed for the executors' Python too.
    target : str or list of str
        The column of labels or targets.
    columns : list of str or Table, optional
        The features: columns of numbers, or one column of arrays of numbers or of Spark ML's
        vectors; or what a `Table` declares, that of the model. All but target and weight by
        default. The length of arrays is that of the first,
        which is computed for it, with whatever it depends on, unless the column's metadata say it,
        as stages of Spark ML do: ``df.withMetadata("x", {"ml_attr": {"num_attrs": 64}})``.
    sample_weight : str, optional
        The column of weights.

    Returns
    -------
    Source
        To be passed to ``fit``, ``partial_fit`` or ``forget`` in place of X and y. Progress
        is Spark's own (``spark.ui.showConsoleProgress``).
    """
    check_once(df.columns, WHERE)
    features, target = choose(df.columns, columns, target, sample_weight, WHERE)
    table = table_in(columns)
    width, named = (len(features), True) if table is not None else _width(df, features)
    layout = Columns(features, width, target, sample_weight, table)
    chosen = [feature(df, name) for name in layout.names if name not in features]
    if table is None and named and (packed := _packed(df, features)) is not None:
        layout = Columns((max(df.columns, key=len) + "'",), width, target, sample_weight)
        chosen.insert(0, packed)
    else:
        chosen[:0] = [feature(df, name) for name in features]
    # mapInArrow cannot name columns with dots, so it is given numbers
    numbered = df.select(*(column.alias(f"c{k}") for k, column in enumerate(chosen)))
    y = np.empty(0 if isinstance(target, str) else (0, len(target)))
    no_rows = np.empty((0, width)), y, None

    def rows(batch: Any) -> Iterator[Rows]:
        import pyarrow as pa

        renamed = pa.RecordBatch.from_arrays(batch.columns, names=layout.names)
        yield rows_of(renamed, layout, WHERE, lambda _: "a row")  # Spark does not say which

    source = SparkSource(numbered, rows, no_rows, list(features) if named else None)
    targets = [target] if isinstance(target, str) else target
    source.n_targets, source.table = len(targets), table
    return source


def partitions_on_spark(source: Source, partitions: Sequence[Partition], spark: Any) -> Source:
    """Partitions of files, opened by Spark's tasks: Java never sees the rows."""
    groups = grouped(partitions, spark.sparkContext.defaultParallelism)
    numbers = spark.range(0, len(groups), 1, len(groups))

    def rows(batch: Any) -> Iterator[Rows]:
        for number in batch.column(0).to_pylist():
            yield from all_batches(groups[number])

    no_rows = np.empty((0, source.n_features)), np.empty(0), None
    return SparkSource(numbers, rows, no_rows, None)._like(source)


class SparkSource(Source):
    """Rows that Spark's tasks read, each from the Arrow batches of its partition.

    Made by `from_spark`, or by ``scan(...).on(spark)``.
    """

    def __init__(
        self,
        df: Any,
        rows: Callable[[Any], Iterator[Rows]],
        no_rows: Rows,
        feature_names: list[str] | None,
    ) -> None:
        self._df, self._rows, self._no_rows = df, rows, no_rows
        self.n_features, self.feature_names = no_rows[0].shape[1], feature_names

    def knowledge(self, recipe: Recipe, n_jobs: int | None = None) -> Knowledge:  # noqa: ARG002
        """The knowledge of all partitions; Spark decides how many run at a time."""
        recipe = quiet(recipe)

        rows = self._rows

        with _job() as mark:

            def learn(batches: Iterable[Any]) -> Iterator[Any]:
                full = (batch for batch in batches if batch.num_rows)
                with one_thread(), _data_errors(mark):
                    known = sum_batches(recipe, chain.from_iterable(map(rows, full)))
                return _chunks(known)

            def add(batches: Iterable[Any]) -> Iterator[Any]:
                chunks = (row for batch in batches for row in batch.to_pylist())
                with one_thread(), _data_errors(mark):
                    return _chunks(_added(chunks, recipe))

            df, few = _few_tasks(self._df)
            sums = df.mapInArrow(learn, CHUNKS)
            for width in [1] if few else [WIDTH, 1]:
                together = sums.repartition(width, "task")
                sums = together.sortWithinPartitions("task", "chunk").mapInArrow(add, CHUNKS)
            found = _fetched(sums, recipe)
        return recipe.knowledge(self._no_rows) if found is None else found


@contextmanager
def _data_errors(mark: str) -> Iterator[None]:
    """Send errors in the data to the driver, within the error that ends the task."""
    try:
        yield
    except RAISED as error:
        kind = next(kind for kind in RAISED if isinstance(error, kind))
        message = base64.b64encode(json.dumps([kind.__name__, str(error)]).encode()).decode()
        raise RuntimeError(f"{type(error).__name__}: {error} {mark}{message}{mark}") from None


def _few_tasks(df: Any) -> tuple[Any, bool]:
    """The same rows in at most so many partitions as keep all cores busy, if these are known.

    A task costs tens of milliseconds before it reads its first row.
    """
    from pyspark.errors import PySparkException

    try:
        context = df.sparkSession.sparkContext
    except PySparkException:  # Spark Connect does not say how many cores there are
        return df, False
    if context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true":
        return df, False  # there may be more cores soon
    n = TASKS_PER_WORKER * context.defaultParallelism
    return df.coalesce(n), n <= 4 * WIDTH


def _fetched(sums: Any, recipe: Recipe) -> Any:
    """The result of the only task, put together from its chunks; None if it has none."""
    size = 4 * len(recipe.phi.steps) ** 2 * (64 if recipe.classwise else 1)  # packed, about
    if size <= AT_ONCE:
        rows = sums.collect()
    else:
        rows = sums.repartition(-(-size // AT_ONCE), "chunk").toLocalIterator()
    return _added(sorted(rows, key=itemgetter("chunk")), recipe)


def _chunks(result: Any) -> Iterator[Any]:
    """A result as batches of rows of 8 kB; no row for None."""
    import pyarrow as pa
    from pyspark import TaskContext

    data = b"" if result is None else sent(result)
    chunks = [data[k : k + 2**13] for k in range(0, len(data), 2**13)]
    context = TaskContext.get()
    columns = {
        "task": pa.array([context.partitionId() if context else 0] * len(chunks), pa.int32()),
        "chunk": pa.array(range(len(chunks)), pa.int32()),
        "data": pa.array(chunks, pa.binary()),
    }
    return iter(pa.table(columns).to_batches(2**10))


def _added(rows: Iterable[Any], recipe: Recipe) -> Any:
    """The sum of results of this recipe, whose chunks come in order; None if there is none."""
    total = None
    for _, chunks in groupby(rows, key=itemgetter("task")):
        part = received(b"".join(chunk["data"] for chunk in chunks), recipe)
        total = part if total is None else total + part
    return total


@contextmanager
def _job() -> Iterator[str]:
    """Raise what a job fails of: an error in the data again, after its mark, or `EngineError`."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    mark = token_hex(16)
    try:
        yield mark
    except (Py4JJavaError, PySparkException) as error:
        if found := re.search(f"{mark}([A-Za-z0-9+/=]+){mark}", str(error)):
            name, message = json.loads(base64.b64decode(found[1]))
            raise next(kind for kind in RAISED if kind.__name__ == name)(message) from None
        raise EngineError(
            f"The Spark job was aborted: {_cause(str(error)).rstrip('.')}. Nothing was changed; "
            "see the executors' logs, and try again when the cause is gone."
        ) from error


def _cause(text: str) -> str:
    """The last error of a Python worker, or Spark's reason for the last failure, on one line."""
    traceback = text.rpartition("Traceback (most recent call last):")[2].partition("\n\n")[0]
    said = [line for line in traceback.splitlines() if line and not line[0].isspace()]
    attempt = text.partition("most recent failure: ")[2].splitlines()
    java = re.findall(r"^(?:: |Caused by: )([\w.$]+: .+)$", text, flags=re.MULTILINE)
    if "Traceback" not in text:
        said = []
    return (said[-1:] or attempt[:1] or java[:1] or text.splitlines()[:1] or ["no reason given"])[0]


def _width(df: Any, features: tuple[str, ...]) -> tuple[int, bool]:
    """Number of features, and whether they have names."""
    from pyspark.sql import functions

    if not check_numeric(df, features):
        return len(features), True
    said = df.schema[features[0]].metadata.get("ml_attr", {}).get("num_attrs")
    if said is not None:  # by VectorAssembler and other stages
        return int(said), False
    column = feature(df, features[0])
    with _job():
        first = df.where(column.isNotNull()).select(functions.size(column)).first()
    if first is None:
        raise ValueError(
            f"{WHERE} has no rows with an array in {features[0]!r}, so it is unknown how long the "
            "arrays are."
        )
    return int(first[0]), False


def check_numeric(df: Any, features: Sequence[str]) -> bool:
    """Whether features are one column of arrays or vectors; raises if they are not numbers."""
    from pyspark.sql.types import ArrayType, BooleanType, DoubleType, NumericType

    several = len(features) > 1
    for name in features:
        kind: Any = df.schema[name].dataType
        if _is_vector(kind):
            kind = ArrayType(DoubleType())
        arrays = isinstance(kind, ArrayType) and not several
        if not isinstance(kind.elementType if arrays else kind, NumericType | BooleanType):
            raise not_numbers(name, kind.simpleString(), WHERE)
    return arrays


def _packed(df: Any, features: tuple[str, ...]) -> Any:
    """Several columns of numbers as one array, which takes Spark half the time to hand to Python.

    None where a decimal is among them: a float64 of it is made in one place only, by Arrow.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import DecimalType, FloatType

    kinds = {field.name: field.dataType for field in df.schema}
    if len(features) == 1 or any(isinstance(kinds[name], DecimalType) for name in features):
        return None
    single = all(isinstance(kinds[name], FloatType) for name in features)
    each = [f"CAST({_quoted(name)} AS {'FLOAT' if single else 'DOUBLE'})" for name in features]
    return functions.expr(f"array({', '.join(each)})")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _is_vector(kind: Any) -> bool:
    return type(kind).__name__ == "VectorUDT"


def feature(df: Any, name: str) -> Any:
    """A column by its name, dots included; Spark ML's vectors as arrays."""
    column = df[_quoted(name)]
    if not _is_vector(df.schema[name].dataType):
        return column
    from pyspark.ml.functions import vector_to_array

    return vector_to_array(column)
