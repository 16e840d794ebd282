"""NumPy files: one array of rows per file, labels in another or in a column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from traceless.sources.batches import Rows
from traceless.sources.files import default_batch_rows, listed, one_kind, reading
from traceless.sources.stamps import Stamp, check_rows, unchanged

Place = Path | int | None  # of labels or weights: a file, or a column of the rows


@dataclass(frozen=True)
class RowRange:
    """Rows from `start` to `stop` of a file; `features` None means all columns."""

    file: Path
    features: tuple[int, ...] | None
    target: Place
    weight: Place
    start: int
    stop: int
    stamps: tuple[Stamp, ...]  # of all files that hold some of it

    @property
    def n_targets(self) -> int:
        """Number of columns of y."""
        if not isinstance(self.target, Path):
            return 1
        shape = opened(self.target).shape
        return 1 if len(shape) == 1 else int(shape[1])

    def batches(self) -> Iterator[Rows]:
        """All rows, as one batch."""
        with unchanged(self.stamps):
            rows = self._read(self.file)
            X = rows if self.features is None else rows[:, self.features]
            yield X, self._column(rows, self.target), self._column(rows, self.weight)

    def _column(self, rows: Any, place: Place) -> Any:
        if isinstance(place, Path):
            return self._read(place)
        return None if place is None else rows[:, place]

    def _read(self, file: Path) -> Any:
        rows = opened(file)[self.start : self.stop]
        check_rows(file, len(rows), self.stop - self.start)
        return rows


def scan_arrays(
    files: list[Path],
    target: Any,
    weight: Any,
    columns: Any,
    batch_rows: int | None,
) -> tuple[list[RowRange], int]:
    """The partitions, and the number of features; see `traceless.scan`."""
    width = _table(files[0]).shape[1]
    targets = _places(target, files, width, "target")
    weights = [None] * len(files)
    if weight is not None:
        weights = _places(weight, files, width, "sample_weight")
    taken = {place for place in (targets[0], weights[0]) if isinstance(place, int)}
    features = _features(columns, taken, width, files[0])
    partitions: list[RowRange] = []
    for file, y, w in zip(files, targets, weights, strict=True):
        stamps = tuple([Stamp.of(place) for place in (file, y, w) if isinstance(place, Path)])
        shape, rows = _table(file).shape, batch_rows or default_batch_rows(width)
        _check_fit(file, shape, width, [y, w])
        for start in range(0, max(shape[0], 1), rows):
            stop = min(start + rows, shape[0])
            partitions.append(RowRange(file, features, y, w, start, stop, stamps))
    return partitions, width if features is None else len(features)


def opened(file: Path) -> Any:
    """The array in a file: mapped, not read."""
    with reading(file, OSError, ValueError, EOFError, LookupError, TypeError):
        return np.load(file, mmap_mode="r", allow_pickle=False)


def _table(file: Path) -> Any:
    """The array in a file, checked to be a table of numbers."""
    array = opened(file)
    if len(array.shape) != 2:
        raise ValueError(
            f"{file} must hold one row per row of data, two dimensions in all; its shape is "
            f"{tuple(array.shape)}."
        )
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{file} holds {array.dtype}; features must be real numbers.")
    return array


def _places(place: Any, files: list[Path], width: int, what: str) -> list[Any]:
    """Where the labels (or weights) of each file are."""
    if isinstance(place, Integral):
        if not -width <= int(place) < width:
            raise ValueError(f"{what}={place}, but {files[0]} has {width} columns only.")
        return [int(place) % width] * len(files)
    if place is None:
        raise TypeError(f"{what} must be a column's number or files; got None.")
    found = listed(place)
    one_kind(found)
    if len(found) != len(files):
        raise ValueError(
            f"There are {len(files)} files of rows and {len(found)} of {what} ({found[0]}, ...): "
            "as many are needed, in the same order."
        )
    return found


def _features(columns: Any, taken: set[int], width: int, file: Path) -> tuple[int, ...] | None:
    """The numbers of the columns that are features; None for all columns."""
    if columns is None:
        return tuple(sorted(set(range(width)) - taken)) if taken else None
    valid = all(isinstance(c, Integral) and -width <= int(c) < width for c in columns)
    chosen = tuple(int(c) % width for c in columns) if valid else ()
    if not chosen or taken & set(chosen):
        raise ValueError(
            f"columns must be numbers of the {width} columns of {file}, target and weight not "
            f"among them; got {list(columns)!r}."
        )
    return chosen


def _check_fit(file: Path, shape: tuple[int, ...], width: int, beside: list[Place]) -> None:
    """Raise unless columns, labels and weights fit together."""
    if shape[1] != width:
        raise ValueError(f"{file} has {shape[1]} columns; the first file has {width}.")
    for other in beside:
        if isinstance(other, Path) and (theirs := opened(other).shape)[:1] != shape[:1]:
            raise ValueError(
                f"{file} has {shape[0]} rows and {other} has shape {tuple(theirs)}: one entry is "
                "needed per row."
            )
