"""Dask: the knowledge of each partition where it is, added up in a tree.

Only the total comes to this process. A worker that dies is replaced by Dask and its
tasks are run again; as knowledge is integers, the result has the same bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from traceless.exceptions import EngineError
from traceless.sources.batches import HEAD, Rows, Source, as_arrays, quiet
from traceless.sources.partitions import TASKS_PER_WORKER, Partition, grouped, learn

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe


def from_dask(X: Any, y: Any, sample_weight: Any) -> DaskSource | None:
    """Dask collections as a source of rows; None if there is no Dask object among them."""
    named = {"X": X, "y": y, "sample_weight": sample_weight}
    modules = {name: type(rows).__module__ for name, rows in named.items()}
    lazy = [n for n, m in modules.items() if m.partition(".")[0] in ("dask", "dask_expr")]
    if not lazy:
        return None
    for name in lazy:
        if not modules[name].startswith(("dask.array", "dask.dataframe", "dask_expr")):
            raise TypeError(
                f"{name} is a Dask {type(named[name]).__name__}; pass Dask arrays or dataframes, "
                "as dask.array.from_delayed makes them."
            )
    numbers = int, float, type(None)
    others = [n for n, rows in named.items() if n not in lazy and not isinstance(rows, numbers)]
    if others or y is None:
        other = others[0] if others else "y"
        raise TypeError(
            f"{lazy[0]} is a Dask collection and {other} is {type(named[other]).__name__}: pass "
            "Dask collections for all of X, y and sample_weight, with the same partitions, or "
            f"{lazy[0]}.compute()."
        )
    return DaskSource(X, y, sample_weight)


class DaskSource(Source):
    """Dask arrays or dataframes, partition by partition; made by `as_source`.

    Partitions should be few and large: each costs one addition of J² integers. `n_jobs` is
    not used, the scheduler decides.
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}.")
        self.n_features = int(X.shape[1])
        names = list(getattr(X, "columns", [None]))
        self.feature_names = names if all(isinstance(n, str) for n in names) else None
        arrays = any(hasattr(c, "chunks") for c in (X, y, sample_weight))
        self._partitions = (_of_arrays if arrays else _of_frames)(X, y, sample_weight)

    def knowledge(self, recipe: Recipe, n_jobs: int | None = None) -> Knowledge:  # noqa: ARG002
        """The knowledge of all partitions, as computed by the current scheduler."""
        return _sum(_learn_rows, recipe, self._partitions)

    def head(self) -> tuple[Any, Any]:
        """X and y of the first rows of the first partition that has some, at most 4096."""
        from dask import delayed

        for rows in self._partitions:
            found: tuple[Any, Any] = _compute(delayed(_first_rows)(rows), verbose=False)
            if len(found[1]):
                break
        return found


def sum_on_dask(recipe: Recipe, partitions: Sequence[Partition], client: Any) -> Knowledge:
    """The knowledge of partitions of files that the workers open, some in each task."""
    from dask import delayed

    groups = grouped(partitions, TASKS_PER_WORKER * max(1, sum(client.nthreads().values())))
    with client.as_current():
        return _sum(learn, recipe, [delayed(group, traverse=False) for group in groups])


def _sum(task: Callable[..., Knowledge], recipe: Recipe, partitions: list[Any]) -> Knowledge:
    """Partial sums of delayed partitions, added in a tree of pairs; only the total is fetched."""
    from dask import delayed

    sent = delayed(quiet(recipe), traverse=False)  # once, not with every task
    sums = [delayed(task)(sent, rows) for rows in partitions]
    add = delayed(operator.add)
    while len(sums) > 1:
        last = sums[-1:] if len(sums) % 2 else []
        sums = [add(*two) for two in zip(sums[::2], sums[1::2], strict=False)] + last
    knowledge: Knowledge = _compute(sums[0], recipe.verbose)
    return knowledge


