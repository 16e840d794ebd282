"""Spark: the knowledge of each partition where it is, added up in a tree.

Each task turns its Arrow batches into one partial sum, 16 tasks add these up, one adds the
rest, and only the total comes to the driver. A partial sum travels as many small chunks, which
Java can stream, sort and spill; one row of a gigabyte it could not.

Errors in the *data* would be the same at every attempt, so they travel as results and are
raised on the driver; whatever else fails is tried again by Spark.
"""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from traceless.exceptions import EngineError
from traceless.sources.arrow import Columns, choose, not_numbers, rows_of
from traceless.sources.batches import Rows, Source, quiet, sum_batches
from traceless.sources.partitions import TASKS_PER_WORKER, Partition
from traceless.sources.threads import one_thread

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe

WIDTHS = 16, 1  # tasks that add, level by level
CHUNKS = "task int, chunk int, data binary"  # rows that make up the result of a task
WHERE = "the Spark DataFrame"


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
    columns : list of str, optional
        The features: columns of numbers, or one column of arrays of numbers. All but target
        and weight by default.
    sample_weight : str, optional
        The column of weights.

    Returns
    -------
    Source
        To be passed to ``fit``, ``partial_fit`` or ``forget`` in place of X and y. Progress
        is Spark's own (``spark.ui.showConsoleProgress``).
    """
    features, target = choose(df.columns, columns, target, sample_weight, WHERE)
    width, named = _width(df, features)
    layout = Columns(features, width, target, sample_weight)
    # mapInArrow cannot name columns with dots, so it is given numbers
    numbered = df.select(*(df[_quoted(v)].alias(f"c{k}") for k, v in enumerate(layout.names)))
    y = np.empty(0 if isinstance(target, str) else (0, len(target)))
    no_rows = np.empty((0, width)), y, None

    def rows(batch: Any) -> Iterator[Rows]:
        import pyarrow as pa

        renamed = pa.RecordBatch.from_arrays(batch.columns, names=layout.names)
        yield rows_of(renamed, layout, WHERE)

    return SparkSource(numbered, rows, no_rows, list(features) if named else None)


def partitions_on_spark(source: Source, partitions: Sequence[Partition], spark: Any) -> Source:
    """Partitions of files, opened by Spark's tasks: Java never sees the rows."""
    n = len(partitions)
    numbers = spark.range(0, n, 1, min(n, TASKS_PER_WORKER * spark.sparkContext.defaultParallelism))

    def rows(batch: Any) -> Iterator[Rows]:
        for number in batch.column(0).to_pylist():
            yield from partitions[number].batches()

    no_rows = np.empty((0, source.n_features)), np.empty(0), None
    return SparkSource(numbers, rows, no_rows, source.feature_names)


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

        def learn(batches: Iterator[Rows]) -> Knowledge | None:
            with one_thread():
                return sum_batches(recipe, batches)

        with _job():
            sums = self._map(self._df, learn)
            for width in WIDTHS:
                together = sums.repartition(width, "task")
                sums = together.sortWithinPartitions("task", "chunk").mapInArrow(_sum, CHUNKS)
            found = list(_results(sums.collect()))
        return _raised(found[0]) if found else recipe.knowledge(self._no_rows)

    def _map(self, df: Any, make: Callable[[Iterator[Rows]], Any]) -> Any:
        """What `make` returns for each partition with rows, as a DataFrame of chunks."""
        rows = self._rows

        def task(batches: Iterable[Any]) -> Iterator[Any]:
            full = (batch for batch in batches if batch.num_rows)
            return _chunks(_attempt(make, chain.from_iterable(map(rows, full))))

        return df.mapInArrow(task, CHUNKS)


def _attempt(make: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `make`, or an error that every attempt would raise."""
    try:
        return make(*arguments)
    except (ValueError, TypeError, ArithmeticError) as error:
        return error


def _raised(result: Any) -> Any:
    if isinstance(result, Exception):
        raise result
    return result


def _sum(batches: Iterable[Any]) -> Iterator[Any]:
    """A task that adds partial sums; its result is the first error among them, if there is one."""
    with one_thread():
        total = None
        for result in _results(row for batch in batches for row in batch.to_pylist()):
            if total is None or isinstance(result, Exception):
                total = result
            else:
                total = _attempt(operator.add, total, result)
            if isinstance(total, Exception):
                break
    return _chunks(total)


def _chunks(result: Any) -> Iterator[Any]:
    """A result as batches of rows of 8 kB; no row for None."""
    import pyarrow as pa
    from pyspark import TaskContext

    data = b"" if result is None else pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    chunks = [data[k : k + 2**13] for k in range(0, len(data), 2**13)]
    context = TaskContext.get()
    columns = {
        "task": pa.array([context.partitionId() if context else 0] * len(chunks), pa.int32()),
        "chunk": pa.array(range(len(chunks)), pa.int32()),
        "data": pa.array(chunks, pa.binary()),
    }
    return iter(pa.table(columns).to_batches(2**10))


def _results(rows: Iterable[Any]) -> Iterator[Any]:
    """Results put together from their chunks, which come in order."""
    for _, chunks in groupby(rows, key=itemgetter("task")):
        yield pickle.loads(b"".join(chunk["data"] for chunk in chunks))


@contextmanager
def _job() -> Iterator[None]:
    """Turn the failure of a job, not of the data, into a sentence."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        raise EngineError(
            f"The Spark job was aborted: {_cause(str(error)).rstrip('.')}. Nothing was changed; "
            "see the executors' logs, and try again when the cause is gone."
        ) from error


def _cause(text: str) -> str:
    """The last error of a Python worker, or Spark's reason for the last failure, on one line."""
    traceback = text.partition("Traceback (most recent call last):")[2].partition("\n\n")[0]
    said = [line for line in traceback.splitlines() if line and not line[0].isspace()]
    attempt = text.partition("most recent failure: ")[2].splitlines()
    return (said[-1:] or attempt[:1] or text.splitlines()[:1] or ["no reason was given"])[0]


def _width(df: Any, features: tuple[str, ...]) -> tuple[int, bool]:
    """Number of features, and whether they have names."""
    from pyspark.sql import functions
    from pyspark.sql.types import ArrayType, BooleanType, NumericType

    for name in features:
        kind = df.schema[name].dataType
        if type(kind).__name__ == "VectorUDT":
            raise TypeError(
                f"Column {name!r} of {WHERE} holds vectors of Spark ML; make them arrays with "
                "pyspark.ml.functions.vector_to_array first."
            )
        single = len(features) == 1 and isinstance(kind, ArrayType)
        if not isinstance(kind.elementType if single else kind, NumericType | BooleanType):
            raise not_numbers(name, kind.simpleString(), WHERE)
    if not isinstance(df.schema[features[0]].dataType, ArrayType):
        return len(features), True
    with _job():
        first = df.select(functions.size(_quoted(features[0]))).first()
    if first is None:
        raise ValueError(f"{WHERE} has no rows, so the length of the arrays is unknown.")
    return max(int(first[0]), 0), False


def _quoted(name: str) -> str:
    """A column's name as it is, dots included."""
    return "`" + name.replace("`", "``") + "`"
