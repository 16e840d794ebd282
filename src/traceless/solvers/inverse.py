"""The (w, C) update of Lee et al. 2019: small changes without a factorisation.

With A = ρI + Σωφφᵀ, P = A⁻¹, responses V = Σωφrᵀ and coefficients U = P V, a block of
rows Φ (one per row) with responses Y and weights ω changes A by ±Φᵀ diag(ω) Φ. Theorem 1,
for rows that are added (+) or removed (-), with the small matrix factored, never inverted:

    B = P Φᵀ,    M = diag(1/ω) ± Φ B = RᵀR,    G = B R⁻¹
    P ← P ∓ G Gᵀ,       U ← U ± G R⁻ᵀ (Y - Φ U)

symmetric: 3J²L + 3JL² + L³/3 flops for L rows. Corollaries 1 and 2 are L = 1, 3 and 4 are +
and - alone; a change both ways is + then -, at the same cost. Lee et al. hold C = I - ρP,
which cancels catastrophically for small ρ; P does not, and C is a property. What is rounded away
from U goes into its next step (`tail`): steps are small, and so are their own errors.

A row that is in the data has 1/ω - φPφᵀ ≥ ρ / (ω (ρ + ω‖φ‖²)): the pivots of M (for
removals) below that show rows that were never learned, or an inverse that has decayed.

All blocks of a change are looked at before P is computed: with G₁, …, Gₖ of the blocks before it,

    B = P Φᵀ ∓ G₁ G₁ᵀ Φᵀ ∓ … ∓ Gₖ Gₖᵀ Φᵀ

*Nothing is written that was ever handed out.* A change makes a new inverse, and the one before
stays what it is: a fault at any moment, and threads that read meanwhile, find it whole. That is
cheap because P is not computed for every row (`traceless.solvers.stored`).

*Other penalties.* A = D + S with any diagonal D is updated in the same way, also with D_b = 0 for
a free intercept b; features are then counted from an offset that stays as it is (`Frame`). A row
of the data that is removed, leaving rows of weight n and mean φ̄, has

    1/ω - φPφᵀ ≥ 1 / (ω + ω² (1/n + Σ_j (φ_j - φ̄_j)² / D_j))

A standardised D moves with every row, by about one part in n. P stays that of the D it was built
for, and the coefficients of today's D' = D + Δ are found by U' ← U - P Δ U', which gains as many
digits with each step as D' and D have in common. A few features B may have moved far (a pixel that
hardly any row had inked before); they are taken in at once by Woodbury's formula,

    P ← P - P_B (1/Δ_B + P_BB)⁻¹ P_Bᵀ,    U ← U - P_B (1/Δ_B + P_BB)⁻¹ U_B

A feature that has not varied yet may have any D: its coefficient is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.blas import ddot, dgemm, dger, dtrsm
from scipy.linalg.lapack import dgetrf, dgetrs, dpotrf

from traceless.arithmetic.integers import Floats
from traceless.solvers.ridge import Penalty
from traceless.solvers.stored import Stored

_STEPS_TO_RIDGE = 16  # towards another D; where that is not enough, P is built anew
_SWALLOWS = 1e10  # 1 + ωφPφᵀ of a row beside which the others are lost in float64
_GROWS = 4.0  # what errors count that a small pivot makes larger, beside those of an update
_FAR = 8.0  # one part in so many of D
_CANCELS = 1e4  # how much larger the old D of a feature may be than all there is now


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
    """What P was built for where an intercept is free, and what its rows add up to.

    Attributes
    ----------
    penalty : Penalty
    ridge : ndarray of shape (J,)
        D.
    offset : ndarray of shape (J,)
        What is subtracted from the features before they enter S.
    sums, squares : ndarrays of shape (J,)
        Σωφ and Σωφ² of the rows, less the offset.
    peaks : ndarray of shape (J,)
        The largest that the squares have been: how large the rounding errors of both may be.
    """

    penalty: Penalty
    ridge: Floats
    offset: Floats
    sums: Floats
    squares: Floats
    peaks: Floats

    def after(self, change: Change) -> Frame:
        """The same after a change, whose features have been counted from the offset."""
        weights = change.sign * change.weights[:, None]
        sums = self.sums + (weights * change.F).sum(axis=0)
        squares = self.squares + (weights * change.F**2).sum(axis=0)
        return self._replace(sums=sums, squares=squares, peaks=np.maximum(self.peaks, squares))

    def ridge_now(self) -> Floats | None:
        """D of the rows as they are now; None where rounding errors hide it."""
        if not self.penalty.standardize:
            return self.ridge
        n = self.sums[-1]
        variances = self.squares / n - (self.sums / n) ** 2
        variances[-1] = 0.0
        varied = self.peaks > 0.0
        if (varied & (variances * n <= 1e-12 * self.peaks))[:-1].any():
            return None
        return np.where(varied, self.penalty.rho * variances, self.ridge)

    def least_pivots(self, removed: Change) -> Floats:
        """What 1 - ωφPφᵀ is at least, for rows that are in the data; once they are removed."""
        n = self.sums[-1]
        if not n > 0.0:
            raise LinAlgError("no rows are left, whose mean would be the intercept")
        squares = (removed.F - self.sums / n) ** 2
        penalised = self.ridge > 0
        squares = (squares[:, penalised] / self.ridge[penalised]).sum(axis=1)
        return np.asarray(1.0 / (1.0 + removed.weights * (1.0 / n + squares)))


class Inverse:
    """P = (ρI + S)⁻¹ and U = P V; with a frame, P = (D + S)⁻¹.

    No array is ever written to: `after` gives the next one, and both stay good.

    Parameters
    ----------
    P : ndarray of shape (J, J), or Stored
        Only the upper triangle of an array is meaningful; see `full`.
    U : ndarray of shape (J, K), column-major
    rho : float
    strain : float
        How much rounding errors may have grown since they were last looked at, in units of one
        update: removals with small pivots count more.
    floor : residual and error of P that a new inverse had; None where nobody has looked yet
    patience : float
        The strain at which errors are looked at again.
    frame : Frame, optional
        Where the penalty is not ρI.

    Attributes
    ----------
    answer : ndarray of shape (J, K), or None
        What `with_ridge_now` has found.
    tail : ndarray of shape (J, K), or None
        What U lacks by its rounding.
    """

    answer: Floats | None = None
    tail: Floats | None = None

    def __init__(
        self,
        P: Floats | Stored,
        U: Floats,
        rho: float,
        strain: float = 0.0,
        floor: tuple[float, float] | None = (0.0, 0.0),
        patience: float = np.inf,
        frame: Frame | None = None,
    ) -> None:
        self.frame = frame
        self._stored = P if isinstance(P, Stored) else Stored(P)
        self.U, self.rho = np.asfortranarray(U), rho
        self.strain, self.floor, self.patience = strain, floor, patience

    @classmethod
    def of(
        cls, S: Floats, V: Floats, rho: float, frame: Frame | None = None, ours: bool = False
    ) -> Inverse:
        """Factor ρI + S (or D + S). Raises LinAlgError if that is not definite.

        Only the upper triangle of S is looked at. It is written over where it is `ours`.
        """
        A = S if ours else np.array(S, order="F")
        A.T.reshape(-1)[:: len(A) + 1] += rho if frame is None else frame.ridge
        factor, failed = dpotrf(A, overwrite_a=True, clean=False)
        if failed:
            raise LinAlgError("the matrix is not positive definite in float64")
        stored = Stored(factor, is_factor=True)
        return cls(stored, stored.times(np.asfortranarray(V)), rho, frame=frame)

    @property
    def penalty(self) -> Penalty:
        """What the coefficients are penalised by."""
        return Penalty(self.rho) if self.frame is None else self.frame.penalty

    @property
    def ridge(self) -> Floats:
        """The diagonal that was added to S."""
        return np.full(len(self.U), self.rho) if self.frame is None else self.frame.ridge

    @property
    def offset(self) -> Floats:
        """What is subtracted from the features."""
        return np.zeros(len(self.U)) if self.frame is None else self.frame.offset

    def moved(self, change: Change) -> Change:
        """A change whose features are counted as ours are."""
        if self.frame is None or not self.frame.offset.any():
            return change
        return change._replace(F=change.F - self.frame.offset)

    def with_ridge_now(self) -> Floats | None:
        """U for the D of the rows as they are now; None if that is too far.

        It is found once, and goes with pickles and files: from a P in which nothing waits any more
        they would find other last digits.
        """
        if self.answer is None:
            assert self.frame is not None
            ridge = self.frame.ridge_now()
            self.answer = None if ridge is None else self._moved_to(ridge)
        return self.answer

    def _moved_to(self, ridge: Floats) -> Floats | None:
        difference, stored = ridge - self.ridge, self._stored
        far = np.flatnonzero(np.abs(difference) > self.ridge / _FAR)
        correct = self._correction(far, difference[far])
        if correct is None:
            return None
        difference[far] = 0.0
        start = U = correct(self.U, self.U)
        before = np.inf
        for _ in range(_STEPS_TO_RIDGE):
            step = stored.times(np.asfortranarray(difference[:, None] * U))
            after = start - correct(step, step)
            error = np.abs(after - U).max(initial=0.0)
            U = after
            if error <= 2.0**-51 * np.abs(U).max(initial=0.0):
                return np.asfortranarray(U)
            if not error < before / 4:
                return None
            before = error
        return None

    def _correction(
        self, far: NDArray[np.intp], difference: Floats
    ) -> Callable[[Floats, Floats], Floats] | None:
        """(X, Y) ↦ X - P_B (1/Δ_B + P_BB)⁻¹ Y_B for features B; None where that is not sound."""
        if not far.size:
            return lambda X, _: X
        assert self.frame is not None
        sizes = self.ridge[far] + difference + self.frame.squares[far]
        many = len(far) > max(16, len(self.U) // 8)
        if many or (self.ridge[far] > _CANCELS * sizes).any():
            return None
        PB = self._stored.columns(far)
        factor, pivots, failed = dgetrf(PB[far] + np.diag(1.0 / difference))
        if failed:
            return None

        def correct(X: Floats, Y: Floats) -> Floats:
            small = dgetrs(factor, pivots, np.asfortranarray(Y[far]))[0]
            return np.asarray(X - dgemm(1.0, PB, small))

        return correct

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: P with all that has waited; of the rows that waited nothing travels.

        Nor does its other triangle, where some sums of rows that have gone may still be.
        """
        return {**self.__dict__, "_stored": np.triu(self.P()), "tail": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _stored=Stored(state["_stored"]))

    def P(self) -> Floats:  # noqa: N802
        """P, whose upper triangle is meaningful; only to be read."""
        return self._stored.P()

    def twin(self) -> Inverse:
        """Another of the same arrays, in place of whose U there may be a better one."""
        twin = object.__new__(Inverse)
        twin.__dict__.update(self.__dict__)
        return twin

    def full(self) -> Floats:
        """P as a full symmetric matrix."""
        upper = np.triu(self.P())
        return upper + np.triu(upper, 1).T

    def times(self, R: Floats) -> Floats:
        """``P R``."""
        return self._stored.times(np.asfortranarray(R))

    def after(self, changes: Sequence[Change], U: Floats | None = None) -> Inverse:
        """The inverse after a change.

        Raises LinAlgError where a pivot is not sound.

        Parameters
        ----------
        changes : sequence of Change
        U : ndarray, optional
            In place of our own, where there are other responses now.
        """
        update = _Update(self, self.U if U is None else U)
        for change in changes:
            for block in self.moved(change).blocks():
                update.add(block)
        return update.done()


