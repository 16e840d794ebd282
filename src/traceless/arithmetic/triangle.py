"""A matrix of integers that is the triangle that BLAS has made, in float64.

No number in Σφφᵀ is larger than the largest on its diagonal: while that is below 2^53, none is
rounded. Features are chosen, and counted from whole numbers m near their means
(`traceless.solvers.centring`), a few rows at a time, when these are asked for:

    S'_jk = S_jk - m_j t_k - s_j m_k,     s = S_b·,     t = s - n m
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import LARGEST, Floats, Integers, mirror


@dataclass(frozen=True, eq=False)
class Triangle:
    """The features `used` (by default all) of Σφφᵀ, whose upper triangle is never read.

    Attributes
    ----------
    lower : ndarray of shape (J, J), row-major
    used : ndarray of int, in order, or None
    moved : (m, s, t), arrays of shape (J,), or None
    """

    lower: Floats
    used: NDArray[np.intp] | None = None
    moved: tuple[Floats, Floats, Floats] | None = None

    def __len__(self) -> int:
        return len(self.lower) if self.used is None else len(self.used)

    def __getitem__(self, key: tuple[Any, Any]) -> Floats:
        """Some rows, or the last one, up to their own column."""
        rows, columns = key if self.used is None else (self.used[key[0]], self.used[key[1]])
        if self.used is None:
            found = self.lower[rows, columns]
        else:
            found = self.lower[rows].take(columns, axis=-1)
        if self.moved is not None:
            m, s, t = self.moved
            found = found - np.multiply.outer(m[rows], t[columns])
            found -= np.multiply.outer(s[rows], m[columns])
        return np.asarray(found)

    def diagonal(self) -> Integers:
        """The diagonal in int64."""
        found = self.lower.diagonal()
        if self.moved is not None:
            m, s, t = self.moved
            found = found - m * (s + t)
        return (found if self.used is None else found[self.used]).astype(np.int64)

    def of_features(self, used: NDArray[np.intp]) -> Triangle:
        """The same for some of the features."""
        return replace(self, used=used)

    def shifted(self, m: Integers) -> Triangle | None:
        """Σφ'φ'ᵀ of features φ' = φ - m; None where float64 might round something."""
        s, n = self.lower[-1], self.lower[-1, -1]
        size = self.lower.diagonal().max() + 2 * np.abs(m).max() * (np.abs(s).max() + 1.0)
        shift = m.astype(np.float64)
        return replace(self, moved=(shift, s, s - n * shift)) if size < LARGEST / 2 else None

    def whole(self) -> Integers:
        """The whole matrix, in int64."""
        return mirror(self[:, :].astype(np.int64))
