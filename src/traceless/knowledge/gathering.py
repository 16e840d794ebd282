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
from scipy.sparse import csr_matrix, hstack, issparse

from traceless.arithmetic import integers
from traceless.arithmetic.gram import GramSum, is_faster
from traceless.arithmetic.integers import Floats, Sums
from traceless.features.bound_map import BoundMap
from traceless.features.grid import dense_rows, refuse
from traceless.knowledge.fingerprint import Fingerprint
from traceless.knowledge.responses import Classes, Responses
from traceless.knowledge.sample_weights import unit
from traceless.progress import progress

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
        if not classwise:
            every = slice(0, self.X.shape[0])
            (total,) = self._sums([every], len(self.responses.names), self.responses)
            return total
        classes: Any = self.responses
        totals = [*self._sums(classes.members(), 1, None)]
        width = len(self.phi.steps) + 1
        return integers.stack(totals) if totals else np.zeros((0, width, width), dtype=np.int64)

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
        values = dense_rows(self.X, rows)
        J = len(self.phi.steps)
        block = total.block(len(values))
        codes = block[:, :J]
        self.phi.encode(values, codes)
        if responses is None:
            block[:, J : total.width] = 1.0
        else:
            responses.encode(rows, block[:, J : total.width])
        bound = integers.energy(block)
        if not bound <= integers.LARGEST and not integers.peak(codes) <= integers.LARGEST:
            refuse(codes, self.phi.steps, values, "Feature")  # large, infinite or NaN
        self._hash(rows, codes)
        total.add(block, bound, self._heavy(rows))

    def _hash(self, rows: Any, codes: Any) -> None:
        """Add some rows to the fingerprint, if there is one."""
        if self.fingerprint is not None:
            weights = None if self.weights is None else self.weights[rows]
            self.fingerprint.add(self.responses.as_bytes(rows), weights, codes)


def chunks(rows: Any, size: int) -> list[Any]:
    """Rows, given by a slice or by indices, a part at a time."""
    if isinstance(rows, slice):
        return [slice(i, min(i + size, rows.stop)) for i in range(rows.start, rows.stop, size)]
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _chunk_rows(width: int) -> int:
    """Rows coded at a time: about 2 MB, but enough of them for an efficient product."""
    return max(1024, 2**18 // width)
