"""Training rows that a model keeps, found again by their content or by their ids.

A row is its values, its label and its weight. Ids are whole numbers, handed out in the order
in which rows came and never used twice. Nothing is changed in place: `changed` returns new rows,
and the old ones stay what they were.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.validation import column_or_1d, validate_data

from traceless.arithmetic.integers import Floats, Integers
from traceless.exceptions import NotLearnedError
from traceless.knowledge.responses import Classes, Label, union
from traceless.knowledge.values import check_features
from traceless.knowledge.values import labels as labels_of

_LONG = 1000  # characters of a label
Batch = tuple[Floats, NDArray[Any], Floats]  # values, labels and weights of some rows
Labels = Literal["classes", "numbers", "none"]  # what the labels of rows are


@dataclass(frozen=True, eq=False)
class TrainingRows:
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
    def of(cls, rows: Batch, ids: Integers | None = None, next_id: int = 0) -> TrainingRows:
        """Rows with ids that they had before, or new ones."""
        X, y, weight = rows
        if ids is None:
            ids, next_id = np.arange(len(y), dtype=np.int64), len(y)
        places: dict[bytes, tuple[int, ...]] = {}
        _add_places(places, rows, ids)
        return cls(X, y, weight, ids, next_id, places)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def classes(self) -> NDArray[Any]:
        """The labels of the rows, sorted, each once."""
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
        absent = ordered[~np.isin(ordered, self.ids)]
        if absent.size or (np.diff(ordered) == 0).any():
            what = f"the id {absent[0]} is not held" if absent.size else "an id is given twice"
            raise NotLearnedError(
                f"There is no row to forget for each of the {len(given)} ids: {what}. The ids of "
                "the rows held now are in ids_. Nothing was changed."
            )
        return given

    def changed(self, without: Integers, new: Batch | None) -> TrainingRows:
        """These rows less some (by id), and new ones last."""
        rows, places = self, dict(self.places)
        if len(without):
            gone = np.searchsorted(self.ids, without)
            kept = np.delete(np.arange(len(self)), gone)
            rows = TrainingRows(*self.batch(kept), self.ids[kept], self.next_id, places)
            for key, i in zip(_keys(self.batch(gone)), without.tolist(), strict=True):
                places[key] = tuple(j for j in places[key] if j != i)
                if not places[key]:
                    del places[key]
        if new is None:
            return rows
        X, y, weight = new
        ids = np.arange(self.next_id, self.next_id + len(y), dtype=np.int64)
        labels = y if len(y) else rows.y  # no labels have no type
        if len(rows.y) and len(y):
            if rows.y.dtype.kind != y.dtype.kind:  # raises if types differ
                union(tuple(np.unique(rows.y).tolist()), tuple(np.unique(y).tolist()))
            labels = np.concatenate([rows.y, y])
        _add_places(places, new, ids)
        return TrainingRows(
            np.concatenate([rows.X, X]),
            labels,
            np.concatenate([rows.weight, weight]),
            np.concatenate([rows.ids, ids]),
            self.next_id + len(y),
            places,
        )

    def batch(self, at: Any) -> Batch:
        """Some rows."""
        return self.X[at], self.y[at], self.weight[at]

    def content(self) -> Iterator[bytes]:
        """The bytes of all rows, in an order that does not depend on their ids."""
        classes, label = np.unique(self.y, return_inverse=True)
        yield ascii(classes.tolist()).encode()  # `repr` follows Python's Unicode tables
        content = np.ascontiguousarray(np.column_stack([self.X, label, self.weight]))
        yield repr(content.shape).encode()
        yield content[byte_order(content)].tobytes()


class Target(NamedTuple):
    """The points that a problem should hold, and what makes it one of some machine.

    The solution f of the problem stands for ``scale`` · f + ``offset``.

    Attributes
    ----------
    ids : ids of the points, in ascending order: each row is ``copies`` points
    y : signs, -1.0 and 1.0
    bounds : the largest that each α may be
    levels : the f of each point on the margin
    total : Σyα
    """

    ids: Integers
    y: Floats
    bounds: Floats
    levels: Floats
    total: float = 0.0
    scale: float = 1.0
    offset: float = 0.0
    copies: int = 1


def byte_order(content: Floats) -> NDArray[np.intp]:
    """The places of the rows of a matrix, contiguous in memory, in the order of their bytes."""
    row = np.dtype((np.void, content.shape[1] * content.itemsize))
    return np.argsort(content.view(row).ravel(), kind="stable")


def as_triple(rows: Any, alone: bool = False) -> tuple[Any, Any, Any]:
    """Rows as the user gave them, with None for the weights that are missing.

    `alone`: whether there need be no labels.
    """
    if alone and isinstance(rows, tuple) and len(rows) == 1:
        return rows[0], None, None
    if not isinstance(rows, tuple) or len(rows) not in (2, 3):
        raise ValueError(
            f"Rows must come as a tuple (X, y) or (X, y, sample_weight), got {type(rows).__name__}."
        )
    return rows if len(rows) == 3 else (*rows, None)


def checked_weight(weight: Any, n: int) -> Floats:
    """Weights as an array of our own, one for each row."""
    if weight is None:
        return np.ones(n)
    given = np.full(n, float(weight)) if isinstance(weight, Real) else weight
    out = check_array(given, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if out.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {out.shape}.")
    return np.array(out)


def checked(estimator: Any, rows: Any, reset: bool) -> Batch:
    """Check rows, labels and weights of the user; returns arrays of our own."""
    kind: Labels = estimator._labels
    X, y, weight = as_triple(rows, alone=kind == "none")
    check_features(X)
    y = labels_of(y) if kind == "classes" else y
    options = {"dtype": np.float64, "order": "C", "accept_sparse": "csr"}
    if not reset and estimator._model.kernel.name == "precomputed":
        X = check_array(X, input_name="X", **options)  # as wide as the points held, and new ones
        y = np.zeros(X.shape[0]) if kind == "none" else column_or_1d(y)
    elif kind == "none":
        X = validate_data(estimator, X, reset=reset, **options)
        y = np.zeros(X.shape[0])
    elif reset or not is_plain(estimator, X, y):
        numeric = kind == "numbers"
        X, y = validate_data(estimator, X, y, reset=reset, y_numeric=numeric, **options)
    X = dense(X)
    n = len(X)
    if len(y) != n:
        raise ValueError(f"X has {n} rows, but y has {len(y)}: one is needed per row.")
    weight = checked_weight(weight, n)
    if not (weight >= 0.0).all():
        raise ValueError("sample_weight must not be negative.")
    y = plain_labels(y).copy() if kind == "classes" else np.asarray(y, dtype=np.float64) + 0.0
    return X + 0.0, y, weight  # + 0.0: there is one zero


def dense(X: Any) -> Floats:
    """Rows as an array: kernels read all columns of them."""
    return np.asarray(X.toarray() if issparse(X) else X)


def are_plain(estimator: Any, X: Any, reset: bool = False) -> bool:
    """Whether rows are surely what scikit-learn's checks would return, but for their numbers."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.size > 0
        and (
            reset
            or (
                X.shape[1] == estimator.n_features_in_
                and "feature_names_in_" not in vars(estimator)
            )
        )
    )


