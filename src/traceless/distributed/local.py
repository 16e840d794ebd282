"""Many processes on one machine, by joblib.

Each process gathers a share of the slices and leaves the piece as a file; then pairs of
files are added, round by round, by the processes too. This one reads the last file only.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Protocol, TypeVar

from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from traceless.distributed.source import Source, first_rows, knowledge_of, quiet
from traceless.exceptions import EngineError
from traceless.knowledge.sums import Knowledge, Recipe, Rows
from traceless.progress import progress

T = TypeVar("T")
SHARES = 4  # tasks per process: they finish at different times, and progress can be seen


class Slice(Protocol):
    """Some of the rows: small to send, opened in the task that reads it."""

    def batches(self) -> Iterator[Rows]:
        """The rows, a batch at a time; at least one batch, even if it is empty."""


@dataclass(frozen=True)
class Sliced(Source):
    """A source that is a sequence of slices."""

    slices: Sequence[Slice]
    n_features: int
    feature_names: list[str] | None = None

    def knowledge(self, recipe: Recipe, n_jobs: int | None = None) -> Knowledge:
        """The knowledge of all slices; see `gather`."""
        return gather(recipe, self.slices, n_jobs)

    def head(self) -> tuple[Any, Any]:
        """X and y of the first rows, at most 4096."""
        return _some(first_rows(_batches(self.slices)))

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
            from traceless.distributed.spark import slices_on_spark

            return slices_on_spark(self, engine)
        if kind == "distributed":
            from traceless.distributed.dask import SlicesOnDask

            return SlicesOnDask(self, engine)
        raise TypeError(
            "on() takes a distributed.Client or a SparkSession, got "
            f"{type(engine).__name__}. For processes of this machine set n_jobs."
        )


@dataclass(frozen=True)
class ArraySlice:
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


def slices_of(X: Any, y: Any, weight: Any, n_jobs: int | None, n_outputs: int) -> list[ArraySlice]:
    """Rows in memory cut for several processes, not so finely that additions matter.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,) or (n_samples, n_targets)
    weight : ndarray of shape (n_samples,), number or None
    n_jobs : int or None
        As for `gather`.
    n_outputs : int
        Number J of features.
    """
    n, jobs = X.shape[0], effective_n_jobs(n_jobs)
    worth = n // max(1024, 8 * n_outputs)
    parts = max(1, min(SHARES * jobs if jobs > 1 else 1, worth))
    bounds = [n * k // parts for k in range(parts + 1)]
    whole = weight is None or not getattr(weight, "ndim", 0)
    return [
        ArraySlice(X, y[a:b], weight if whole else weight[a:b], a, b) for a, b in pairwise(bounds)
    ]


def gather(recipe: Recipe, slices: Sequence[Slice], n_jobs: int | None = None) -> Knowledge:
    """The knowledge of all rows of some slices.

    Parameters
    ----------
    recipe : Recipe
    slices : sequence of Slice
        At least one.
    n_jobs : int, optional
        Number of processes; -1 for as many as cores. None or 1: in this process, unless
        ``joblib.parallel_config`` says otherwise. Its other settings hold too, as long as
        the workers share this machine's temporary folder.
    """
    jobs = min(effective_n_jobs(n_jobs), len(slices))
    if jobs > 1:
        return _gather_in_processes(recipe, slices, jobs)
    one = recipe if len(slices) == 1 else quiet(recipe)
    return _some(knowledge_of(one, _batches(progress(slices, "learning", recipe.verbose))))


def _gather_in_processes(recipe: Recipe, slices: Sequence[Slice], jobs: int) -> Knowledge:
    shares = shared_out(slices, SHARES * jobs)
    n = len(shares)
    with tempfile.TemporaryDirectory(prefix="traceless-") as folder:
        files = [Path(folder) / str(k) for k in range(n)]
        tasks = [(quiet(recipe), *task) for task in zip(shares, files, strict=True)]
        _run(_leave_piece, tasks, jobs, "learning", recipe.verbose)
        while len(files) > 1:
            _run(_add_files, list(zip(files[::2], files[1::2], strict=False)), jobs, "adding")
            files = files[::2]
        return _read(files[0])


def shared_out(slices: Sequence[Slice], n: int) -> list[Sequence[Slice]]:
    """Slices for at most `n` tasks, about as many for each."""
    n = min(len(slices), n)
    return [slices[a:b] for a, b in pairwise(len(slices) * k // n for k in range(n + 1))]


def learn_share(recipe: Recipe, slices: Sequence[Slice]) -> Knowledge:
    """The task that reads some slices, with one thread."""
    with threadpool_limits(1):
        return _some(knowledge_of(recipe, _batches(slices)))


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
        with threadpool_limits(1):
            done = parallel(delayed(task)(*those) for those in arguments)
            for _ in progress(range(len(arguments)), label, verbose):
                next(done)
    except BrokenExecutor as error:
        raise EngineError(
            "A worker process died before its rows were learned: it was killed, or ran out of "
            "memory. Nothing was changed; free some memory or take fewer n_jobs, and try again."
        ) from error


def _leave_piece(recipe: Recipe, slices: Sequence[Slice], file: Path) -> None:
    _write(learn_share(recipe, slices), file)


def _add_files(file: Path, other: Path) -> None:
    with threadpool_limits(1):
        total = _read(file) + _read(other)
    other.unlink()
    _write(total, file)


def _batches(slices: Any) -> Iterator[Rows]:
    return chain.from_iterable(s.batches() for s in slices)


def _some(found: T | None) -> T:
    if found is None:
        raise ValueError("There are no slices to learn from; an empty one has an empty batch.")
    return found


def _write(knowledge: Knowledge, file: Path) -> None:
    with file.open("wb") as out:
        pickle.dump(knowledge, out, protocol=pickle.HIGHEST_PROTOCOL)


def _read(file: Path) -> Knowledge:
    with file.open("rb") as source:
        knowledge: Knowledge = pickle.load(source)
    return knowledge
