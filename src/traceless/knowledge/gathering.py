"""Gathering: from rows to the integers of their knowledge, a chunk at a time.

The N × J features never exist as a whole: a chunk of rows is coded, its responses are
written beside it, and one matrix product adds it to the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack, issparse

from traceless.arithmetic import integers
from traceless.arithmetic.gram import GramSum
from traceless.arithmetic.integers import Floats
from traceless.arithmetic.sparse_gram import SparseGramSum, is_faster
from traceless.arithmetic.triangle import Triangle
from traceless.arithmetic.words import Sums
from traceless.features.bound_map import BoundMap
from traceless.features.grid import dense_rows, refuse
from traceless.knowledge.fingerprint import Fingerprint
from traceless.knowledge.responses import Classes, Responses
from traceless.knowledge.sample_weights import units
from traceless.progress import progress

_ENTRIES = 2**19  # numbers of sparse rows that are multiplied at a time, and more of wide ones
Band = tuple[Any, int]  # rows, as a slice or as indices, and the exponent of their weights' unit


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

    def pooled(self, floats: bool = False) -> tuple[Sums | Triangle, int]:
        """Σ ω [φ; r][φ; r]ᵀ over all rows, in integers, and the exponent of their unit.

        With `floats` it is a triangle in float64, of `padded` width, where all of it fits there.
        """
        unit = units(self.weights)
        n = self.X.shape[0]
        bands = [(slice(0, n), unit)] if isinstance(unit, int) else _bands(np.arange(n), unit)
        sums = self._sums(bands, len(self.responses.names), self.responses, floats)
        exponent = min(0, *[unit for _, unit in bands])
        return _joined(sums, bands, exponent), exponent

    def by_class(self, classes: Classes) -> tuple[Sums, int]:
        """Σ ω [φ; 1][φ; 1]ᵀ over the rows of each class, one after another, and their unit."""
        unit = units(self.weights)
        several = [
            [(members, unit)] if isinstance(unit, int) else _bands(members, unit)
            for members in classes.members()
        ]
        flat = [band for bands in several for band in bands]
        sums = self._sums(flat, 1, None)
        exponent = min([0, *[unit for _, unit in flat]])
        totals = [_joined(islice(sums, len(bands)), bands, exponent) for bands in several]
        width = len(self.phi.steps) + 1
        empty = np.zeros((0, width, width), dtype=np.int64)
        return (integers.stack(totals) if totals else empty), exponent

    def triangles(self, parts: Sequence[Any]) -> Iterator[Floats | None]:
        """Σ [φ; r][φ; r]ᵀ of each of some parts of the rows, unweighted, as upper triangles.

        They are integers in float64, column-major; None if a part's are too large for that.
        """
        width = len(self.phi.steps) + len(self.responses.names)
        total = GramSum(width)
        for part in progress(parts, "learning", True) if self.verbose else parts:
            for rows in chunks(part, _chunk_rows(width)):
                self._add_chunk(total, rows, 0, self.responses)
            yield total.taken()

    def _sums(
        self, bands: Sequence[Band], extra: int, responses: Responses | None, floats: bool = False
    ) -> Iterator[Any]:
        """The sums of one band of rows after another, each in its own unit.

        Beside the features stand the responses, or 1 where rows are of one class.
        """
        width = len(self.phi.steps) + extra
        size = self._sparse_rows or _chunk_rows(width)
        parts = [chunks(rows, size) for rows, _ in bands]
        every = [rows for part in parts for rows in part]
        watched = progress(every, "learning", True) if self.verbose else iter(every)
        for (_, unit), part in zip(bands, parts, strict=True):
            total, sparse = GramSum(width), SparseGramSum(width)
            for rows in islice(watched, len(part)):
                if not self._sparse_rows or not self._add_sparse(sparse, rows, unit, responses):
                    for few in chunks(rows, _chunk_rows(width)):
                        self._add_chunk(total, few, unit, responses)
            if (sums := sparse.total()) is not None:
                total.join(sums)
            triangle = total.taken() if floats and self.weights is None else None
            yield total.total() if triangle is None else Triangle(triangle.T)
        next(watched, None)  # so that it says that all is done

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

    def _add_sparse(
        self, total: SparseGramSum, rows: Any, unit: int, responses: Responses | None
    ) -> bool:
        """Add the products of sparse rows; False where these have to be made dense."""
        codes = self.phi.sparse_codes(self.X, rows)
        if codes is None:
            return False
        n, weights = codes.shape[0], None if self.weights is None else self.weights[rows]
        beside = np.ones((n, total.width - len(self.phi.steps)))
        if responses is not None:
            responses.encode(rows, beside)
        whole = None if weights is None else np.ldexp(weights, -unit)
        if not total.add(hstack([codes, csr_matrix(beside)], "csr"), whole):
            return False
        if self.fingerprint is not None:
            parts = (chunks(some, _chunk_rows(total.width)) for some in (rows, slice(0, n)))
            for few, own in zip(*parts, strict=True):
                heavy = None if weights is None else weights[own]
                self.fingerprint.add(self.responses.as_bytes(few), heavy, codes[own].toarray())
        return True

    def _add_chunk(self, total: GramSum, rows: Any, unit: int, responses: Responses | None) -> None:
        """Code some rows, write their responses beside them, and add their products."""
        values = dense_rows(self.X, rows)
        weights = None if self.weights is None else self.weights[rows]
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
        if self.fingerprint is not None:  # of codes that are integers, and not weighted yet
            self.fingerprint.add(self.responses.as_bytes(rows), weights, codes)
        total.add(block, bound, None if weights is None else np.ldexp(weights, -unit))


def _bands(rows: NDArray[np.intp], unit: NDArray[np.int64]) -> list[Band]:
    """Some rows, cut by the units of their weights."""
    each = unit[rows]
    return [(rows[each == found], found) for found in np.unique(each).tolist()]


def _joined(sums: Iterable[Sums], bands: Sequence[Band], exponent: int) -> Sums:
    """The sums of several bands in one unit."""
    shifts = [unit - exponent for _, unit in bands]
    return reduce(integers.add, map(integers.shift_left, sums, shifts))


def chunks(rows: Any, size: int) -> list[Any]:
    """Rows, given by a slice or by indices, a part at a time."""
    if isinstance(rows, slice):
        return [slice(i, min(i + size, rows.stop)) for i in range(rows.start, rows.stop, size)]
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def _chunk_rows(width: int) -> int:
    """Rows coded at a time: about 2 MB, but enough of them for an efficient product."""
    return max(1024, 2**18 // width)
