"""Partitions of rows, learned by many processes of one machine (joblib).

Each process sends the knowledge of some partitions, a few pieces in all: 4 J² bytes each, or 4 J² K
class-wise. This process adds them up as they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import chain, pairwise
from operator import add
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from joblib import Parallel, delayed, effective_n_jobs

from traceless.exceptions import EngineError
from traceless.progress import progress
from traceless.sources.batches import Rows, portable, quiet, sum_batches
from traceless.sources.threads import one_thread

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe

T = TypeVar("T")
TASKS_PER_WORKER = 4  # they finish at different times, and progress can be seen


class Partition(Protocol):
    """Some of the rows: small to send, and opened by the task that reads them."""

    def batches(self) -> Iterator[Rows]:
        """The rows, a batch at a time; at least one batch, even if it is empty."""


@dataclass(frozen=True)
class ArrayPartition:
    """Rows of an array in memory, which joblib maps into all processes once.

    Only the features stay whole: labels may be Python objects, which cannot be mapped.
    """

    X: Any
    y: Any
    weight: Any
    start: int
    stop: int

    def batches(self) -> Iterator[Rows]:
        """All rows, as one batch."""
        yield self.X[self.start : self.stop], self.y, self.weight


def partition_arrays(
    X: Any, y: Any, weight: Any, n_jobs: int | None, n_outputs: int
) -> list[ArrayPartition]:
    """Rows in memory cut for several processes, in parts so large that additions cost little."""
    n, jobs = X.shape[0], effective_n_jobs(n_jobs)
    worth = n // max(1024, 8 * n_outputs)
    count = max(1, min(TASKS_PER_WORKER * jobs if jobs > 1 else 1, worth))
    shared = weight is None or not getattr(weight, "ndim", 0)
    return [
        ArrayPartition(X, y[a:b], weight if shared else weight[a:b], a, b)
        for a, b in pairwise(n * k // count for k in range(count + 1))
    ]


def sum_partitions(
    recipe: Recipe, partitions: Sequence[Partition], n_jobs: int | None = None
) -> Knowledge:
    """The knowledge of all rows of some partitions, at least one, by `n_jobs` processes.

    As in joblib -1 means one process per core, and None this process, unless
    ``joblib.parallel_config`` says otherwise.
    """
    jobs = effective_n_jobs(n_jobs)
    groups = grouped(partitions, jobs) if jobs > 1 else []
    if len(groups) <= 1:
        one = recipe if len(partitions) == 1 else quiet(recipe)
        watched = progress(partitions, "learning", recipe.verbose)
        return some(sum_batches(one, all_batches(watched)))
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
    try:
        # With threads for workers the limits of the tasks overlap; this one undoes them all.
        with one_thread():
            found = parallel(delayed(learn)(quiet(recipe), group) for group in groups)
            done = progress(range(len(groups)), "learning", recipe.verbose)
            total: Knowledge = reduce(add, (next(found) for _ in done))
            return total
    except BrokenExecutor as error:
        raise EngineError(
            "A worker process died before its rows were learned: it was killed, or ran out of "
            "memory. Nothing was changed; free some memory or take fewer n_jobs, and try again."
        ) from error


def grouped(partitions: Sequence[Partition], workers: int) -> list[Sequence[Partition]]:
    """Partitions for the tasks of some workers, about as many for each."""
    n = min(len(partitions), TASKS_PER_WORKER * workers)
    return [partitions[a:b] for a, b in pairwise(len(partitions) * k // n for k in range(n + 1))]


def learn(recipe: Recipe, partitions: Sequence[Partition]) -> Knowledge:
    """The task that reads some partitions, with one thread."""
    try:
        with one_thread():
            return some(sum_batches(recipe, all_batches(partitions)))
    except Exception as error:
        sent = portable(error)
        if sent is error:
            raise
        raise sent from None


def all_batches(partitions: Iterable[Partition]) -> Iterator[Rows]:
    """The batches of all partitions, one after the other."""
    return chain.from_iterable(partition.batches() for partition in partitions)


def some(found: T | None) -> T:
    """What was found in partitions; raises if there were none."""
    if found is None:
        raise ValueError("There are no partitions to learn from; an empty one has an empty batch.")
    return found
