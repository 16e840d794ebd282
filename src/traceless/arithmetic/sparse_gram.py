"""Exact sums Σ_n ω_n z_n z_nᵀ of sparse rows of integers: zeros are not multiplied.

Products are added up in int64. For whole weights ω_n ≥ 0 any sum of terms ω_n z_ni z_nj, over any
of the rows, is at most

    d = max_k Σ_n ω_n z_nk²          (Cauchy-Schwarz)

a sum without cancellation, which float64 gives to 1e-6 at the least. A product ω_n z_ni is no
larger either, since z_ni is whole. So nothing wraps where the d of all blocks of rows add up to
2^62 at most.

*When it is faster.* A row with p numbers that are not zero takes p² products, half of which are
made, by indices; BLAS takes J² for it, each in a 150th of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from traceless.arithmetic.integers import Floats, Integers, mirror

_ROOM = 2.0**62
_SLOWER = 150  # a product by indices takes so many times one of BLAS,
_FIXED = 2.0**24  # and all together the time of so many more
_STRIP = 512  # rows of the result that are made together


def is_faster(numbers: NDArray[np.intp], width: int) -> bool:
    """Whether rows with so many numbers that are not zero are better multiplied as they are."""
    products = float(np.square(numbers, dtype=np.float64).sum())
    return _SLOWER * products + _FIXED <= len(numbers) * float(width) ** 2


class SparseGramSum:
    """The running sum of ``Z' diag(weights) Z`` over blocks of sparse integer rows."""

    def __init__(self, width: int) -> None:
        self.width, self._bound = width, 0.0
        self._total: Integers | None = None

    def total(self) -> Integers | None:
        """The sum, a full symmetric matrix; None where nothing was added."""
        return self._total

    def add(self, Z: Any, weights: Floats | None = None) -> bool:
        """Add rows, a CSR matrix of integers in float64; False, and nothing, where they do not fit.

        Weights are whole numbers.
        """
        columns, width = Z.indices, self.width
        each = None if weights is None else np.repeat(weights, np.diff(Z.indptr))
        squares = Z.data * Z.data if each is None else Z.data * Z.data * each
        bound = self._bound + float(np.bincount(columns, squares).max(initial=0.0)) * (1 + 1e-6)
        if not bound <= _ROOM:
            return False
        self._bound = bound
        used = np.flatnonzero(np.bincount(columns, minlength=width))
        few = 2 * len(used) <= width
        if few:  # rows without most of the columns, whose sums are not touched
            columns, width = np.searchsorted(used, columns), len(used)
        codes = Z.data.astype(np.int64)
        right, left = (
            csr_matrix((values, columns, Z.indptr), shape=(Z.shape[0], width))
            for values in (codes, codes if each is None else codes * each.astype(np.int64))
        )
        product = _symmetric(left.T.tocsr(), right)
        if self._total is None and not few:
            self._total = product
        else:
            if self._total is None:
                self._total = np.zeros((self.width, self.width), dtype=np.int64)
            self._total[np.ix_(used, used) if few else np.s_[:]] += product
        return True


def _symmetric(left: Any, right: Any) -> Integers:
    """``left @ right``, which is symmetric: its lower triangle is made, and mirrored."""
    width = len(left.indptr) - 1
    out = np.zeros((width, width), dtype=np.int64)
    for start in range(0, width, _STRIP):
        stop = min(start + _STRIP, width)
        out[start:stop, :stop] = (left[start:stop] @ right[:, :stop]).toarray()
        own = out[start:stop, start:stop]
        own[:] = np.tril(own)
    return mirror(out)
