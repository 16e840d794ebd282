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

*RSS is exact.* Coefficients are D 2^-E for integers D, and the sums are integers, so with

    2^2E RSS = 2^2E Σyy - Dᵀ(2^(E+1) q - S D)

nothing is rounded, nothing cancels, and no bit depends on BLAS. P is float64 and its last bits do.

*A row's error does not depend on its batch.* With P = F Fᵀ the quadratic form is ‖Fᵀ(φ - φ̄)‖²,
which the core adds up in one order, the same for one row as for many.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from traceless.arithmetic.core import core
from traceless.arithmetic.integers import Floats, whole_over_powers, wide
from traceless.arithmetic.plain import integers, limbs
from traceless.arithmetic.products import Coefficients
from traceless.features.feature_map import BoundMap
from traceless.solvers.moments import Moments
from traceless.solvers.solve import THREADS, weighted

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge

_WORTH = 2**24  # products that are worth more than starting threads
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
        """Errors s of what rows will show, n × T."""
        own_noise = 1.0 + 1.0 / self.moments.weight if self.moments.is_centred else 1.0
        return np.asarray(np.sqrt(self._squares(codes) + own_noise)[:, None] * self.noise)

    def quantile(self, level: float) -> float:
        """How many errors to each side hold a share `level` of what a target will show."""
        return float(stdtrit(self.degrees_left, 0.5 + 0.5 * level))

    def _squares(self, codes: Floats) -> Floats:
        """‖Fᵀ(φ - φ̄)‖² of each row."""
        F, center = self._root
        J = center.shape[1]
        z = codes[:, :J] if self.shift is None else codes[:, :J] - self.shift[:J]
        out = np.empty((1, len(codes)))
        core.distances(z.T, F, center, out, THREADS if len(codes) * J * J > _WORTH else 1)
        return np.asarray(out[0])

    @cached_property
    def _root(self) -> tuple[Floats, Floats]:
        """Fᵀ for codes less the shift, and Fᵀ of their mean, which is no whole number."""
        m, J = self.moments, len(self.moments.C)
        steps, center = self.phi.steps[:J], np.zeros((1, J))
        if self.shift is not None:
            center = (m.center - self.shift[:J] * steps)[None] @ m.root
        return np.ascontiguousarray((m.root * steps[:, None]).T)[None], center


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
    S, Q = weighted([known.feature_gram], [1.0])[0], wide(known.response_sums)
    yy = wide(known.gram.diagonal()[len(Q) :])
    D, E = whole_over_powers(solution.Z)
    if solution.shift is not None:  # the same function of codes that are not shifted
        D[-1] -= (wide(solution.shift)[:, None] * D).sum(axis=0)
    product = np.zeros((len(S) + len(limbs(D)) + 1, *D.shape), np.uint64)  # - S D
    as_it_is, none = np.zeros(D.shape[1], np.int64), np.zeros((1, len(S[0])), np.uint64)
    core.residual(product, as_it_is, S, limbs(D), none[:0], limbs(1), none, 1)
    squares = (yy << 2 * E) - (D * ((Q << E + 1) + integers(product))).sum(axis=0)
    return [Fraction(int(v), 1 << 2 * E) for v in squares]


def _floats(fractions: list[Fraction], unit: Fraction) -> Floats:
    return np.array([float(v * unit) for v in fractions])
