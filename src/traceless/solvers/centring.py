"""A free intercept: equations of features that are counted from near their means.

The last feature b is constant, 1. With whole numbers m_j near the means s_j / n, and m_b = 0,

    φ'_j = φ_j - m_j,    S'_jk = S_jk - m_j s_k - s_j m_k + n m_j m_k,    q'_j = q_j - m_j q_b

are integers again. Where the intercept is not penalised both systems have the same coefficients,
and intercepts β' of φ' and β of φ that differ by a known sum:

    φ·w + β = φ'·w + β',     β = β' - Σ_j m_j w_j

S' is what float64 can factor (columns of 1e6 ± 1: a condition of 1.3 where S has 3e13), and
predictions are made from φ', w and β', which have no digits to cancel. S'_jj ≤ S_jj + n/4, and
S' is positive semidefinite: where its diagonal fits into int64, sums modulo 2^64 are exact.
"""

from __future__ import annotations

import numpy as np

from traceless.arithmetic.integers import Integers, narrow, wide

_FARTHEST = 2.0**51  # a code less a shift stays below 2^53 for codes up to 1.5 · 2^52
_FITS = 2**62
_WORD = 2**64 - 1


def whole_means(S: Integers) -> Integers:
    """Whole numbers near the means of the features, from Σφφᵀ whose last feature is 1."""
    m = np.rint(S[:, -1].astype(np.float64) / max(float(S[-1, -1]), 1.0))
    m[np.abs(m) > _FARTHEST] = 0.0
    m[-1] = 0.0
    return m.astype(np.int64)


def shifted(S: Integers, m: Integers) -> Integers:
    """Σφ'φ'ᵀ of the features φ' = φ - m, where the last of φ is 1."""
    s, n, wide_m = wide(S[:, -1]), int(S[-1, -1]), wide(m)
    s_new = s - n * wide_m
    s_new[-1] = n
    diagonal = wide(S.diagonal()) - wide_m * (s + s_new)
    diagonal[-1] = n
    if diagonal.max() < _FITS:
        out = S.copy() if S.dtype == np.int64 else _low_word(S)
        out -= m[:, None] * _low_word(s_new)
        out -= _low_word(s)[:, None] * m
        return out
    wide_S = wide(S)
    return narrow(wide_S - wide_m[:, None] * s_new - s[:, None] * wide_m)


def shifted_right_side(Q: Integers, m: Integers) -> Integers:
    """Σφ'y of the features φ' = φ - m, from Σφy."""
    sizes = (np.abs(part.astype(np.float64)).max(initial=0.0) for part in (Q, m, Q[-1]))
    largest, farthest, level = sizes
    if not largest + farthest * level < _FITS:
        Q = wide(Q)
    return np.asarray(Q - m.astype(Q.dtype)[:, None] * Q[-1])


def _low_word(a: Integers) -> Integers:
    """Python integers modulo 2^64, as int64."""
    return np.asarray((a & _WORD).astype(np.uint64).view(np.int64))
