"""The (w, C) update of Lee et al. 2019: small changes without a factorisation.

With A = ρI + Σωφφᵀ, P = A⁻¹, responses V = Σωφrᵀ and coefficients U = P V, a block of
rows Φ (one per row) with responses Y and weights ω changes A by ±Φᵀ diag(ω) Φ. Theorem 1,
for rows that are added (+) or removed (-), with the small matrix factored, never inverted:

    B = P Φᵀ,    M = diag(1/ω) ± Φ B = RᵀR,    G = B R⁻¹
    P ← P ∓ G Gᵀ,       U ← U ± G R⁻ᵀ (Y - Φ U)

symmetric: 3J²L + 3JL² + L³/3 flops for L rows. Corollaries 1 and 2 are L = 1, 3 and 4 are +
and - alone; a change both ways is + then -, at the same cost. Lee et al. hold C = I - ρP,
which cancels catastrophically for small ρ; P does not.

A row that is in the data has 1 - ωφPφᵀ > 0. Where a pivot of M, times ω, is nearly 0, the rows were
never learned, or P is not known well enough to say so; and what P is wrong by grows with 1/pivot. A
large 1 + ωφPφᵀ takes as many digits from P, which are missed when such a row goes again.

All blocks of a change are looked at before P is computed: with G₁, …, Gₖ of the blocks before it,

    B = P Φᵀ ∓ G₁ G₁ᵀ Φᵀ ∓ … ∓ Gₖ Gₖᵀ Φᵀ

*Nothing is written that was ever handed out.* A change makes a new inverse, and the one before
stays what it is: a fault at any moment, and threads that read meanwhile, find it whole. That is
cheap because P is not computed for every row (`traceless.solvers.stored`).

*Other penalties.* A = D + S with any diagonal D is updated in the same way, also with D_b = 0 for
a free intercept b; features are then counted from an offset that stays as it is (`Frame`).

A standardised D moves with every row, by about one part in n. P stays that of the D it was built
for. For today's D + Δ the coefficients solve P⁻¹U = V - ΔU, so what was subtracted is kept,

    U = P (V - C),     U ← U - P (ΔU - C),     C ← ΔU

and a step moves it to today's. Since P ≤ D⁻¹, what is left moves U by at most ‖D^-½ (ΔU - C)‖ in
lengths ‖D^½ U‖: steps end where that is less than what a float64 retrain would be wrong by, and
what they leave is in the C of the next change. A few features may have moved far (a pixel that
hardly any row had inked before): each enters P as if it were a row e_j with the weight Δ_j and the
response 0. A feature that has not varied yet may have any D: its coefficient is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.blas import ddot, dgemm, dger, dnrm2, dtrsm
from scipy.linalg.lapack import dpotrf

from traceless.arithmetic.integers import Floats
from traceless.knowledge.responses import Label
from traceless.solvers.ridge import Penalty
from traceless.solvers.stored import Stored

P_IS_LOST = 2.0**26  # 1 + ωφPφᵀ, or 1 / (1 - ωφPφᵀ) of a row that goes: half of P's digits
_ROUNDING = 2.0**-10  # of U's length, that the rounding of a step counts as
_EXACT = 2.0**-50  # relative error of U that is not worth another step
_FAR = 8.0  # one part in so many of D


def block_rows(J: int) -> int:
    """Rows per block: large enough for BLAS 3, small enough that L² terms do not count."""
    return 128 if J < 2048 else 256


def update_flops(J: int, L: int) -> float:
    """Flops of an update by L rows, cut into blocks."""
    b = min(L, block_rows(J))
    return 3.0 * J * J * L + 3.0 * J * b * L + b * b * L / 3.0


def worth_updating(J: int, L: int) -> bool:
    """Whether an update by L rows is faster than a new factor; about L < J/4.

    That is J²L to add them to the matrix, and a factorisation, J³/3 at half the speed of products.
    """
    return update_flops(J, L) < float(J) * J * L + 0.6 * float(J) ** 3


class Change(NamedTuple):
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

    def blocks(self) -> list[Change]:
        """The same rows, at most `block_rows` at a time."""
        n, size = len(self.F), block_rows(self.F.shape[1])
        blocks = [slice(start, start + size) for start in range(0, n, size)]
        return [Change(self.F[b], self.Y[b], self.weights[b], self.sign) for b in blocks]


class Frame(NamedTuple):
    """What A = D + S' is made of besides rows, and what these add up to.

    Attributes
    ----------
    penalty : Penalty
    ridge : ndarray of shape (J,)
        D.
    offset : ndarray of shape (J,)
        What is subtracted from the features before they enter S'.
    sums, squares : ndarrays of shape (J,)
        Σωφ and Σωφ² of the rows, less the offset; zeros where ρ is all of D.
    peaks : ndarray of shape (J,)
        The largest that the squares have been: how large the rounding errors of both may be.
    """

    penalty: Penalty
    ridge: Floats
    offset: Floats
    sums: Floats
    squares: Floats
    peaks: Floats

    @classmethod
    def plain(cls, rho: float, J: int) -> Frame:
        """A = ρI + S."""
        return cls(Penalty(rho), np.full(J, rho), *np.zeros((4, J)))

    def after(self, change: Change) -> Frame:
        """The same after a change, whose features have been counted from the offset."""
        if not (self.penalty.standardize or self.penalty.free_intercept):
            return self
        weights = change.sign * change.weights[:, None]
        sums = self.sums + (weights * change.F).sum(axis=0)
        squares = self.squares + (weights * change.F**2).sum(axis=0)
        return self._replace(sums=sums, squares=squares, peaks=np.maximum(self.peaks, squares))

    def ridge_now(self) -> Floats:
        """D of the rows as they are now. LinAlgError where rounding errors hide it."""
        n = self.sums[-1]
        if not n > 0.0:
            raise LinAlgError("no rows are left, whose mean would be the intercept")
        variances = self.squares / n - (self.sums / n) ** 2
        variances[-1] = 0.0
        varied = self.peaks > 0.0
        if (varied & (variances * n <= 1e-12 * self.peaks))[:-1].any():
            raise LinAlgError("a column no longer varies")
        return np.where(varied, self.penalty.rho * variances, self.ridge)

    def least_pivots(self, removed: Change) -> Floats:
        """What 1 - ωφPφᵀ is at least, once they are removed, for rows that were in the data.

        As S' ≥ ωφφᵀ, it is 1 / (1 + ωφD⁻¹φᵀ); a free intercept has 1/n, and φ is counted from the
        mean of the other rows.
        """
        penalised, n = self.ridge > 0.0, self.sums[-1]
        F, own = removed.F, 0.0
        if not penalised[-1]:
            if not n > 0.0:
                raise LinAlgError("no rows are left, whose mean would be the intercept")
            F, own = F - self.sums / n, 1.0 / n
        squares = (F[:, penalised] ** 2 / self.ridge[penalised]).sum(axis=1)
        return np.asarray(1.0 / (1.0 + removed.weights * (own + squares)))

    def length(self, U: Floats) -> float:
        """‖D^½ U‖, whatever the units; of a free intercept, which D has not, a thousandth."""
        root = np.sqrt(self.ridge)
        root[-1] = max(root[-1], 2.0**-10 * math.sqrt(self.penalty.rho))
        return norm(root[:, None] * U)


class Inverse:
    """P = (D + S')⁻¹ and U = P (V - C).

    No array is ever written to: `after` gives the next one, and both stay good.

    Parameters
    ----------
    P : ndarray of shape (J, J), or Stored
        Only the upper triangle of an array is meaningful; see `full`.
    U : ndarray of shape (J, K)
    frame : Frame
    C : ndarray of shape (J, K), optional
        What V lacks, where D has moved since P was built.
    error : float
        What a float64 retrain would be wrong by, relatively.
    way : float
        How far U has gone since it was last made exact, in its own lengths, steps weighted by what
        their errors may have grown by: U is wrong by about `way` times what a retrain is. At least
        `P_IS_LOST` once a row came beside which half of the digits of all others are lost.
    """

    def __init__(
        self,
        P: Floats | Stored,
        U: Floats,
        frame: Frame,
        C: Floats | None = None,
        error: float = 0.0,
        way: float = 0.0,
    ) -> None:
        self.stored, self.U = P if isinstance(P, Stored) else Stored(P), np.asfortranarray(U)
        self.frame, self.C, self.error, self.way = frame, C, error, way

    @classmethod
    def of(cls, A: Floats, V: Floats, frame: Frame) -> Inverse:
        """Factor A, of which the upper triangle is looked at and written over.

        Raises LinAlgError if it is not positive definite.
        """
        factor, failed = dpotrf(A, overwrite_a=True, clean=False)
        if failed:
            raise LinAlgError("the matrix is not positive definite in float64")
        stored = Stored(factor, is_factor=True)
        return cls(stored, stored.times(np.asfortranarray(V)), frame)

    def refined(self, U: Floats, R: Floats, frame: Frame) -> tuple[Inverse, float]:
        """The same with U + P R, and how long P R is in lengths of that: what U was wrong by.

        R is V - A U of all rows, whose frame is given.
        """
        step = self.times(R)
        U = U + step
        length, C = frame.length(U), None
        if frame.penalty.standardize:
            C = (frame.ridge_now() - frame.ridge)[:, None] * U
        error = frame.length(step) / length if length else 0.0
        return Inverse(self.stored, U, frame, C, self.error), error

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: P with all that has waited; of the rows that waited nothing travels.

        Nor does its other triangle, where some sums of rows that have gone may still be.
        """
        return {**self.__dict__, "stored": Stored(np.triu(self.P()))}

    def P(self) -> Floats:  # noqa: N802
        """P, whose upper triangle is meaningful; only to be read."""
        return self.stored.P()

    def full(self) -> Floats:
        """P as a full symmetric matrix."""
        upper = np.triu(self.P())
        return upper + np.triu(upper, 1).T

    def times(self, R: Floats) -> Floats:
        """``P R``."""
        return self.stored.times(np.asfortranarray(R))

    def spread(self, names: tuple[Label, ...], into: tuple[Label, ...]) -> Inverse:
        """The same with a column for each of other responses."""
        if names == into:
            return self
        U, C = (None if A is None else spread(A, names, into) for A in (self.U, self.C))
        assert U is not None
        return Inverse(self.stored, U, self.frame, C, self.error, self.way)

    def after(self, changes: Sequence[Change]) -> Inverse:
        """The inverse after a change. Raises LinAlgError where a pivot is not sound."""
        update = _Update(self)
        for change in changes:
            if self.frame.offset.any():
                change = change._replace(F=change.F - self.frame.offset)
            update.frame = update.frame.after(change)
            for block in change.blocks():
                update.add(block)
        if self.C is not None:
            update.follow_scales(self.C)
        return update.done()


class _Update:
    """A change of an inverse, block by block."""

    def __init__(self, inverse: Inverse) -> None:
        self._before, self.frame, self._U = inverse, inverse.frame, inverse.U
        self._C, self._way = inverse.C, inverse.way
        self._steps: list[tuple[float, Floats]] = []  # sign and G of each block

    def add(self, block: Change) -> None:
        """One more block of rows. Raises LinAlgError where a pivot is not sound."""
        sign, Ft = float(block.sign), block.F.T
        B = self._times(Ft)
        error = block.Y - dgemm(1.0, Ft, self._U, trans_a=True)
        if len(block.F) == 1:  # the same, without calls for matrices of one number
            pivot = 1.0 / float(block.weights[0]) + sign * ddot(block.F[0], B[:, 0])
            pivots = [pivot * float(block.weights[0])]
            self._check(pivots, block)
            G = B * (1.0 / math.sqrt(pivot))
            step = dger(sign / pivot, B[:, 0], error[0])
        else:
            M = dgemm(sign, Ft, B, trans_a=True)
            M.T.reshape(-1)[:: len(M) + 1] += 1.0 / block.weights
            R, failed = dpotrf(M, overwrite_a=True)
            pivots = [0.0] if failed else (np.diag(R) ** 2 * block.weights).tolist()
            self._check(pivots, block)
            G = dtrsm(1.0, R, B, side=1, overwrite_b=True)
            step = dgemm(sign, G, dtrsm(1.0, R, np.asfortranarray(error), trans_a=True))
        self._steps.append((sign, G))
        self._U = U = self._U + step
        length, strain = self.frame.length(U), max(max(pivots), 1.0 / min(pivots))
        gone = _ROUNDING + (self.frame.length(step) / length if length else 0.0)
        self._way += strain * (gone if strain < P_IS_LOST else 1.0)

    def follow_scales(self, C: Floats) -> None:
        """U for the D of the rows as they are now. LinAlgError where P is too far from it."""
        now, K = self.frame.ridge_now(), self._U.shape[1]
        moved = now - self.frame.ridge
        far = np.flatnonzero(np.abs(moved) > self.frame.ridge / _FAR)
        if len(far) > max(16, len(now) // 8):
            raise LinAlgError("the scales of many columns have changed")
        for sign in (1, -1):
            some = far[moved[far] * sign > 0.0]
            if some.size:
                rows = np.eye(len(now))[some]
                self.add(Change(rows, np.zeros((len(some), K)), np.abs(moved[some]), sign))
        ridge = self.frame.ridge.copy()
        ridge[far], moved[far] = now[far], 0.0
        self.frame = self.frame._replace(ridge=ridge)
        scale = np.divide(1.0, np.sqrt(ridge), out=np.zeros_like(ridge), where=ridge > 0.0)
        enough = max(self._before.error, _EXACT) * self.frame.length(self._U)
        before = np.inf
        while True:
            R = moved[:, None] * self._U - C
            left = norm(scale[:, None] * R)
            if left <= enough:
                break
            if not left < before / 2:
                raise LinAlgError("P is too far from the scales of the rows")
            self._U, C, before = self._U - self._times(np.asfortranarray(R)), C + R, left
        self._C = C

    def _times(self, X: Floats) -> Floats:
        """P X, with the blocks so far."""
        B = self._before.stored.times(X)
        for sign, G in self._steps:
            B = dgemm(-sign, G, dgemm(1.0, G, X, trans_a=True), beta=1.0, c=B, overwrite_c=True)
        return B

    def _check(self, pivots: Sequence[float], block: Change) -> None:
        """Look at pivots, times the weights of the rows: 1 ± ωφPφᵀ."""
        sound = min(pivots) * P_IS_LOST > 1.0
        if sound and block.sign < 0:
            sound = bool((np.array(pivots) >= 0.999 * self.frame.least_pivots(block)).all())
        if not sound:
            raise LinAlgError("the rows to be removed are not in the data, or P has decayed")

    def done(self) -> Inverse:
        """The inverse after all blocks."""
        stored = self._before.stored.after(self._steps)
        return Inverse(stored, self._U, self.frame, self._C, self._before.error, self._way)


def spread(columns: Any, names: tuple[Label, ...], into: tuple[Label, ...]) -> NDArray[Any]:
    """Columns by name, in another order, with zeros for names that are new."""
    if names == into:
        return np.asarray(columns)
    out = np.zeros((len(columns), len(into)), dtype=columns.dtype, order="F")
    for k, name in enumerate(names):
        if name in into:
            out[:, into.index(name)] = columns[:, k]
    return out


def norm(a: Floats) -> float:
    """Euclidean length, by the one BLAS that is used here (numpy.linalg.norm has another)."""
    return float(dnrm2(a.ravel(order="K"))) if a.size else 0.0