def is_plain(estimator: Any, X: Any, *labels: Any) -> bool:
    """Whether rows are what scikit-learn would make of them; its checks take long for one row."""
    plain = are_plain(estimator, X) and X.flags.c_contiguous and np.isfinite(X).all()
    return bool(plain) and all(
        type(y) is np.ndarray and y.shape == (len(X),) and _is_whole(y) for y in labels
    )


def plain_labels(y: Any) -> NDArray[Any]:
    """Labels of one type; 1.0 is the class 1."""
    y = np.asarray(y)
    if _is_whole(y):
        return np.asarray(y, dtype=bool if y.dtype.kind == "b" else np.int64)
    names = Classes(y, None).names
    return label_array(names)[np.unique(y, return_inverse=True)[1]] if len(y) else y


def label_array(names: tuple[Label, ...]) -> NDArray[Any]:
    """Labels as an array.

    NumPy makes text as wide as the longest one, for every row; long labels are shared instead.
    """
    long = any(isinstance(name, str | bytes) and len(name) > _LONG for name in names)
    return np.array(names, dtype=object if long else None)


def _is_whole(y: NDArray[Any]) -> bool:
    """Whether labels are whole numbers (floats small enough to be told apart), or truth values."""
    kind = y.dtype.kind
    return kind in "ib" or (kind == "f" and bool(((np.abs(y) < 2.0**53) & (y == np.rint(y))).all()))


def _add_places(places: dict[bytes, tuple[int, ...]], rows: Batch, ids: Integers) -> None:
    """Add the ids of further rows, by their content."""
    new: defaultdict[bytes, list[int]] = defaultdict(list)
    for key, i in zip(_keys(rows), ids.tolist(), strict=True):
        new[key].append(i)
    for key, found in new.items():
        places[key] = (*places.get(key, ()), *found)


def _keys(rows: Batch) -> Iterator[bytes]:
    """A hash of the content of each row."""
    X, y, weight = rows
    for x, label, w in zip(np.ascontiguousarray(X), y.tolist(), weight.tolist(), strict=True):
        h = blake2b(x.tobytes(), digest_size=16)
        h.update(ascii((label, w)).encode())  # `repr` follows Python's Unicode tables
        yield h.digest()
