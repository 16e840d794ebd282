"""The (w, C) update of Lee et al. 2019: small changes without a factorisation.

With A = ρI + Σωφφᵀ, P = A⁻¹, responses V = Σωφrᵀ and coefficients U = P V, a batch of
rows Φ (one per row) with responses Y and weights ω changes A by ±Φᵀ diag(ω) Φ. Theorem 1,
for rows that are added (+) or removed (-), with the small matrix factored, never inverted:

    B = P Φᵀ,    M = diag(1/ω) ± Φ B = RᵀR,    G = B R⁻¹
    P ← P ∓ G Gᵀ,       U ← U ± G R⁻ᵀ (Y - Φ U)

in place and symmetric: 3J²L + 3JL² + L³/3 flops for L rows. Corollaries 1 and 2 are L = 1,
3 and 4 are + and - alone; a change both ways is + then -, at the same cost. Lee et al. hold
C = I - ρP, which cancels catastrophically for small ρ; P does not, and C is a property.

A row that is in the data has 1/ω - φPφᵀ ≥ ρ / (ω (ρ + ω‖φ‖²)): the pivots of M (for
removals) below that show rows that were never learned, or an inverse that has decayed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.blas import ddot, dgemm, dger, dsymm, dsymv, dsyr, dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf, dpotri

from traceless.exact import Floats

RANK_ONE_ROWS = 8  # up to here rows are taken one by one: no small matrix is needed


def block_rows(J: int) -> int:
    """Rows per block: large enough for BLAS 3, small enough that L² terms do not count."""
    return 128 if J < 2048 else 256


def update_flops(J: int, L: int) -> float:
    """Flops of an update by L rows, cut into blocks."""
    b = min(L, block_rows(J))
    return 3.0 * J * J * L + 3.0 * J * b * L + b * b * L / 3.0


def rebuild_flops(J: int, L: int) -> float:
    """Flops of adding L rows to the matrix and inverting it anew (Cholesky)."""
    return float(J) * J * L + float(J) ** 3


def worth_updating(J: int, L: int) -> bool:
    """Whether an update by L rows takes fewer flops than a new inverse; about L < J/2."""
    return update_flops(J, L) < rebuild_flops(J, L)


@dataclass(frozen=True)
class Change:
    """Rows that are added (sign +1) or removed (sign -1), in float64.

    Attributes
    ----------
    F : ndarray of shape (L, J), row-major
        Features.
    Y : ndarray of shape (L, K)
        Responses.
    weights : ndarray of shape (L,)
    sign : {1, -1}
    """

    F: Floats
    Y: Floats
    weights: Floats
    sign: int

    def block(self, rows: slice) -> Change:
        """Some of the rows."""
        return Change(self.F[rows], self.Y[rows], self.weights[rows], self.sign)


class Inverse:
    """P = (ρI + S)⁻¹ and U = P V, kept up to date in place.

    Attributes
    ----------
    P : ndarray of shape (J, J), column-major
        Only its upper triangle is meaningful; see `full`.
    U : ndarray of shape (J, K), column-major
    strain : float
        How much rounding errors may have grown since it was last reset, in units of one
        update: removals with small pivots count more.
    """

    def __init__(self, P: Floats, U: Floats, rho: float) -> None:
        self.P, self.U, self.rho = np.asfortranarray(P), np.asfortranarray(U), rho
        self.strain = 0.0

    @classmethod
    def of(cls, S: Floats, V: Floats, rho: float) -> Inverse:
        """Invert ρI + S by Cholesky. Raises LinAlgError if it is not positive definite."""
        A = np.array(S, order="F")
        A[np.diag_indices_from(A)] += rho
        factor, failed = dpotrf(A, overwrite_a=True, clean=False)
        if failed:
            raise LinAlgError("the matrix is not positive definite in float64")
        P, _ = dpotri(factor, overwrite_c=True)
        return cls(P, dsymm(1.0, P, np.asfortranarray(V)), rho)

    def copy(self) -> Inverse:
        """A copy that shares nothing."""
        other = Inverse(self.P.copy(order="F"), self.U.copy(order="F"), self.rho)
        other.strain = self.strain
        return other

    def full(self) -> Floats:
        """P as a full symmetric matrix."""
        upper = np.triu(self.P)
        return upper + np.triu(upper, 1).T

    def times(self, R: Floats) -> Floats:
        """``P R``."""
        return np.asarray(dsymm(1.0, self.P, np.asfortranarray(R)))

    def apply(self, change: Change) -> None:
        """Take rows in or out. Raises LinAlgError, half done, where a pivot is not sound."""
        size = 1 if len(change.F) <= RANK_ONE_ROWS else block_rows(len(self.P))
        for start in range(0, len(change.F), size):
            block = change.block(slice(start, start + size))
            if len(block.F) == 1:
                self._rank_one(block)
            else:
                self._rank_many(block)

    def _rank_one(self, change: Change) -> None:
        sign, f, weight = float(change.sign), change.F[0], float(change.weights[0])
        b = dsymv(1.0, self.P, f)
        pivot = 1.0 / weight + sign * float(ddot(f, b))
        self._check(np.array([pivot]), change)
        error = change.Y[0] - dgemm(1.0, self.U, f[:, None], trans_a=True)[:, 0]
        self.U = dger(sign / pivot, b, error, a=self.U, overwrite_a=True)
        self.P = dsyr(-sign / pivot, b, a=self.P, overwrite_a=True)

    def _rank_many(self, change: Change) -> None:
        sign, Ft = float(change.sign), change.F.T
        B = dsymm(1.0, self.P, Ft)
        M = dgemm(sign, Ft, B, trans_a=True)
        M[np.diag_indices_from(M)] += 1.0 / change.weights
        R, failed = dpotrf(M, overwrite_a=True)
        if failed:
            raise LinAlgError("the rows to be removed are not in the data, or P has decayed")
        self._check(np.diag(R) ** 2, change)
        error = np.asfortranarray(change.Y) - dgemm(1.0, Ft, self.U, trans_a=True)
        G = dtrsm(1.0, R, B, side=1, overwrite_b=True)
        T = dtrsm(1.0, R, error, trans_a=True, overwrite_b=True)
        self.U = dgemm(sign, G, T, beta=1.0, c=self.U, overwrite_c=True)
        self.P = dsyrk(-sign, G, beta=1.0, c=self.P, overwrite_c=True)

    def _check(self, pivots: Floats, change: Change) -> None:
        self.strain += 1.0
        if change.sign > 0:
            return
        relative = pivots * change.weights
        norms = np.einsum("ij,ij->i", change.F, change.F)
        least = self.rho / (self.rho + change.weights * norms)
        if not np.all(relative >= 0.999 * least):
            raise LinAlgError("the rows to be removed are not in the data, or P has decayed")
        self.strain += float((1.0 / relative).max())


def expected_error(inverse: Inverse, W: Floats, removed: Change, error: float) -> float:
    """Relative error of W to be expected if removed rows were estimates (section 4, Fig. 1f).

    To first order an error δ in a removed row φ changes w by P(δ(φ·w - y) + φ(δ·w)). With
    δ random, ‖δ‖ = error · ‖φ‖, the expected square of its length is

        ‖δ‖²/J · ((φ·w - y)² ‖P‖² + ‖Pφ‖² ‖w‖² + 2 (φ·w - y) (Pφ)·(Pw))
    """
    P, PF = inverse.full(), inverse.times(removed.F.T)
    PW = inverse.times(W)
    r = dgemm(1.0, removed.F.T, W, trans_a=True) - removed.Y
    lengths = np.einsum("ij,ij->i", removed.F, removed.F)
    squares = (r * r).sum(axis=1) * (P * P).sum()
    squares += (PF * PF).sum(axis=0) * (W * W).sum()
    squares += 2.0 * (r * dgemm(1.0, PF, PW, trans_a=True)).sum(axis=1)
    expected = removed.weights**2 * lengths * squares / len(P)
    return float(error * np.sqrt(expected.sum() / (W * W).sum()))
