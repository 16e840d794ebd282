"""The plain twin of `traceless._core`: each function in Python's integers, obviously right.

It is the oracle of the compiled functions, and what runs where nothing is compiled. A wide number
is two's complement in 64-bit limbs, the lowest first; arrays of them have the limbs in the first
axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Limbs = NDArray[np.uint64]


def integers(limbs: Limbs) -> NDArray[Any]:
    """The numbers, as Python integers."""
    total = limbs[-1].view(np.int64).astype(object)
    for limb in limbs[-2::-1]:
        total = (total << 64) + limb.astype(object)
    return np.asarray(total)


def put(out: Limbs, numbers: NDArray[Any]) -> None:
    """Write Python integers into limbs, modulo 2^(64 limbs)."""
    for k, limb in enumerate(out):
        limb[...] = ((numbers >> (64 * k)) & (2**64 - 1)).astype(np.uint64)


# --- sums ----------------------------------------------------------------------------------


# --- solve ---------------------------------------------------------------------------------


# --- scores --------------------------------------------------------------------------------
