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
from traceless.device.matrices import OutOfMemoryError, TensorMatrix
from traceless.solvers.centring import shifted_right_side
from traceless.solvers.ridge import Ridge
from traceless.solvers.rounded import System
from traceless.solvers.steps import HardError


def solved_there(
    S: Any, Q: Integers, ridge: Ridge, shift: Integers | None, intercept: bool, device: Any
) -> tuple[Floats, NDArray[np.bool_]] | None:
    """Coefficients, and which columns are decided; None where the device cannot solve the system.

    Parameters are those of `traceless.solvers.rounded.correctly_rounded_solve`, of features that
    are still to be shifted; `intercept` asks for that of features as they were.
    """
    try:
        there = TensorMatrix.of(S, shift, device)
        if there is None:
            return None
        Q = Q if shift is None else shifted_right_side(Q, shift)
        kept = there.diagonal() != 0
        kept[:-1] &= ridge.near[:-1] > 0
        used, asked = np.flatnonzero(kept), np.flatnonzero(Q.any(axis=0))
        if not used.size or not asked.size:
            return None
        own = shift if intercept else None
        if used.size < len(Q):
            there, ridge = there.of_features(used), ridge.of_features(used)
            own = None if own is None else own[used]
        whole = (used.size, asked.size) == Q.shape
        some = Q if whole else Q[np.ix_(used, asked)]
        part, certain = System(there, ridge, own, there.arrays).solve(some)
    except (HardError, LinAlgError, OverflowError, OutOfMemoryError):
        return None
    if whole:
        return part, certain
    Z, decided = np.zeros((len(Q) + (own is not None), Q.shape[1])), np.ones(Q.shape[1], dtype=bool)
    rows = used if own is None else np.append(used, len(Q))
    Z[np.ix_(rows, asked)], decided[asked] = part, certain
    return Z, decided
