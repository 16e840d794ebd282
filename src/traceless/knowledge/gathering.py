"""Gathering: from rows to the integers of their knowledge, a chunk at a time.

The N × J features never exist as a whole: a chunk of rows is coded, its responses are
written beside it, and one matrix product adds it to the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import islice
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from traceless.arithmetic import integers
from traceless.arithmetic.integers import Floats, Integers
from traceless.exceptions import MismatchError, RangeError
from traceless.features import BoundMap
from traceless.features.grid import grid_steps
from traceless.knowledge.fingerprint import Bytes, Fingerprint, code_bytes, label_hashes
from traceless.knowledge.sample_weights import units
from traceless.progress import progress

_NO_ROWS = np.zeros(0, dtype=np.intp)
Label = int | str | bool | bytes
Task = Literal["classification", "regression"]
Group = tuple[Any, int]  # rows, as a slice or as indices, and the exponent of their weights' unit


class Responses(Protocol):
    """What stands beside the features of a row: integers, one column per class or target."""

    names: tuple[Label, ...]
    counts: tuple[int, ...]

    def __len__(self) -> int: ...

    def encode(self, rows: Any, out: Floats) -> None:
        """Write the responses of some rows."""

    def as_bytes(self, rows: Any) -> Bytes:
        """The responses of some rows as bytes, one row each, for a fingerprint."""


class Classes:
    """Responses of a classification: 1 in the column of the row's class."""

    def __init__(self, y: Any, weights: Floats | None) -> None:
        self._y = np.asarray(y)
        if self._y.ndim != 1:
            raise ValueError(f"Class labels must be one per row, got shape {self._y.shape}.")
        self._labels = self._sorted_labels()
        self.names: tuple[Label, ...] = tuple(_label(v) for v in self._labels.tolist())
        check_one_type(self.names)
        counts = np.zeros(len(self.names), dtype=np.int64)
        for rows in _parts(len(self)):
            where = self._where(rows)
            alive = where if weights is None else where[weights[rows] > 0]
            counts += np.bincount(alive, minlength=len(counts))
        self.counts: tuple[int, ...] = tuple(counts.tolist())

    def __len__(self) -> int:
        return len(self._y)

    def encode(self, rows: Any, out: Floats) -> None:
        """Write the one-hot codes of some rows."""
        out[:] = 0.0
        out[np.arange(len(out)), self._where(rows)] = 1.0

    def as_bytes(self, rows: Any) -> Bytes:
        """The labels of some rows, with their type."""
        return self._label_hashes[self._where(rows)]

    @cached_property
    def _label_hashes(self) -> Bytes:
        return label_hashes([label_bytes(name) for name in self.names])

    def members(self) -> list[NDArray[np.intp]]:
        """The rows of each class, in order."""
        where = np.concatenate([self._where(rows) for rows in _parts(len(self))] or [_NO_ROWS])
        ends = np.cumsum(np.bincount(where, minlength=len(self.names)))
        return np.split(np.argsort(where, kind="stable"), ends[:-1]) if self.names else []

    def _where(self, rows: Any) -> NDArray[np.intp]:
        places: NDArray[np.intp] = np.searchsorted(self._labels, self._y[rows])
        return places

    def _sorted_labels(self) -> NDArray[Any]:
        if self._y.dtype == object:
            one_of_each = {type(v): v for v in self._y.tolist()}.values()
            if any(isinstance(v, bool | np.bool_) for v in one_of_each):  # 1 == True
                check_one_type(tuple(map(_label, one_of_each)))
        try:
            found = [np.unique(self._y[rows]) for rows in _parts(len(self))]
            return np.unique(np.concatenate([self._y[:0], *found]))
        except TypeError as error:
            raise TypeError(f"Class labels must be of one sortable type: {error}.") from None


