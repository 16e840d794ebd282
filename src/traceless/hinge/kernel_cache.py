"""The kernel cache: rows of a problem, and as much of their kernel matrix as memory allows.

Rows have slots. A slot that is freed is used again by the next row, so that a window over a
stream moves nothing. The kernel matrix is kept whole while it fits the budget, else only the
lines of points that are or were lately in the margin set, computed when they are asked for.

A cache is shared by the successive versions of one problem (`traceless.hinge.problem`) and serves
the newest: its *owner*. A version that is being made writes into slots that the owner does not
use; it is the *guest*, until it becomes the owner and the rows that it has dropped are
erased. A version that is neither has to do without: another may have used its slots. Whoever reads
or writes holds the lock.
"""

from __future__ import annotations

from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.hinge.compiled import compiled, compiled_loosely, inner_loosely
from traceless.hinge.kernels import Kernel, check_positive
from traceless.hinge.margin import gather, sum_of_rows

_SPARE = 64  # slots beyond those needed
_LINES = 128  # lines at first, where the whole matrix does not fit
_CHUNK = 1 << 18  # kernel values computed at once
_LARGEST = 1e290  # kernel value: there must be room for sums

Slots = NDArray[np.intp]


def _sum_of_rows(gram: Floats, rows: Slots, c: Floats, out: Floats) -> Floats:
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


sum_of_rows_loosely = inner_loosely(_sum_of_rows)  # for `traceless.hinge.follow`


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


