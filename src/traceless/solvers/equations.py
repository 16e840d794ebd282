"""The equations (D + S) U = V that P and U of a live model are held against.

    R = V - (D + S) U,    U ← U + P R

takes the rounding errors of a history out of U, for as long as R gets smaller; and P A x should
be x.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.blas import dnrm2

from traceless.arithmetic.integers import Floats
from traceless.solvers.inverse import Inverse, symmetric_times

SMALL = 256  # features up to which looking closely takes no time
_REFINEMENTS = 4  # at most, each time the residual is looked at


@dataclass(frozen=True)
class Equations:
    """S = diag(steps) T diag(steps), and V, in the units of the features.

    Attributes
    ----------
    T : ndarray of shape (J, J) or more, column-major
        Only the upper triangle of its first rows and columns is meaningful.
    steps : ndarray of shape (J,)
    V : ndarray of shape (J, K)
    """

    T: Floats
    steps: Floats
    V: Floats

    def matrix(self) -> Floats:
        """S in new memory, of which the upper triangle is meaningful."""
        J = len(self.steps)
        S = self.T[:J, :J] * self.steps
        S *= self.steps[:, None]
        return S

    def times(self, U: Floats, ridge: Floats) -> Any:
        """``(S + diag(ridge)) U``, of a small matrix with eleven more bits where there are any."""
        J, steps = len(self.steps), self.steps[:, None]
        if J <= SMALL:
            return ridge * U.astype(np.longdouble) + (self._whole @ (steps * U)) * steps
        X = np.zeros((len(self.T), U.shape[1]), order="F")
        np.multiply(U, steps, out=X[:J])
        return ridge * U + symmetric_times(self.T, X)[:J] * steps

    @cached_property
    def _whole(self) -> Any:
        """T, both triangles of it, as the longest floats that there are."""
        J = len(self.steps)
        upper = np.triu(self.T[:J, :J]).astype(np.longdouble)
        return upper + np.triu(upper, 1).T

    @cached_property
    def size(self) -> float:
        """The trace of S, which no sum of its eigenvalues exceeds."""
        return float((self.T.diagonal()[: len(self.steps)] * self.steps**2).sum())


def refined(inverse: Inverse, equations: Equations) -> float:
    """Let U be refined, for as long as that makes the residual smaller; returns its size."""
    R, size = _residual(inverse, equations)
    for _ in range(_REFINEMENTS):
        U = inverse.U
        inverse.U = np.asfortranarray(U + inverse.times(R))
        before, (R, size) = size, _residual(inverse, equations)
        if size >= before:
            inverse.U, size = U, before
        if size > before / 4:
            break
    return size


def decay_of(inverse: Inverse, equations: Equations) -> float:
    """How far P A x is from x, relatively, for a probe x: the error that P has."""
    x = np.cos(np.arange(1.0, len(inverse.U) + 1.0))[:, None]
    y = equations.times(x, inverse.ridge[:, None]).astype(np.float64)
    return _norm(inverse.times(y) - x) / _norm(x)


def _residual(inverse: Inverse, equations: Equations) -> tuple[Floats, float]:
    """R, and its size relative to the terms in it."""
    V, U, ridge = equations.V, inverse.U, inverse.ridge[:, None]
    R = np.asarray(V - equations.times(U, ridge), dtype=np.float64)
    size = _norm(V) + (float(ridge.max()) + equations.size) * _norm(U)
    return R, _norm(R) / size if size else 0.0


def _norm(a: Floats) -> float:
    """Euclidean length, by the one BLAS that is used here (numpy.linalg.norm has another)."""
    return float(dnrm2(a.ravel(order="K"))) if a.size else 0.0
