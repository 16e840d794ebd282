"""What stands beside the features of a row: labels as 0 and 1, or targets on a grid."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from traceless.arithmetic.integers import LARGEST, Floats, energy, peak
from traceless.device.tensors import is_on_device, to_array
from traceless.exceptions import MismatchError, RangeError
from traceless.features.grid import grid_step
from traceless.knowledge.fingerprint import Bytes, code_bytes
from traceless.knowledge.values import check_numbers, has_missing, missing

Label = int | str | bool | bytes
Task = Literal["classification", "regression", "multilabel"]
SAID = {
    "classification": "a classification",
    "regression": "a regression",
    "multilabel": "a multi-label classification",
}
_LONG = 1000  # characters of a label
_PART = 2**16  # labels that are looked at together, so that memory does not grow with the rows


class Responses:
    """Integers beside the features of each row: one column per class, target or label."""

    names: tuple[Label, ...]
    counts: tuple[int, ...]
    has_classes = False  # one for each row
    _codes: NDArray[Any]

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, rows: Any, out: Floats) -> None:
        """Write the responses of some rows."""
        out[:] = self._codes[rows]

    def as_bytes(self, rows: Any) -> Bytes:
        """The responses of some rows as bytes, one row each, for a fingerprint."""
        return code_bytes(self._codes[rows])


class Classes(Responses):
    """Responses of a classification: 1 in the column of the row's class."""

    has_classes = True
    tensor: Any = None  # the numbers of the classes, where these lie on a device

    def __init__(self, y: Any, weights: Floats | None) -> None:
        there = type(y) is not np.ndarray and is_on_device(y)
        y = y if there else np.asarray(y)
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.ndim != 1:
            raise ValueError(f"Class labels must be one per row, got shape {tuple(y.shape)}.")
        if there:
            from traceless.device.gathering import numbered

            names, self.tensor, self.counts = numbered(y, weights)
            self.names = names_of(names)
            return
        found = _sorted_labels(y)
        self.names = names_of(found.tolist())
        self.numbers = np.empty(len(y), dtype=np.min_scalar_type(max(len(found) - 1, 0)))
        counts = np.zeros(len(found), dtype=np.int64)
        for start in range(0, len(y), _PART):
            part = np.searchsorted(found, y[start : start + _PART])
            self.numbers[start : start + _PART] = part
            alive = part if weights is None else part[weights[start : start + _PART] > 0]
            counts += np.bincount(alive, minlength=len(counts))
        self.counts = tuple(counts.tolist())

    @cached_property
    def numbers(self) -> NDArray[Any]:
        """The number of each row's class."""
        return np.asarray(to_array(self.tensor))

    def __len__(self) -> int:
        return len(self.numbers if self.tensor is None else self.tensor)

    def encode(self, rows: Any, out: Floats) -> None:  # noqa: D102
        out[:] = 0.0
        out[np.arange(len(out)), self.numbers[rows]] = 1.0

    def as_bytes(self, rows: Any) -> Bytes:  # noqa: D102
        return np.asarray(self._label_hashes[self.numbers[rows]])

    @cached_property
    def _label_hashes(self) -> Bytes:
        hashes = b"".join([sha256(label_bytes(name)).digest() for name in self.names])
        return np.frombuffer(hashes, dtype=np.uint8).reshape(-1, 32)

    def members(self) -> list[NDArray[np.intp]]:
        """The rows of each class, in order."""
        ends = np.cumsum(np.bincount(self.numbers, minlength=len(self.names)))
        order = np.argsort(self.numbers, kind="stable")
        return np.split(order, ends[:-1]) if self.names else []


class Targets(Responses):
    """Responses of a regression: the targets, in steps of their grid."""

    def __init__(self, y: Any, weights: Floats | None, resolution: float) -> None:
        check_numbers(y, "y")
        step, y = grid_step(resolution, "target_resolution"), np.asarray(y, dtype=np.float64)
        self._codes = np.rint((y[:, None] if y.ndim == 1 else y) / step)
        bound = energy(self._codes)  # which is mostly enough
        if not bound <= LARGEST and not peak(self._codes) <= LARGEST:
            raise RangeError(
                f"A target is not finite or is beyond {LARGEST * step:.6g}, which is as "
                f"far as the grid of {step:g} is exact. Scale the targets, or give a coarser "
                "target_resolution."
            )
        n = len(self._codes) if weights is None else int(np.count_nonzero(weights))
        self.names, self.counts = tuple(range(self._codes.shape[1])), (n,)


class Labels(Responses):
    """Responses of a multi-label classification: 1 in the column of each of the row's labels.

    A last column has 1 for every row. With it the sums of the rows without a label are those of
    all rows less those with it, also where the features have no constant one.
    """

    def __init__(self, y: Any, weights: Floats | None) -> None:
        self._codes = np.pad(indicators(y), ((0, 0), (0, 1)), constant_values=1)
        alive = self._codes if weights is None else self._codes[weights > 0]
        self.names = tuple(range(self._codes.shape[1]))
        self.counts = tuple(alive.sum(axis=0, dtype=np.int64).tolist())

    def as_bytes(self, rows: Any) -> Bytes:
        """The labels of some rows, a byte each, without the constant."""
        return np.asarray(self._codes[rows, :-1])


def responses_of(y: Any, weights: Floats | None, task: Task, target_resolution: float) -> Responses:
    """The responses of rows with labels or targets y."""
    if task == "classification":
        return Classes(y, weights)
    y = to_array(y)
    return Labels(y, weights) if task == "multilabel" else Targets(y, weights, target_resolution)


