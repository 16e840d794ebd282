"""What an engine needs: a source of rows, and the knowledge of the batches of one task.

Gathering costs J² for every call besides the product itself, so a task joins small batches
before it adds them up, as far as memory stays bounded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from traceless.knowledge.sums import Knowledge, Recipe, Rows

HEAD = 4096  # rows that are looked at before all are learned


class Source(ABC):
    """Rows that are elsewhere: in files, or on a cluster.

    Made by `scan`, `from_spark` or, from Dask collections, by the estimators. Opening one
    reads what is needed to know its columns, never all rows.

    Attributes
    ----------
    n_features : int
        Number of columns that are features.
    feature_names : list of str or None
        Their names, where they have names.
    """

    n_features: int
    feature_names: list[str] | None

    @abstractmethod
    def knowledge(self, recipe: Recipe, n_jobs: int | None = None) -> Knowledge:
        """The knowledge of all rows, gathered where they are."""

    @abstractmethod
    def head(self) -> tuple[Any, Any]:
        """X and y of some of the first rows, at most 4096."""


def quiet(recipe: Recipe) -> Recipe:
    """The recipe without its progress line: the engine shows one, not each task."""
    return replace(recipe, verbose=False)


def knowledge_of(recipe: Recipe, batches: Iterable[Rows]) -> Knowledge | None:
    """The knowledge of all batches, of which two pieces are held at most; None of none."""
    total = None
    for rows in joined(batches, len(recipe.phi.steps)):
        total = recipe.knowledge(rows) if total is None else total + recipe.knowledge(rows)
    return total


def joined(batches: Iterable[Rows], n_outputs: int) -> Iterator[Rows]:
    """Batches put together until they are worth a call, or as large as their knowledge."""
    enough, largest = max(2**14, 8 * n_outputs), max(2**28, 8 * n_outputs**2)
    held: list[Rows] = []
    for batch in batches:
        if held and not _alike(held[0], batch):
            yield _join(held)
            held = []
        held.append(batch)
        if sum(_length(b) for b in held) >= enough or sum(_size(b) for b in held) >= largest:
            yield _join(held)
            held = []
    if held:
        yield _join(held)


def first_rows(batches: Iterable[Rows]) -> tuple[Any, Any] | None:
    """X and y of the first batches, up to `HEAD` rows; None of none."""
    held: list[Rows] = []
    for X, y, _ in batches:
        left = HEAD - sum(_length(b) for b in held)
        held.append((X[:left], y[:left], None))
        if _length(held[-1]) == left:
            break
    return _join(held)[:2] if held else None


def _length(rows: Rows) -> int:
    return int(rows[0].shape[0])


def _size(rows: Rows) -> int:
    X = rows[0]
    return int(X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes)


def _alike(a: Rows, b: Rows) -> bool:
    """Whether labels may be joined: NumPy would make 1 and True, or 1 and "1", the same."""
    return bool(np.asarray(a[1]).dtype.kind == np.asarray(b[1]).dtype.kind)


def _join(held: list[Rows]) -> Rows:
    full = [rows for rows in held if _length(rows)] or held[:1]
    if len(full) == 1:
        return full[0]
    X, y, weight = zip(*full, strict=True)
    stack = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X)
    return stack, np.concatenate(y), None if weight[0] is None else np.concatenate(weight)
