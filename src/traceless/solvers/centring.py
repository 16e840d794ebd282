"""A free intercept: equations of features that are counted from near their means.

The last feature b is constant, 1. With whole numbers m_j near the means s_j / n, and m_b = 0,

    φ'_j = φ_j - m_j,    S'_jk = S_jk - m_j s_k - s_j m_k + n m_j m_k,    q'_j = q_j - m_j q_b

are integers again. Where the intercept is not penalised both systems have the same coefficients,
and intercepts β' of φ' and β of φ that differ by a known sum:

    φ·w + β = φ'·w + β',     β = β' - Σ_j m_j w_j

S' is what float64 can factor (columns of 1e6 ± 1: a condition of 1.3 where S has 3e13), and
predictions are made from φ', w and β', which have no digits to cancel. S'_jj ≤ S_jj + n/4, and
S' is positive semidefinite: where its diagonal fits into int64, sums modulo 2^64 are exact. The
others, rows and columns of few features, are made in Python integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from traceless.arithmetic.integers import Integers, as_sums, wide
from traceless.arithmetic.triangle import Triangle
from traceless.arithmetic.words import Sums, Wide, with_rows

_FARTHEST = 2.0**51  # a code less a shift stays below 2^53 for codes up to 1.5 · 2^52
_FITS = 2**62
_WORD = 2**64 - 1
_CACHE = 2**14  # integers that are worked on together


def whole_means(S: Any) -> Integers:
    """Whole numbers near the means of the features, from Σφφᵀ whose last feature is 1."""
    m = np.rint(S[-1, :].astype(np.float64) / max(float(S[-1, -1]), 1.0))
    m[np.abs(m) > _FARTHEST] = 0.0
    m[-1] = 0.0
    return np.asarray(m.astype(np.int64))


def shifted(S: Any, m: Integers) -> Any:
    """Σφ'φ'ᵀ of the features φ' = φ - m, where the last of φ is 1."""
    if isinstance(S, Triangle):
        return S.shifted(m) or shifted(S.whole(), m)
    S = as_sums(S)
    s, n = S[-1], int(S[-1, -1])
    if not isinstance(S, Wide) and _size(S.diagonal()) + 2 * _size(m) * (_size(s) + 1) < _FITS:
        return _moved(S, m, s - n * m, s)  # all products fit
    wide_s, wide_m = wide(s), wide(m)
    new = wide_s - n * wide_m
    new[-1] = n
    diagonal = wide(S.diagonal()) - wide_m * (wide_s + new)
    diagonal[-1] = n
    low = S.words[0].view(np.int64) if isinstance(S, Wide) else S
    out = _moved(low, m, _low_word(new), _low_word(wide_s))
    large = np.flatnonzero(diagonal >= _FITS)
    if not large.size:
        return out
    rows = wide(S[large]) - wide_m[large, None] * new - wide_s[large, None] * wide_m
    return with_rows(out, large, rows)


def _moved(S: Integers, m: Integers, new: Integers, s: Integers) -> Integers:
    """S - m new' - s m', modulo 2^64, a few rows at a time."""
    out = np.empty(S.shape, dtype=np.int64)
    size = max(1, _CACHE // len(S))
    for start in range(0, len(S), size):
        rows = slice(start, start + size)
        np.subtract(S[rows], m[rows, None] * new, out=out[rows])
        out[rows] -= s[rows, None] * m
    return out


def shifted_right_side(Q: Sums, m: Integers) -> Integers:
    """Σφ'y of the features φ' = φ - m, from Σφy."""
    if not isinstance(Q, Wide) and Q.dtype == np.int64 and _size(Q) * (_size(m) + 1) < _FITS:
        return np.asarray(Q - m[:, None] * Q[-1])
    return np.asarray(wide(Q) - wide(m)[:, None] * wide(Q[-1]))


def _size(a: Integers) -> int:
    return max(int(a.max(initial=0)), -int(a.min(initial=0)))


def _low_word(a: Integers) -> Integers:
    """Python integers modulo 2^64, as int64."""
    return np.asarray((a & _WORD).astype(np.uint64).view(np.int64))
