"""What ρ adds to the diagonal of the normal equations, exactly.

    (S + diag(r)) z = q      in the units of the knowledge's integers S, n, s = S_·b

    r_j = ρ                                        plain
    r_j = ρ σ_j²,    σ_j² = (n S_jj - s_j²) / n²   standardised: no square root appears
    r_b = 0                                        for a free intercept, else ρ

(b the constant feature, n = S_bb the weight of all rows). Without a constant feature the sums have
neither n nor means, and the ridge is plain. Standardised ridges are fractions over one
denominator, so coefficients can be correctly rounded for exactly these. The scales are those of
all rows, whatever weights their classes are given: scikit-learn's pipeline of a scaler and a
weighted classifier does the same. A constant feature of the user's has σ = 0, and coefficient 0.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers, nearest, whole_over_powers, wide
from traceless.exceptions import RangeError

if TYPE_CHECKING:
    from traceless.features.feature_map import BoundMap
    from traceless.knowledge.sums import Knowledge

_TINY, _HUGE = np.finfo(np.float64).tiny, np.finfo(np.float64).max


class Penalty(NamedTuple):
    """How coefficients are penalised: ρ, whether the intercept is, and in which units.

    Free intercepts and standardised features are those of maps with a constant feature.
    """

    rho: float
    free_intercept: bool = False
    standardize: bool = False

    def ridge(self, S: Any, known: Knowledge, phi: BoundMap) -> Ridge:
        """The diagonal for the Σφφᵀ of some knowledge, the intercept's entry last."""
        if not self.standardize:
            plain = ridge_in_steps(self.rho, phi.steps, known.weight_bits)
            if self.free_intercept:
                plain[-1] = 0.0
            return Ridge(plain)
        rho = Fraction(self.rho)
        n, s = max(int(S[-1, -1]), 1), wide(S[-1, :])  # of no rows all sums are 0
        unit = rho.numerator << known.weight_bits
        numerators = (n * wide(S.diagonal()) - s * s) * unit  # the variance, times n²
        numerators[-1] = 0 if self.free_intercept else n * n * unit
        return Ridge.of_fractions(numerators, n * n * rho.denominator, self.rho)


def ridge_in_steps(rho: float, steps: Floats, weight_bits: int) -> Floats:
    """ρ in the units of integer knowledge, one for each feature: exact, or RangeError."""
    places = weight_bits - 2 * (np.frexp(steps)[1] - 1)  # steps are powers of two
    with np.errstate(over="ignore"):
        ridge = np.ldexp(rho, places)
    if not np.array_equal(np.ldexp(ridge, -places), np.full(len(steps), rho)):
        if np.isinf(ridge).any():
            what, limit = "large", f"at most {np.ldexp(_HUGE / 2, -places.max()):.1g}"
        else:
            what, limit = "small", f"at least {np.ldexp(_TINY * 2, -places.min()):.1g}"
        raise RangeError(
            f"rho={rho!r} is too {what} for the features' grid: rho / resolution² would be beyond "
            f"float64. Choose rho to be {limit}, or another resolution."
        )
    return np.asarray(ridge)


class Ridge:
    """Numbers ≥ 0 that are added to a diagonal: float64, or fractions over one denominator.

    Attributes
    ----------
    near : float64 array of shape (J,)
        Their values; the nearest ones of fractions.
    """

    def __init__(self, near: Floats, numerators: Integers | None = None, denominator: int = 1):
        self.near, self._numerators, self._denominator = near, numerators, denominator

    @classmethod
    def of_fractions(cls, numerators: Integers, denominator: int, rho: float = 1.0) -> Ridge:
        """Python integers over one that all share; what `rho` was, for an error."""
        near = nearest(numerators, np.array(denominator, dtype=object))
        if not np.array_equal(near > 0.0, numerators > 0) or not np.isfinite(near).all():
            raise RangeError(
                f"rho={rho!r} times the variance of a feature is beyond float64, in steps of the "
                "feature's grid. Choose another rho, or another resolution."
            )
        return cls(near, numerators, denominator)

    def __len__(self) -> int:
        return len(self.near)

    def of_features(self, used: NDArray[np.intp]) -> Ridge:
        """The same for some of the features."""
        numerators = None if self._numerators is None else self._numerators[used]
        return Ridge(self.near[used], numerators, self._denominator)

    @cached_property
    def is_free(self) -> bool:
        """Whether the last coefficient, an intercept, is not penalised."""
        return bool(self.near[-1] == 0.0)

    @cached_property
    def fractions(self) -> tuple[Integers, int]:
        """Whole numerators, and the denominator that they share."""
        if self._numerators is not None:
            return self._numerators, self._denominator
        numerators, places = whole_over_powers(self.near)
        return numerators, 1 << places
