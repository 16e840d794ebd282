"""A kernel matrix that is given, and that points join and leave (``kernel="precomputed"``).

Points have numbers, their rows of the matrix; the number of a point that has left is used
again. A point has no content but its number, so it can only be forgotten by its id.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge.kernels import check_positive


def joined(gram: Floats, held: Integers, K: Floats) -> tuple[Floats, Integers]:
    """The matrix with new points, and their numbers.

    Parameters
    ----------
    gram : ndarray
        The matrix as it is.
    held : numbers of the points held now, in the order of their ids
    K : ndarray of shape (m, len(held) + m)
        New points against those held, and against each other.
    """
    m, n = len(K), len(held)
    if K.shape[1] != n + m:
        raise ValueError(
            f"With kernel='precomputed', {m} new points beside {n} held ones need a matrix of "
            f"shape ({m}, {n + m}): their kernel values with those held, in the order of ids_, "
            f"and with each other. Got {K.shape}."
        )
    if not np.array_equal(K[:, n:], K[:, n:].T):
        gap = float(np.abs(K[:, n:] - K[:, n:].T).max())
        if gap > 1e-10 * float(np.abs(K).max()):
            raise ValueError(
                f"A kernel matrix is symmetric, but k(a, b) and k(b, a) differ by up to {gap:.3g}."
            )
        K = K.copy()
        K[:, n:] = 0.5 * (K[:, n:] + K[:, n:].T)
    diagonal = K[:, n:].diagonal()
    check_positive(K, diagonal, np.concatenate([gram.diagonal()[held], diagonal]))
    free = np.setdiff1d(np.arange(n + m), held)[:m]
    size = max(len(gram), int(free.max(initial=-1)) + 1)
    larger = np.zeros((size, size))
    larger[: len(gram), : len(gram)] = gram
    larger[np.ix_(free, held)] = K[:, :n]
    larger[np.ix_(held, free)] = K[:, :n].T
    larger[np.ix_(free, free)] = K[:, n:]
    return larger, free.astype(np.int64)


def content(gram: Floats, y: NDArray[Any], weight: Floats) -> bytes:
    """What is known of the points, the same bytes in whatever order they came.

    Of each point its label, its weight and its kernel values with all points, sorted, with the
    labels and weights of these; and all of that sorted.
    """
    names, label = np.unique(y, return_inverse=True)
    keys = []
    for own, values in enumerate(gram):
        order = np.lexsort((weight, label, values))
        theirs = np.column_stack([values, label, weight])[order]
        h = sha256(np.array([label[own], weight[own], values[own]], np.float64).tobytes())
        h.update(theirs.tobytes())
        keys.append(h.digest())
    return b"".join([ascii(names.tolist()).encode(), *sorted(keys)])


def less(gram: Floats, gone: Integers) -> Floats:
    """The matrix without what is known of some points."""
    out = gram.copy()
    out[gone] = 0.0
    out[:, gone] = 0.0
    return out


def values(K: Floats, held: Integers, support: Integers, coefficients: Floats) -> Floats:
    """Σ_s c_s k(x, s) for rows of kernel values with the points held; the same in any batch."""
    column = np.zeros(int(held.max(initial=-1)) + 1, dtype=np.intp)
    column[held] = np.arange(len(held))
    out = np.zeros(len(K))
    for c, s in zip(coefficients, support, strict=True):
        out += c * K[:, column[s]]
    return out
