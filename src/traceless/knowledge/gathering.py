"""Gathering: from rows to the integers of their knowledge, a chunk at a time.

The N × J features never exist as a whole: a chunk of rows is coded, its responses are
written beside it, and one matrix product adds it to the sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack, issparse

from traceless.arithmetic import integers
from traceless.arithmetic.core import core
from traceless.arithmetic.gram import GramSum, is_faster
from traceless.arithmetic.integers import Floats, Integers, Sums
from traceless.device.tensors import is_on_device, labels_there, sent_rows
from traceless.features.grid import chunks, dense_rows
from traceless.knowledge.fingerprint import Fingerprint
from traceless.knowledge.responses import SAID, Responses, responses_of
from traceless.knowledge.sample_weights import bits_of, rounded_weights
from traceless.progress import progress

if TYPE_CHECKING:
    from traceless.knowledge.sums import Recipe

_ROWS, _PRODUCTS = 8, 2**17  # rows, or numbers of their products, that need no BLAS
_ONE_LIMB = 2.0**62  # products of a row up to here are added to such sums without wrapping
_ENTRIES = 2**19  # numbers of sparse rows that are multiplied at a time, and more of wide ones


class Gathering:
    """Rows that are to be gathered: checked, with what stands beside their features.

    Attributes
    ----------
    phi : BoundMap
    X : array, CSR matrix or rows on a device, of shape (n_samples, n_features)
    responses : Responses
    weights : ndarray of shape (n_samples,), or None where all are 1
        Rounded.
    fingerprint : Fingerprint, optional
        To be given every row.
    verbose : bool
        Show progress on standard error.
    """

    def __init__(self, recipe: Recipe, rows: tuple[Any, Any, Any]) -> None:
        X, y, weights = rows
        X = X if recipe.device is None else sent_rows(X, recipe.device)
        if type(X) is not np.ndarray and recipe.task == "classification":
            y = labels_there(X, y)
        self.phi, self.verbose, n = recipe.phi, recipe.verbose, X.shape[0]
        self.weights = None if weights is None else rounded_weights(weights, n)
        self.responses = responses_of(y, self.weights, recipe.task, recipe.target_resolution)
        if len(self.responses) != n:
            raise ValueError(
                f"X has {n} rows, but y has {len(self.responses)}: one is needed per row."
            )
        if self.phi.n_features != X.shape[1]:
            raise ValueError(
                f"X has {X.shape[1]} columns, the feature map takes {self.phi.n_features}."
            )
        if recipe.classwise and recipe.task != "classification":
            said = SAID[recipe.task].capitalize()
            raise ValueError(f"{said} has no classes to keep apart: leave classwise out.")
        self.fingerprint = Fingerprint(recipe.about_rows) if recipe.fingerprint else None
        self.there = type(X) is not np.ndarray and is_on_device(X)
        if self.there:
            from traceless.device.gathering import host_rows, takes

            self.there = takes(self.phi, X.device)
            X = X if self.there else host_rows(X)
        self.X = X

    def sums(self, classwise: bool) -> Sums:
        """Σ ω [φ; r][φ; r]ᵀ over all rows, or Σ ω [φ; 1][φ; 1]ᵀ over those of each class."""
        J, K = len(self.phi.steps), len(self.responses.names)
        if self.are_few:
            few = np.zeros((K, J + 1, J + 1) if classwise else (J + K, J + K), dtype=np.int64)
            if self.add_to(few, np.arange(K), self.bits):
                return few
        if not classwise:
            (total,) = self._sums([slice(0, self.X.shape[0])], K, self.responses)
            return total
        classes: Any = self.responses
        totals = [*self._sums(classes.members(), 1, None)]
        return integers.stack(totals) if totals else np.zeros((0, J + 1, J + 1), dtype=np.int64)

    @property
    def are_few(self) -> bool:
        """Whether the core adds the rows up sooner than BLAS, whose products are checked."""
        n, width = self.X.shape[0], len(self.phi.steps) + len(self.responses.names)
        return not self.there and (n <= _ROWS or n * width**2 <= _PRODUCTS)

    @cached_property
    def bits(self) -> int:
        """Weights and sums are whole numbers in units of 2^-bits."""
        return 0 if self.weights is None else bits_of(self.weights)

    def add_to(
        self,
        total: Integers,
        places: NDArray[np.intp],
        bits: int,
        sign: float = 1.0,
        rows: Any = slice(None),
        group: NDArray[np.intp] | None = None,
    ) -> bool:
        """Add few rows to sums of int64 (sign 1), or take them out (-1); False if they do not fit.

        Parameters
        ----------
        total : int64 array
            As `sums` returns them, in units of 2^-bits. Nothing is promised of it after a False.
        places : int array
            Where our responses are among those of the sums.
        rows : indices, optional
        group : int array, optional
            To which of several sums each of these rows is added.
        """
        values, responses, heavy = dense_rows(self.X, rows), cast("Any", self.responses), None
        n, J, width = len(values), len(self.phi.steps), total.shape[-1]
        Z = np.zeros((n, width))
        if group is None and total.ndim == 3:
            Z[:, J], group = 1.0, places[responses.numbers]
        else:
            beside = np.empty((n, len(places)))
            responses.encode(rows, beside)
            Z[:, J + places] = beside
        bound = self._encoded(values, Z)
        if self.weights is not None or bits or sign < 0:
            weights = np.ones(n) if self.weights is None else self.weights[rows]
            heavy = np.ldexp(weights, bits) * sign
            bound *= integers.peak(heavy)
        if not bound <= _ONE_LIMB or self.bits > bits:
            return False
        group = np.zeros(n, dtype=np.int64) if group is None else group
        fits = bool(core.add_rows(Z, heavy, group, total.reshape(-1, width, width)))
        if fits and self.fingerprint is not None:
            self._hash(rows, Z[:, :J])
        return fits

    def _sums(
        self, several: Sequence[Any], extra: int, responses: Responses | None
    ) -> Iterator[Sums]:
        """The sums of rows, and of other rows, one after another.

        Beside the features stand the responses, or 1 where rows are of one class.
        """
        if self.there:
            from traceless.device.gathering import sums

            yield from sums(self, several, extra, responses)
            return
        width = len(self.phi.steps) + extra
        few = _chunk_rows(width)
        parts = [chunks(rows, self._sparse_rows or few) for rows in several]
        watched = progress([rows for part in parts for rows in part], "learning", self.verbose)
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
        return None if self.weights is None else np.ldexp(self.weights[rows], self.bits)

    @cached_property
    def _sparse_rows(self) -> int:
        """How many rows are multiplied at a time as the sparse rows they are; 0 for dense ones."""
        if not issparse(self.X) or self.phi.scale is None or not self.X.nnz:
            return 0
        K = len(self.responses.names)
        width, beside = len(self.phi.steps) + K, 1 if self.responses.has_classes else K
        numbers = np.diff(self.X.indptr) + self.phi.has_bias + beside
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
        beside = block[:, J : total.width]
        beside[:] = 1.0
        if responses is not None:
            responses.encode(rows, beside)
        bound = self._encoded(dense_rows(self.X, rows), block)
        self._hash(rows, block[:, :J])
        total.add(block, bound, self._heavy(rows))

    def _encoded(self, values: Floats, block: Floats) -> float:
        """Write the codes of rows, beside which their responses are; the energy of both."""
        codes = block[:, : len(self.phi.steps)]
        self.phi.encode(values, codes)
        bound = integers.energy(block)
        if not bound <= integers.LARGEST:
            self.phi.check(codes, values)
        return bound

    def _hash(self, rows: Any, codes: Any) -> None:
        """Add some rows to the fingerprint, if there is one."""
        if self.fingerprint is not None:
            weights = None if self.weights is None else self.weights[rows]
            self.fingerprint.add(self.responses.as_bytes(rows), weights, codes)


def _chunk_rows(width: int) -> int:
    """Rows coded at a time: about 2 MB, but enough of them for an efficient product."""
    return max(1024, 2**18 // width)
