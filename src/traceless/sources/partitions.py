"""Partitions of rows, learned by many processes of one machine (joblib).

Each process adds up the knowledge of its partitions in a file of its own; then pairs of files are
added, round by round, by the processes too. This process reads the last file only. So the
temporary folder holds one piece of knowledge per process: 4 J² bytes, or 4 J² K class-wise.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import joblib
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


Scanned = tuple[Sequence[Partition], int, list[str] | None]  # and number and names of the features


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
    ``joblib.parallel_config`` says otherwise. Workers must share this machine's temporary folder.
    """
    jobs = effective_n_jobs(n_jobs)
    groups = grouped(partitions, jobs) if jobs > 1 else []
    if len(groups) <= 1:
        one = recipe if len(partitions) == 1 else quiet(recipe)
        watched = progress(partitions, "learning", recipe.verbose)
        return some(sum_batches(one, all_batches(watched)))
    with tempfile.TemporaryDirectory(prefix="traceless-") as folder:
        tasks = [(quiet(recipe), group, Path(folder)) for group in groups]
        _run(_learn_to_file, tasks, jobs, "learning", recipe.verbose)
        files = sorted(Path(folder).iterdir())
        while len(files) > 1:
            _run(_add_files, list(zip(files[::2], files[1::2], strict=False)), jobs, "adding")
            files = files[::2]
        knowledge: Knowledge = joblib.load(files[0])
        return knowledge


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


def _learn_to_file(recipe: Recipe, partitions: Sequence[Partition], folder: Path) -> None:
    """Add the knowledge of some partitions to the file of this process (or thread)."""
    file = folder / f"{os.getpid()}-{get_ident()}"
    known = learn(recipe, partitions)
    if file.exists():
        with one_thread():
            known = joblib.load(file) + known
    joblib.dump(known, file)


def _add_files(file: Path, other: Path) -> None:
    with one_thread():
        total = joblib.load(file) + joblib.load(other)
    other.unlink()
    joblib.dump(total, file)


def _run(
    task: Callable[..., None],
    arguments: Sequence[tuple[Any, ...]],
    jobs: int,
    label: str,
    verbose: bool = False,
) -> None:
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
    try:
        # With threads for workers the limits of the tasks overlap; this one undoes them all.
        with one_thread():
            done = parallel(delayed(task)(*those) for those in arguments)
            for _ in progress(range(len(arguments)), label, verbose):
                next(done)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise EngineError(
            f"The temporary folder {tempfile.gettempdir()} is full: it holds a piece of knowledge "
            "for each process. Nothing was changed; set TMPDIR to a folder with more room, or take "
            "fewer n_jobs, and try again."
        ) from error
    except BrokenExecutor as error:
        raise EngineError(
            "A worker process died before its rows were learned: it was killed, or ran out of "
            "memory. Nothing was changed; free some memory or take fewer n_jobs, and try again."
        ) from error


def all_batches(partitions: Iterable[Partition]) -> Iterator[Rows]:
    """The batches of all partitions, one after the other."""
    return chain.from_iterable(partition.batches() for partition in partitions)


def some(found: T | None) -> T:
    """What was found in partitions; raises if there were none."""
    if found is None:
        raise ValueError("There are no partitions to learn from; an empty one has an empty batch.")
    return found
