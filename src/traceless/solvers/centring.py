"""A free intercept: equations of features that are counted from near their means.

The last feature b is constant, 1. With whole numbers m_j near the means s_j / n, and m_b = 0,

    φ'_j = φ_j - m_j,    S'_jk = S_jk - m_j s_k - s_j m_k + n m_j m_k,    q'_j = q_j - m_j q_b

are integers again. Where the intercept is not penalised both systems have the same coefficients,
and intercepts β' of φ' and β of φ that differ by a known sum:

    φ·w + β = φ'·w + β',     β = β' - Σ_j m_j w_j

S' is what float64 can factor (columns of 1e6 ± 1: a condition of 1.3 where S has 3e13), and
predictions are made from φ', w and β', which have no digits to cancel. S'_jj ≤ S_jj + n/4, and
S' is positive semidefinite: no entry is larger than the largest on the diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from traceless.arithmetic.core import core
from traceless.arithmetic.integers import Integers, Sums, Wide, as_limbs, as_sums, made, wide

_FARTHEST = 2.0**51  # a code less a shift stays below 2^53 for codes up to 1.5 · 2^52
_FITS = 2**62


def whole_means(S: Any) -> Integers:
    """Whole numbers near the means of the features, from Σφφᵀ whose last feature is 1."""
    m = np.rint(S[-1, :].astype(np.float64) / max(float(S[-1, -1]), 1.0))
    m[np.abs(m) > _FARTHEST] = 0.0
    m[-1] = 0.0
    return np.asarray(m.astype(np.int64))


def shifted(S: Any, Q: Sums, m: Integers) -> tuple[Sums, Integers]:
    """Σφ'φ'ᵀ and Σφ'y of the features φ' = φ - m, where the last of φ is 1."""
    limbs = np.ascontiguousarray(as_limbs(as_sums(S)))
    moved = made(S.shape, lambda out: core.centred(limbs, m, out))
    if isinstance(Q, Wide) or Q.dtype != np.int64 or not _size(Q) * (_size(m) + 1) < _FITS:
        Q, m = wide(Q), wide(m)
    return moved, np.asarray(Q - m[:, None] * Q[-1])


def _size(a: Integers) -> int:
    return max(int(a.max(initial=0)), -int(a.min(initial=0)))
