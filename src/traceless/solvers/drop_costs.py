"""What the penalised loss would rise by if features were left out, for all of them at once.

    L(w) = Σω(y - φ·w)² + Σ_j D_j w_j²,     minimal at w = P c, P = (C + D)⁻¹

Leaving out the features B means w_B = 0. L is quadratic with the matrix P⁻¹, so the least rise
under that condition is

    ΔL = w_Bᵀ (P_BB)⁻¹ w_B,     for one feature w_j² / P_jj

and the other coefficients become w - P_·B (P_BB)⁻¹ w_B. D_j is a function of column j alone, so the
others keep theirs: that is the model of a fit without the column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from traceless.arithmetic.integers import Floats


def drop_costs(P: Floats, W: Floats, blocks: Sequence[NDArray[np.intp]]) -> Floats:
    """ΔL of each of K problems (rows) if a block of features (columns) is left out.

    Parameters
    ----------
    P : ndarray of shape (J, J)
        0 for features that have no coefficient.
    W : ndarray of shape (K, J)
    blocks : sequence of index arrays
    """
    has_one = P.diagonal() > 0
    costs = np.zeros((len(W), len(blocks)))
    if all(len(block) == 1 for block in blocks):
        each = np.concatenate(blocks)[:, None] if len(blocks) else np.zeros((0, 1), dtype=np.intp)
        own, w = P.diagonal()[each[:, 0]], W[:, each[:, 0]]
        return np.divide(w * w, own, out=costs, where=own > 0)
    for k, block in enumerate(blocks):
        used = block[has_one[block]]
        if used.size:
            w = W[:, used].T
            scale = 1.0 / np.sqrt(P.diagonal()[used])[:, None]  # a diagonal of ones
            factor = cho_factor(P[np.ix_(used, used)] * scale * scale.T, lower=True)
            costs[:, k] = (w * scale * cho_solve(factor, w * scale)).sum(axis=0)
    return costs
