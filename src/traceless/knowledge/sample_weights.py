"""Sample weights: rounded one by one, so that what they add up to is exact.

A whole number up to 2^32 is kept as it is; any other weight is rounded to 20 significant bits,

    ω ↦ m · 2^e,     2^19 ≤ m ≤ 2^20,     an error of at most 2^-20 ω < 1e-6 ω

A row's weight is therefore a function of that weight alone, whatever rows come with it, and
rows learned in two calls weigh the same in one. Sums are exact multiples of the smallest unit,
2^-`bits_of`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from traceless.arithmetic.integers import Floats
from traceless.exceptions import RangeError
from traceless.knowledge.values import check_numbers

BITS = 20  # significant bits of a weight that is not a whole number
WHOLE = 2.0**32  # whole numbers up to here are kept
SMALLEST, LARGEST = 2.0**-200, 2.0**100
FINEST = 200 + BITS  # no weight has bits below 2^-FINEST


def rounded_weights(sample_weight: Any, n: int) -> Floats | None:
    """The weights of n rows as they count, each a float64; None where all are 1.

    Parameters
    ----------
    sample_weight : array of shape (n,), number or None
        0, or from 6.2e-61 to 1.3e30.
    n : int

    Raises
    ------
    RangeError
        If a weight is smaller or larger than that.
    """
    if sample_weight is None:
        return None
    check_numbers(sample_weight, "sample_weight")
    weights = np.array(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}.")
    if not np.all((weights >= 0) & (weights < np.inf)):
        raise ValueError("sample_weight must be finite and not negative.")
    used = weights[weights > 0]
    if used.size and not (used.min() >= SMALLEST and used.max() <= LARGEST):
        raise RangeError(
            f"sample_weight must be between {SMALLEST:.1e} and {LARGEST:.1e} where it is not zero, "
            f"got {used.min():g} to {used.max():g}. Multiply all weights, and rho, by the same "
            "number."
        )
    mantissa, exponent = np.frexp(weights)
    short = np.ldexp(np.rint(np.ldexp(mantissa, BITS)), exponent - BITS)
    weights = np.where((weights <= WHOLE) & (weights == np.rint(weights)), weights, short)
    return None if (weights == 1.0).all() else weights


def bits_of(weights: Floats | None) -> int:
    """The bits b of the largest unit 2^-b, 1 at most, in which all weights are whole numbers."""
    if weights is None or not weights.any():
        return 0
    mantissa, exponent = np.frexp(weights[weights > 0])
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    _, place = np.frexp((digits & -digits).astype(np.float64))
    return max(0, int((54 - exponent - place).max()))
