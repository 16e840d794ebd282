"""Sample weights: rounded one by one, so that what they add up to is exact.

A whole number up to 2^32 is kept as it is; any other weight is rounded to 20 significant bits,

    ω ↦ m · 2^e,     2^19 ≤ m ≤ 2^20,     an error of at most 2^-20 ω < 1e-6 ω

A row's weight is therefore a function of that weight alone, whatever rows come with it, and
rows learned in two calls weigh the same in one. Sums are exact multiples of the smallest unit.

One exact product takes weights that are whole numbers, up to 2^32, of one unit. Rows whose
weights span more than that are cut into *bands*: a unit each, from a fixed grid of powers of
2^12: a weight of 20 bits is below 2^32 in a unit that is at most 2^11 below its last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.exceptions import RangeError
from traceless.knowledge.values import check_numbers

BITS = 20  # significant bits of a weight that is not a whole number
WHOLE = 2.0**32  # whole numbers up to here are kept
SMALLEST, LARGEST = 2.0**-200, 2.0**100
FINEST = 200 + BITS  # no weight has bits below 2^-FINEST
_GRID = 12


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


def units(weights: Floats | None) -> int | NDArray[np.int64]:
    """Exponents of units in which weights are whole numbers up to 2^32: one for all, or one each.

    As few different ones as the grid allows; a weight of 0 has the smallest.
    """
    if weights is None or not weights.any():
        return 0
    last = _last_bits(weights)
    lowest = int(last.min())
    if weights.max() <= np.ldexp(WHOLE, lowest):
        return lowest
    found = np.where((weights <= WHOLE) & (last >= 0), 0, last // _GRID * _GRID)
    found[weights == 0] = found.min()
    return found


def _last_bits(weights: Floats) -> NDArray[np.int64]:
    """The exponent of the last bit of each weight; a large one for 0."""
    mantissa, exponent = np.frexp(weights)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    _, place = np.frexp((digits & -digits).astype(np.float64))
    return np.where(weights > 0, exponent.astype(np.int64) - 54 + place, 2**10)
