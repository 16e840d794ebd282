"""The rows that a model keeps, and those of which it keeps a digest: found again by their content.

A row is its values, its label or target, and its weight; of equal rows the oldest is found first,
each once. Rows have ids, whole numbers that are handed out in the order in which rows came and
never used twice. Nothing is changed in place: a change makes new arrays, which hold no other rows,
and the old ones stay what they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from traceless.arithmetic.integers import Floats, Integers
from traceless.exceptions import NotLearnedError
from traceless.knowledge.responses import Classes, label_array, union

SIZE = 16  # bytes of a digest
Digests = NDArray[np.bytes_]  # all of one length, so NumPy's padding with zeros makes none equal
Batch = tuple[Any, NDArray[Any], Floats]  # values, labels or targets, and weights of some rows


def digests(rows: Iterable[bytes], key: bytes = b"") -> Digests:
    """The digest of each row."""
    found = [blake2b(row, key=key, digest_size=SIZE).digest() for row in rows]
    return np.array(found, dtype=f"S{SIZE}")


def places_of(held: Digests, wanted: Digests) -> Integers:
    """Places of digests among those held, the first of equal ones, each once; -1 if not held."""
    near = np.flatnonzero(np.isin(_heads(held), _heads(wanted)))
    near = near[np.argsort(held[near], kind="stable")]
    order = np.argsort(wanted, kind="stable")
    there, asked = held[near], wanted[order]
    repeat = np.arange(len(asked)) - np.searchsorted(asked, asked)  # among equal ones
    at = np.searchsorted(there, asked) + repeat
    found = at < np.searchsorted(there, asked, side="right")
    out = np.full(len(wanted), -1)
    out[order[found]] = near[at[found]]
    return out


def _heads(found: Digests) -> NDArray[np.uint64]:
    """The first half of each digest, which tells nearly all apart, and is compared faster."""
    return found.view(np.uint64)[::2]


def not_held(rows: NDArray[Any], n: int, where: str = "held") -> NotLearnedError:
    """The error for some of n rows to forget, by their numbers."""
    return NotLearnedError(
        f"{len(rows)} of the {n} rows to forget are not {where} (with this label or target, and "
        f"this weight, as often); the first of them is row {rows[0]} (counted from 0). Give "
        "rows as they were learned, and not twice what is held once. Nothing was changed."
    )


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows, labels, weights and ids, in the order of the ids.

    Parameters
    ----------
    held : ndarray or CSR matrix of shape (n, width)
        Values in the form of `plain_values`.
    y : ndarray of shape (n,) or (n, n_targets)
    weight : ndarray of shape (n,)
        Above 0.
    ids : ndarray of shape (n,)
    next_id : int
    at : ndarray, optional
        Where the values are in `held`, if that has others too.
    """

    held: Floats
    y: NDArray[Any]
    weight: Floats
    ids: Integers
    next_id: int
    at: Integers | None = None

    @classmethod
    def of(
        cls, rows: Batch, ids: Integers | None = None, next_id: int | None = None
    ) -> TrainingRows:
        """Rows with ids that they had before, or new ones."""
        n = len(rows[2])
        ids = np.arange(n, dtype=np.int64) if ids is None else ids
        return cls(*rows, ids, n if next_id is None else next_id)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def X(self) -> Floats:  # noqa: N802
        """Values of the rows."""
        return self.held if self.at is None else self.held[self.at]

    def values(self, places: Integers) -> Floats:
        """Values of some rows."""
        return self.held[places if self.at is None else self.at[places]]

    @cached_property
    def classes(self) -> NDArray[Any]:
        """The labels of the rows, sorted, each once."""
        return np.unique(self.y)

    @cached_property
    def _digests(self) -> Digests:
        """Of the content of each row."""
        return digests(_encoded(self.batch(slice(None))))

    def batch(self, at: Any) -> Batch:
        """Some rows."""
        return self.X[at], self.y[at], self.weight[at]

    def places(self, rows: Batch) -> Integers:
        """Where rows with this content are, the oldest of equal ones, each once; -1 if nowhere."""
        X, y, weight = rows
        if sparse.issparse(self.X) != sparse.issparse(X):
            X = X.toarray() if sparse.issparse(X) else plain_values(sparse.csr_matrix(X))
        return places_of(self._digests, digests(_encoded((X, y, weight))))

    def find(self, rows: Batch) -> Integers:
        """The ids of rows with this content; rows of weight 0 are no rows."""
        kept = np.flatnonzero(rows[2])
        X, y, weight = rows
        at = self.places((X[kept], y[kept], weight[kept]))
        if (at < 0).any():
            raise not_held(kept[at < 0], len(kept))
        return self.ids[at]

    def check_ids(self, ids: Any) -> Integers:
        """Ids of rows that are held, each once; raises if they are not."""
        given = np.asarray(ids)
        if given.ndim != 1 or not (given.dtype.kind in "iu" or not given.size):
            raise ValueError(
                f"ids must be whole numbers in one dimension, as in ids_, got shape {given.shape} "
                f"of {given.dtype}."
            )
        given = given.astype(np.int64)
        ordered = np.sort(given)
        at = np.searchsorted(self.ids, ordered)
        absent = ordered[(np.append(self.ids, -1)[at] != ordered) | (ordered < 0)]
        if absent.size or (np.diff(ordered) == 0).any():
            what = f"the id {absent[0]} is not held" if absent.size else "an id is given twice"
            raise NotLearnedError(
                f"There is no row to forget for each of the {len(given)} ids: {what}. The ids of "
                "the rows held now are in ids_. Nothing was changed."
            )
        return given

    def changed(self, without: Integers, new: Batch | None) -> TrainingRows:
        """These rows less some (by id), and new ones last."""
        X, y, weight = self.batch(slice(0)) if new is None else new
        stays, gone = np.ones(len(self), dtype=bool), np.searchsorted(self.ids, without)
        stays[gone] = False
        kept, end = np.flatnonzero(stays), self.next_id + len(weight)
        rows = TrainingRows(
            _spliced(self.X, kept, X),
            _with_labels(self.y, kept, y),
            _spliced(self.weight, kept, weight),
            _spliced(self.ids, kept, np.arange(self.next_id, end)),
            end,
        )
        known = vars(self)  # what was asked for once is asked for again
        if "_digests" in known:
            further = digests(_encoded((X, y, weight)))
            vars(rows)["_digests"] = _spliced(self._digests, kept, further)
        if "classes" in known and rows._has_classes(self.classes, self.y[gone], y):
            vars(rows)["classes"] = self.classes
        return rows

    def without(self, ids: Integers) -> TrainingRows:
        """These rows less some, only to be looked at: values are not copied."""
        kept = np.flatnonzero(~np.isin(self.ids, ids))
        at = kept if self.at is None else self.at[kept]
        parts = self.y[kept], self.weight[kept], self.ids[kept]
        return TrainingRows(self.held, *parts, self.next_id, at)

    def _has_classes(self, before: NDArray[Any], gone: NDArray[Any], new: NDArray[Any]) -> bool:
        """Whether the classes are those from before some labels went and new ones came."""
        known = {*new.tolist()} <= {*before.tolist()}
        return known and all((self.y == label).any() for label in {*gone.tolist()})

    def content(self) -> Iterator[bytes]:
        """The bytes of all rows, in an order that does not depend on their ids."""
        classes, label = np.unique(self.y, return_inverse=True)
        yield ascii(classes.tolist()).encode()  # `repr` follows Python's Unicode tables
        content = np.ascontiguousarray(np.column_stack([self.X, label, self.weight]))
        yield repr(content.shape).encode()
        yield content[byte_order(content)].tobytes()