class Targets:
    """Responses of a regression: the targets, in steps of their grid."""

    def __init__(self, y: Any, weights: Floats | None, resolution: float) -> None:
        self._codes = _target_codes(np.asarray(y, dtype=np.float64), resolution)
        n = len(self._codes) if weights is None else int(np.count_nonzero(weights))
        self.names: tuple[Label, ...] = tuple(range(self._codes.shape[1]))
        self.counts: tuple[int, ...] = (n,)

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, rows: Any, out: Floats) -> None:
        """Write the codes of the targets of some rows."""
        out[:] = self._codes[rows]

    def as_bytes(self, rows: Any) -> Bytes:
        """The codes of the targets of some rows."""
        return code_bytes(self._codes[rows])


def responses_of(y: Any, weights: Floats | None, task: Task, target_resolution: float) -> Responses:
    """The responses of rows with labels or targets y."""
    if task == "classification":
        return Classes(y, weights)
    return Targets(y, weights, target_resolution)


@dataclass(frozen=True)
class Gathering:
    """How rows are gathered.

    Parameters
    ----------
    phi : BoundMap
    X : array or CSR matrix of shape (n_samples, n_features)
    responses : Responses
    weights : ndarray of shape (n_samples,), or None where all are 1
        Rounded.
    fingerprint : Fingerprint, optional
        To be given every row.
    verbose : bool
        Show progress on standard error.
    """

    phi: BoundMap
    X: Any
    responses: Responses
    weights: Floats | None
    fingerprint: Fingerprint | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        rows, columns = self.X.shape
        if len(self.responses) != rows:
            raise ValueError(
                f"X has {rows} rows, but y has {len(self.responses)}: one is needed per row."
            )
        if self.phi.n_features != columns:
            raise ValueError(
                f"X has {columns} columns, the feature map takes {self.phi.n_features}."
            )

    def pooled(self) -> tuple[Integers, int]:
        """Σ ω [φ; r][φ; r]ᵀ over all rows, in integers, and the exponent of their unit."""
        unit = units(self.weights)
        n = self.X.shape[0]
        rows = slice(0, n) if isinstance(unit, int) else np.arange(n)
        groups = _groups(rows, unit)
        sums = self._sums(groups, len(self.responses.names), self.responses.encode)
        exponent = min(0, *(unit for _, unit in groups))
        return _joined(sums, groups, exponent), exponent

    def by_class(self, classes: Classes) -> tuple[Integers, int]:
        """Σ ω [φ; 1][φ; 1]ᵀ over the rows of each class, one after another, and their unit."""
        unit = units(self.weights)
        several = [_groups(members, unit) for members in classes.members()]
        flat = [group for groups in several for group in groups]
        sums = self._sums(flat, 1, _ones)
        exponent = min([0, *(unit for _, unit in flat)])
        totals = [_joined(islice(sums, len(groups)), groups, exponent) for groups in several]
        width = len(self.phi.steps) + 1
        empty = np.zeros((0, width, width), dtype=np.int64)
        return (np.stack(totals) if totals else empty), exponent

    def _sums(
        self, groups: Sequence[Group], extra: int, encode: Callable[[Any, Floats], None]
    ) -> Iterator[Integers]:
        """The sums of one group of rows after another, each in its own unit."""
        width = len(self.phi.steps) + extra
        parts = [_chunks(rows, _chunk_rows(width)) for rows, _ in groups]
        chunks = progress([rows for part in parts for rows in part], "learning", self.verbose)
        for (_, unit), part in zip(groups, parts, strict=True):
            total = integers.GramSum(width)
            for rows in islice(chunks, len(part)):
                self._add_chunk(total, rows, unit, encode)
            yield total.total()
        next(chunks, None)  # so that it says that all is done

    def _add_chunk(
        self, total: integers.GramSum, rows: Any, unit: int, encode: Callable[[Any, Floats], None]
    ) -> None:
        """Code some rows, write their responses beside them, and add their products."""
        values = dense_rows(self.X, rows)
        weights = None if self.weights is None else self.weights[rows]
        J = len(self.phi.steps)
        block = total.block(len(values))
        codes = block[:, :J]
        self.phi.encode(values, codes)
        encode(rows, block[:, J : total.width])
        bound = integers.energy(block)
        if not bound <= integers.LARGEST:  # large, infinite or NaN
            self.phi.check(values, codes)
        if self.fingerprint is not None:
            self.fingerprint.add(self.responses.as_bytes(rows), weights, codes)
        total.add(block, bound, None if weights is None else np.ldexp(weights, -unit))


