"""Correctly rounded coefficients on a device: `traceless.solvers.rounded`, in torch.

Steps, bounds and proofs are the host's. There is one nearest float64, so the bits are the host's
too, which takes what is not decided here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from traceless.arithmetic.integers import Floats, Integers
from traceless.device.matrices import TensorMatrix, sent
from traceless.device.memory import OutOfMemoryError
from traceless.device.tensors import to_array
from traceless.solvers.class_weights import Coding
from traceless.solvers.ridge import Ridge
from traceless.solvers.rounded import System
from traceless.solvers.steps import HardError


def solved_there(
    G: Integers, code: Coding, ridge: Ridge, shift: Integers | None, intercept: bool, device: Any
) -> tuple[Floats, NDArray[np.bool_]] | None:
    """Coefficients, and which columns are decided; None where the device cannot solve the system.

    Parameters
    ----------
    G : int64 array of shape (J, J + K)
        Σφφᵀ, and beside it Σφrᵀ, of features that are still to be shifted.
    code : callable
        Makes right-hand sides of the responses' sums.
    ridge, shift
        See `traceless.solvers.rounded.correctly_rounded_solve`.
    intercept : bool
        Whether to add that of features as they were.
    device : torch.device
    """
    J, K = len(G), G.shape[1] - len(G)
    try:
        sums = sent(G, device)
        V = sums[:, J:]
        if not K or _size(V) >= 2**60 // K:
            return None
        Q = code(V)
        there = TensorMatrix.of(sums[:, :J], shift)
        if there is None:
            return None
        if shift is not None:
            if _size(Q) * (int(np.abs(shift).max()) + 1) >= 2**62:
                return None
            Q = Q - there.arrays.there(shift)[:, None] * Q[-1]
        kept = there.diagonal() != 0
        kept[:-1] &= ridge.near[:-1] > 0
        used, asked = np.flatnonzero(kept), np.flatnonzero(to_array((Q != 0).any(0)))
        if not used.size or not asked.size:
            return None
        own = shift if intercept else None
        if used.size < J:
            there, ridge = there.of_features(used), ridge.of_features(used)
            own = None if own is None else own[used]
        whole = (used.size, asked.size) == tuple(Q.shape)
        some = Q if whole else Q[there.arrays.there(used)][:, there.arrays.there(asked)]
        part, certain = System(there, ridge, own, there.arrays).solve(some)
    except (HardError, LinAlgError, OverflowError, OutOfMemoryError):
        return None
    if whole:
        return part, certain
    Z, decided = np.zeros((J + (own is not None), Q.shape[1])), np.ones(Q.shape[1], dtype=bool)
    rows = used if own is None else np.append(used, J)
    Z[np.ix_(rows, asked)], decided[asked] = part, certain
    return Z, decided


def _size(a: Any) -> int:
    """The largest absolute value."""
    return max(int(a.max()), -int(a.min()))
