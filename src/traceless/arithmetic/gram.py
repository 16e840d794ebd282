"""Exact sums Σ_n ω_n z_n z_nᵀ of integer rows z_n, by BLAS, whatever the size of the integers.

*When a float64 product is exact.* For weights ω_n ≥ 0, any sum of terms ω_n z_ni z_nj, over any
of the rows, is at most max_k Σ_n ω_n z_nk² (Cauchy-Schwarz). If that is at most 2^52, BLAS may
block, reorder and thread the product as it likes: no sum on the way is rounded.

*Columns that are too large are written as several small ones.* Zeros that end all numbers of a
column in binary are divided out: a raw column of whole numbers on a grid of 2^-14 has 14 of them.
What is still too large is cut into parts of b bits, n rows of which have a norm of 2^26 at most,
so that sums of products of two parts stay below 2^52.
With v = ω z, and part k of column j(k) counting 2^s_k times,

    Σ_n v_ni z_nj = Σ_{k, l: j(k) = i, j(l) = j} 2^(s_k + s_l) Σ_n p_nk q_nl

One product of all parts is enough, and its blocks are added where they belong, by the compiled
core, modulo 2^64 or 2^128; no entry of the sum is larger than the largest on its diagonal.

*Whether BLAS has multiplied as it should* is asked of each product G = P'Q: G r = P'(Q r) modulo a
prime, r looking random (Freivalds). Strassen's products and emulated float64 do not pass.

*Sparse rows* of p numbers that are not zero take p²/2 products each, which the core makes one by
one; BLAS takes J² for it, each in a fraction of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dsyrk

from traceless.arithmetic.core import core
from traceless.arithmetic.integers import (
    Floats,
    Sums,
    extended,
    least,
    mirror,
    of_limbs,
    too_large,
)
from traceless.arithmetic.plain import Limbs

_ROOM_BITS = 52
_ROOM = 2.0**_ROOM_BITS
_ONE_LIMB, _TWO_LIMBS = 2.0**62, 2.0**127 * (1 - 1e-9)
_TILE = 64  # rows that are converted together
_FEWEST = 128  # rows that are worth a product of their own, where more would have to be cut
_SLOWER = 150  # a product by indices takes so many times one of BLAS,
_FIXED = 2.0**24  # and all together the time of so many more

Indices = NDArray[np.int64]


def is_faster(numbers: NDArray[np.intp], width: int) -> bool:
    """Whether rows with so many numbers that are not zero are better multiplied as they are."""
    products = float(np.square(numbers, dtype=np.float64).sum())
    return _SLOWER * products + _FIXED <= len(numbers) * float(width) ** 2


class GramSum:
    """The running sum of ``Z' diag(weights) Z`` over blocks of integer rows.

    Blocks are added in float64, by BLAS, for as long as the sum provably stays below
    2^52, and only then moved to integers: one matrix product per block, nothing else.
    Blocks with larger columns are cut into parts first.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._floats: Floats | None = None  # column-major, the upper triangle
        self._bound, self._seen = 0.0, np.zeros(padded(width))
        self._limbs: Limbs | None = None  # what has been moved: the lower triangle,
        self._size = np.zeros(width)  # and a bound on its diagonal
        self._block: Floats | None = None

    def block(self, n_rows: int) -> Floats:
        """Rows to be filled, `width` columns of them, and added; memory is used again."""
        if self._block is None or len(self._block) < n_rows:
            self._block = np.zeros((n_rows, len(self._seen)))
        return self._block[:n_rows]

    def add(self, Z: Floats, bound: float, weights: Floats | None = None) -> None:
        """Add a filled `block`: entries at most 2^53, their `energy` at most `bound`.

        Weights are whole numbers, below 2^127 as long as they count.
        """
        if weights is None and bound <= _ROOM:
            self._add_floats(Z, None, bound)
            return
        right = _Columns(Z, self.width, None)
        left = right if weights is None else _Columns(Z, self.width, weights)
        if left.own.max(initial=0.0) <= _ROOM:
            self._add_floats(Z, weights, float(left.own.max(initial=0.0)))
            return
        most, n = max(left.largest(), right.largest()), len(Z)
        if _ROOM < most <= _ROOM * n / _FEWEST:
            for some in (slice(n // 2), slice(n // 2, n)):
                self.add(Z[some], np.inf, None if weights is None else weights[some])
            return
        into = self._with_room_for(left.own)
        right.cut()
        if weights is None:
            product = dsyrk(1.0, right.parts.T).T
        else:
            left.cut()
            product = dgemm(1.0, left.parts.T, right.parts.T, trans_b=True).T
        seen = np.zeros(product.shape[1])
        core.fold(left.parts, right.parts, None, seen)
        _check(product, weights is None, seen)
        where = right.columns, right.shifts, left.columns, left.shifts
        core.place(product, *where, weights is None, into)

    def add_sparse(self, Z: Any, weights: Floats | None = None) -> None:
        """Add rows, a CSR matrix of integers in float64, with weights that are whole numbers."""
        squares = Z.data * Z.data
        if weights is not None:
            squares *= np.repeat(weights, np.diff(Z.indptr))
        diagonal: Floats = np.bincount(Z.indices, squares, self.width).astype(np.float64)
        into = self._with_room_for(diagonal)
        starts, columns = Z.indptr.astype(np.int64), Z.indices.astype(np.int64)
        core.sparse_gram(starts, columns, Z.data, weights, into)

    def total(self) -> Sums:
        """The sum, as a full symmetric matrix of integers. Ends the accumulation."""
        self._flush()
        if self._limbs is None:
            return np.zeros((self.width, self.width), dtype=np.int64)
        for limb in self._limbs:
            mirror(limb)
        return least(of_limbs(self._limbs))

    def _add_floats(self, Z: Floats, weights: Floats | None, bound: float) -> None:
        """Add the products of rows in float64, which has room for them."""
        if self._bound + bound > _ROOM and self._floats is not None:
            self._bound = float(self._floats.diagonal().max())  # nearer than bounds of its terms
        if self._bound + bound > _ROOM:
            self._flush()
        self._bound += bound
        core.fold(Z, Z, weights, self._seen)
        more = {} if self._floats is None else {"beta": 1.0, "c": self._floats, "overwrite_c": True}
        if weights is None:
            self._floats = dsyrk(1.0, Z.T, **more)
        else:
            self._floats = dgemm(1.0, Z.T, (Z * weights[:, None]).T, trans_b=True, **more)

    def _flush(self) -> None:
        """Move what is in float64 to integers, in its own memory if there were none."""
        if self._floats is None:
            return
        product, self._floats, self._bound = self._floats.T, None, 0.0
        _check(product, True, self._seen)
        self._seen[:] = 0.0
        J = self.width
        size = product.diagonal()[:J].copy()
        if self._limbs is None:
            settled = product.reshape(-1).view(np.int64)[: J * J].reshape(J, J)
            for i in range(0, J, _TILE):  # no number moves beyond where it was
                settled[i : i + _TILE] = product[i : min(i + _TILE, J), :J]
            self._limbs = settled.view(np.uint64)[None]
            self._size = size
        else:
            core.place(product, *_whole(J), *_whole(J), True, self._with_room_for(size))

    def _with_room_for(self, size: Floats) -> Limbs:
        """The integers, of as many limbs as this diagonal and all before need."""
        self._size = self._size + size * (1 + 1e-9)
        largest = float(self._size.max(initial=0.0))
        if not largest <= _TWO_LIMBS:
            raise too_large()
        n_limbs = 1 if largest <= _ONE_LIMB else 2
        if self._limbs is None:
            self._limbs = np.zeros((n_limbs, self.width, self.width), dtype=np.uint64)
        self._limbs = extended(self._limbs, n_limbs)
        return self._limbs


class _Columns:
    """The columns of weighted rows: how large they are, and what they are cut into."""

    def __init__(self, Z: Floats, width: int, weights: Floats | None) -> None:
        self.Z, self.weights = Z, weights
        found, energies = np.empty((2, width), dtype=np.int64), np.empty((2, width))
        core.survey(Z, width, weights, found, energies)
        self.energy, self.own = energies * (1 + 1e-9)  # Σv² and Σvz
        zeros, self.bits = found
        self.zeros = np.where(self.bits > 0, zeros, 0)

    def largest(self) -> float:
        """The largest sum of squares when zeros at the end are divided out."""
        return float(np.ldexp(self.energy, -2 * self.zeros).max())

    def cut(self) -> None:
        """Divide out zeros of each column, and cut what is still too large into parts."""
        n = len(self.Z)
        if self.weights is None and self.energy.max() <= _ROOM:
            self.columns, self.shifts = _whole(len(self.bits))
            self.parts = self.Z
            return
        b = (_ROOM_BITS - (n - 1).bit_length()) // 2 + 1  # n 4^(b-1) ≤ 2^52
        small = np.ldexp(self.energy, -2 * self.zeros) <= _ROOM
        counts = np.where(small, 1, -((self.zeros - self.bits - 1) // b))
        levels = np.arange(counts.max())
        level, self.columns = np.nonzero(levels[:, None] < counts)
        self.shifts = self.zeros[self.columns] + b * level
        last = (level == counts[self.columns] - 1).astype(np.int64)
        self.parts = np.empty((n, padded(len(level))))
        bits = int(self.bits.max())
        core.cut(self.Z, self.weights, self.columns, self.shifts, last, b, bits, self.parts)


def _whole(width: int) -> tuple[Indices, Indices]:
    """Columns and shifts of columns that are their only part."""
    return np.arange(width), np.zeros(width, dtype=np.int64)


def _check(product: Floats, half: bool, seen: Floats) -> None:
    """Raise if a product, or its lower triangle, is not what was `seen` of it modulo a prime."""
    if not core.agrees(product, half, seen):
        raise ArithmeticError(
            "BLAS has multiplied whole numbers wrongly, although float64 holds every sum of their "
            "products: it does not multiply in float64, or memory is faulty. Use SciPy with "
            "another BLAS. Nothing was changed."
        )


def padded(width: int) -> int:
    """Whole cache lines: BLAS is a tenth faster."""
    return -(-width // 8) * 8