def _spliced(values: Any, kept: Integers, new: Any) -> Any:
    """Some values and later ones, in an array that holds no others."""
    if sparse.issparse(values) or sparse.issparse(new):
        return plain_values(sparse.vstack([values[kept], new]))
    n, shape = len(kept), values.shape[1:]
    out = np.empty((n + len(new), *shape), dtype=np.result_type(values, new))
    if out.dtype == values.dtype:
        np.take(values, kept, axis=0, out=out[:n], mode="clip")  # nothing is out of bounds
    else:  # longer labels come
        out[:n] = values[kept]
    out[n:] = new
    return out


def _with_labels(values: NDArray[Any], kept: Integers, new: NDArray[Any]) -> NDArray[Any]:
    """Some labels or targets, and later ones."""
    if not len(kept):  # no labels have no type
        y = new.copy()
    elif not len(new):
        y = values[kept]
    else:
        if values.dtype.kind != new.dtype.kind:
            union(*(tuple(np.unique(part).tolist()) for part in (values[kept], new)))  # may raise
            values = values.astype(object)  # not floats: of int64 and uint64
        y = _spliced(values, kept, new)
    if y.dtype.kind in "US" and len(y):  # as wide as these labels, not as those that have left
        y = y.astype(f"{y.dtype.kind}{np.char.str_len(y).max()}")
    return y


def plain_values(X: Any) -> Any:
    """Values in one form for equal rows: one zero, and sparse ones in order."""
    if not sparse.issparse(X):
        return X + 0.0
    X = sparse.csr_matrix(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def plain_labels(y: Any) -> NDArray[Any]:
    """Labels of one type; 1.0 is the class 1."""
    y = np.asarray(y)
    if is_whole(y):
        return np.asarray(y, dtype=bool if y.dtype.kind == "b" else np.int64)
    names = Classes(y, None).names
    return label_array(names)[np.unique(y, return_inverse=True)[1]] if len(y) else y


def is_whole(y: NDArray[Any]) -> bool:
    """Whether labels are whole numbers (floats small enough to be told apart), or truth values."""
    kind = y.dtype.kind
    return kind in "ib" or (kind == "f" and bool(((np.abs(y) < 2.0**53) & (y == np.rint(y))).all()))


def byte_order(content: Floats) -> NDArray[np.intp]:
    """The places of the rows of a matrix, contiguous in memory, in the order of their bytes."""
    row = np.dtype((np.void, content.shape[1] * content.itemsize))
    return np.argsort(content.view(row).ravel(), kind="stable")


def _encoded(rows: Batch) -> Iterator[bytes]:
    """The bytes of each row; 1, 1.0 and True are three labels."""
    X, y, weight = rows
    values: Iterable[bytes] = map(bytes, X)
    if sparse.issparse(X):
        places, spans = X.indices.astype(np.int64), map(slice, X.indptr, X.indptr[1:])
        values = (bytes(places[there]) + bytes(X.data[there]) for there in spans)
    for x, beside in zip(values, zip(y.tolist(), weight.tolist(), strict=True), strict=True):
        yield x + ascii(beside).encode()  # `repr` follows Python's Unicode tables
