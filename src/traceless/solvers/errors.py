"""Errors of predictions and coefficients of a regression, from the sums alone.

The model is y = β + φ·w + ε with ε of variance σ²/ω in a row of weight ω, and the penalty D read as
the prior w ~ N(0, σ²D⁻¹). Given the rows, w has the covariance σ²P, P = (C + D)⁻¹
(`traceless.solvers.moments`), and what a new row of weight 1 will show has the variance

    s²(φ) = σ² (1 + 1/Σω + (φ - φ̄)ᵀ P (φ - φ̄))      with a free intercept
    s²(φ) = σ² (1 + φᵀ P φ)                           else, the constant feature one of φ

of which 1 is the noise of the row itself. As ρ → 0 these are the errors of least squares. The noise
is estimated by

    σ̂² = RSS / (n - d),     RSS = Σω(y - ŷ)²,     d = J - Σ_j D_j P_jj (+ 1 for a free intercept)

n the number of rows, d the degrees of freedom of the fit: its trace. n counts rows, not weights, so
a weight says how precise a row is (as in R's ``lm`` and statsmodels' ``WLS``), and all weights and
ρ times one number give the same errors. σ̂ is itself an estimate, so intervals are those of
Student's t with n - d degrees of freedom; for ρ → 0 that is exact if the noise is normal.

*RSS is exact.* Coefficients are float64 numbers, D 2^-E for integers D, and the sums are integers:

    2^2E RSS = 2^2E Σyy - 2^(E+1) Dᵀq + Dᵀ S D

has no rounding, so nothing cancels, and no bit depends on BLAS. P is float64 and its last bits do.

*A row's error does not depend on its batch.* With P = F Fᵀ the quadratic form is ‖v‖² for
v = Fᵀ(φ - φ̄). F is triangular, and cut into slices so short that products with codes are exact,
whatever the order in which BLAS adds; there are as many slices as it takes for v to be right to
2^-40 (v² is compared with 1). Rows with codes beyond a limit, 16 standard deviations or more, go
another way, each by itself (`traceless.arithmetic.products`). Squares are added in an order that
the number of rows does not change.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.blas import dtrmm
from scipy.special import stdtrit

from traceless.arithmetic.integers import (
    Floats,
    Integers,
    Sums,
    matrix_times,
    whole_over_powers,
    wide,
)
from traceless.arithmetic.products import Coefficients
from traceless.features.feature_map import BoundMap
from traceless.solvers.moments import Moments

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge

_PIECE = 20  # bits of a coefficient that are multiplied at a time
_SHORTEST = 8  # bits of a slice that are worth a product
_ACCURACY = 2.0**-40  # of an entry of v
_LEAST = 0.1  # degrees of freedom that must be left over to estimate the noise


@dataclass(frozen=True, eq=False)
class Errors:
    """The errors of a regression with T targets, in the units of features and targets.

    Attributes
    ----------
    moments : Moments
    phi : BoundMap
    shift : ndarray, or None
        Whole numbers that are subtracted from codes, with a free intercept.
    residual_squares, total_squares : ndarray of shape (T,)
        Σω(y - ŷ)², and Σω(y - ȳ)²; Σωy² if there is no constant feature.
    """

    moments: Moments
    phi: BoundMap
    shift: Floats | None
    residual_squares: Floats
    total_squares: Floats

    @property
    def degrees_left(self) -> float:
        """The degrees of freedom n - d that are left to estimate the noise from."""
        return self.moments.n_rows - self.moments.degrees_of_freedom

    @cached_property
    def noise(self) -> Floats:
        """σ̂ of each target; NaN, with a warning, if the rows leave nothing to estimate it from."""
        left = self.degrees_left
        if left >= max(_LEAST, _rounding(self.moments)):
            return np.sqrt(self.residual_squares / left)
        warnings.warn(
            f"The noise cannot be estimated: {self.moments.n_rows} rows are fitted with "
            f"{self.moments.degrees_of_freedom:.4g} degrees of freedom, which leaves next to none. "
            "Errors are NaN. Learn more rows, or increase rho.",
            RuntimeWarning,
            stacklevel=4,
        )
        return np.full(len(self.residual_squares), np.nan)

    @property
    def determination(self) -> Floats:
        """R² of each target: 1 - RSS / Σω(y - ȳ)²; NaN for a target that never varies."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(
                self.total_squares > 0, self.residual_squares / self.total_squares, np.nan
            )
        return 1.0 - share

    def of_coefficients(self) -> tuple[Floats, Floats]:
        """Errors of the coefficients, T × J, and of the intercepts, T."""
        m, spread = self.moments, np.sqrt(self.moments.P.diagonal())
        coef = np.outer(self.noise, spread[: len(self.phi.steps) - self.phi.has_bias])
        if not self.phi.has_bias:
            return coef, np.zeros(len(coef))
        if not m.is_centred:
            return coef, self.noise * spread[-1]
        far = m.root.T @ m.center
        return coef, self.noise * np.sqrt(1.0 / m.weight + far @ far)

    def of_codes(self, codes: Floats) -> Floats:
        """Errors s of what rows will show, n × T; `codes` is given away for that."""
        if self.shift is not None:
            codes -= self.shift
        own_noise = 1.0 + 1.0 / self.moments.weight if self.moments.is_centred else 1.0
        squares = self._root.squares(codes) + own_noise
        return np.asarray(np.sqrt(squares)[:, None] * self.noise)

    def quantile(self, level: float) -> float:
        """How many errors to each side hold a share `level` of what a target will show."""
        return float(stdtrit(self.degrees_left, 0.5 + 0.5 * level))

    @cached_property
    def _root(self) -> _Root:
        return _Root(self.moments, self.phi.steps, self.shift)


