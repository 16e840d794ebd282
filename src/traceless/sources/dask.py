"""Dask: the knowledge of each partition where it is, added up in a tree.

Only the total comes to this process. A worker that dies is replaced by Dask and its
tasks are run again; as knowledge is integers, the result has the same bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from itertools import count
from math import isnan
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from traceless.exceptions import EngineError
from traceless.sources.batches import Rows, Source, as_arrays, quiet
from traceless.sources.partitions import Partition, grouped, learn
from traceless.sources.threads import one_thread

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe


def from_dask(X: Any, y: Any, sample_weight: Any, table: Any = None) -> DaskSource | None:
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
    return DaskSource(X, y, sample_weight, table)


class DaskSource(Source):
    """Dask arrays or dataframes, partition by partition; made by `as_source`.

    Partitions should be few and large: each costs one addition of J² integers. `n_jobs` is
    not used, the scheduler decides.
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, table: Any = None) -> None:
        if X.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {X.ndim}.")
        self.n_features = int(X.shape[1])
        names = list(getattr(X, "columns", [None]))
        self.feature_names = names if all(isinstance(n, str) for n in names) else None
        if table is not None and self.feature_names is not None:
            self.table = table
            self.n_features, self.feature_names = len(table.columns), table.names
        self.n_targets = 1 if y.ndim == 1 else int(y.shape[1])
        arrays = any(hasattr(c, "chunks") for c in (X, y, sample_weight))
        self._rows = (
            _of_arrays(X, y, sample_weight)
            if arrays
            else _of_frames(X, y, sample_weight, self.table)
        )

    def knowledge(self, recipe: Recipe, n_jobs: int | None = None) -> Knowledge:  # noqa: ARG002
        """The knowledge of all partitions, as computed by the current scheduler."""
        return _sum(_learn_rows, recipe, *self._rows)


def sum_on_dask(recipe: Recipe, partitions: Sequence[Partition], client: Any) -> Knowledge:
    """The knowledge of partitions of files that the workers open, some in each task."""
    if client.status != "running":
        raise EngineError(
            f"The Dask client is {client.status}: it must stay open until the rows are learned. "
            "Nothing was changed."
        )
    groups = grouped(partitions, max(1, sum(client.nthreads().values())))
    with client.as_current():
        return _sum(_learn_group, recipe, [], [(Sent(group),) for group in groups])


@dataclass(frozen=True)
class Sent:
    """A value in a graph, which Dask must not look into."""

    value: Any


