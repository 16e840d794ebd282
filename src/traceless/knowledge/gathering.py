"""Gathering: from rows to the integers of their knowledge, a chunk at a time.

The N × J features never exist as a whole: a chunk of rows is coded, its responses are
written beside it, and one matrix product adds it to the sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack, issparse

from traceless.arithmetic import integers
from traceless.arithmetic.core import core
from traceless.arithmetic.gram import GramSum, is_faster
from traceless.arithmetic.integers import Floats, Integers, Sums
from traceless.features.bound_map import BoundMap
from traceless.features.grid import chunks, dense_rows, refuse
from traceless.knowledge.fingerprint import Fingerprint
from traceless.knowledge.responses import Classes, Responses
from traceless.knowledge.sample_weights import unit
from traceless.progress import progress

_ROWS, _PRODUCTS = 8, 2**17  # rows, or numbers of their products, that need no BLAS
_ONE_LIMB = 2.0**62  # products of a row up to here are added to such sums without wrapping
_ENTRIES = 2**19  # numbers of sparse rows that are multiplied at a time, and more of wide ones


@dataclass(frozen=True)
class Gathering:
    """How rows are gathered.

    Parameters
    ----------
    phi : BoundMap
    X : array or CSR matrix of shape (n_samples, n_features)
    responses : Responses
    weights : ndarray of shape (n_samples,), or None where all are 1
        Rounded.
    fingerprint : Fingerprint, optional
        To be given every row.
    verbose : bool
        Show progress on standard error.
    """

    phi: BoundMap
    X: Any
    responses: Responses
    weights: Floats | None
    fingerprint: Fingerprint | None = None
    verbose: bool = False

    def sums(self, classwise: bool) -> Sums:
        """Σ ω [φ; r][φ; r]ᵀ over all rows, or Σ ω [φ; 1][φ; 1]ᵀ over those of each class."""
        J, K = len(self.phi.steps), len(self.responses.names)
        if self.are_few:
            few = np.zeros((K, J + 1, J + 1) if classwise else (J + K, J + K), dtype=np.int64)
            if self.add_to(few, np.arange(K), -self.unit):
                return few
        if not classwise:
            every = slice(0, self.X.shape[0])
            (total,) = self._sums([every], K, self.responses)
            return total
        classes: Any = self.responses
        totals = [*self._sums(classes.members(), 1, None)]
        return integers.stack(totals) if totals else np.zeros((0, J + 1, J + 1), dtype=np.int64)

    @property
    def are_few(self) -> bool:
        """Whether the core adds the rows up sooner than BLAS, whose products are checked."""
        n, width = self.X.shape[0], len(self.phi.steps) + len(self.responses.names)
        return bool(n <= _ROWS or n * width**2 <= _PRODUCTS)

    def add_to(
        self, total: Integers, places: NDArray[np.intp], bits: int, sign: float = 1.0
    ) -> bool:
        """Add few rows to sums of int64 (sign 1), or take them out (-1); False if they do not fit.

        Parameters
        ----------
        total : int64 array
            As `sums` returns them, in units of 2^-bits. Nothing is promised of it after a False.
        places : int array
            Where our responses are among those of the sums.
        """
        n, J, rows = self.X.shape[0], len(self.phi.steps), slice(0, self.X.shape[0])
        Z, group, classes = np.ones((n, total.shape[-1])), np.zeros(n, np.int64), self.responses
        if total.ndim == 3 and isinstance(classes, Classes):
            group = places[classes._class]
        else:
            Z[:, J:], beside = 0.0, np.empty((n, len(places)))
            classes.encode(rows, beside)
            Z[:, J + places] = beside
        bound, heavy = self._encoded(rows, Z), None
        if self.weights is not None or bits or sign < 0:
            heavy = np.ldexp(np.ones(n) if self.weights is None else self.weights, bits) * sign
            bound *= integers.peak(heavy)
        sums = total.reshape(-1, *total.shape[-2:])
        fits = (
            bound <= _ONE_LIMB and -self.unit <= bits and bool(core.add_rows(Z, heavy, group, sums))
        )
        if fits:
            self._hash(rows, Z[:, :J])
        return fits

    @cached_property
    def unit(self) -> int:
        """The exponent of the unit of the weights, and so of the sums."""
        return unit(self.weights)

    def _sums(
        self, several: Sequence[Any], extra: int, responses: Responses | None
    ) -> Iterator[Sums]:
        """The sums of rows, and of other rows, one after another.

        Beside the features stand the responses, or 1 where rows are of one class.
        """
        width = len(self.phi.steps) + extra
        few = _chunk_rows(width)
        parts = [chunks(rows, self._sparse_rows or few) for rows in several]
        every = [rows for part in parts for rows in part]
        watched = progress(every, "learning", True) if self.verbose else iter(every)
        for part in parts:
            total = GramSum(width)
            for rows in islice(watched, len(part)):
                if not self._sparse_rows or not self._add_sparse(total, rows, responses):
                    for some in chunks(rows, few):
                        self._add_chunk(total, some, responses)
            yield total.total()
        next(watched, None)  # so that it says that all is done

    def _heavy(self, rows: Any) -> Floats | None:
        """The weights of some rows in their unit: whole numbers."""
        return None if self.weights is None else np.ldexp(self.weights[rows], -self.unit)

    @cached_property
    def _sparse_rows(self) -> int:
        """How many rows are multiplied at a time as the sparse rows they are; 0 for dense ones."""
        if not issparse(self.X) or self.phi.scale is None or not self.X.nnz:
            return 0
        K = len(self.responses.names)
        width, one = len(self.phi.steps) + K, isinstance(self.responses, Classes)
        numbers = np.diff(self.X.indptr) + self.phi.has_bias + (1 if one else K)
        if not is_faster(numbers, width):
            return 0
        return max(1024, (_ENTRIES + width**2 // 8) // max(int(numbers.mean()), K))

    def _add_sparse(self, total: GramSum, rows: Any, responses: Responses | None) -> bool:
        """Add the products of sparse rows; False where these have to be made dense."""
        codes = self.phi.sparse_codes(self.X, rows)
        if codes is None:
            return False
        beside = np.ones((codes.shape[0], total.width - len(self.phi.steps)))
        if responses is not None:
            responses.encode(rows, beside)
        total.add_sparse(hstack([codes, csr_matrix(beside)], "csr"), self._heavy(rows))
        self._hash(rows, codes)
        return True

    def _add_chunk(self, total: GramSum, rows: Any, responses: Responses | None) -> None:
        """Code some rows, write their responses beside them, and add their products."""
        J = len(self.phi.steps)
        block = total.block(rows.stop - rows.start if isinstance(rows, slice) else len(rows))
        if responses is None:
            block[:, J : total.width] = 1.0
        else:
            responses.encode(rows, block[:, J : total.width])
        bound = self._encoded(rows, block)
        self._hash(rows, block[:, :J])
        total.add(block, bound, self._heavy(rows))

    def _encoded(self, rows: Any, block: Floats) -> float:
        """Write the codes of rows, beside which their responses are; the energy of both."""
        values, codes = dense_rows(self.X, rows), block[:, : len(self.phi.steps)]
        self.phi.encode(values, codes)
        bound = integers.energy(block)
        if not bound <= integers.LARGEST and not integers.peak(codes) <= integers.LARGEST:
            refuse(codes, self.phi.steps, values, "Feature")  # large, infinite or NaN
        return bound

    def _hash(self, rows: Any, codes: Any) -> None:
        """Add some rows to the fingerprint, if there is one."""
        if self.fingerprint is not None:
            weights = None if self.weights is None else self.weights[rows]
            self.fingerprint.add(self.responses.as_bytes(rows), weights, codes)


def _chunk_rows(width: int) -> int:
    """Rows coded at a time: about 2 MB, but enough of them for an efficient product."""
    return max(1024, 2**18 // width)
