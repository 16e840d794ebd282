"""The rows of a window: arrays of its own in the order of time, found by their content.

A row is its values, its label or target, and its weight. The arrays are never written to, so
copies of a window may share them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from traceless.arithmetic.integers import Floats, Integers
from traceless.files import facts, saving
from traceless.hinge.file_format import labels_of
from traceless.hinge.rows import plain_labels
from traceless.knowledge.responses import indicators

Rows = tuple[Any, Any, Floats]  # values, labels or targets, and weights


def plain_values(X: Any) -> Any:
    """Values in one form for equal rows: one zero, and sparse ones in order."""
    if not sparse.issparse(X):
        return X + 0.0
    X = sparse.csr_matrix(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def places_of(held: Rows, wanted: Rows) -> Integers:
    """Positions of rows among those held, the oldest of equal ones, each once; -1 if not held."""
    X, y, weight = wanted
    if sparse.issparse(held[0]) != sparse.issparse(X):
        X = X.toarray() if sparse.issparse(X) else plain_values(sparse.csr_matrix(X))
    keys = list(_keys((X, y, weight)))
    places: dict[Any, deque[int]] = {key: deque() for key in keys}
    for place, key in enumerate(_keys(held)):
        if key in places:
            places[key].append(place)
    return np.array([places[key].popleft() if places[key] else -1 for key in keys], dtype=np.int64)


def _keys(rows: Rows) -> Iterator[Any]:
    """A key for the content of each row; 1 and True are two labels."""
    X, y, weight = rows
    for i, (label, w) in enumerate(zip(y.tolist(), weight.tolist(), strict=True)):
        if sparse.issparse(X):
            there = slice(X.indptr[i], X.indptr[i + 1])
            x = X.indices[there].astype(np.int64).tobytes() + X.data[there].tobytes()
        else:
            x = X[i].tobytes()
        yield x, type(label), repr(label), w


def row_pieces(rows: Rows, labelled: bool) -> saving.Pieces:
    """Rows as facts and tensors: values dense or by place, labels by number."""
    X, y, weight = rows
    said: dict[str, Any] = {"classes": None}
    tensors: dict[str, Any] = {"weights": weight}
    if sparse.issparse(X):
        tensors |= {"places": X.indices.astype(np.int64), "ends": X.indptr[1:].astype(np.int64)}
        X = X.data
    if labelled and y.ndim == 1:
        classes, y = np.unique(plain_labels(y), return_inverse=True)
        said["classes"] = saving.labels(classes.tolist())
    kind = np.int64 if labelled else np.float64
    return said, tensors | {"rows": X.astype(np.float64), "responses": y.astype(kind)}


def rows_from(said: Any, tensors: Mapping[str, Any], n_features: int) -> Rows:
    """The rows that `row_pieces` wrote, checked."""
    weight = facts.tensor(tensors, "weights", "f", (None,))
    X = _values(tensors, (len(weight), n_features))
    if said["classes"] is None:
        found = tensors["responses"]
        shape = (len(weight), None) if found.ndim == 2 else (len(weight),)
        kind = "i" if found.dtype.kind == "i" else "f"  # several labels for each row, or targets
        y = facts.tensor(tensors, "responses", kind, shape) + 0
        if kind == "i":
            indicators(y)  # raises if it is no matrix of 0 and 1
    else:
        y = labels_of(said["classes"], facts.tensor(tensors, "responses", "i", (len(weight),)))
    if not (weight > 0.0).all():
        raise ValueError("a row of the window has no weight.")
    return plain_values(X), y, weight.copy()


def _values(tensors: Mapping[str, Any], shape: tuple[int, int]) -> Any:
    if "ends" not in tensors:
        return facts.tensor(tensors, "rows", "f", shape).copy()
    ends = facts.tensor(tensors, "ends", "i", (shape[0],))
    starts = np.concatenate([[0], ends])
    values = facts.tensor(tensors, "rows", "f", (int(starts[-1]),))
    places = facts.tensor(tensors, "places", "i", values.shape)
    facts.within("places", places, 0, shape[1] - 1)
    facts.within("ends", np.diff(starts), 0, len(values))
    X = sparse.csr_matrix((values.copy(), places, starts), shape=shape)
    if not X.has_canonical_format:
        raise ValueError("places are not in order.")
    return X


def given(rows: Rows) -> tuple[Any, ...]:
    """Rows as an estimator takes them."""
    X, y, weight = rows
    return (X, y) if (weight == 1.0).all() else (X, y, weight)


def part(rows: Rows, which: Any) -> Rows:
    """Some rows: a slice is a view, and a mask or places a copy."""
    X, y, weight = rows
    return X[which], y[which], weight[which]


def joined(a: Rows, b: Rows) -> Rows:
    """Rows and later ones, in arrays that hold no others."""
    if not len(a[2]):  # nothing is known of the type of the labels
        a = part(b, slice(0))
    if sparse.issparse(a[0]) or sparse.issparse(b[0]):
        X = plain_values(sparse.vstack([a[0], b[0]]))
    else:
        X = np.concatenate([a[0], b[0]])
    if {a[1].dtype.kind, b[1].dtype.kind} == {"i", "u"}:  # together they would be floats
        a, b = ((x, y.astype(object), w) for x, y, w in (a, b))
    y = np.concatenate([a[1], b[1]])
    if y.dtype.kind in "US" and len(y):  # as wide as these labels, not as those that have left
        y = np.array(y.tolist())
    return X, y, np.concatenate([a[2], b[2]])
