"""Scores: sums Σ_j c_j z_j of integer codes c and float64 coefficients z, correctly rounded.

`src/core/scores.cpp` adds them, and says how a product of floats, whose error is bounded, decides
nearly all. So each score is the float64 nearest to the exact sum, ties to even, and hence the same
in any batch and on any machine.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from traceless.arithmetic.core import core
from traceless.arithmetic.integers import Floats
from traceless.exceptions import RangeError

__all__ = ["Coefficients"]

_DENSE = np.empty(0, dtype=np.int64)  # of rows that are not sparse: no starts, and no columns
_VECTOR = 4  # columns of coefficients that the core multiplies by at once
_THREADS = os.cpu_count() or 1
_WORTH = 2**23  # products for which another thread is started


class Coefficients:
    """The coefficients of a model, to be multiplied by the codes of rows.

    Parameters
    ----------
    Z : float64 array of shape (J, K), finite
        Kept, and not to be changed.
    shift : float64 array of shape (J,), optional
        Whole numbers that are subtracted from codes first; 0 for a constant feature.
    """

    def __init__(self, Z: Floats, shift: Floats | None = None) -> None:
        self.Z, self.shift = Z, shift

    def __getstate__(self) -> dict[str, Floats | None]:
        """For pickle: what can be made again need not travel."""
        return {"Z": self.Z, "shift": self.shift}

    def times(self, codes: Any) -> Floats:
        """``(codes - shift) Z``, each entry the float64 nearest to the exact sum; zero is +0.0.

        Parameters
        ----------
        codes : integers up to 2^53, as float64 array or CSR matrix of shape (n, J)
            Without the last one where that is 1.
        """
        out = np.empty((codes.shape[0], self.Z.shape[1]))
        if not self.score(codes, 1.0, out):
            raise RangeError("Codes must be whole numbers up to 2**53, and some are not.")
        return out

    def score(self, X: Any, scale: Floats | float, out: Floats) -> bool:
        """Write ``(round(X · scale) - shift) Z``; False if a code is no number up to 2^53."""
        J = X.shape[1]
        if issparse(X):
            where, Z, shift = (X.indptr, X.indices), self._of_sparse, np.zeros(J)
            where, X = tuple(a.astype(np.int64) for a in where), X.data[None]
        else:
            where, Z = (_DENSE, _DENSE), self._of_dense
            shift = np.zeros(J) if self.shift is None else self.shift[:J]
        threads = max(1, min(_THREADS, X.size * out.shape[1] // _WORTH))
        return core.scores(X, np.full(J, scale), shift, *where, Z, out, threads) >= 0

    @cached_property
    def _of_dense(self) -> Floats:
        return _padded(self.Z)

    @cached_property
    def _of_sparse(self) -> Floats:
        """Coefficients, and below them ``-shift Z``, exactly, as a sum of floats."""
        if self.shift is None:
            return self._of_dense
        J, Z, codes = len(self.Z), self.Z, -self.shift[None]
        rest = Coefficients(Z).times(codes)
        while rest.any():
            Z, codes = np.concatenate([Z, rest]), np.append(codes, [[-1.0]], axis=1)
            rest = Coefficients(Z).times(codes)
        return _padded(Z) if len(Z) > J else self._of_dense


def _padded(Z: Floats) -> Floats:
    """The rows as the core takes them."""
    if not np.isfinite(Z).all():
        raise RangeError("Coefficients must be finite numbers, and some are not.")
    return np.pad(Z, ((0, 0), (0, -Z.shape[1] % _VECTOR)))
