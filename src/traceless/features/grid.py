"""Rounding to a grid: x ↦ round(x / step), steps powers of two, exact up to 2^53 steps."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from traceless.arithmetic.integers import LARGEST, Floats, peak
from traceless.exceptions import RangeError, ResolutionWarning

_COARSE = 32  # steps: columns that vary less are reported; no loss of accuracy was seen above
_FEW = 64  # rows that are mostly enough to see it
_BLOCK = 2**16  # elements worked on at a time: they stay in the core's own cache
_TILE = 16  # columns


def grid_steps(resolution: Any, width: int, name: str = "resolution") -> Floats:
    """A resolution as one step per column, checked to be powers of two."""
    steps = np.asarray(resolution, dtype=np.float64)
    if steps.ndim and steps.shape != (width,):
        raise ValueError(
            f"{name} must be one number or one per column ({width}), got shape {steps.shape}."
        )
    mantissa, exponent = np.frexp(steps)
    good = (mantissa == 0.5) & (exponent > -200) & (exponent < 200)
    if not np.all(good):
        bad = float(steps[~good].flat[0]) if steps.ndim else float(steps)
        raise ValueError(
            f"{name} must be a power of two such as 2**-14, so that rounding to it and "
            f"scaling by it are exact; got {bad!r}."
        )
    return np.broadcast_to(steps, (width,)).copy()


def grid_step(resolution: Any, name: str = "resolution") -> float:
    """The resolution of one column, checked to be a power of two."""
    return float(grid_steps(resolution, 1, name)[0])


def per_unit(resolution: Any) -> Any:
    """Steps per unit: one number where one resolution is given for all, which is faster."""
    return 1.0 / np.asarray(resolution, dtype=np.float64)


def dense_rows(X: Any, rows: Any) -> Floats:
    """Some rows as a dense, row-major float64 array; a view where `X` is one already."""
    block = X[rows].toarray() if issparse(X) else X[rows]
    if block.size < _BLOCK or block.strides[0] >= block.strides[1]:
        return np.ascontiguousarray(block, dtype=np.float64)
    out = np.empty(block.shape)  # from columns, as dataframes and files have them
    for j in range(0, block.shape[1], _TILE):  # twice as fast as all at once
        out[:, j : j + _TILE] = block[:, j : j + _TILE]
    return out


def encode_linear(scale: Floats | float, X: Floats, out: Floats) -> None:
    """Write round(X · scale) into `out`."""
    for rows in blocks(*X.shape):
        np.rint(X[rows] * scale, out=out[rows])


@dataclass(frozen=True)
class InputGrid:
    """The grids that input columns are rounded to, and the finest, in whose steps all are counted.

    A column on a coarser grid has codes that are multiples of step_j / step, which is a power of
    two: so products of columns on several grids are those of integers, as on one.

    Attributes
    ----------
    scale : float or ndarray of shape (n_features,)
        Steps per unit, 1 / step_j.
    stretch : float or ndarray of shape (n_features,)
        Steps of the finest grid per step of a column's own, step_j / step.
    step : float
        The finest step.
    """

    scale: Floats | float
    stretch: Floats | float
    step: float

    @classmethod
    def of(cls, resolution: Any, n_features: int) -> InputGrid:
        """The grid of an `input_resolution`: one number, or one per column."""
        if not np.ndim(resolution):  # no table: a file may declare any number of columns
            step = grid_step(resolution, "input_resolution")
            return cls(1.0 / step, 1.0, step)
        steps = grid_steps(resolution, n_features, "input_resolution")
        finest = float(steps.min(initial=2.0**200))
        return cls(1.0 / steps, steps / finest, finest)

    def encode(self, X: Floats, out: Floats) -> None:
        """Write the codes of rows into `out`, in steps of the finest grid."""
        encode_linear(self.scale, X, out)
        if np.ndim(self.stretch):
            out *= self.stretch
        if not peak(out) <= LARGEST:
            refuse(out, self.step, X)


def refuse(codes: Floats, steps: Floats | float, X: Floats, what: str = "Column") -> NoReturn:
    """Raise RangeError that says which code of X is NaN, infinite or beyond 2^53."""
    bad = np.argwhere(~np.isfinite(X))
    if bad.size:
        kind = "NaN" if np.isnan(X[tuple(bad[0])]) else "infinity"
        raise RangeError(
            f"Input X contains {kind} (column {bad[0][1]}); every value must be a finite number. "
            "Drop such rows, or declare the columns: absent values need no fill in a "
            "traceless.features.Table, and Table.suggest(X) proposes one."
        )
    row, column = np.unravel_index(int(np.argmax(np.abs(codes))), codes.shape)
    size = abs(codes[row, column])
    step = np.broadcast_to(steps, codes.shape[1:])[column]
    raise RangeError(
        f"{what} {column} takes the value {size * step:.6g} (or minus that), {size:.6g} steps of "
        f"its grid of {step:g}; more than 2**53 steps cannot be held exactly. Scale that column, "
        "or give it a coarser resolution."
    )


def check_finite(X: Any) -> None:
    """Raise RangeError if rows, dense or sparse, have NaN or infinity."""
    if not np.isfinite(X.data if issparse(X) else X).all():
        rows = dense_rows(X, slice(None))
        refuse(rows, 1.0, rows)


def blocks(n_rows: int, width: int) -> list[slice]:
    """Slices of rows that stay in the cache while they are worked on."""
    size = max(1, _BLOCK // max(width, 1))
    return list(map(slice, range(0, n_rows, size), [*range(size, n_rows, size), n_rows]))


def chunks(rows: Any, size: int) -> list[Any]:
    """Rows, given by a slice or by indices, a part at a time."""
    if isinstance(rows, slice):
        return [slice(i, min(i + size, rows.stop)) for i in range(rows.start, rows.stop, size)]
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def fewest_steps(n_rows: int) -> float:
    """Columns of so many rows that vary by fewer steps than this are reported."""
    return _COARSE if n_rows > 2 else _COARSE / 4  # two rows may be close by chance


def report_coarse(
    values: Floats, steps: Floats, what: str, parameter: str, columns: Any = None, names: Any = None
) -> None:
    """Warn of columns that vary by only a few steps of their grid, and are not multiples of it.

    Where the values are those of some columns only, `columns` are their numbers; `names` are those
    of all columns, where they have some.
    """
    values = np.asarray(values, dtype=np.float64)  # booleans have no differences
    least, few = fewest_steps(len(values)), values[:_FEW]
    if (few.max(axis=0) - few.min(axis=0) >= least * steps).all():
        return  # more rows can only increase it
    spread = np.fmax.reduce(values) - np.fmin.reduce(values)  # NaN is an absent value of a table
    coarse = np.flatnonzero((spread > 0) & (spread < least * steps))
    codes = np.nan_to_num(values[:, coarse]) / steps[coarse]
    coarse = coarse[(codes != np.rint(codes)).any(axis=0)]
    if coarse.size:
        bits = max(int(np.frexp(spread[coarse].min())[1]) - 12, -190)
        named = _named(coarse if columns is None else columns[coarse], names)
        warnings.warn(
            f"{what} {named} varies by less than {least:g} steps of its grid, so that part of it "
            f"is rounded away. Give it other units, or a finer grid: {parameter}=2**{bits} (for "
            "columns, an array with one number for each).",
            ResolutionWarning,
            stacklevel=_stack_level(),
        )


def report_large(columns: NDArray[np.intp], names: Any = None) -> None:
    """Warn of columns that take very many steps of their grid."""
    if columns.size:
        warnings.warn(
            f"Column {_named(columns, names)} is so large, in steps of its grid, that its sums "
            "need more than 64 bits: nothing is lost, but all takes up to twice the time. Count it "
            "from a value near its mean, in larger units (days, not seconds), or give it a coarser "
            "grid: resolution, an array with one number for each column.",
            ResolutionWarning,
            stacklevel=_stack_level(),
        )


def _named(columns: NDArray[np.intp], names: Any) -> str:
    """The numbers of the first few columns, with their names."""
    first = [str(j) if names is None else f"{j} ({str(names[j])!r})" for j in columns[:5]]
    return ", ".join(first) + (", ..." if columns.size > 5 else "")


def _stack_level() -> int:
    """How far up the caller is, so that a warning points at the user's own line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("traceless."):
        level, frame = level + 1, frame.f_back
    return level
