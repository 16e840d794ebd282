"""Dask: the knowledge of each partition where it is, added up in a tree.

Only the sum of all comes to this process. A worker that dies is replaced by Dask and its
tasks are run again; as knowledge is integers, the result has the same bits.
"""

from __future__ import annotations

import operator
from concurrent.futures import BrokenExecutor
from math import isnan
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from traceless.distributed.local import SHARES, Sliced, learn_share, shared_out
from traceless.distributed.source import HEAD, Source, quiet
from traceless.exceptions import EngineError
from traceless.knowledge.sums import Knowledge, Recipe, Rows


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
        self._parts = (_of_arrays if arrays else _of_frames)(X, y, sample_weight)

    def knowledge(self, recipe: Recipe, n_jobs: int | None = None) -> Knowledge:  # noqa: ARG002
        """The knowledge of all partitions, as computed by the current scheduler."""
        from dask import delayed

        sent = delayed(quiet(recipe), traverse=False)  # once, not with every task
        return _sum([delayed(_piece)(sent, rows) for rows in self._parts], recipe.verbose)

    def head(self) -> tuple[Any, Any]:
        """X and y of the first rows of the first partition that has some, at most 4096."""
        from dask import delayed

        for rows in self._parts:
            found: tuple[Any, Any] = _compute(delayed(_first_rows)(rows), False)
            if len(found[1]):
                break
        return found


class SlicesOnDask(Source):
    """Slices of files, opened by the workers of a cluster; made by ``scan(...).on(client)``."""

    def __init__(self, source: Sliced, client: Any) -> None:
        self._source, self._client = source, client
        self.n_features, self.feature_names = source.n_features, source.feature_names

    def knowledge(self, recipe: Recipe, n_jobs: int | None = None) -> Knowledge:  # noqa: ARG002
        """The knowledge of all slices, some of them in each task."""
        from dask import delayed

        sent = delayed(quiet(recipe), traverse=False)
        tasks = SHARES * max(1, sum(self._client.nthreads().values()))
        learn = delayed(learn_share)
        shares = [delayed(s, traverse=False) for s in shared_out(self._source.slices, tasks)]
        with self._client.as_current():
            return _sum([learn(sent, share) for share in shares], recipe.verbose)

    def head(self) -> tuple[Any, Any]:
        """X and y of the first rows, at most 4096, read here."""
        return self._source.head()


def _sum(pieces: list[Any], verbose: bool) -> Knowledge:
    """Delayed pieces added in a tree of pairs; only the last sum is fetched."""
    from dask import delayed

    add = delayed(operator.add)
    while len(pieces) > 1:
        last = pieces[-1:] if len(pieces) % 2 else []
        pieces = [add(*two) for two in zip(pieces[::2], pieces[1::2], strict=False)] + last
    knowledge: Knowledge = _compute(pieces[0], verbose)
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
    return [split(part, *ends, y.ndim, number) for part in X.assign(**beside).to_delayed()]


def _split(part: Any, n_features: int, n_both: int, y_ndim: int, number: Any) -> Rows:
    X, beside = part.iloc[:, :n_features], part.iloc[:, n_features:]
    if beside.isna().any(axis=None):
        raise ValueError(
            "y or sample_weight has no value for some rows of X: values are missing, or its index "
            "is not that of X. Take X, y and sample_weight from the same dataframe."
        )
    y = part.iloc[:, n_features:n_both] if y_ndim == 2 else part.iloc[:, n_features]
    return X, y, part.iloc[:, n_both] if part.shape[1] > n_both else number


def _of_arrays(X: Any, y: Any, weight: Any) -> list[Any]:
    """Delayed rows of each row of blocks of arrays, cut as X is where lengths are known."""
    rows = X.chunks[0] if hasattr(X, "chunks") else None
    parts = [
        _partitions(name, collection, rows) if hasattr(collection, "to_delayed") else None
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


def _partitions(name: str, collection: Any, rows: tuple[Any, ...] | None) -> list[Any]:
    if not hasattr(collection, "chunks"):
        return list(collection.to_delayed(optimize_graph=False))
    known = rows is not None and not any(isnan(n) for n in (*rows, *collection.chunks[0]))
    if known and rows is not None and sum(rows) != collection.shape[0]:
        raise ValueError(f"X has {sum(rows)} rows, but {name} has {collection.shape[0]}.")
    columns = {1: -1} if collection.ndim == 2 else {}
    return list(collection.rechunk(({0: rows} if known else {}) | columns).to_delayed().ravel())


def _piece(recipe: Recipe, rows: Rows) -> Knowledge:
    with threadpool_limits(1):
        return recipe.knowledge(rows)


def _first_rows(rows: Rows) -> tuple[Any, Any]:
    X, y, _ = rows
    return X[:HEAD], np.asarray(y[:HEAD])


def _compute(root: Any, verbose: bool) -> Any:
    """The value of a delayed object, with Dask's own progress."""
    from dask.base import get_scheduler
    from dask.diagnostics import ProgressBar

    client = getattr(get_scheduler(collections=[root]), "__self__", None)
    try:
        # With threads for workers the limits of the tasks overlap; this one undoes them all.
        with threadpool_limits(1):
            if client is None:
                with ProgressBar(minimum=2.0 if verbose else float("inf")):
                    return root.compute()
            future = client.compute(root)
            if verbose:
                _show(future)
            return future.result()
    except _failures(client) as error:
        raise EngineError(
            f"Dask could not finish: {type(error).__name__}: {error}. Workers were killed, ran "
            "out of memory or were lost more often than Dask tries again. Nothing was changed; "
            "see the workers' logs, give them more memory or smaller partitions, and try again."
        ) from error


def _show(future: Any) -> None:
    from distributed import progress

    progress(future)


def _failures(client: Any) -> tuple[type[BaseException], ...]:
    """What is raised when the cluster, not a task, fails."""
    if client is None:
        return (BrokenExecutor,)
    from distributed import CancelledError, KilledWorker
    from distributed.comm import CommClosedError

    return KilledWorker, CancelledError, CommClosedError, TimeoutError