class _Update:
    """A change of an inverse, block by block."""

    def __init__(self, inverse: Inverse, U: Floats) -> None:
        self._inverse, self._stored, self._U = inverse, inverse._stored, U
        self._tail = inverse.tail if U is inverse.U else None
        self._strain, self._frame = inverse.strain, inverse.frame
        self._steps: list[tuple[float, Floats]] = []  # sign and G of each block

    def add(self, block: Change) -> None:
        """One more block of rows. Raises LinAlgError where a pivot is not sound."""
        sign, Ft = float(block.sign), block.F.T
        self._frame = None if self._frame is None else self._frame.after(block)
        B = self._stored.times(Ft)
        for before, G in self._steps:
            B = dgemm(-before, G, dgemm(1.0, G, Ft, trans_a=True), beta=1.0, c=B, overwrite_c=True)
        error = block.Y - dgemm(1.0, Ft, self._U, trans_a=True)
        if len(block.F) == 1:  # the same, without calls for matrices of one number
            pivot = 1.0 / float(block.weights[0]) + sign * ddot(block.F[0], B[:, 0])
            self._check(pivot * float(block.weights[0]), block)
            G = B * (1.0 / math.sqrt(pivot))
            self._move(dger(sign / pivot, B[:, 0], error[0]))
        else:
            M = dgemm(sign, Ft, B, trans_a=True)
            M.T.reshape(-1)[:: len(M) + 1] += 1.0 / block.weights
            R, failed = dpotrf(M, overwrite_a=True)
            pivots = np.zeros(len(R)) if failed else np.diag(R) ** 2
            self._check(pivots * block.weights, block)
            G = dtrsm(1.0, R, B, side=1, overwrite_b=True)
            T = dtrsm(1.0, R, np.asfortranarray(error), trans_a=True)
            self._move(dgemm(sign, G, T))
        self._steps.append((sign, G))

    def _move(self, step: Floats) -> None:
        """Add to U, and keep what that rounds away for the next step, which is smaller than U."""
        U = self._U
        step = step if self._tail is None else step + self._tail
        self._U = after = U + step
        self._tail = step - (after - U)

    def done(self) -> Inverse:
        """The inverse after all blocks."""
        before, stored = self._inverse, self._stored.after(self._steps)
        patience, frame = before.patience, self._frame
        after = Inverse(stored, self._U, before.rho, self._strain, before.floor, patience, frame)
        after.tail = self._tail
        return after

    def _check(self, relative: Any, block: Change) -> None:
        """Look at pivots, times the weights of the rows: 1 ± ωφPφᵀ; one number for one row."""
        single = isinstance(relative, float)
        least_pivot = relative if single else float(relative.min())
        if block.sign > 0:
            largest = relative if single else float(relative.max())
            if not least_pivot > 0.0:
                raise LinAlgError("P has decayed")
            self._strain += largest if largest > _SWALLOWS else 1.0
            return
        rho, (F, _, weights, _) = self._inverse.rho, block
        if self._frame is not None:
            least: Any = self._frame.least_pivots(block)
        elif single:
            least = rho / (rho + float(weights[0]) * ddot(F[0], F[0]))
        else:
            least = rho / (rho + weights * np.einsum("ij,ij->i", F, F))
        if not np.all(relative >= 0.999 * least):
            raise LinAlgError("the rows to be removed are not in the data, or P has decayed")
        self._strain += 1.0 + _GROWS * (1.0 / least_pivot - 1.0)
