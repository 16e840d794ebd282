"""Scores of rows: their codes times the coefficients, each the float64 nearest to the exact sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from traceless.arithmetic.integers import Floats
from traceless.arithmetic.products import Coefficients
from traceless.features.feature_map import BoundMap
from traceless.features.grid import dense_rows
from traceless.knowledge.gathering import chunks

_FEWEST, _CACHE = 256, 2**18  # rows scored at a time, and codes: they stay in the cache
_SPARSE_ROWS = 4096  # the same of sparse rows
_NUMBER, _ROW = 10, 128  # dense columns that take the time of a sparse number, and of its row


def scores(solution: Coefficients, phi: BoundMap, X: Any) -> Floats:
    """The scores of rows that were checked: an array of shape (n_rows, n_scores)."""
    n, J = X.shape[0], len(phi.steps)
    out = np.empty((n, solution.Z.shape[1]))
    if issparse(X) and phi.scale is not None and _NUMBER * X.nnz + _ROW * n <= n * J:
        for start in range(0, n, _SPARSE_ROWS):
            rows = slice(start, start + _SPARSE_ROWS)
            codes = phi.sparse_codes(X, rows)
            if codes is None:
                break
            out[rows] = solution.times(codes)
        else:
            return out
    some = min(n, max(_FEWEST, _CACHE // max(out.shape[1], J)))
    memory, certain, start = np.empty((some, J)), np.zeros(n, dtype=bool), 0
    while start < n:  # a quick look, which decides nearly all rows or none
        rows = slice(start, min(start + some, n))
        found = solution.quick(*phi.unchecked(dense_rows(X, rows), memory))
        if found is None:
            break
        out[rows], certain[rows] = found
        start = rows.stop
    left = np.flatnonzero(~certain) if start else slice(0, n)
    for some_left in chunks(left, some):
        out[some_left] = solution.times(phi.codes(X, some_left, memory))
    return out
