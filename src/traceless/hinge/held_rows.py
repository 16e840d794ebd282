"""Rows that a model keeps, found again by what they hold or by their ids.

A row is its values, its label and its weight. Ids are whole numbers, handed out in the order
in which rows came and never used twice. What is here is never changed in place: `changed`
gives new rows, and the old ones stay what they were.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.exceptions import NotLearnedError
from traceless.knowledge.responses import Classes, Label, union

_LONG = 1000  # characters of a label
Batch = tuple[Floats, NDArray[Any], Floats]  # values, labels and weights of some rows


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows, labels, weights and ids, in the order of the ids.

    Parameters
    ----------
    X : ndarray of shape (n, width)
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,)
    ids : ndarray of shape (n,)
    next_id : int
    places : dict
        The ids of all rows with some content, oldest first, by a hash of it.
    """

    X: Floats
    y: NDArray[Any]
    weight: Floats
    ids: Integers
    next_id: int
    places: dict[bytes, tuple[int, ...]]

    @classmethod
    def none(cls, width: int) -> HeldRows:
        """No rows, of some width."""
        no_ids = np.zeros(0, dtype=np.int64)
        return cls(np.zeros((0, width)), no_ids, np.zeros(0), no_ids, 0, {})

    @classmethod
    def restored(
        cls, X: Floats, y: NDArray[Any], weight: Floats, ids: Integers, next_id: int
    ) -> HeldRows:
        """Rows that had these ids before."""
        return cls(X, y, weight, ids, next_id, _with_places({}, (X, y, weight), ids))

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def classes(self) -> NDArray[Any]:
        """The labels there are, in order."""
        return np.unique(self.y)

    def find(self, rows: Batch) -> Integers:
        """The ids of rows with this content, the oldest of equal ones; each is found once."""
        found: list[int] = []
        asked: Counter[bytes] = Counter()
        missing: list[int] = []
        for i, key in enumerate(_keys(rows)):
            ids = self.places.get(key, ())
            if asked[key] < len(ids):
                found.append(ids[asked[key]])
                asked[key] += 1
            else:
                missing.append(i)
        if missing:
            raise NotLearnedError(
                f"{len(missing)} of the {len(rows[1])} rows to forget are not held (with this "
                f"label and weight, as often), the first of them row {missing[0]} with label "
                f"{rows[1][missing[0]]!r}. Rows must be given as they were learned, or by their "
                "ids. Nothing was changed."
            )
        return np.array(found, dtype=np.int64)

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
        absent = ordered[~found_among(ordered, self.ids)[0]]
        if absent.size or (np.diff(ordered) == 0).any():
            what = f"the id {absent[0]} is not held" if absent.size else "an id is given twice"
            raise NotLearnedError(
                f"There is no row to forget for each of the {len(given)} ids: {what}. The ids of "
                "the rows held now are in ids_. Nothing was changed."
            )
        return given

    def changed(self, without: Integers, new: Batch | None) -> HeldRows:
        """These rows less some (by id), and new ones last."""
        X, y, weight = new if new is not None else self._no_batch()
        kept = np.ones(len(self), dtype=bool)
        kept[np.searchsorted(self.ids, without)] = False
        old = self.y[kept]
        ids = np.arange(self.next_id, self.next_id + len(y), dtype=np.int64)
        places = self._places_without(np.flatnonzero(~kept)) if len(without) else dict(self.places)
        return HeldRows(
            np.concatenate([self.X[kept], X]),
            _joined(old, y),
            np.concatenate([self.weight[kept], weight]),
            np.concatenate([self.ids[kept], ids]),
            self.next_id + len(y),
            _with_places(places, (X, y, weight), ids),
        )

    def less(self, without: Integers) -> HeldRows:
        """These rows less some (by id), to be read and not to be searched."""
        kept = np.delete(np.arange(len(self)), np.searchsorted(self.ids, without))
        return HeldRows(*self.batch(kept), self.ids[kept], self.next_id, {})

    def batch(self, at: Any) -> Batch:
        """Some rows."""
        return self.X[at], self.y[at], self.weight[at]

    def content(self) -> Iterator[bytes]:
        """All there is to know of the rows, in an order that does not depend on their ids."""
        classes, label = np.unique(self.y, return_inverse=True)
        yield ascii(classes.tolist()).encode()  # `repr` follows Python's Unicode tables
        content = np.ascontiguousarray(np.column_stack([self.X, label, self.weight]))
        width = content.shape[1] * content.itemsize
        order = np.argsort(content.view(np.dtype((np.void, width))).ravel(), kind="stable")
        yield repr(content.shape).encode()
        yield content[order].tobytes()

    def _no_batch(self) -> Batch:
        return np.zeros((0, self.X.shape[1])), self.y[:0], np.zeros(0)

    def _places_without(self, at: NDArray[np.intp]) -> dict[bytes, tuple[int, ...]]:
        places = dict(self.places)
        for key, i in zip(_keys(self.batch(at)), self.ids[at].tolist(), strict=True):
            left = tuple(j for j in places[key] if j != i)
            if left:
                places[key] = left
            else:
                del places[key]
        return places


def found_among(ids: Integers, others: Integers) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Which of some ids are among others, that are in order, and where those are."""
    at = np.searchsorted(others, ids)
    found = at < len(others)
    found[found] = others[at[found]] == ids[found]
    return found, at[found]


def plain_labels(y: Any) -> NDArray[Any]:
    """Labels of one type; 1.0 is the class 1."""
    y = np.asarray(y)
    if y.dtype.kind == "f" and is_whole(y):
        return np.asarray(y, dtype=np.int64)
    if y.dtype.kind in "ib":
        return np.asarray(y, dtype=np.int64 if y.dtype.kind == "i" else bool)
    names = Classes(y, None).names
    return numbered(names, np.unique(y, return_inverse=True)[1]) if len(y) else y


def numbered(names: tuple[Label, ...], codes: Integers) -> NDArray[Any]:
    """Labels from their numbers.

    NumPy makes text as wide as the longest one, for every row; long labels are shared instead.
    """
    long = any(isinstance(name, str | bytes) and len(name) > _LONG for name in names)
    return np.array(names, dtype=object if long else None)[codes]


def is_whole(y: Floats) -> bool:
    """Whether labels are whole numbers, and small enough to be told apart."""
    return bool(((np.abs(y) < 2.0**53) & (y == np.rint(y))).all())


def _joined(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """Labels of both; raises if they are not of one type."""
    if not len(old) or not len(new):
        return new if len(new) else old
    if old.dtype.kind != new.dtype.kind:
        union(tuple(np.unique(old).tolist()), tuple(np.unique(new).tolist()))
    return np.concatenate([old, new])


def _with_places(
    places: dict[bytes, tuple[int, ...]], rows: Batch, ids: Integers
) -> dict[bytes, tuple[int, ...]]:
    """The places, and those of further rows."""
    new: defaultdict[bytes, list[int]] = defaultdict(list)
    for key, i in zip(_keys(rows), ids.tolist(), strict=True):
        new[key].append(i)
    return places | {key: (*places.get(key, ()), *found) for key, found in new.items()}


def _keys(rows: Batch) -> Iterator[bytes]:
    """A hash of the content of each row."""
    X, y, weight = rows
    for x, label, w in zip(np.ascontiguousarray(X), y.tolist(), weight.tolist(), strict=True):
        h = blake2b(x.tobytes(), digest_size=16)
        h.update(ascii((label, w)).encode())  # `repr` follows Python's Unicode tables
        yield h.digest()
