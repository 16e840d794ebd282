"""Gathering: from rows to the integers of their knowledge, a chunk at a time.

The N × J features never exist as a whole: a chunk of rows is coded, its responses are
written beside it, and one matrix product adds it to the sum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from traceless import exact
from traceless.exact import Floats, Integers
from traceless.exceptions import MismatchError, RangeError
from traceless.features import BoundMap
from traceless.features.grid import grid_steps
from traceless.progress import progress

WEIGHT_BITS = 16  # fractional sample weights are multiples of 2^-16
_NO_ROWS = np.zeros(0, dtype=np.intp)
Label = int | str | bool | bytes
Task = Literal["classification", "regression"]


class Responses(Protocol):
    """What stands beside the features of a row: integers, one column per class or target."""

    names: tuple[Label, ...]
    counts: tuple[int, ...]

    def __len__(self) -> int: ...

    def encode(self, rows: slice, out: Floats) -> None:
        """Write the responses of some rows."""


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

    def encode(self, rows: slice, out: Floats) -> None:
        """Write the one-hot codes of some rows."""
        out[:] = 0.0
        out[np.arange(len(out)), self._where(rows)] = 1.0

    def members(self) -> list[NDArray[np.intp]]:
        """The rows of each class, in order."""
        where = np.concatenate([self._where(rows) for rows in _parts(len(self))] or [_NO_ROWS])
        ends = np.cumsum(np.bincount(where, minlength=len(self.names)))
        return np.split(np.argsort(where, kind="stable"), ends[:-1]) if self.names else []

    def _where(self, rows: slice) -> NDArray[np.intp]:
        return np.searchsorted(self._labels, self._y[rows])

    def _sorted_labels(self) -> NDArray[Any]:
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

    def encode(self, rows: slice, out: Floats) -> None:
        """Write the codes of the targets of some rows."""
        out[:] = self._codes[rows]


def responses_of(y: Any, weights: Floats | None, task: Task, target_resolution: float) -> Responses:
    """The responses of rows with labels or targets y."""
    if task == "classification":
        return Classes(y, weights)
    return Targets(y, weights, target_resolution)


def gather(
    phi: BoundMap, X: Any, responses: Responses, weights: Floats | None, verbose: bool
) -> Integers:
    """Σ ω [φ; r][φ; r]ᵀ over the rows of X, in integers."""
    _check_shapes(phi, X, responses)
    width = len(phi.steps) + len(responses.names)
    chunks = [slice(i, i + _chunk_rows(width)) for i in range(0, X.shape[0], _chunk_rows(width))]
    total = exact.GramSum(width)
    for rows in progress(chunks, "learning", verbose):
        _add_chunk(total, phi, X, rows, weights, responses.encode)
    return total.total()


def gather_by_class(
    phi: BoundMap, X: Any, classes: Classes, weights: Floats | None, verbose: bool
) -> Integers:
    """Σ ω [φ; 1][φ; 1]ᵀ over the rows of each class, one matrix after another."""
    _check_shapes(phi, X, classes)
    width = len(phi.steps) + 1
    size = _chunk_rows(width)
    chunks = [
        (k, rows[i : i + size])
        for k, rows in enumerate(classes.members())
        for i in range(0, len(rows), size)
    ]
    totals: list[Integers] = []
    total = exact.GramSum(width)
    for k, rows in progress(chunks, "learning", verbose):
        if k > len(totals):
            totals.append(total.total())
            total = exact.GramSum(width)
        _add_chunk(total, phi, X, rows, weights, _ones)
    if chunks:
        totals.append(total.total())
    return np.stack(totals) if totals else np.zeros((0, width, width), dtype=np.int64)


def _check_shapes(phi: BoundMap, X: Any, responses: Responses) -> None:
    n = X.shape[0]
    if len(responses) != n:
        raise ValueError(f"X has {n} rows, but y has {len(responses)}: one is needed per row.")
    if phi.n_features != X.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns, the feature map takes {phi.n_features}.")


def _add_chunk(
    total: exact.GramSum,
    phi: BoundMap,
    X: Any,
    rows: Any,
    weights: Floats | None,
    encode: Callable[[Any, Floats], None],
) -> None:
    """Code some rows, write their responses beside them, and add their products."""
    values = dense_rows(X, rows)
    J = len(phi.steps)
    block = total.block(len(values))
    phi.encode(values, block[:, :J])
    encode(rows, block[:, J : total.width])
    bound = exact.energy(block)
    if not bound <= exact.LARGEST:  # large, infinite or NaN
        phi.check(values, block[:, :J])
    total.add(block, bound, None if weights is None else weights[rows])


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
    if isinstance(value, float) and value.is_integer():
        return int(value)  # 1.0 and 1 are the same class, whichever came first
    if isinstance(value, int | str | bytes):
        return value
    raise ValueError(
        "Unknown label type: class labels must be integers, strings or booleans, got "
        f"{value!r}. For real targets use a regressor."
    )


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
    if not exact.peak(codes) <= exact.LARGEST:
        raise RangeError(
            f"A target is not finite or is beyond {exact.LARGEST * step:.6g}, which is as far as "
            f"the grid of {step:g} is exact. Scale the targets, or give a coarser "
            "target_resolution."
        )
    return codes


def whole_weights(sample_weight: Any, n: int) -> tuple[Floats | None, int]:
    """Weights as whole numbers of 2^-bits, and bits: 0 if all are whole already."""
    if sample_weight is None:
        return None, 0
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}.")
    if not np.all((weights >= 0) & (weights < np.inf)):
        raise ValueError("sample_weight must be finite and not negative.")
    bits = 0 if np.array_equal(weights, np.rint(weights)) else WEIGHT_BITS
    whole = np.rint(np.ldexp(weights, bits))
    if (whole > 2.0**32).any() or ((whole == 0) & (weights > 0)).any():
        raise RangeError(
            f"sample_weight must be between {2.0**-WEIGHT_BITS:g} and {2.0 ** (32 - bits):g} where "
            f"it is not zero, got {weights[weights > 0].min():g} to {weights.max():g}. Multiply "
            "all weights, and rho, by the same number."
        )
    return whole, bits
