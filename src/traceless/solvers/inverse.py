"""The (w, C) update of Lee et al. 2019: small changes without a factorisation.

With A = ρI + Σωφφᵀ, P = A⁻¹, responses V = Σωφrᵀ and coefficients U = P V, a block of
rows Φ (one per row) with responses Y and weights ω changes A by ±Φᵀ diag(ω) Φ. Theorem 1,
for rows that are added (+) or removed (-), with the small matrix factored, never inverted:

    B = P Φᵀ,    M = diag(1/ω) ± Φ B = RᵀR,    G = B R⁻¹
    P ← P ∓ G Gᵀ,       U ← U ± G R⁻ᵀ (Y - Φ U)

symmetric: 3J²L + 3JL² + L³/3 flops for L rows. Corollaries 1 and 2 are L = 1, 3 and 4 are +
and - alone; a change both ways is + then -, at the same cost. Lee et al. hold C = I - ρP,
which cancels catastrophically for small ρ; P does not, and C is a property.

A row that is in the data has 1/ω - φPφᵀ ≥ ρ / (ω (ρ + ω‖φ‖²)): the pivots of M (for
removals) below that show rows that were never learned, or an inverse that has decayed.

All blocks of a change are planned before P is touched: with G₁, …, Gₖ of the blocks before it,

    B = P Φᵀ ∓ G₁ G₁ᵀ Φᵀ ∓ … ∓ Gₖ Gₖᵀ Φᵀ

so a change that is refused has changed nothing, and one that is made needs no copy of P.

*P is not touched by every row.* A rank-one update writes all of P and takes longer than the product
P φ. So columns of G wait, P = P₀ - G diag(±1) Gᵀ, until there are sixteen of them, which one
symmetric product takes in; a product with P costs them 4J flops each meanwhile. After a
factorisation A = RᵀR there is no P₀ yet: R answers, and P₀ is made at the next small change
(`Stored`).

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

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.blas import ddot, dgemm, dgemv, dger, dsymm, dsymv, dsyrk, dtrsm
from scipy.linalg.lapack import dgetrf, dgetrs, dpotrf, dpotri, dpotrs

from traceless.arithmetic.integers import Floats
from traceless.solvers.ridge import Penalty

_STEPS_TO_RIDGE = 16  # towards another D; where that is not enough, P is built anew
_SWALLOWS = 1e10  # 1 + ωφPφᵀ of a row beside which the others are lost in float64
_FAR = 8.0  # one part in so many of D
_CANCELS = 1e4  # how much larger the old D of a feature may be than all there is now
_WAITING = 16  # columns that P may lack: taking in so many takes as long as four one by one
_VECTORS = 16  # up to here a matrix times vectors is faster than the product of a block


def block_rows(J: int) -> int:
    """Rows per block: large enough for BLAS 3, small enough that L² terms do not count."""
    return 128 if J < 2048 else 256


def update_flops(J: int, L: int) -> float:
    """Flops of an update by L rows, cut into blocks."""
    b = min(L, block_rows(J))
    return 3.0 * J * J * L + 3.0 * J * b * L + b * b * L / 3.0


def refactor_flops(J: int, L: int) -> float:
    """What adding L rows to the matrix and factoring it anew takes, in flops of an update.

    A factorisation is J³/3, at half the speed of products.
    """
    return float(J) * J * L + 0.6 * float(J) ** 3


def worth_updating(J: int, L: int) -> bool:
    """Whether an update by L rows is faster than a new factor; about L < J/4."""
    return update_flops(J, L) < refactor_flops(J, L)


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

    def blocks(self) -> list[Change]:
        """The same rows, at most `block_rows` at a time."""
        size = block_rows(self.F.shape[1])
        if len(self.F) <= size:
            return [self] if len(self.F) else []
        starts = range(0, len(self.F), size)
        return [self._block(slice(start, start + size)) for start in starts]

    def _block(self, rows: slice) -> Change:
        return Change(self.F[rows], self.Y[rows], self.weights[rows], self.sign)


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


def symmetric_times(A: Floats, X: Floats) -> Floats:
    """``A X`` for the symmetric matrix whose upper triangle A has, both column-major."""
    if X.shape[1] == 1:
        return np.asarray(dsymv(1.0, A, X[:, 0])[:, None])
    if X.shape[1] > _VECTORS:
        return np.asarray(dsymm(1.0, A, X))
    out = np.empty(X.shape, order="F")
    for k in range(X.shape[1]):
        out[:, k] = dsymv(1.0, A, X[:, k])
    return out


class Stored:
    """P = P₀ - G diag(s) Gᵀ; or, until P₀ is needed, the factor R of its inverse A = RᵀR.

    For one owner at a time, who may change the form that it is in.

    Parameters
    ----------
    matrix : ndarray of shape (J, J), column-major
        P₀, of which only the upper triangle is meaningful, or R.
    is_factor : bool
    """

    def __init__(self, matrix: Floats, is_factor: bool = False) -> None:
        self._matrix, self._is_factor = np.asfortranarray(matrix), is_factor
        self._G = np.empty((len(matrix), _WAITING), order="F")
        self._signs = np.empty(_WAITING)
        self._waiting = 0
        self.is_whole = True  # False while P₀ is written, and for ever after a fault meanwhile

    def P(self) -> Floats:  # noqa: N802
        """P₀ with all that has waited: the upper triangle of P."""
        if not self._is_factor and not self._waiting:
            return self._matrix
        P, self.is_whole = self._own(), False
        if self._is_factor:
            P = dpotri(P, overwrite_c=True)[0]
        for sign in (1.0, -1.0):
            some = self._G.T[: self._waiting][self._signs[: self._waiting] == sign].T
            if some.size:
                P = dsyrk(-sign, some, beta=1.0, c=P, overwrite_c=True)
        self._matrix, self._is_factor, self._waiting, self.is_whole = P, False, 0, True
        return P

    def copy(self) -> Stored:
        """Another, in the same form."""
        other = copy.copy(self)
        other._matrix, other._G = self._matrix.copy(order="F"), self._G.copy(order="F")
        other._signs = self._signs.copy()
        return other

    def times(self, X: Floats) -> Floats:
        """``P X`` for a column-major X."""
        if self._is_factor:
            return np.asarray(dpotrs(self._matrix, X)[0])
        B = symmetric_times(self._matrix, X)
        if not self._waiting:
            return B
        G, signs = self._G[:, : self._waiting], self._signs[: self._waiting]
        if X.shape[1] == 1:
            T = dgemv(1.0, G, X[:, 0], trans=True)
            T *= signs
            return np.asarray(dgemv(-1.0, G, T, beta=1.0, y=B[:, 0], overwrite_y=True)[:, None])
        T = dgemm(1.0, G, X, trans_a=True)
        T *= signs[:, None]
        return np.asarray(dgemm(-1.0, G, T, beta=1.0, c=B, overwrite_c=True))

    def take_in(self, steps: Sequence[tuple[float, Floats]]) -> bool:
        """P ← P - sign · G Gᵀ for each sign and G; whether these only wait, and can be left out."""
        L = sum([G.shape[1] for _, G in steps])
        if self._is_factor or self._waiting + L > _WAITING:
            self.P()
        n = self._waiting
        if L <= _WAITING:
            for sign, G in steps:
                self._G[:, n : n + G.shape[1]] = G
                self._signs[n : n + G.shape[1]] = sign
                n += G.shape[1]
            self._waiting = n
            return True
        P, self.is_whole = self._own(), False
        for sign, G in steps:
            P = dsyrk(-sign, G, beta=1.0, c=P, overwrite_c=True)
        self._matrix, self.is_whole = P, True
        return False

    def leave_out(self, steps: Sequence[tuple[float, Floats]]) -> None:
        """P without the last columns that were to wait."""
        self._waiting -= sum([G.shape[1] for _, G in steps])

    def _own(self) -> Floats:
        """The matrix, in memory that is ours: mapped, shared or read-only one is copied."""
        A = self._matrix
        ours = type(A) is np.ndarray and A.flags.owndata and A.flags.writeable
        return A if ours else np.array(A, order="F")


class Inverse:
    """P = (ρI + S)⁻¹ and U = P V; with a frame, P = (D + S)⁻¹.

    U is never changed in place, so coefficients can be read at any time. P is as large as the
    knowledge, and small changes are made in its memory: the next inverse takes P over, and
    this one is left with U alone. There is one P at most, and who takes it has it to himself.

    Parameters
    ----------
    P : ndarray of shape (J, J), Stored or None
        Only the upper triangle of an array is meaningful; see `full`.
    U : ndarray of shape (J, K), column-major
    rho : float
    strain : float
        How much rounding errors may have grown since they were last looked at, in units of one
        update: removals with small pivots count more.
    floor : residual and error of P that a new inverse had
    patience : float
        The strain at which errors are looked at again.
    frame : Frame, optional
        Where the penalty is not ρI.
    """

    frame: Frame | None = None  # also of those that were pickled before there were any

    def __init__(
        self,
        P: Floats | Stored | None,
        U: Floats,
        rho: float,
        strain: float = 0.0,
        floor: tuple[float, float] = (0.0, 0.0),
        patience: float = np.inf,
        frame: Frame | None = None,
    ) -> None:
        self.frame = frame
        self._P = [] if P is None else [P if isinstance(P, Stored) else Stored(P)]
        self.U, self.rho = np.asfortranarray(U), rho
        self.strain, self.floor, self.patience = strain, floor, patience

    @classmethod
    def of(cls, S: Floats, V: Floats, rho: float, frame: Frame | None = None) -> Inverse:
        """Factor ρI + S (or D + S). Raises LinAlgError if that is not definite.

        Only the upper triangle of S is looked at.
        """
        A = np.array(S, order="F")
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

    def moved(self, change: Change) -> Change:
        """A change whose features are counted as ours are."""
        if self.frame is None or not self.frame.offset.any():
            return change
        return replace(change, F=change.F - self.frame.offset)

    def with_ridge_now(self) -> Floats | None:
        """U for the D of the rows as they are now; None if that is too far, or P is not here.

        It depends on P, U and the frame alone, so that copies and files give the same bits.
        """
        assert self.frame is not None
        ridge, stored = self.frame.ridge_now(), self.take()
        if stored is None:
            return None
        try:
            return None if ridge is None else self._moved_to(ridge, stored)
        finally:
            self.give_back(stored)

    def _moved_to(self, ridge: Floats, stored: Stored) -> Floats | None:
        difference = ridge - self.ridge
        far = np.flatnonzero(np.abs(difference) > self.ridge / _FAR)
        correct = self._correction(stored.P(), far, difference[far])
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
        self, P: Floats, far: NDArray[np.intp], difference: Floats
    ) -> Callable[[Floats, Floats], Floats] | None:
        """(X, Y) ↦ X - P_B (1/Δ_B + P_BB)⁻¹ Y_B for features B; None where that is not sound."""
        if not far.size:
            return lambda X, _: X
        assert self.frame is not None
        sizes = self.ridge[far] + difference + self.frame.squares[far]
        if len(far) > max(16, len(P) // 8) or (self.ridge[far] > _CANCELS * sizes).any():
            return None
        rows = np.arange(len(P))[:, None]
        PB = np.where(rows <= far, P[:, far], P[far].T)  # of the upper triangle
        factor, pivots, failed = dgetrf(PB[far] + np.diag(1.0 / difference))
        if failed:
            return None

        def correct(X: Floats, Y: Floats) -> Floats:
            small = dgetrs(factor, pivots, np.asfortranarray(Y[far]))[0]
            return np.asarray(X - dgemm(1.0, PB, small))

        return correct

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: P as it is now, while nobody else writes into it."""
        P = self.copy_of_P()
        return self.__dict__ | {"_P": [] if P is None else [P]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _P=[Stored(P) for P in state["_P"]])

    def take(self) -> Stored | None:
        """P for the caller alone, until it is given back; None if somebody else has it."""
        try:
            return self._P.pop()  # one step, so that two threads cannot both have it
        except IndexError:
            return None

    def give_back(self, stored: Stored) -> None:
        """Return what was taken; the form that it is in may be another."""
        if stored.is_whole:
            self._P.append(stored)

    def copy_of_P(self) -> Floats | None:  # noqa: N802
        """A copy of P, whose upper triangle is meaningful, or None if somebody else has it.

        P itself takes in what has waited, so that both go on from the same numbers.
        """
        stored = self.take()
        if stored is None:
            return None
        try:
            return stored.P().copy(order="F")
        finally:
            self.give_back(stored)

    def full(self) -> Floats:
        """P as a full symmetric matrix."""
        upper = np.triu(self._whole().P())
        return upper + np.triu(upper, 1).T

    def times(self, R: Floats) -> Floats:
        """``P R``."""
        return self._whole().times(np.asfortranarray(R))

    def _whole(self) -> Stored:
        if not self._P:
            raise LinAlgError("P was taken over by a later inverse")
        return self._P[0]

    def plan(self, changes: Sequence[Change], U: Floats | None = None) -> Plan | None:
        """Prepare a change without making it; None if P is not here.

        Raises LinAlgError, with everything as it was, where a pivot is not sound.

        Parameters
        ----------
        changes : sequence of Change
        U : ndarray, optional
            In place of our own, where there are other responses now.
        """
        stored = self.take()
        if stored is None:
            return None
        plan = Plan(self, stored, self.U if U is None else U)
        try:
            for change in changes:
                for block in self.moved(change).blocks():
                    plan.add(block)
        except BaseException:
            plan.drop()
            raise
        return plan