class _Root:
    """‖Fᵀ(φ - φ̄)‖² of codes less a shift."""

    def __init__(self, m: Moments, steps: Floats, shift: Floats | None) -> None:
        J = len(m.C)
        self.F = np.asfortranarray(m.root * steps[:J, None])
        self.offset = np.zeros(J)
        spread = np.sqrt(m.C.diagonal() / m.weight) / steps[:J]
        if shift is not None:  # means are no whole numbers of steps
            self.offset = (m.center - shift[:J] * steps[:J]) @ m.root
        self.limit = 2.0 ** max(np.frexp(16.0 * spread.max(initial=1.0))[1], 17)
        bits = 54 - int(self.limit * J).bit_length()
        self.slices = self._cut(bits) if bits >= _SHORTEST else []

    def _cut(self, bits: int) -> list[Floats]:
        """Slices of F: integers of so many bits times a power of two, the smallest slice first."""
        rest, slices = self.F, []
        enough = _ACCURACY / (self.limit * len(rest))
        while (largest := np.abs(rest).max(initial=0.0)) > enough:
            unit = 2.0 ** (int(np.frexp(largest)[1]) - bits + 1)
            slices.append(np.rint(rest / unit) * unit)
            rest = rest - slices[-1]
        return slices[::-1]

    def squares(self, codes: Floats) -> Floats:
        """‖v‖² of each row."""
        out = np.empty(len(codes))
        codes = codes[:, : len(self.F)]
        near = np.abs(codes).max(axis=1, initial=0.0) <= self.limit
        near &= bool(self.slices)  # there are none where codes are too large for all of them
        for rows, times in ((near, self._short), (~near, self._wide.times)):
            if rows.any():
                v = times(codes[rows]) - self.offset
                out[rows] = (v * v).sum(axis=1)
        return out

    def _short(self, codes: Floats) -> Floats:
        columns = np.asfortranarray(codes.T)
        v = dtrmm(1.0, self.slices[0], columns, trans_a=True)
        for piece in self.slices[1:]:
            v += dtrmm(1.0, piece, columns, trans_a=True)
        return np.asarray(v.T)  # rows in a piece, so that each is added up by itself

    @cached_property
    def _wide(self) -> Coefficients:
        return Coefficients(self.F)


def _rounding(m: Moments) -> float:
    """What the degrees of freedom may be off by."""
    inflation = (m.P.diagonal() * (m.C.diagonal() + m.ridge)).max(initial=0.0)
    return float(4.0 * len(m.P) * 2.0**-53 * inflation)


def errors(known: Knowledge, moments: Moments, phi: BoundMap, solution: Coefficients) -> Errors:
    """The errors of a regression whose coefficients were found for these moments."""
    step = float(known.specification["target_resolution"])
    unit = Fraction(step) ** 2 / (1 << known.weight_bits)
    J = known.n_outputs
    total = wide(known.gram.diagonal()[J:])
    divisor = 1
    if phi.has_bias:
        n, t = int(known.gram[J - 1, J - 1]), wide(known.gram[J - 1, J:])
        total, divisor = n * total - t * t, n
    return Errors(
        moments,
        phi,
        solution.shift,
        _floats(residual_squares(known, solution), unit),
        _floats([Fraction(int(v), divisor) for v in total], unit),
    )


def residual_squares(known: Knowledge, solution: Coefficients) -> list[Fraction]:
    """Σω(y - ŷ)² of each target, exactly, in the units of the knowledge."""
    S, Q = known.feature_gram, known.response_sums
    yy = wide(known.gram.diagonal()[len(S) :])
    D, E = whole_over_powers(solution.Z)
    if solution.shift is not None:  # the same function of codes that are not shifted
        D[-1] -= (wide(solution.shift.astype(np.int64))[:, None] * D).sum(axis=0)
    fitted = (D * _times(S, D)).sum(axis=0) - (((D * wide(Q)).sum(axis=0)) << (E + 1))
    return [Fraction(int(v), 1 << 2 * E) for v in (yy << 2 * E) + fitted]


def _times(S: Sums, D: Integers) -> Integers:
    """``S D`` for Python integers D of any length, by BLAS on pieces of them."""
    out, shift = np.zeros(D.shape, dtype=object), 0
    while True:
        last = max(abs(D.max()), abs(D.min())) <= 1 << _PIECE
        piece = D if last else D & ((1 << _PIECE) - 1)
        out += matrix_times(S, piece.astype(np.float64), _PIECE) << shift
        if last:
            return out
        D, shift = D >> _PIECE, shift + _PIECE


def _floats(fractions: list[Fraction], unit: Fraction) -> Floats:
    return np.array([float(v * unit) for v in fractions])
