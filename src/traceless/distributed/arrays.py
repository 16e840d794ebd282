"""NumPy and Zarr files: one array of rows per file, labels in another or in a column."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from traceless.distributed.files import (
    default_batch_rows,
    listed,
    missing_extra,
    one_kind,
    unreadable,
)
from traceless.distributed.local import Sliced
from traceless.knowledge.sums import Rows

Place = Path | int | None  # of labels or weights: a file, or a column of the rows


@dataclass(frozen=True)
class RowRange:
    """Rows from `start` to `stop` of a file."""

    file: Path
    features: tuple[int, ...] | None
    target: Path | int
    weight: Place
    start: int
    stop: int

    def batches(self) -> Iterator[Rows]:
        """All rows, as one batch."""
        rows = self._read(self.file)
        X = rows if self.features is None else rows[:, self.features]
        yield X, self._column(rows, self.target), self._column(rows, self.weight)

    def _column(self, rows: Any, place: Place) -> Any:
        if place is None:
            return None
        return self._read(place) if isinstance(place, Path) else rows[:, place]

    def _read(self, file: Path) -> Any:
        array = opened(file)
        try:
            return array[self.start : self.stop]
        except (OSError, ValueError, RuntimeError) as error:  # a damaged chunk
            raise unreadable(file, error) from error


def scan_arrays(
    files: list[Path], target: Any, weight: Any, columns: Any, batch_rows: int | None
) -> Sliced:
    """See `traceless.distributed.files.scan`."""
    width = _shape(files[0])[1]
    targets = _places(target, files, width, "target")
    weights = _places(weight, files, width, "sample_weight")
    features = _features(columns, [p[0] for p in (targets, weights)], width, files[0])
    slices: list[RowRange] = []
    for file, y, w in zip(files, targets, weights, strict=True):
        n = _check_file(file, width, y, w)
        step = _step(file, batch_rows or default_batch_rows(width))
        part = partial(RowRange, file, features, y, w)
        slices += [part(a, min(a + step, n)) for a in range(0, max(n, 1), step)]
    return Sliced(slices, width if features is None else len(features))


def opened(file: Path) -> Any:
    """The array in a file: mapped, not read."""
    try:
        if file.suffix == ".npy":
            return np.load(file, mmap_mode="r", allow_pickle=False)
        return _open_zarr(file)
    except (OSError, ValueError, EOFError, LookupError, TypeError) as error:
        raise unreadable(file, error) from error


def _open_zarr(file: Path) -> Any:
    try:
        import zarr
    except ImportError as error:
        raise missing_extra("Zarr", error) from error
    return zarr.open_array(file, mode="r")


def _shape(file: Path) -> tuple[int, int]:
    """Rows and columns of a table of numbers."""
    array = opened(file)
    if len(array.shape) != 2:
        raise ValueError(
            f"{file} must hold one row per row of data, two dimensions in all; its shape is "
            f"{tuple(array.shape)}."
        )
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{file} holds {array.dtype}; features must be real numbers.")
    return int(array.shape[0]), int(array.shape[1])


def _places(place: Any, files: list[Path], width: int, what: str) -> list[Any]:
    """Where the labels (or weights) of each file are."""
    if place is None and what == "sample_weight":
        return [None] * len(files)
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


def _features(columns: Any, used: list[Place], width: int, file: Path) -> tuple[int, ...] | None:
    taken = {place for place in used if isinstance(place, int)}
    if columns is None:
        return tuple(sorted(set(range(width)) - taken)) if taken else None
    wrong = [c for c in columns if not isinstance(c, Integral) or not -width <= int(c) < width]
    chosen = [] if wrong else [int(c) % width for c in columns]
    if wrong or not chosen or taken & set(chosen):
        raise ValueError(
            f"columns must be numbers of the {width} columns of {file}, target and weight not "
            f"among them; got {list(columns)!r}."
        )
    return tuple(chosen)


def _check_file(file: Path, width: int, target: Place, weight: Place) -> int:
    """Number of rows, after all that belongs to them was found to fit."""
    n, columns = _shape(file)
    if columns != width:
        raise ValueError(f"{file} has {columns} columns; the first file has {width}.")
    for other in (target, weight):
        if isinstance(other, Path) and (shape := opened(other).shape)[:1] != (n,):
            raise ValueError(
                f"{file} has {n} rows and {other} has shape {tuple(shape)}: one entry is needed "
                "per row."
            )
    return n


def _step(file: Path, rows: int) -> int:
    """Rows of a slice: whole chunks (or shards) of Zarr, so that none is read twice."""
    array = opened(file)
    chunk = (array.shards or array.chunks)[0] if file.suffix == ".zarr" else 1
    return int(chunk * math.ceil(rows / chunk))
