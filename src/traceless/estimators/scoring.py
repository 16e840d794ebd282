"""Scores of rows: their codes times the coefficients, each the float64 nearest to the exact sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from traceless.arithmetic.integers import Floats
from traceless.arithmetic.products import Coefficients
from traceless.features.feature_map import BoundMap
from traceless.features.grid import dense_rows

_FEWEST, _CACHE = 256, 2**18  # rows coded at a time, and codes: they stay in the cache
_NUMBERS = 2**21  # of columns that are taken as they come: so many at a time
_SPARSE_ROWS = 4096  # the same of sparse rows
_NUMBER, _ROW = 10, 128  # dense columns that take the time of a sparse number, and of its row


def scores(solution: Coefficients, phi: BoundMap, X: Any) -> Floats:
    """The scores of rows that were checked: an array of shape (n_rows, n_scores)."""
    (n, J), scale = X.shape, phi.scale
    out = np.empty((n, solution.Z.shape[1]))
    if scale is None:
        size = min(n, max(_FEWEST, _CACHE // len(phi.steps)))
        memory = np.empty((size, len(phi.steps)))
        for start in range(0, n, size):
            rows = slice(start, start + size)
            solution.score(phi.codes(X, rows, memory), 1.0, out[rows])
        return out
    sparse = issparse(X) and _NUMBER * X.nnz + _ROW * n <= n * len(phi.steps)
    size = _SPARSE_ROWS if sparse else max(_FEWEST, _NUMBERS // J)
    for start in range(0, n, size):
        rows = slice(start, start + size)
        codes = phi.sparse_codes(X, rows) if sparse else None
        if codes is not None:
            solution.score(codes, 1.0, out[rows])
        elif not solution.score(dense_rows(X, rows), scale, out[rows]):
            phi.codes(X, rows)  # says which number is none, or too large
    return out