def n_rows(task: Task, counts: tuple[int, ...]) -> int:
    """Number of rows: those of all classes together, or, of labels, the last of the counts."""
    return counts[-1] if task == "multilabel" else sum(counts)


def indicators(y: Any) -> NDArray[np.uint8]:
    """Which labels each row has, as a matrix of 0 and 1, checked to be one."""
    Y = y.toarray() if issparse(y) else np.asarray(y)
    if Y.ndim != 2 or Y.shape[1] < 2:
        raise ValueError(
            "Several labels for each row must come as a matrix of 0 and 1 with a column for each "
            f"label, two at least, got shape {Y.shape}."
        )
    has: NDArray[np.bool_] = np.asarray(Y == 1)
    wrong = ~(has | (Y == 0))
    if wrong.any():
        raise ValueError(
            "Several labels for each row must come as a matrix of 0 and 1, got "
            f"{Y[wrong][0]!r} in it. Use sklearn.preprocessing.MultiLabelBinarizer to make one, or "
            "a regressor for several targets."
        )
    return has.view(np.uint8)


def _sorted_labels(y: NDArray[Any]) -> NDArray[Any]:
    if y.dtype.kind in "mM" and len(y):
        label_of(y[0])  # raises: as integers they would count some unit of time
    if y.dtype == object:
        if has_missing(y):
            raise missing()
        one_of_each = {type(v): v for v in y.tolist()}.values()
        if any(isinstance(v, bool | np.bool_) for v in one_of_each):  # 1 == True
            names_of(one_of_each)
    try:
        if len(y) <= _PART:
            return np.unique(y)
        found = [np.unique(y[start : start + _PART]) for start in range(0, len(y), _PART)]
        return np.unique(np.concatenate(found))
    except TypeError as error:
        raise TypeError(f"Class labels must be of one sortable type: {error}.") from None


def names_of(values: Iterable[Any]) -> tuple[Label, ...]:
    """Labels in Python's own types, checked to be of one type."""
    names = tuple([label_of(value) for value in values])
    check_one_type(names)
    return names


def label_of(value: Any) -> Label:
    """A label in Python's own types; raises for what cannot be one."""
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":
        value = value.item()
    if isinstance(value, Decimal) and value == int(value):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        if abs(value) > LARGEST:
            raise ValueError(
                f"The class label {value!r} came as a float, which does not tell it from its "
                "neighbours beyond 2^53. Give such labels as integers of one type, or as strings."
            )
        return int(value)  # 1.0 and 1 are the same class, whichever came first
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)  # not a subclass, here and below: a label is known by its type
    if isinstance(value, str | bytes):
        if value[-1:] in ("\0", b"\0"):
            raise ValueError(
                f"The class label {value!r} ends with NUL, which NumPy drops: it would be the same "
                "as one without. Rename it."
            )
        return str.__str__(value) if isinstance(value, str) else bytes(value)
    raise ValueError(
        "Unknown label type: class labels must be integers, strings or booleans, got "
        f"{value!r}. For real targets use a regressor."
    )


def label_bytes(label: Label) -> bytes:
    """A label as bytes, with its type: 1, "1" and True differ, wherever they are written."""
    kind = type(label).__name__.encode()
    if isinstance(label, str):
        return kind + b":" + label.encode("utf-8", "surrogatepass")
    return kind + b":" + (label if isinstance(label, bytes) else b"%d" % label)


def framed(*parts: bytes) -> bytes:
    """Parts one behind the other, each with its length, so that they can be told apart."""
    return b"".join([b"%d:%b," % (len(part), part) for part in parts])


def check_one_type(labels: tuple[Label, ...]) -> None:
    """Raise if labels are of several types, whose order and equality would be unclear."""
    kinds = {*map(type, labels)}
    if len(kinds) > 1:
        names = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise MismatchError(f"Class labels must be of one type, got {names}.")


def label_array(labels: tuple[Label, ...], dtype: str | None = None) -> NDArray[Any]:
    """Labels as an array; Python's own where they fit no integer type of NumPy, or are long.

    NumPy makes text as wide as the longest one, for every row; objects are shared.

    Parameters
    ----------
    labels : tuple
    dtype : str, optional
        The name of a type that they should have if it can hold them.
    """
    long = any(isinstance(label, str | bytes) and len(label) > _LONG for label in labels)
    array = np.array(labels, dtype=object if long else None)
    if dtype == "object" or (array.dtype.kind == "f" and labels):
        return np.array(labels, dtype=object)
    if dtype is None or array.dtype.kind not in "iu":
        return array
    with np.errstate(all="ignore"):
        cast = array.astype(dtype)
        held = np.array_equal(cast.astype(array.dtype), array)  # as integers: floats would round
    return cast if held else array


def union(*names: tuple[Label, ...]) -> tuple[Label, ...]:
    """All names in order; raises if they are of several types."""
    labels = tuple(chain(*names))
    check_one_type(labels)  # 1 == True
    return tuple(sorted({*labels}))


def in_both(
    ours: tuple[Any, ...], theirs: tuple[Any, ...]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where names that are in both are in each."""
    places = dict(zip(theirs, range(len(theirs)), strict=True))
    old = [k for k, name in enumerate(ours) if name in places]
    return np.array(old, dtype=np.intp), np.array([places[ours[k]] for k in old], dtype=np.intp)