class Plan:
    """A change of an inverse that waits to be made or dropped; it has taken P meanwhile."""

    def __init__(self, inverse: Inverse, stored: Stored, U: Floats) -> None:
        self._inverse, self._stored, self._U = inverse, stored, U
        self._strain, self._frame = inverse.strain, inverse.frame
        self._steps: list[tuple[float, Floats]] = []  # sign and G of each block
        self._made: bool | None = None  # once it is: whether it can be undone

    def add(self, block: Change) -> None:
        """Plan one more block of rows. Raises LinAlgError where a pivot is not sound."""
        sign, Ft = float(block.sign), block.F.T
        self._frame = None if self._frame is None else self._frame.after(block)
        B = self._stored.times(Ft)
        for before, G in self._steps:
            B = dgemm(-before, G, dgemm(1.0, G, Ft, trans_a=True), beta=1.0, c=B, overwrite_c=True)
        error = block.Y - dgemm(1.0, Ft, self._U, trans_a=True)
        if len(block.F) == 1:  # the same, without calls for matrices of one number
            pivot = 1.0 / block.weights[0] + sign * ddot(block.F[0], B[:, 0])
            self._check(pivot * block.weights, block)
            G = B * (1.0 / math.sqrt(pivot))
            self._U = dger(sign / pivot, B[:, 0], error[0], a=self._U)
        else:
            M = dgemm(sign, Ft, B, trans_a=True)
            M.T.reshape(-1)[:: len(M) + 1] += 1.0 / block.weights
            R, failed = dpotrf(M, overwrite_a=True)
            pivots = np.zeros(len(R)) if failed else np.diag(R) ** 2
            self._check(pivots * block.weights, block)
            G = dtrsm(1.0, R, B, side=1, overwrite_b=True)
            T = dtrsm(1.0, R, np.asfortranarray(error), trans_a=True)
            self._U = dgemm(sign, G, T, beta=1.0, c=self._U)
        self._steps.append((sign, G))

    def drop(self) -> None:
        """Give P back as it was, unless it was written already."""
        if self._made:
            self._stored.leave_out(self._steps)
        if self._made is not False:
            self._inverse.give_back(self._stored)

    def done(self, keep: bool = False) -> Inverse:
        """The inverse after the change; the one before keeps its P only if that is asked for."""
        before, stored = self._inverse, self._stored
        if keep:
            stored = stored.copy()
            before.give_back(self._stored)
        self._made = stored.take_in(self._steps) and not keep
        patience, frame = before.patience, self._frame
        return Inverse(stored, self._U, before.rho, self._strain, before.floor, patience, frame)

    def _check(self, relative: Floats, block: Change) -> None:
        """Look at pivots, times the weights of the rows: 1 ± ωφPφᵀ."""
        self._strain += 1.0
        if block.sign > 0:
            if not relative.min() > 0.0:
                raise LinAlgError("P has decayed")
            largest = float(relative.max())
            if largest > _SWALLOWS:
                self._strain += largest
            return
        if self._frame is not None:
            least = self._frame.least_pivots(block)
        else:
            norms = np.einsum("ij,ij->i", block.F, block.F)
            rho = self._inverse.rho
            least = rho / (rho + block.weights * norms)
        if not (relative >= 0.999 * least).all():
            raise LinAlgError("the rows to be removed are not in the data, or P has decayed")
        self._strain += float(1.0 / relative.min())


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
