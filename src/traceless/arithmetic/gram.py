"""Exact sums Σ_n ω_n z_n z_nᵀ of integer rows z_n, by BLAS, whatever the size of the integers.

*When a float64 product is exact.* For rows w_n of integers and whole weights ω_n ≥ 0, any sum of
terms ω_n w_ni w_nj, over any of the rows, is at most

    d = max_k Σ_n ω_n w_nk²          (Cauchy-Schwarz)

If d ≤ 2^53, BLAS may block, reorder and thread the product as it likes: no sum on the way is
rounded. d is the largest number on the diagonal of the product, a sum without cancellation, which
is computed to 1e-6 at the least even where it is rounded. So the product itself says whether it is
exact.

*Columns that are too large are written as several small ones.* Zeros that end all codes of a
column in binary are divided out: a raw column of whole numbers on a grid of 2^-14 has 14 of them.
What is still too large is cut into limbs of b bits, |limb| ≤ 2^(b-1). With part k of column j(k)
counting 2^s_k times,

    z_nj = Σ_{k: j(k) = j} 2^s_k w_nk
    Σ_n ω_n z_ni z_nj = Σ_{k, l: j(k) = i, j(l) = j} 2^(s_k + s_l) Σ_n ω_n w_nk w_nl

One symmetric product of all parts is enough, and its blocks are added where they belong. Columns
that are small enough stay as they are, beside those that are not.

Weights are cut as well, ω = Σ_l 2^(11 l) ω_l with ω_l < 2^11.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dsyrk

from traceless.arithmetic.integers import LARGEST, Floats, Integers, ShiftedSum, mirror
from traceless.arithmetic.words import Sums, Wide

_WEIGHT_BITS = 11  # weights of 20 bits, which is usual, are cut into two
_LIMB_BITS, _WEIGHTED_LIMB_BITS = 21, 14  # 4096 · 2^40 ≤ 2^52, 4096 · 2^11 · 2^26 ≤ 2^52
_ROWS = 4096, 1024, 256, 128  # multiplied at a time: squares of few rows may be larger
_FLUSH = 256  # moving a product to integers takes as long as multiplying so many rows
_BLOCKS = 64  # columns are divided where less than this many blocks of theirs would fit
_ZEROS, _MOST_ZEROS = 7, 28  # zeros are divided out by sevens, so that few shifts differ
_MOST_RUNS = 12  # of parts, whose products are moved to integers one by one
_CACHE = 2**14  # numbers that are worked on at a time

Indices = NDArray[np.intp]
_Weights = tuple[int, Floats | None]  # a shift, and a limb of the weights; None if all are 1


class GramSum:
    """The running sum of ``Z' diag(weights) Z`` over blocks of integer rows.

    Blocks are added in float64, by BLAS, for as long as the sum provably stays below
    2^53, and only then moved to integers: one matrix product per block, nothing else.
    Blocks with larger columns are written as `_Parts` first.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._parts, self._cuts = _Parts(width), 0
        self._floats: Floats | None = None  # column-major, the upper triangle
        self._bound, self._moved = 0.0, False
        self._integers = ShiftedSum((width, width))
        self._zeros: Indices | None = None  # of the rows that parts were made for,
        self._squares = np.zeros(width)  # and the mean squares of their columns
        self._limb_bits = _LIMB_BITS
        self._rows = 1
        self._block: Floats | None = None

    def block(self, n_rows: int) -> Floats:
        """Rows to be filled, `width` columns of them, and added; memory is used again."""
        if self._block is None or len(self._block) < n_rows:
            self._block = np.zeros((n_rows, padded(self.width)))
        return self._block[:n_rows]

    def add(self, Z: Floats, bound: float, weights: Floats | None = None) -> None:
        """Add a filled `block`: entries at most 2^53, their `energy` at most `bound`.

        Weights are whole numbers up to 2^32.
        """
        self._rows = max(self._rows, min(len(Z), _ROWS[0]))
        if weights is not None:
            if several := list(_weight_limbs(weights)):
                self._add_rows(Z, several)
        elif bound <= LARGEST and self._parts.whole:
            self._make_room(bound)
            if self._floats is None:
                self._floats = dsyrk(1.0, Z.T)
            else:
                self._floats = dsyrk(1.0, Z.T, beta=1.0, c=self._floats, overwrite_c=True)
        else:
            if self._zeros is None:
                self._cut_for(Z[: self._parts.rows], 1.0)
            self._add_rows(Z, [(0, None)])

    def taken(self) -> Floats | None:
        """The sum so far in float64, to go on from zero; None where some had no room there.

        It is an upper triangle, column-major, of `padded` width.
        """
        if self._cuts or self._moved or self._floats is None:
            return None
        taken, self._floats, self._bound = self._floats, None, 0.0
        return taken

    def join(self, sums: Integers) -> None:
        """Add sums of other rows, a full matrix within ±2^62."""
        self._moved = True
        everywhere = slice(0, self.width), slice(0, self.width)
        self._integers.add(everywhere, 0, sums, object())

    def total(self) -> Sums:
        """The sum, as a full symmetric matrix of integers. Ends the accumulation."""
        self._flush()
        total = self._integers.total()
        return total if isinstance(total, Wide) else np.ascontiguousarray(total)

    def _add_rows(self, Z: Floats, weights: Sequence[_Weights]) -> None:
        """Add the products of rows, as many at a time as fit; new parts where they do not.

        Parts made for certain rows fit these rows, and parts made later do too, since zeros only
        become fewer and squares larger: so this ends.
        """
        start = 0
        while start < len(Z):
            rows = slice(start, start + self._parts.rows)
            some = [(shift, None if limb is None else limb[rows]) for shift, limb in weights]
            products = self._products(Z[rows], some)
            if products is None:
                largest = max(1.0 if limb is None else limb.max() for _, limb in some)
                self._cut_for(Z[rows], float(largest))
                continue
            for (shift, limb), product in zip(some, products, strict=True):
                if limb is None:
                    self._make_room(_largest_sum(product))
                    if self._floats is None:
                        self._floats = product
                    else:
                        self._floats += product
                else:
                    self._move(shift, product.T.astype(np.int64))
            start = rows.stop

    def _products(self, Z: Floats, weights: Sequence[_Weights]) -> list[Floats] | None:
        """A product for each limb of the weights; None if the parts do not fit."""
        W = self._parts.of(Z)
        if W is None:
            return None
        found = []
        for _, limb in weights:
            if limb is None:
                found.append(dsyrk(1.0, W.T))
            else:
                found.append(dgemm(1.0, W.T, (W * limb[:, None]).T, trans_b=True))
            if not _largest_sum(found[-1]) <= LARGEST:
                return None
        return found

    def _cut_for(self, Z: Floats, weight: float) -> None:
        """Make parts that fit these rows and all before, with weights up to a largest one."""
        self._flush()
        Z = Z[:, : self.width]
        zeros = _common_zeros(Z)
        self._zeros = zeros if self._zeros is None else np.minimum(self._zeros, zeros)
        squares = np.einsum("ij,ij->j", Z, Z) * (weight / len(Z))
        self._squares = np.maximum(self._squares, squares)
        if weight > 1:
            self._limb_bits = _WEIGHTED_LIMB_BITS
        self._cuts += 1
        self._parts = _Parts.fitting(self._zeros, self._squares, self._limb_bits, self._rows)

    def _make_room(self, bound: float) -> None:
        """Make sure that a product of this bound can be added in float64."""
        if self._bound + bound > LARGEST and self._floats is not None:
            self._bound = _largest_sum(self._floats)  # nearer than the bounds of its parts
        if self._bound + bound > LARGEST:
            self._flush()
        self._bound += bound

    def _flush(self) -> None:
        if self._floats is not None:
            n = self._parts.n
            self._move(0, mirror(self._floats.T[:n, :n].astype(np.int64)))
            self._floats, self._bound = None, 0.0

    def _move(self, shift: int, product: Integers) -> None:
        """Add a product of parts to the integers, 2^shift times, each part in its column."""
        self._moved = True
        for i, (p, rows, from_rows) in enumerate(self._parts.groups):
            for j, (q, columns, from_columns) in enumerate(self._parts.groups):
                part = product[_outer(from_rows, from_columns)]
                self._integers.add(_outer(rows, columns), shift + p + q, part, (self._cuts, i, j))