class KernelCache:
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
        self.lock = RLock()
        self.owner: object = None
        self.guest: object = None
        self.rows = np.zeros((width, 0))  # transposed: kernels read many rows side by side
        self.y, self.diagonal, self.root = np.zeros(0), np.zeros(0), np.zeros(0)
        self.line = np.zeros(0, dtype=np.int64)
        self.gram = np.zeros((0, 0))
        self.n = 0  # slots that have been used
        self.capacity = 0  # slots there is room for
        self.whole = True  # whether the kernel matrix is kept whole
        self.packed = np.zeros((0, 0))  # scratch of `traceless.hinge.working_set`
        self._filled = np.zeros(0, dtype=bool)  # slots that hold a row, whoever's
        self._owned = np.zeros(0, dtype=np.intp)  # slots of the owner
        self._clock = 0
        self._used = np.zeros(0, dtype=np.int64)  # when each slot's line was asked for

    def serves(self, token: object) -> bool:
        """Whether the rows of the version with this token are here."""
        return token is self.owner or token is self.guest

    def place(
        self, X: Floats, y: Floats, taken: Slots, guest: object, values: Floats | None = None
    ) -> Slots:
        """Write rows into slots that are not taken, and their kernel values beside those kept.

        The first rows may come with their kernel `values`.
        """
        with np.errstate(over="ignore"):
            diagonal = self.kernel.diagonal(X)
        if not (np.abs(diagonal) <= _LARGEST).all():
            raise OverflowError(
                f"Kernel values of rows as large as {np.abs(X).max():.3g}, or sums of them, are "
                "beyond float64: scale the columns, for example with "
                "sklearn.preprocessing.StandardScaler."
            )
        free = np.ones(self.n, dtype=bool)
        free[taken] = free[self._owned] = False
        self.guest = None  # its slots are used again, whoever it was
        self._erase(np.flatnonzero(free & self._filled[: self.n]))
        again = np.flatnonzero(free)[: len(X)]
        n = self.n + len(X) - len(again)
        slots = np.concatenate([again, np.arange(self.n, n, dtype=np.intp)])
        if n > self.capacity:
            self._enlarge(n)
        self.guest, self.n = guest, n
        self._filled[slots] = True
        run = slice(self.n - len(X), self.n) if not len(again) else slots  # copied faster
        self.rows[:, run] = X.T
        self.y[slots] = y
        self.diagonal[slots] = diagonal
        self.root[slots] = np.sqrt(np.maximum(diagonal, 0.0))
        if values is not None and self.whole and not len(taken):
            self.gram[: len(values), : len(values)] = values
        else:
            self._write(slots, X)
        return slots

    def hand_over(self, token: object, slots: Slots) -> None:
        """The version with rows in these slots is now the owner; all other rows are erased."""
        self.owner, self.guest = token, None  # first: from here on the owner before is on its own
        self._owned = slots
        dropped = self._filled.copy()
        dropped[slots] = False
        self._erase(np.flatnonzero(dropped))

    def _erase(self, gone: Slots) -> None:
        """Leave nothing of the rows in these slots."""
        if not gone.size:
            return
        for values in (self.rows.T, self.y, self.diagonal, self.root):
            values[gone] = 0.0
        held = gone[self.line[gone] >= 0]
        self.gram[self.line[held]] = 0.0
        self.gram[:, gone] = 0.0
        if not self.whole:
            self.line[gone] = -1
        self._filled[gone] = False

    def moved(self, slots: Slots, memory: int) -> KernelCache:
        """A cache of these slots alone, in this order, and with another budget."""
        new = KernelCache(self.kernel, len(self.rows), memory)
        new._enlarge(len(slots))
        n = new.n = len(slots)
        new._filled[:n] = True
        new.rows[:, :n] = self.rows[:, slots]
        for name in ("y", "diagonal", "root"):
            getattr(new, name)[:n] = getattr(self, name)[slots]
        if new.whole and self.whole:
            gather(self.gram, slots, slots, new.gram)
        elif new.whole:
            new._write(np.arange(n), new.rows[:, :n].T)
        return new

    def need(self, slot: int, keep: Slots) -> None:
        """Compute the line of this slot unless it is here; lines of `keep` stay."""
        self._clock += 1
        self._used[slot] = self._clock
        if self.line[slot] >= 0:
            return
        values = self.kernel.values(self.rows[:, [slot]].T, self.rows[:, : self.n])
        self._check(values, np.array([slot]))
        at = self._line_to_use(keep)
        self.gram[at, : self.n] = values
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
        more = capacity - old
        new: dict[str, Any] = {
            name: np.pad(getattr(self, name), (0, more))
            for name in ("y", "diagonal", "root", "_used", "_filled")
        }
        new["rows"] = np.zeros((len(self.rows), capacity))
        new["rows"][:, :old] = self.rows
        new["line"] = np.pad(self.line, (0, more), constant_values=-1)
        new["capacity"], new["whole"] = capacity, 8 * capacity * capacity <= self.memory
        if new["whole"]:
            new["gram"], new["line"] = np.zeros((capacity, capacity)), np.arange(capacity)
            new["gram"][:old, :old] = self.gram
        elif self.whole:
            most = max(2, self.memory // (8 * capacity))
            new["gram"] = np.zeros((min(_LINES, most), capacity))
            new["line"][:] = -1
        else:
            new["gram"] = np.pad(self.gram, ((0, 0), (0, more)))
        self.__dict__.update(new)  # at once: whatever interrupts this, the arrays fit each other

    def _write(self, slots: Slots, X: Floats) -> None:
        """Kernel values of new rows: against all, or against the lines that are kept."""
        if self.whole:
            step = max(1, _CHUNK // max(1, self.n))
            last = len(slots) > 0 and slots[0] + len(slots) == self.n  # no old slot follows
            step = min(step, max(32, len(slots) // 16)) if last else step
            for start in range(0, len(slots), step):
                part = slots[start : start + step]
                n = int(part[-1]) + 1 if last else self.n  # the rest is symmetric
                values = self.kernel.values(X[start : start + step], self.rows[:, :n])
                self._check(values, part)
                self.gram[part, :n] = values
                _set_columns(self.gram, part, values, n)
            return
        self.line[slots] = -1
        kept = np.flatnonzero(self.line >= 0)
        if kept.size and slots.size:
            values = self.kernel.values(self.rows[:, kept].T, self.rows[:, slots])
            self.gram[np.ix_(self.line[kept], slots)] = values

    def _check(self, values: Floats, slots: Slots) -> None:
        """Raise if kernel values of some slots with the first ones are those of no kernel."""
        if not self.kernel.definite:
            n = values.shape[1]
            held = np.flatnonzero(self._filled[:n])
            check_positive(values[:, held], self.diagonal[slots], self.diagonal[held])

    def _line_to_use(self, keep: Slots) -> int:
        """A line that is free, new, or longest not asked for."""
        used = np.zeros(len(self.gram), dtype=bool)
        held = np.flatnonzero(self.line >= 0)
        used[self.line[held]] = True
        if not used.all():
            return int(np.argmin(used))
        most = max(2, self.memory // (8 * self.capacity))
        if len(self.gram) < most:
            more = min(len(self.gram), most - len(self.gram))
            self.gram = np.pad(self.gram, ((0, more), (0, 0)))
            return len(used)
        idle = np.setdiff1d(held, keep)
        if not idle.size:
            raise MemoryError(
                f"The margin set has {len(keep)} points and their kernel values no longer fit "
                f"memory={self.memory} bytes, {8 * self.capacity} for each: raise `memory`."
            )
        oldest = int(idle[np.argmin(self._used[idle])])
        at, self.line[oldest] = int(self.line[oldest]), -1
        return at
