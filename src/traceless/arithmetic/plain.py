"""The plain twin of `traceless._core`: each function in Python's integers, obviously right.

It is the oracle of the compiled functions, and what runs where nothing is compiled. A wide number
is two's complement in 64-bit limbs, the lowest first; arrays of them have the limbs in the first
axis.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

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


def scores(
    X: Any, scale: Any, shift: Any, starts: Any, columns: Any, Z: Any, out: Any, _threads: int
) -> int:
    """Write Σ_j (round(x_j scale_j) - shift_j) z_j, rounded once; -1 if a code is beyond 2^53.

    Of sparse rows, X is all numbers. The rows of Z beyond the columns have the code 1.
    """
    n, J = len(out), len(scale)
    if len(starts):
        X = csr_matrix((X[0], columns, starts), shape=(n, J)).toarray()
    with np.errstate(all="ignore"):
        codes = np.rint(X * scale)
    if not (np.abs(codes) <= 2.0**53).all():
        return -1
    whole = np.ones((n, len(Z)), dtype=object)
    whole[:, :J] = codes.astype(np.int64).astype(object) - shift.astype(np.int64).astype(object)
    digits, places = np.frexp(Z[:, : out.shape[1]])
    least = int(places.min(initial=-53))
    numbers = np.ldexp(digits, 53).astype(np.int64).astype(object)
    numbers <<= (places - least).astype(object)
    for index, number in np.ndenumerate(whole @ numbers):
        try:
            out[index] = number / (1 << 53 - least)  # of Python integers, which is rounded once
        except OverflowError:
            out[index] = math.inf if number > 0 else -math.inf
    return int(out.size)