class _Parts:
    """Columns written as small ones.

    Parameters
    ----------
    width : int
        How many columns there are. At first each is its only part.

    Attributes
    ----------
    whole : bool
        Whether each column is its only part.
    n, width : int
        How many parts there are, and the same padded.
    rows : int
        How many rows are multiplied at a time.
    groups : list of (shift, columns, parts)
        Parts of these columns that count 2^shift times.
    """

    def __init__(self, width: int) -> None:
        self.whole, self.n, self.width, self.rows = True, width, padded(width), _ROWS[0]
        self.groups: list[tuple[int, Any, Any]] = [(0, slice(0, width), slice(0, width))]

    @classmethod
    def fitting(cls, zeros: Indices, squares: Floats, bits: int, most: int) -> _Parts:
        """The parts that cost least, for columns of certain mean squares and at most so many rows.

        Fewer rows at a time leave room for larger squares, but are moved to integers more often.
        """
        blocks = _BLOCKS if most >= _ROWS[1] else 1  # fewer rows are all that there are
        zeros = np.where(squares > _room(most) / blocks, zeros, 0)
        sizes = np.ldexp(squares, -2 * zeros)[:, None] * 4.0 ** (-bits * np.arange(4))
        rows = np.minimum(most, _ROWS)
        limbs = 1 + (sizes[:, :, None] > _room(rows)).sum(axis=1)
        best = int(np.argmin(limbs.sum(axis=0) ** 2 * (1 + _FLUSH / rows)))
        parts = cls(len(zeros))
        parts.rows = int(rows[best])
        if zeros.any() or limbs[:, best].max() > 1:
            parts._cut(zeros, limbs[:, best], bits)
        return parts

    def _cut(self, zeros: Indices, limbs: Indices, bits: int) -> None:
        """Divide out so many zeros of each column, and cut it into so many limbs."""
        levels = [np.flatnonzero(limbs > level) for level in range(limbs.max())]
        columns = np.concatenate(levels)
        shifts = zeros[columns]
        shifts += bits * np.repeat(np.arange(len(levels)), [len(level) for level in levels])
        alike = [(shift, np.flatnonzero(shifts == shift)) for shift in sorted({*shifts.tolist()})]
        runs = [(shift, run) for shift, same in alike for run in _runs(same, columns)]
        alike = runs if len(runs) <= _MOST_RUNS else alike
        self.groups = [(shift, _span(columns[same]), _span(same)) for shift, same in alike]
        self.whole, self.n, self.width = False, len(columns), padded(len(columns))
        divided = np.flatnonzero(zeros)
        self._columns, self._divided = len(zeros), _span(divided)
        self._scale = np.ldexp(1.0, -zeros[divided])
        self._power, self._steps, first = 2.0**bits, [], 0
        for lower, upper in itertools.pairwise(levels):
            place, first = first + np.searchsorted(lower, upper), first + len(lower)
            self._steps.append((_span(place), slice(first, first + len(upper))))
        self._memory = np.zeros((0, self.width))

    def of(self, Z: Floats) -> Floats | None:
        """The parts of some rows; None where a column has fewer zeros."""
        if self.whole:
            return Z
        if len(self._memory) < len(Z):
            self._memory = np.zeros((len(Z), self.width))
        W = self._memory[: len(Z)]
        size = max(1, _CACHE // self.width)
        several = [slice(i, i + size) for i in range(0, len(Z), size)]
        return W if all(self._write(Z[rows], W[rows]) for rows in several) else None

    def _write(self, Z: Floats, W: Floats) -> bool:
        """Write the parts of a few rows, which stay in the cache; whether columns had the zeros."""
        W[:, : self._columns] = Z[:, : self._columns]
        if self._scale.size:
            W[:, self._divided] = low = Z[:, self._divided] * self._scale
            if (low != np.rint(low)).any():
                return False
        for place, next_place in self._steps:
            low = W[:, place]
            high = np.rint(low * (1 / self._power))
            W[:, place] = low - high * self._power
            W[:, next_place] = high
        return True


def _largest_sum(product: Floats) -> float:
    """A bound on all sums that a product is made of: if it is at most 2^53, none is rounded."""
    return float(product.diagonal().max()) * (1 + 1e-6)


def _room(rows: Any) -> Any:
    """The mean square that so many numbers may have: half of what fits, since means differ."""
    return LARGEST / 2 / rows


def padded(width: int) -> int:
    """Whole cache lines: BLAS is a tenth faster."""
    return -(-width // 8) * 8


def _common_zeros(Z: Floats) -> Indices:
    """By how many zeros all numbers of a column end in binary, rounded down to sevens."""
    seen = np.zeros(Z.shape[1], dtype=np.int64)
    size = max(1, _CACHE // max(Z.shape[1], 1))
    for start in range(0, len(Z), size):
        seen |= np.bitwise_or.reduce(Z[start : start + size].astype(np.int64), axis=0)
    seen |= 1 << _MOST_ZEROS
    last = np.frexp((seen & -seen).astype(np.float64))[1] - 1
    return np.asarray(last // _ZEROS * _ZEROS, dtype=np.intp)


def _weight_limbs(weights: Floats) -> Iterator[tuple[int, Floats]]:
    """Shifts and limbs: weights are the sum of ``limb · 2^shift``. Limbs of zeros are left out."""
    shift, power = 0, 2.0**_WEIGHT_BITS
    while weights.any():
        high = np.floor(weights / power)
        low = weights - high * power
        if low.any():
            yield shift, low
        weights, shift = high, shift + _WEIGHT_BITS


def _runs(parts: Indices, columns: Indices) -> list[Indices]:
    """Some parts, cut where they or their columns have gaps: slices, most of which are views."""
    gaps = (np.diff(parts) != 1) | (np.diff(columns[parts]) != 1)
    return np.split(parts, np.flatnonzero(gaps) + 1)


def _span(indices: Indices) -> Any:
    """Indices as a slice where they ascend without gaps: it copies nothing."""
    if indices.size and (np.diff(indices) == 1).all():
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


def _outer(rows: Any, columns: Any) -> Any:
    """The index of all these rows and columns."""
    several = not isinstance(rows, slice) and not isinstance(columns, slice)
    return np.ix_(rows, columns) if several else (rows, columns)
