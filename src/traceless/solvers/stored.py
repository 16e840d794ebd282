"""How P of a live model is stored, so that a change of it costs little and spoils nothing.

To compute P for every row would take longer than the product P φ. Columns of G wait,

    P = P₀ - G diag(±1) Gᵀ

and a change appends to them (`Waiting`); where they become more than `_WAITING`, one symmetric
product makes a new P₀ of the old. Meanwhile they cost a product with P 4J flops each. After a
factorisation A = RᵀR there is no P₀ yet: R answers, and P₀ is made at the next small change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.blas import dgemm, dgemv, dsymm, dsymv, dsyrk
from scipy.linalg.lapack import dpotri, dpotrs

from traceless.arithmetic.core import core
from traceless.arithmetic.integers import Floats
from traceless.solvers.solve import THREADS

_WAITING = 64  # columns that P may lack, so that the copy of P that takes them in costs little
_BLOCK = 32  # vectors from which on BLAS copies the matrix in less time than it saves
_WORTH = 2**22  # products that are worth more than starting threads


def symmetric_times(A: Floats, X: Floats) -> Floats:
    """``A X`` for the symmetric matrix whose upper triangle A has, both column-major."""
    J, K = X.shape
    if K == 1:
        return np.asarray(dsymv(1.0, A, X[:, 0])[:, None])
    if K > _BLOCK:
        return np.asarray(dsymm(1.0, A, X))
    Y = np.empty((J, K))
    core.symmetric_times(A.T, X, Y, min(THREADS, 4) if J * J * K > _WORTH else 1)
    return np.asfortranarray(Y)


class Waiting:
    """Columns of G and their signs; each P of a history sees the first so many of them.

    Columns that somebody may see are never written to. The first change of a P appends to the
    columns that it sees; any other change of the same P, in another thread or after a fault, finds
    them followed, and goes on with a copy.

    Attributes
    ----------
    G : ndarray of shape (J, _WAITING), column-major
    signs : ndarray of shape (_WAITING,)
    """

    def __init__(self, J: int) -> None:
        self.G, self.signs = np.empty((J, _WAITING), order="F"), np.empty(_WAITING)
        self._followers: dict[int, object] = {}  # of the first n columns

    def followed(self, n: int, steps: Sequence[tuple[float, Floats]]) -> tuple[Waiting, int]:
        """The first n columns and, after them, sign and G of each step; and how many these are."""
        own, me = self, object()
        if self._followers.setdefault(n, me) is not me:  # atomic: a lock could stay locked
            own = Waiting(len(self.G))
            own.G[:, :n], own.signs[:n] = self.G[:, :n], self.signs[:n]
            own._followers[n] = me
        for sign, G in steps:
            end = n + G.shape[1]
            own.G[:, n:end], own.signs[n:end] = G, sign
            n = end
        return own, n


class Stored:
    """P = P₀ - G diag(s) Gᵀ; or, until P₀ is needed, the factor R of its inverse A = RᵀR.

    It is never changed.

    Parameters
    ----------
    matrix : ndarray of shape (J, J), column-major
        P₀, of which only the upper triangle is meaningful, or R.
    is_factor : bool
    waiting : Waiting, optional
    n : int
        How many of the columns that wait are ours.
    """

    def __init__(
        self, matrix: Floats, is_factor: bool = False, waiting: Waiting | None = None, n: int = 0
    ) -> None:
        self._matrix, self._is_factor = np.asfortranarray(matrix), is_factor
        self._waiting, self._n = waiting, n

    @property
    def _waits(self) -> tuple[Floats, Floats]:
        """G and the signs of its columns."""
        if self._waiting is None:
            return np.empty((len(self._matrix), 0)), np.empty(0)
        return self._waiting.G[:, : self._n], self._waiting.signs[: self._n]

    def whole(self) -> Stored:
        """The same as P alone, with all that has waited."""
        if self._is_factor:
            return Stored(dpotri(self._matrix)[0])
        return Stored(_less(self._matrix, self._steps())) if self._n else self

    def P(self) -> Floats:  # noqa: N802
        """P, whose upper triangle is meaningful; only to be read."""
        return self.whole()._matrix

    def times(self, X: Floats) -> Floats:
        """``P X`` for a column-major X."""
        if self._is_factor:
            return np.asarray(dpotrs(self._matrix, X)[0])
        B = symmetric_times(self._matrix, X)
        if not self._n:
            return B
        G, signs = self._waits
        if X.shape[1] == 1:  # several times faster than products of matrices
            t = signs * dgemv(1.0, G, X[:, 0], trans=True)
            return np.asarray(dgemv(-1.0, G, t, beta=1.0, y=B[:, 0], overwrite_y=True)[:, None])
        T = dgemm(1.0, G, X, trans_a=True)
        T *= signs[:, None]
        return np.asarray(dgemm(-1.0, G, T, beta=1.0, c=B, overwrite_c=True))

    def after(self, steps: Sequence[tuple[float, Floats]]) -> Stored:
        """P - sign · G Gᵀ for each sign and G."""
        if self._is_factor:
            return self.whole().after(steps)
        L = sum([G.shape[1] for _, G in steps])
        if L > _WAITING:
            return Stored(_less(self._matrix, [*self._steps(), *steps]))
        if self._n + L > _WAITING:
            return self.whole().after(steps)
        waiting = self._waiting or Waiting(len(self._matrix))
        return Stored(self._matrix, False, *waiting.followed(self._n, steps))

    def _steps(self) -> list[tuple[float, Floats]]:
        """Sign and G of all that waits."""
        G, signs = self._waits
        return [(s, G.T[signs == s].T) for s in (1.0, -1.0) if s in signs]


def _less(P: Floats, steps: Sequence[tuple[float, Floats]]) -> Floats:
    """P - sign · G Gᵀ for each sign and G, in new memory."""
    ours = False
    for sign, G in steps:
        P, ours = dsyrk(-sign, G, beta=1.0, c=P, overwrite_c=ours), True
    return P
