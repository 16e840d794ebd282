"""A kernel matrix that is given, and that points join and leave (``kernel="precomputed"``).

Points have numbers, their rows of the matrix; the number of a point that has left is used
again. A point has no content but its number, so it can only be forgotten by its id.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge.kernels import NOT_POSITIVE
from traceless.knowledge.training_rows import Batch


def joined(gram: Floats, held: Integers, new: Batch) -> tuple[Floats, Batch]:
    """The matrix with new points, and these as rows: their numbers, labels and weights.

    A point of weight 0 is none.

    Parameters
    ----------
    gram : ndarray
        The matrix as it is.
    held : numbers of the points held now, in the order of their ids
    new : rows of shape (m, len(held) + m), labels and weights
        New points against those held, and against each other.
    """
    K, y, weight = new
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
    # necessary for a kernel, not sufficient: k(x, x) ≥ 0 and k(x, z)² ≤ k(x, x) k(z, z)
    others = np.concatenate([gram.diagonal()[held], diagonal])
    most = np.outer(np.maximum(diagonal, 0.0), np.maximum(others, 0.0)) * (1.0 + 1e-6)
    most += 1e-12 * float(np.abs(diagonal).max(initial=0.0)) ** 2
    if (others < 0.0).any() or (most < K * K).any():
        raise ValueError(NOT_POSITIVE)
    kept = weight > 0.0
    K, m = K[kept][:, np.concatenate([np.ones(n, dtype=bool), kept])], int(kept.sum())
    free = np.setdiff1d(np.arange(n + m), held)[:m]
    size = max(len(gram), int(free.max(initial=-1)) + 1)
    larger = np.zeros((size, size))
    larger[: len(gram), : len(gram)] = gram
    larger[np.ix_(free, held)] = K[:, :n]
    larger[np.ix_(held, free)] = K[:, :n].T
    larger[np.ix_(free, free)] = K[:, n:]
    return larger, (free[:, None] + 0.0, y[kept], weight[kept])


def content(gram: Floats, y: NDArray[Any], weight: Floats) -> bytes:
    """What is known of the points, the same bytes in whatever order they came.

    Points are ordered by what tells them apart: label, weight, and their values with all points,
    these told apart in turn. Of points that are equal in all of that and not in their values, the
    one that came first is first.
    """
    names, label = np.unique(y, return_inverse=True)
    known = np.column_stack([label, weight, gram.diagonal()])
    order = _order(gram, np.unique(known, axis=0, return_inverse=True)[1])
    content = np.column_stack([known[order], gram[np.ix_(order, order)]])
    return ascii(names.tolist()).encode() + content.tobytes()


def _order(gram: Floats, rank: Integers) -> NDArray[np.intp]:
    """The points in order of a rank that is refined by their kernel values."""
    n, rank = len(gram), rank.ravel()
    while True:
        n_ranks, before = len(np.unique(rank)), 0
        while before < n_ranks < n:
            keys = [np.concatenate([[rank[i]], *_sorted(gram[i], rank)]) for i in range(n)]
            rank = np.unique(np.array(keys), axis=0, return_inverse=True)[1].ravel()
            before, n_ranks = n_ranks, len(np.unique(rank))
        alike = next((same for same in _ties(rank) if not _are_alike(gram, same)), None)
        if alike is None:
            return np.argsort(rank, kind="stable")
        rank = 2 * rank + 1
        rank[alike[0]] -= 1


def _sorted(values: Floats, rank: Integers) -> tuple[Floats, Integers]:
    """The kernel values of a point, in order, and the ranks of the others that they are with."""
    order = np.lexsort((rank, values))
    return values[order], rank[order]


def _ties(rank: Integers) -> Iterator[NDArray[np.intp]]:
    """The points of each rank that several have."""
    order = np.argsort(rank, kind="stable")
    starts = np.flatnonzero(np.diff(rank[order], prepend=-1, append=-1))
    yield from (order[a:b] for a, b in pairwise(starts) if b - a > 1)


def _are_alike(gram: Floats, points: NDArray[np.intp]) -> bool:
    """Whether the matrix stays what it is if any two of these points change places."""
    among, others = gram[np.ix_(points, points)], np.delete(gram[points], points, axis=1)
    own, apart = among.diagonal().copy(), among[0, 1]
    np.fill_diagonal(among, apart)
    return bool((others == others[0]).all() and (own == own[0]).all() and (among == apart).all())


def less(gram: Floats, gone: Integers) -> Floats:
    """The matrix without what is known of some points."""
    out = gram.copy()
    out[gone] = 0.0
    out[:, gone] = 0.0
    return out


def values(K: Floats, support: Integers, coefficients: Floats) -> Floats:
    """Σ_s c_s k(x, s) for rows of kernel values with the points held; the same in any batch."""
    out = np.zeros(len(K))
    for c, s in zip(coefficients, support, strict=True):
        out += c * K[:, s]
    return out
