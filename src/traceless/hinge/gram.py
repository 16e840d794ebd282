"""The kernel matrix of the rows of a model, kept as far as it was asked for (``src/core/gram.h``).

Rows have slots, and slots of rows that have gone are used again. A line, the kernel values of one
row with all others, is computed when it is needed; beyond the memory allowed, the one not used for
longest gives way. All problems of a model read the same lines.

The successive versions of a model share one `Gram`, which serves the newest: its *owner*. A version
that is being made writes rows into slots that the owner does not use; when it is published, it
becomes the owner, and the rows that it has dropped are erased. A version that is no longer the
owner makes a `Gram` of its own, should it be changed: nothing but time depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge.core import core
from traceless.hinge.kernels import NOT_POSITIVE, THREADS, Kernel
from traceless.knowledge.training_rows import TrainingRows

Slots = NDArray[np.int64]
_KINDS = {"rbf": 0, "linear": 1, "poly": 2, "sigmoid": 3}  # as in src/core/kernels.h
_EMPTY = 2  # slots for each row from which on most are empty
_FEW = 200  # of which it does not matter


class Gram:
    """Kernel values by slot.

    Parameters
    ----------
    kernel : Kernel
    width : int
        Columns of a row.
    memory : int
        Bytes that lines may take.
    """

    def __init__(self, kernel: Kernel, width: int, memory: int) -> None:
        self.kernel, self.lock = kernel, RLock()
        self.owner: object = None
        self.guest: object = None  # a version that is being made
        self._owned = self._filled = np.zeros(0, dtype=np.int64)
        given = None if kernel.name in _KINDS else self._given
        numbers = float(kernel.gamma), float(kernel.coef0), int(kernel.degree)
        refusal = "" if kernel.definite else NOT_POSITIVE
        kind = _KINDS.get(kernel.name, 0)
        self.lines = core.Gram(kind, *numbers, width, memory, refusal, given)

    def _given(self, row: Floats, others: Floats) -> Floats:
        """Values of a kernel that is not computed in the core."""
        return np.ascontiguousarray(self.kernel.values(row, others)[0])

    def place(self, X: Floats) -> Slots:
        """Write rows into slots that the owner does not use; what else was written is erased."""
        self.guest = None
        self._keep(self._owned)
        free = np.ones(len(self._owned) + len(X), dtype=bool)
        free[self._owned[self._owned < len(free)]] = False
        slots = np.flatnonzero(free)[: len(X)]
        self._filled = np.concatenate([self._owned, slots])
        self.lines.place(np.ascontiguousarray(self.kernel.centred(X)), slots)
        return slots

    def fill(self) -> None:
        """Compute all values now, where that is faster than line by line."""
        self.lines.fill(THREADS)

    def hand_over(self, token: object, slots: Slots) -> None:
        """The version with rows in these slots is now the owner; all other rows are erased."""
        self.owner, self.guest = token, None  # first: from here on the owner before is on its own
        self._owned = slots
        self._keep(slots)

    def _keep(self, slots: Slots) -> None:
        """Leave nothing of the rows in other slots."""
        if slots is self._filled:
            return
        gone = np.zeros(self.lines.n, dtype=bool)
        gone[self._filled[self._filled < len(gone)]] = True  # the others were never written
        gone[slots] = False
        if gone.any():
            self.lines.erase(np.flatnonzero(gone))
        self._filled = slots

    def values(self, a: Slots, b: Slots) -> Floats:
        """The k(x_i, x_j) for all i in a and j in b."""
        out = np.empty((len(a), len(b)))
        self.lines.between(a, b, out)
        return out

    def diagonal(self, at: Slots) -> Floats:
        """The k(x_i, x_i)."""
        out = np.empty(len(at))
        self.lines.diagonal(at, out)
        return out


@dataclass(frozen=True)
class Place:
    """Where the rows with some ids are."""

    gram: Gram
    ids: Integers  # in ascending order
    slots: Slots

    def of(self, ids: Integers) -> Slots:
        """The slots of some of them."""
        if np.array_equal(ids, self.ids):  # mostly a problem has all rows
            return self.slots
        return self.slots[np.searchsorted(self.ids, ids)]


class Held:
    """The kernel matrix of one version of a model: that of the version before, or its own."""

    def __init__(self, place: Place | None = None) -> None:
        self._place = place

    def __deepcopy__(self, _: object) -> Held:
        """A copy of a model makes a kernel matrix of its own when it is changed."""
        return Held()

    @contextmanager
    def opened(self, rows: TrainingRows, kernel: Kernel, memory: int) -> Iterator[Place]:
        """Where the rows of this version are; nobody else works there meanwhile."""
        place = self._place
        if place is not None:
            with place.gram.lock:
                if place.gram.owner is self:
                    place.gram.kernel, place.gram.lines.memory = kernel, memory
                    yield place
                    return
        gram = Gram(kernel, rows.X.shape[1], memory)
        with gram.lock:
            place = self._place = Place(gram, rows.ids, gram.place(rows.X))
            gram.hand_over(self, place.slots)
            yield place

    def take_over(self) -> None:
        """Own the kernel matrix from now on; what it holds of other rows is erased."""
        place = self._place
        if place is None:
            return
        with place.gram.lock:
            if place.gram.guest is self:
                place.gram.hand_over(self, place.slots)
            elif place.gram.owner is not self:  # another version was made of it meanwhile
                self._place = None
            if len(place.slots) * _EMPTY + _FEW < place.gram.lines.n:
                self._place = None  # most slots are empty


@contextmanager
def changing(
    held: Held, before: TrainingRows, after: TrainingRows, kernel: Kernel, memory: int
) -> Iterator[tuple[Place, Place, Held]]:
    """Where rows were before a change, where they are after it, and what the version made holds."""
    with held.opened(before, kernel, memory) as old:
        new = after.ids >= before.next_id
        slots = np.empty(len(after), dtype=np.int64)
        slots[~new] = old.of(after.ids[~new])
        slots[new] = old.gram.place(after.values(np.flatnonzero(new)))
        place = Place(old.gram, after.ids, slots)
        old.gram.guest = made = Held(place)
        yield old, place, made