def _of_frames(X: Any, y: Any, weight: Any) -> list[Any]:
    """Delayed rows of each partition of dataframes.

    They are put side by side first: Dask may read the partitions of a narrow selection
    together, so that X and y of one dataframe no longer match one by one.
    """
    from dask import delayed

    targets = [y] if y.ndim == 1 else [y[name] for name in y.columns]
    weights = [weight] if hasattr(weight, "divisions") else []
    beside = {f"traceless {k}": column for k, column in enumerate([*targets, *weights])}
    split = delayed(_split, pure=False)
    ends = [X.shape[1], X.shape[1] + len(targets)]
    number = None if weights else weight
    return [split(rows, *ends, y.ndim, number) for rows in X.assign(**beside).to_delayed()]


def _split(rows: Any, n_features: int, n_both: int, y_ndim: int, number: Any) -> Rows:
    if rows.iloc[:, n_features:].isna().any(axis=None):
        raise ValueError(
            "y or sample_weight has no value for some rows of X: values are missing, or its index "
            "is not that of X. Take X, y and sample_weight from the same dataframe."
        )
    y = rows.iloc[:, n_features:n_both] if y_ndim == 2 else rows.iloc[:, n_features]
    weight = rows.iloc[:, n_both] if rows.shape[1] > n_both else number
    return rows.iloc[:, :n_features], y, weight


def _of_arrays(X: Any, y: Any, weight: Any) -> list[Any]:
    """Delayed rows of each row of blocks of arrays, cut as X is where lengths are known."""
    lengths = X.chunks[0] if hasattr(X, "chunks") else None
    parts = [
        _partitions(name, collection, lengths) if hasattr(collection, "to_delayed") else None
        for name, collection in (("X", X), ("y", y), ("sample_weight", weight))
    ]
    n = len(parts[0] or [])
    if any(part is not None and len(part) != n for part in parts):
        raise ValueError(
            f"X has {n} partitions, y {len(parts[1] or [])}; partitions of unknown length must "
            "match one by one. Take X, y and sample_weight from the same collection, or call "
            "compute_chunk_sizes() on the arrays."
        )
    filled = [[weight] * n if part is None else part for part in parts]
    return list(zip(*filled, strict=True))


def _partitions(name: str, collection: Any, lengths: tuple[Any, ...] | None) -> list[Any]:
    if not hasattr(collection, "chunks"):
        return list(collection.to_delayed(optimize_graph=False))
    columns = {1: -1} if collection.ndim == 2 else {}
    if lengths is None or any(isnan(n) for n in (*lengths, *collection.chunks[0])):
        return list(collection.rechunk(columns).to_delayed().ravel())
    if sum(lengths) != collection.shape[0]:
        raise ValueError(f"X has {sum(lengths)} rows, but {name} has {collection.shape[0]}.")
    return list(collection.rechunk({0: lengths} | columns).to_delayed().ravel())


def _learn_rows(recipe: Recipe, rows: Rows) -> Knowledge:
    with threadpool_limits(1):
        return recipe.knowledge(as_arrays(rows))


def _first_rows(rows: Rows) -> tuple[Any, Any]:
    X, y, _ = rows
    return X[:HEAD], np.asarray(y[:HEAD])


def _compute(root: Any, verbose: bool) -> Any:
    """The value of a delayed object, with Dask's own progress."""
    from dask.base import get_scheduler
    from dask.diagnostics import ProgressBar

    client = getattr(get_scheduler(collections=[root]), "__self__", None)
    failures: tuple[type[BaseException], ...] = (BrokenExecutor,)
    if client is not None:  # what is raised when the cluster, not a task, fails
        from distributed import CancelledError, KilledWorker, progress
        from distributed.comm import CommClosedError

        failures = KilledWorker, CancelledError, CommClosedError, TimeoutError
    try:
        # With threads for workers the limits of the tasks overlap; this one undoes them all.
        with threadpool_limits(1):
            if client is None:
                with ProgressBar(minimum=2.0 if verbose else float("inf")):
                    return root.compute()
            future = client.compute(root)
            if verbose:
                progress(future)
            return future.result()
    except failures as error:
        raise EngineError(
            f"Dask could not finish: {type(error).__name__}: {error}. Workers were killed, ran "
            "out of memory or were lost more often than Dask tries again. Nothing was changed; "
            "see the workers' logs, give them more memory or smaller partitions, and try again."
        ) from error