def _groups(rows: Any, unit: int | NDArray[np.int64]) -> list[Group]:
    """Some rows, cut by the units of their weights: the bands."""
    if isinstance(unit, int):
        return [(rows, unit)]
    each = unit[rows]
    return [(rows[each == found], found) for found in np.unique(each).tolist()]


def _joined(sums: Iterable[Integers], groups: Sequence[Group], exponent: int) -> Integers:
    """The sums of several groups in one unit."""
    units = [unit for _, unit in groups]
    return reduce(
        integers.add,
        (integers.shift_left(s, unit - exponent) for s, unit in zip(sums, units, strict=True)),
    )


def _chunks(rows: Any, size: int) -> list[Any]:
    """Rows, given by a slice or by indices, a part at a time."""
    if isinstance(rows, slice):
        return [slice(i, min(i + size, rows.stop)) for i in range(rows.start, rows.stop, size)]
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _ones(rows: Any, out: Floats) -> None:  # noqa: ARG001
    """The response of a class that is alone."""
    out[:] = 1.0


def _parts(n: int) -> list[slice]:
    """Slices of labels, so that memory does not grow with the rows."""
    return [slice(start, start + 2**16) for start in range(0, n, 2**16)]


def _chunk_rows(width: int) -> int:
    """Rows coded at a time: about 8 MB, but enough of them for an efficient product."""
    return max(1024, 2**20 // width)


def dense_rows(X: Any, rows: Any) -> Floats:
    """Some rows as a dense, row-major float64 array; a view where `X` is one already."""
    block = X[rows].toarray() if issparse(X) else X[rows]
    return np.ascontiguousarray(block, dtype=np.float64)


def _label(value: Any) -> Label:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and value.is_integer():
        if abs(value) > integers.LARGEST:
            raise ValueError(
                f"The class label {value!r} came as a float, which does not tell it from its "
                "neighbours beyond 2^53. Give such labels as integers of one type, or as strings."
            )
        return int(value)  # 1.0 and 1 are the same class, whichever came first
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)  # not a subclass, here and below: a label is known by its type
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes(value)
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
    return b"".join(b"%d:%b," % (len(part), part) for part in parts)


def check_one_type(labels: tuple[Label, ...]) -> None:
    """Raise if labels are of several types, whose order and equality would be unclear."""
    kinds = sorted({type(label).__name__ for label in labels})
    if len(kinds) > 1:
        raise MismatchError(f"Class labels must be of one type, got {' and '.join(kinds)}.")


def label_array(labels: tuple[Label, ...]) -> NDArray[Any]:
    """Labels as an array; Python's own where they fit no integer type of NumPy."""
    array = np.array(labels)
    return array if array.dtype.kind != "f" or not labels else np.array(labels, dtype=object)


def union(*names: tuple[Label, ...]) -> tuple[Label, ...]:
    """All names in order; raises if they are of several types."""
    check_one_type(tuple(label for several in names for label in several))  # 1 == True
    if all(other == names[0] for other in names):
        return names[0]
    return tuple(sorted({label for several in names for label in several}))


def _target_codes(y: Floats, resolution: float) -> Floats:
    step = float(grid_steps(resolution, 1, "target_resolution")[0])
    codes = np.rint((y[:, None] if y.ndim == 1 else y) / step)
    if not integers.peak(codes) <= integers.LARGEST:
        raise RangeError(
            f"A target is not finite or is beyond {integers.LARGEST * step:.6g}, which is as "
            f"far as the grid of {step:g} is exact. Scale the targets, or give a coarser "
            "target_resolution."
        )
    return codes
