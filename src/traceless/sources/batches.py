"""A source of rows, and the knowledge of the batches that one task reads.

Each call that computes knowledge costs J² besides the product itself, so a task joins small
batches first, as far as memory stays bounded.
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from traceless.knowledge.values import check_features, labels

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe

Rows = tuple[Any, ...]  # (X, y, sample_weight)


class Source(ABC):
    """Rows that are in files or on a cluster.

    Made by `scan`, `from_spark` or, from Dask collections, by the estimators. Opening one
    reads what is needed to know its columns, never all rows.

    Attributes
    ----------
    n_features : int
        Number of columns that are features.
    feature_names : list of str or None
        Their names, where they have names.
    n_targets : int or None
        Number of columns of y, where it is known before the rows are read.
    table_version : int or None
        Of the Delta table that the rows are of.
    table : Table or None
        By which frames are read.
    name : str or None
        Its address and version, as ``"file:///data/sales@v7"``; in a model's ``merged_``.
    """

    n_features: int
    feature_names: list[str] | None
    n_targets: int | None = None
    table_version: int | None = None
    table: Any = None
    name: str | None = None

    def _like(self, other: Source) -> Self:
        """Take over all that is known of the columns of another source."""
        self.n_features, self.feature_names = other.n_features, other.feature_names
        self.n_targets, self.table = other.n_targets, other.table
        self.table_version, self.name = other.table_version, other.name
        return self

    @abstractmethod
    def knowledge(self, recipe: Recipe, n_jobs: int | None = None) -> Knowledge:
        """The knowledge of all rows, computed where they are."""


def as_arrays(rows: Rows) -> Rows:
    """Rows of dataframes, or of arrays of any type, as arrays that a recipe takes."""
    X, y, weight = rows
    check_features(X)
    X = check_array(X, accept_sparse="csr", ensure_all_finite=False, ensure_min_samples=0)
    y = np.asarray(labels(y))
    return X, y.ravel() if y.shape[1:] == (1,) else y, weight


def quiet(recipe: Recipe) -> Recipe:
    """The recipe without its progress line: the engine shows one, not each task."""
    return replace(recipe, verbose=False)


def sum_batches(recipe: Recipe, batches: Iterable[Rows]) -> Knowledge | None:
    """The knowledge of all batches, two partial sums in memory at most; None if there is none."""
    total = None
    for rows in joined(batches, len(recipe.phi.steps), recipe.classwise):
        total = recipe.knowledge(rows) if total is None else total + recipe.knowledge(rows)
    return total


def joined(batches: Iterable[Rows], n_outputs: int, classwise: bool = False) -> Iterator[Rows]:
    """Batches put together until they are worth a call, or as large as their knowledge.

    Class-wise knowledge is as large as that of J · K features: a matrix for each class.
    """
    held: list[Rows] = []
    enough = largest = 0
    for batch in batches:
        if not enough:
            matrices = len(np.unique(np.asarray(batch[1]))) if classwise else 1
            enough = max(2**14, 8 * n_outputs * matrices)
            largest = max(2**28, 8 * n_outputs**2 * matrices)
        # NumPy would make 1 and True, or 1 and "1", the same label, or key of a group.
        if held and _kinds(held[0]) != _kinds(batch):
            yield _join(held)
            held = []
        held.append(batch)
        n_rows = sum(X.shape[0] for X, _, _ in held)
        if n_rows >= enough or sum(_n_bytes(X) for X, _, _ in held) >= largest:
            yield _join(held)
            held = []
    if held:
        yield _join(held)


def portable(error: Exception) -> Exception:
    """The error, or its text if it cannot be sent to another process."""
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:  # whatever a class of somebody's own may raise
        copy = None
    if type(copy) is type(error):
        return error
    return RuntimeError(f"{type(error).__name__}: {error}")


def _kinds(rows: Rows) -> list[str]:
    dtypes = [np.asarray(part).dtype for part in rows[1:]]
    return ["".join(d[name].kind for name in d.names) if d.names else d.kind for d in dtypes]


def _n_bytes(X: Any) -> int:
    return int(X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes)


def _join(held: list[Rows]) -> Rows:
    full = [rows for rows in held if rows[0].shape[0]] or held[:1]
    if len(full) == 1:
        return full[0]
    X, y, weight = zip(*full, strict=True)
    stack = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
    return stack, np.concatenate(y), None if weight[0] is None else np.concatenate(weight)