def _sum(
    task: Callable[..., Knowledge], recipe: Recipe, collections: list[Any], rows: list[Any]
) -> Knowledge:
    """Partial sums of partitions, added in a tree; only the total is fetched.

    One graph is made, with a layer of our own upon those of the collections: objects for each
    partition, each with the whole graph below it, would take a time that grows with the square
    of their number.

    Parameters
    ----------
    task : function of the recipe and a partition's arguments
    recipe : Recipe
    collections : list of Dask collections
    rows : list of tuples
        For each partition the arguments of `task`: keys of the collections' graphs, or values.
    """
    from dask.blockwise import optimize_blockwise
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    name = f"traceless-{uuid4().hex}"
    sent = f"{name}-recipe"
    graph: dict[Any, Any] = {sent: Sent(quiet(recipe))}  # once, not with every task
    level = [(name, 0, k) for k in range(len(rows))]
    graph |= {key: (task, sent, *arguments) for key, arguments in zip(level, rows, strict=True)}
    width = max(2, min(16, 2**25 // len(recipe.phi.steps) ** 2))  # sums that a task holds
    for depth in count(1):
        if len(level) == 1:
            break
        groups = [level[k : k + width] for k in range(0, len(level), width)]
        level = [(name, depth, k) for k in range(len(groups))]
        graph |= {key: (_add, *those) for key, those in zip(level, groups, strict=True)}
    whole = HighLevelGraph.from_collections(name, graph, dependencies=collections)
    whole = optimize_blockwise(whole, keys=[level[0]])  # fewer tasks; annotations stay
    knowledge: Knowledge = _compute(Delayed(level[0], whole, layer=name), recipe.verbose)
    return knowledge


def _of_frames(X: Any, y: Any, weight: Any, table: Any) -> tuple[list[Any], list[Any]]:
    """The rows of each partition of dataframes.

    They are put side by side first: Dask may read the partitions of a narrow selection
    together, so that X and y of one dataframe no longer match one by one.
    """
    targets = [y] if y.ndim == 1 else [y[name] for name in y.columns]
    weights = [weight] if hasattr(weight, "divisions") else []
    several = getattr(weight, "ndim", 0) == 2  # the keys of groups
    weights = [weight[name] for name in weight.columns] if several else weights
    columns = {f"traceless {k}": column for k, column in enumerate([*targets, *weights])}
    whole = X.assign(**columns).optimize()
    n, n_both, one_target = X.shape[1], X.shape[1] + len(targets), y.ndim == 1
    number = None if weights else weight  # for all rows

    def split(rows: Any) -> Rows:
        if rows.iloc[:, n:].isna().any(axis=None):
            raise ValueError(
                "y or sample_weight (with fit_by, the key) has no value for some rows of X: values "
                "are missing, or its index is not that of X. Take X, y and sample_weight from the "
                "same dataframe."
            )
        target = rows.iloc[:, n] if one_target else rows.iloc[:, n:n_both]
        beside = rows.iloc[:, n_both] if rows.shape[1] > n_both else number
        if several:
            keys = rows.iloc[:, n_both:]
            beside = np.rec.fromarrays([np.asarray(keys[name]) for name in keys.columns])
        features = rows.iloc[:, :n]
        return features if table is None else table.rows(features), target, beside

    return [whole], [((split, key),) for key in whole.__dask_keys__()]


def _of_arrays(X: Any, y: Any, weight: Any) -> tuple[list[Any], list[Any]]:
    """The rows of each row of blocks of arrays, cut as X is where lengths are known."""
    lengths = X.chunks[0] if hasattr(X, "chunks") else None
    named = {"X": X, "y": y, "sample_weight": weight}
    lazy = {
        name: _whole_rows(name, collection, lengths)
        for name, collection in named.items()
        if hasattr(collection, "__dask_graph__")
    }
    from dask.core import flatten

    keys = {name: list(flatten(collection.__dask_keys__())) for name, collection in lazy.items()}
    n = len(keys["X"])
    if any(len(found) != n for found in keys.values()):
        raise ValueError(
            f"X has {n} partitions, y {len(keys['y'])}; partitions of unknown length must "
            "match one by one. Take X, y and sample_weight from the same collection, or call "
            "compute_chunk_sizes() on the arrays."
        )
    weights = keys.get("sample_weight", [weight] * n)
    rows = zip(keys["X"], keys["y"], weights, strict=True)
    return list(lazy.values()), [((tuple, list(one)),) for one in rows]


def _whole_rows(name: str, collection: Any, lengths: tuple[Any, ...] | None) -> Any:
    """A collection whose partitions are whole rows, as many in each as in those of X."""
    if not hasattr(collection, "chunks"):
        return collection.optimize()
    columns = {1: -1} if collection.ndim == 2 else {}
    if lengths is None or any(isnan(n) for n in (*lengths, *collection.chunks[0])):
        return collection.rechunk(columns)
    if sum(lengths) != collection.shape[0]:
        raise ValueError(f"X has {sum(lengths)} rows, but {name} has {collection.shape[0]}.")
    return collection.rechunk({0: lengths} | columns)


def _add(*sums: Any) -> Any:
    return reduce(operator.add, sums)


def _learn_rows(sent: Sent, rows: Rows) -> Knowledge:
    with one_thread():
        known: Knowledge = sent.value.knowledge(as_arrays(rows))
        return known


def _learn_group(sent: Sent, group: Sent) -> Knowledge:
    return learn(sent.value, group.value)


def _compute(root: Any, verbose: bool) -> Any:
    """The value of a delayed object, with Dask's own progress."""
    from dask.base import get_scheduler
    from dask.diagnostics import ProgressBar

    client = getattr(get_scheduler(collections=[root]), "__self__", None)
    failures: tuple[type[BaseException], ...] = (BrokenExecutor,)
    if client is not None:  # what is raised when the cluster, not a task, fails
        from distributed import CancelledError, KilledWorker
        from distributed.comm import CommClosedError

        failures = KilledWorker, CancelledError, CommClosedError, TimeoutError
    try:
        # With threads for workers the limits of the tasks overlap; this one undoes them all.
        with one_thread():
            if client is not None:
                return _computed_by(client, root, verbose)
            with ProgressBar(minimum=2.0 if verbose else float("inf")):
                return root.compute()
    except failures as error:
        raise EngineError(
            f"Dask could not finish: {type(error).__name__}: {error}. Workers were killed, ran "
            "out of memory or were lost more often than Dask tries again. Nothing was changed; "
            "see the workers' logs, give them more memory or smaller partitions, and try again."
        ) from error


def _computed_by(client: Any, root: Any, verbose: bool) -> Any:
    """The value, computed by a cluster; a task that waits for it leaves its thread to others."""
    from distributed import progress, rejoin, secede
    from distributed.threadpoolexecutor import thread_state

    future = client.compute(root)
    if verbose:
        progress(future, notebook=None if find_spec("ipywidgets") else False)
    # A task within worker_client has left it already: to come back twice takes for ever.
    in_task = getattr(thread_state, "proceed", False)
    if in_task:
        secede()
    try:
        return future.result()
    except BaseException:  # an interrupt too: what is left would be computed in vain
        future.cancel()
        raise
    finally:
        if in_task:
            rejoin()
