"""Whether there can be rows that add up to some sums.

Where rows are subtracted that were never added, what is left may be nothing that rows add up to.
A "no" must be proven, since it refuses what somebody has asked for; where there is a doubt, the
answer is "it can". Counts and total weights of rows are compared exactly. The matrix of sums,
Σ ω z zᵀ, has no negative eigenvalue; three looks at it, each finer:

1. Exact: no diagonal entry is negative; where it is 0, its row is; and every 2 × 2 minor is
   at least 0, G_ij² ≤ G_ii G_jj. float64 only says which pairs have to be looked at.
2. Cholesky in float64. Scaled to a unit diagonal, rounding has moved the matrix by at most
   8 m u in norm (m rows, u = 2^-53), and Cholesky cannot break down if the least eigenvalue is
   above m (m + 1) u (Demmel; Higham 2002, theorem 10.7). So with

       τ = 1.2 u m (m + 12)

   added to the diagonal, a breakdown proves an eigenvalue below 0. With τ subtracted, success
   ends the search.
3. In between lie singular matrices, those of fewer rows than features among them. Up to
   m = 100 they are factored again in twofold precision, with u = 2^-100. The scale is a power of
   two there, so that nothing is rounded, and a diagonal below 2 has room in 4 u m (m + 12).

Twofold arithmetic has the same bits everywhere, and so has the answer. Where m is larger, one BLAS
may break down where another does not, for an eigenvalue between -2 τ and 0: there a breakdown is
believed only if twofold arithmetic confirms that it is below -3 τ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from traceless.arithmetic.core import core
from traceless.arithmetic.integers import Floats, Sums, Wide, as_limbs, as_sums, peak, wide
from traceless.exceptions import NotLearnedError
from traceless.knowledge.sample_weights import LARGEST, SMALLEST

Indices = NDArray[np.intp]

if TYPE_CHECKING:
    from traceless.knowledge.responses import Label, Task
    from traceless.knowledge.sums import Knowledge

_SMALLEST, _LARGEST = math.frexp(SMALLEST)[1] - 1, math.frexp(LARGEST)[1] - 1  # weights of a row
_CACHE = 2**15  # numbers that are worked on together
TWOFOLD = 100  # rows of a matrix that is worth the time (24 ms) of a second factorisation


def check_counts(groups: Sequence[str], counts: Sequence[int]) -> None:
    """Raise `NotLearnedError` if a group would have fewer than no rows."""
    for group, count in zip(groups, counts, strict=True):
        if count < 0:
            raise NotLearnedError(
                f"More rows would be forgotten than were learned ({group}: {-count} too many). "
                "Nothing was changed."
            )


def response_names(task: Task, responses: Sequence[Label]) -> list[str]:
    """What the counts of rows are of, for messages."""
    if task == "regression":
        return ["rows"]
    if task == "multilabel":
        return [*(f"label {label!r}" for label in responses[:-1]), "rows"]
    return [f"class {label!r}" for label in responses]


def check_sums(known: Knowledge) -> None:
    """Raise `NotLearnedError` if no rows have such counts and weights, or such sums."""
    names, J = response_names(known.task, known.responses), known.n_outputs
    totals: Sequence[int] = known.class_weights.tolist()  # in units of 2^-weight_bits
    if known.task == "regression":
        biased = known.specification["features"].get("bias") is True
        totals = [int(known.total[J - 1, J - 1])] if biased else []
    check_counts(names, known.counts)
    if known.task == "multilabel" and max(known.counts) > known.n_samples:
        raise NotLearnedError(_impossible("more rows with a label than there are"))
    for k, (name, n) in enumerate(zip(names, known.counts, strict=True)):
        own = known.total if known.task == "regression" else known.of_class(k)
        if not n and own.any():
            raise NotLearnedError(_impossible(f"sums without rows for {name}"))
    for name, n, total in zip(names, known.counts, totals, strict=False):
        least, most = n << known.weight_bits, total << -_SMALLEST
        if not least <= most or total > least << _LARGEST:
            weight = float(Fraction(total, 1 << known.weight_bits))
            raise NotLearnedError(_impossible(f"{name}: {n} rows that weigh {weight:g}"))
    if not all(map(can_be_semidefinite, _without_bias(known))):
        raise NotLearnedError(_impossible("their matrix has a negative eigenvalue"))


def _without_bias(known: Knowledge) -> Iterator[Sums]:
    """The matrices, less a last response if a constant feature is the sum of all responses.

    With it they would all be singular, and a look at them would take longer.
    """
    J, sums = known.n_outputs, known.total
    size = sums.shape[-1]
    if known.task != "regression" and J:
        responses = sums[..., -1:, :] if known.task == "multilabel" else sums[..., J:, :]
        ones, found = np.asarray(responses).sum(axis=-2), np.asarray(sums[..., J - 1, :])
        size -= int(np.array_equal(found, ones))
    for matrix in sums if known.classwise else (sums,):
        yield matrix[:size, :size]


def _impossible(why: str) -> str:
    return (
        f"The remaining sums are not those of any data set ({why}): some of these rows were never "
        "learned, or with other labels, targets or weights. Nothing was changed."
    )


def can_be_semidefinite(G: Sums) -> bool:
    """False if the matrix certainly has an eigenvalue below 0."""
    G = as_sums(G)
    diagonal = G.diagonal()
    if not diagonal.all():
        used = np.flatnonzero(diagonal)
        return not G[diagonal == 0].any() and can_be_semidefinite(G[np.ix_(used, used)])
    if not G.size:
        return True
    if (diagonal < 0).any():
        return False
    C, diagonal, pairs = _unit_diagonal(G)
    if not _minors_hold(G, pairs):
        return False
    m = len(G)
    if _has_cholesky(C, diagonal - tolerance(m)):
        return True
    distinct = _distinct(G)
    if len(distinct) < m:
        return can_be_semidefinite(G[np.ix_(distinct, distinct)])
    if _has_cholesky(_unit_diagonal(G)[0], diagonal + tolerance(m)):
        return m > TWOFOLD or _has_twofold_factor(G, 4 * 2.0**-100 * m * (m + 12))
    return m > TWOFOLD and _has_twofold_factor(G, 6 * tolerance(m))


def tolerance(m: int) -> float:
    """τ of a matrix of m rows."""
    return 1.2 * 2.0**-53 * m * (m + 12)


def _distinct(G: Sums) -> Indices:
    """The first of each group of equal rows: the others, and their columns, add nothing."""
    rows = as_limbs(G).swapaxes(0, 1)
    _, group, sizes = np.unique(G.diagonal(), return_inverse=True, return_counts=True)
    alone = sizes[group] == 1  # equal rows are equal on the diagonal too
    seen = {rows[i].tobytes(): i for i in reversed(np.flatnonzero(~alone).tolist())}
    return np.sort(np.append(np.flatnonzero(alone), np.array([*seen.values()], dtype=np.intp)))


def _unit_diagonal(G: Sums) -> tuple[Floats, Floats, list[tuple[Indices, Indices]]]:
    """The lower triangle of G scaled to a diagonal near 1, that, and pairs of minors near 0."""
    C, diagonal = np.empty(G.shape, order="F"), np.empty(len(G))
    scale, pairs = 1.0 / np.sqrt(G.diagonal().astype(np.float64)), []
    size = max(1, _CACHE // len(G))
    for start in range(0, len(G), size):
        rows, rest = slice(start, start + size), slice(start, None)
        part, own = C.T[rows, rest], G[rows, rest]
        part[:] = own.astype(np.float64) if isinstance(G, Wide) else own
        part *= scale[rest]
        part *= scale[rows, None]
        each = np.arange(len(part))
        diagonal[rows], part[each, each] = part[each, each], 0.0
        if peak(part) > 1 - 1e-12:
            i, j = np.nonzero(np.abs(part) > 1 - 1e-12)
            pairs.append((i + start, j + start))
    return C, diagonal, pairs


def _minors_hold(G: Sums, pairs: list[tuple[Indices, Indices]]) -> bool:
    """Whether G_ij² ≤ G_ii G_jj for some pairs."""
    d = wide(G.diagonal())
    return all((wide(G[i, j]) ** 2 <= d[i] * d[j]).all() for i, j in pairs)


def _has_cholesky(C: Floats, diagonal: Floats) -> bool:
    """Whether C with another diagonal has a factor, which is written over its lower triangle."""
    np.fill_diagonal(C, diagonal)
    return bool(dpotrf(C, lower=True, overwrite_a=True, clean=False)[1] == 0)


def _has_twofold_factor(G: Sums, off: float) -> bool:
    """Whether G has a factor when `off` is added to a diagonal of 1/2 to 2."""
    m, whole = len(G), wide(G)
    high = whole.astype(np.float64)
    A = np.array([high, (whole - np.frompyfunc(int, 1, 1)(high)).astype(np.float64)])
    scale = np.ldexp(1.0, -(np.frexp(high.diagonal())[1] // 2))
    A *= scale * scale[:, None]
    at = np.diag_indices(m)
    total = A[0][at] + off
    A[1][at] += off - (total - A[0][at])
    A[0][at] = total
    return bool(core.twofold_factor(A, m, 1) == m)
