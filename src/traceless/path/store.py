"""Where the rows of a problem live, and as much of their kernel matrix as memory allows.

Rows have slots. A slot that is freed is used again by the next row, so that a window over a
stream moves nothing. The kernel matrix is kept whole while it fits the budget, else only the
lines of points that are or were lately in the margin, computed when they are asked for.
Nothing written here for rows that are not (yet) part of a solution does any harm to one:
an update that fails simply does not `take` its slots.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceless.exact import Floats
from traceless.path.compiled import compiled, compiled_loosely
from traceless.path.kernels import Kernel

_SPARE = 64  # slots beyond those needed
_LINES = 128  # lines at first, where the whole matrix does not fit
_CHUNK = 1 << 18  # kernel values computed at once

Slots = NDArray[np.intp]


@compiled
def sum_of_rows(gram: Floats, rows: Slots, c: Floats, out: Floats) -> Floats:
    """Out + Σ_i c_i gram[rows_i], four rows at a time, as wide as `out`."""
    k, i, n = len(rows), 0, len(out)
    while i + 4 <= k:
        a, b, d, e = gram[rows[i]], gram[rows[i + 1]], gram[rows[i + 2]], gram[rows[i + 3]]
        p, q, r, s = c[i], c[i + 1], c[i + 2], c[i + 3]
        for j in range(n):
            out[j] += p * a[j] + q * b[j] + r * d[j] + s * e[j]
        i += 4
    while i < k:
        a, p = gram[rows[i]], c[i]
        for j in range(n):
            out[j] += p * a[j]
        i += 1
    return out


@compiled_loosely
def _dot_rows(gram: Floats, rows: Slots, c: Floats, out: Floats) -> None:
    """Out_i = gram[rows_i] · c."""
    for i in range(len(rows)):
        row, t = gram[rows[i]], 0.0
        for j in range(len(c)):
            t += row[j] * c[j]
        out[i] = t


@compiled
def _set_columns(gram: Floats, columns: Slots, values: Floats, n: int) -> None:
    """Gram[:n, columns] = valuesᵀ, row by row: a column is spread over all of memory."""
    for i in range(n):
        row = gram[i]
        for j in range(len(columns)):
            row[columns[j]] = values[j, i]


class Store:
    """Rows, labels and kernel values by slot.

    Parameters
    ----------
    kernel : Kernel
    width : int
        Columns of the rows.
    memory : int
        Bytes that the kernel matrix may take.
    """

    def __init__(self, kernel: Kernel, width: int, memory: int) -> None:
        self.kernel, self.memory = kernel, memory
        self.rows = np.zeros((width, 0))  # transposed: kernels read many rows side by side
        self.y, self.diagonal, self.root = np.zeros(0), np.zeros(0), np.zeros(0)
        self.line = np.zeros(0, dtype=np.int64)
        self.gram = np.zeros((0, 0))
        self.free: list[int] = []
        self.n = 0  # slots that have been used
        self._clock = 0
        self._used = np.zeros(0, dtype=np.int64)  # when each slot's line was asked for

    @property
    def capacity(self) -> int:
        """Slots there is room for."""
        return self.rows.shape[1]

    @property
    def whole(self) -> bool:
        """Whether the kernel matrix is kept whole."""
        return 8 * self.capacity * self.capacity <= self.memory

    def place(self, X: Floats, y: Floats) -> Slots:
        """Write rows into free slots, and their kernel values beside those that are kept."""
        again = self.free[: len(X)]
        n = self.n + len(X) - len(again)
        beyond = range(self.n, n)
        slots = np.array([*again, *beyond], dtype=np.intp)
        if n > self.capacity:
            self._enlarge(n)
        self.n = n
        self.free += beyond  # until they are taken
        self.rows[:, slots] = X.T
        self.y[slots] = y
        self.diagonal[slots] = self.kernel.diagonal(X)
        self.root[slots] = np.sqrt(np.maximum(self.diagonal[slots], 0.0))
        self._write(slots)
        return slots

    def take(self, slots: Slots, dropped: Slots) -> None:
        """Slots are now part of the solution; others no longer are."""
        self.free = sorted((set(self.free) - set(slots.tolist())) | set(dropped.tolist()))
        self.rows[:, dropped] = 0.0  # what is forgotten is not kept
        held = dropped[self.line[dropped] >= 0]
        self.gram[self.line[held]] = 0.0
        self.gram[:, dropped] = 0.0
        if not self.whole:
            self.line[dropped] = -1

    def compact(self, slots: Slots) -> Store:
        """A store of these slots alone, in this order."""
        new = Store(self.kernel, len(self.rows), self.memory)
        new._enlarge(len(slots))
        n = new.n = len(slots)
        new.rows[:, :n] = self.rows[:, slots]
        for name in ("y", "diagonal", "root"):
            getattr(new, name)[:n] = getattr(self, name)[slots]
        if new.whole and self.whole:
            new.gram[:n, :n] = self.gram[np.ix_(slots, slots)]
        elif new.whole:
            new._write(np.arange(n))
        return new

    def need(self, slot: int, keep: Slots) -> None:
        """Have the line of this slot ready; lines of `keep` stay."""
        self._clock += 1
        self._used[slot] = self._clock
        if self.line[slot] >= 0:
            return
        at = self._line_to_use(keep)
        self.gram[at, : self.n] = self.kernel.values(self.rows[:, [slot]].T, self.rows[:, : self.n])
        self.line[slot] = at

    def times(self, points: Slots, support: Slots, c: Floats) -> Floats:
        """Σ_j k(x_i, x_j) c_j for some points i, over the support j."""
        out = np.empty(len(points))
        if self.whole:
            if len(support) <= len(points):
                return sum_of_rows(self.gram, support, c, np.zeros(self.n))[points]
            dense = np.zeros(self.n)
            dense[support] = c
            _dot_rows(self.gram, points, dense, out)
            return out
        B = np.ascontiguousarray(self.rows[:, support])
        step = max(1, _CHUNK // max(1, len(support)))
        for start in range(0, len(points), step):
            part = points[start : start + step]
            out[start : start + step] = self.kernel.values(self.rows[:, part].T, B) @ c
        return out

    # --- memory ----------------------------------------------------------------------------

    def _enlarge(self, n: int) -> None:
        old, capacity = self.capacity, n + max(_SPARE, n // 8)
        if 8 * n * n <= self.memory < 8 * capacity * capacity:
            capacity = n
        whole_before = self.whole
        more = capacity - old
        self.rows = np.pad(self.rows, ((0, 0), (0, more)))
        self.y, self.diagonal, self.root = (
            np.pad(a, (0, more)) for a in (self.y, self.diagonal, self.root)
        )
        self.line = np.pad(self.line, (0, more), constant_values=-1)
        self._used = np.pad(self._used, (0, more))
        if self.whole:
            gram = np.zeros((capacity, capacity))
            gram[:old, :old] = self.gram
            self.gram, self.line = gram, np.arange(capacity)
        elif whole_before:
            self.gram = np.zeros((min(_LINES, self._most_lines()), capacity))
            self.line[:] = -1
        else:
            self.gram = np.pad(self.gram, ((0, 0), (0, more)))

    def _write(self, slots: Slots) -> None:
        """Kernel values of new rows: against all, or against the lines that are kept."""
        X = self.rows[:, slots].T
        if self.whole:
            step = max(1, _CHUNK // max(1, self.n))
            last = len(slots) > 0 and slots[0] + len(slots) == self.n  # no old slot follows
            for start in range(0, len(slots), step):
                part = slots[start : start + step]
                n = int(part[-1]) + 1 if last else self.n  # the rest is symmetric
                values = self.kernel.values(X[start : start + step], self.rows[:, :n])
                self.gram[part, :n] = values
                _set_columns(self.gram, part, values, n)
            return
        self.line[slots] = -1
        kept = np.flatnonzero(self.line >= 0)
        if kept.size:
            values = self.kernel.values(self.rows[:, kept].T, self.rows[:, slots])
            self.gram[np.ix_(self.line[kept], slots)] = values

    def _most_lines(self) -> int:
        return max(2, self.memory // (8 * max(1, self.capacity)))

    def _line_to_use(self, keep: Slots) -> int:
        """A line that is free, new, or longest not asked for."""
        used = np.zeros(len(self.gram), dtype=bool)
        held = np.flatnonzero(self.line >= 0)
        used[self.line[held]] = True
        if not used.all():
            return int(np.argmin(used))
        if len(self.gram) < self._most_lines():
            more = min(len(self.gram), self._most_lines() - len(self.gram))
            self.gram = np.pad(self.gram, ((0, more), (0, 0)))
            return len(used)
        idle = np.setdiff1d(held, keep)
        if not idle.size:
            raise MemoryError(
                f"The margin has {len(keep)} points and their kernel values no longer fit "
                f"memory={self.memory} bytes, {8 * self.capacity} for each: raise `memory`."
            )
        oldest = int(idle[np.argmin(self._used[idle])])
        at, self.line[oldest] = int(self.line[oldest]), -1
        return at
