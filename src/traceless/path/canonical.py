"""The same bits whatever the history: the margin solved once more, in the order of the content.

Equal rows with equal labels are one group, its bound the sum of theirs; groups are sorted by
content. Given which groups are on the margin (M) and which at their bound (O),

    [K_MM 1; 1ᵀ 0] [c; b] = [y_M - K_MO c_O; -1ᵀc_O],      c = yα

is solved with one order of evaluation (kernel values of `traceless.path.kernels`, unblocked
Cholesky, one refinement, no BLAS). So α per group and b depend on the data alone, as long as
the sides of all groups do: `ambiguity` says how far the nearest group is from changing sides.
Members of a group share its α in proportion to their bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceless.exact import Floats
from traceless.path.compiled import compiled
from traceless.path.factor import ONE, SOUND, forward
from traceless.path.kernels import Kernel
from traceless.path.store import Slots, Store, sum_of_rows

_EPS = float(np.finfo(np.float64).eps)
_CERTAIN = 1e-9
_BLOCK = 1 << 21  # kernel values at once


@compiled
def _cholesky(A: Floats) -> bool:
    """A ← R with RᵀR = A, in place, upper triangle; False where a pivot is unsound."""
    k = np.uint64(len(A))
    for j in range(k):
        row = A[j]
        if not row[j] > 0.0:
            return False
        root = np.sqrt(row[j])
        row[j] = root
        for i in range(j + ONE, k):
            row[i] /= root
        for r in range(j + ONE, k):
            t, lower = row[r], A[r]
            for i in range(r, k):
                lower[i] -= t * row[i]
    return True


@compiled
def _backward(R: Floats, k: int, z: Floats) -> None:
    for j in range(k - 1, -1, -1):
        t = z[j]
        for i in range(j + 1, k):
            t -= R[j, i] * z[i]
        z[j] = t / R[j, j]


def _solve(R: Floats, rho: float, p: Floats, q: float) -> tuple[Floats, float]:
    """The bordered system of `traceless.path.factor`, in one order of evaluation."""
    k, ones, x = len(p), np.ones(len(p)), p.copy()
    for z in (ones, x):
        forward(R, k, z)
        _backward(R, k, z)
    beta = (_sum(x) - q) / _sum(ones)
    return x - beta * ones, beta + rho * q


def _sum(a: Floats) -> float:
    """One after the other: `numpy.sum` adds in an order of its own."""
    return float(np.add.accumulate(a)[-1]) if len(a) else 0.0


@dataclass(frozen=True)
class Canonical:
    """A solution as a function of the data.

    Attributes
    ----------
    order : places of the points, sorted by content (row, label, bound)
    group : number of the group of each point, in the order the points came
    first : place of one point of each group
    alpha, bounds : of each group
    intercept : float
    ambiguity : float
        How far the nearest group is from changing sides: |g|, or the relative distance of α
        from its bounds. Negative if a group is on the wrong side by as much.
    certain : bool
        Whether the sides are beyond doubt. If not, another history may end in other bits.
    """

    kernel: Kernel
    order: NDArray[np.intp]
    group: NDArray[np.intp]
    first: NDArray[np.intp]
    alpha: Floats
    bounds: Floats
    intercept: float
    ambiguity: float
    certain: bool
    support: Floats  # rows with α > 0, in order
    coefficients: Floats  # their yα

    def decision_function(self, X: Floats) -> Floats:
        """F, the same bits for a row whatever batch it comes in."""
        out = np.zeros(len(X))
        step = max(1, _BLOCK // max(1, len(self.support)))
        support = np.ascontiguousarray(self.support.T)
        for start in range(0, len(X), step):
            V = np.ascontiguousarray(self.kernel.exact_values(X[start : start + step], support).T)
            sum_of_rows(V, np.arange(len(V)), self.coefficients, out[start : start + step])
        return out + self.intercept

    def alpha_of_points(self, bounds: Floats) -> Floats:
        """Each point's part of the α of its group."""
        return np.asarray(self.alpha[self.group] * (bounds / self.bounds[self.group]))


class _Values:
    """Kernel values between groups: from the store where they are the same bits, else anew."""

    def __init__(self, store: Store, slots: Slots) -> None:
        self.store, self.slots = store, slots
        self.kept = store.whole and store.kernel.exact

    def between(self, a: NDArray[np.intp], b: NDArray[np.intp], exact: bool = True) -> Floats:
        a, b = self.slots[a], self.slots[b]
        if self.kept or (self.store.whole and not exact):
            return self.store.gram[np.ix_(a, b)]
        rows = self.store.rows
        make = self.store.kernel.exact_values if exact else self.store.kernel.values
        return make(np.ascontiguousarray(rows[:, a].T), np.ascontiguousarray(rows[:, b]))

    def combine(self, at: NDArray[np.intp], of: NDArray[np.intp], c: Floats, exact: bool) -> Floats:
        """Σ_s c_s k(s, ·) at some groups, over others in order."""
        out = np.zeros(len(at))
        step = max(1, _BLOCK // max(1, len(at)))
        for start in range(0, len(of), step):
            part = slice(start, start + step)
            V = self.between(of[part], at, exact)
            sum_of_rows(V, np.arange(len(V)), c[part], out)
        return out


def canonical(
    store: Store, slots: Slots, alpha: Floats, bounds: Floats, b: float, slopes: Floats
) -> Canonical:
    """The canonical form of a solution, of points in these slots; `slopes` are their g."""
    X, y = store.rows[:, slots].T, store.y[slots]
    order, group, first = _groups(X, y, bounds)
    U = _group_sums(group[order], bounds[order], len(first))
    held = _group_sums(group, alpha, len(first))
    labels, values = y[first], _Values(store, slots[first])
    a, g, b, solved = _solution(values, labels, U, held, b, slopes[first])
    scale = float(store.diagonal[slots].max(initial=0.0))
    ambiguity, doubt = _doubt(g, a, U, scale)
    if not (solved and ambiguity > doubt) and a.any():  # then look closer
        support = np.flatnonzero(a)
        f = values.combine(np.arange(len(a)), support, labels[support] * a[support], exact=False)
        ambiguity, doubt = _doubt(labels * (f + b) - 1.0, a, U, scale)
    support = np.flatnonzero(a)
    return Canonical(
        store.kernel,
        order,
        group,
        first,
        a,
        U,
        float(b),
        ambiguity,
        bool(solved and ambiguity > doubt),
        np.ascontiguousarray(X[first[support]]),
        labels[support] * a[support],
    )


def _solution(
    values: _Values, labels: Floats, U: Floats, held: Floats, b: float, g: Floats
) -> tuple[Floats, Floats, float, bool]:
    """α, g and b of the groups, and whether they depend on the sides alone."""
    a = np.zeros(len(U))
    if not len(a) or labels.min() == labels.max():
        return a, np.full(len(a), np.inf), b, True
    small = 1e-9 * np.minimum(U, held.max())
    M = np.flatnonzero((held > small) & (held < U - small))
    outside = np.flatnonzero(held >= U - small)
    a[outside] = U[outside]
    if len(M):
        solved, b = _margin(values, M, outside, labels, a, b, held)
        return a, np.where(np.isin(np.arange(len(a)), M), 0.0, g), b, solved
    f = values.combine(np.arange(len(a)), outside, labels[outside] * a[outside], exact=True)
    t = labels - f  # the b at which g would be 0
    low = (a > 0.0) == (labels < 0)
    # without a margin b is an interval: its middle, as in LIBSVM
    b = 0.5 * (float(t[low].max(initial=-np.inf)) + float(t[~low].min(initial=np.inf)))
    return a, labels * (f + b) - 1.0, b, bool(np.isfinite(b))


def _groups(X: Floats, y: Floats, u: Floats) -> tuple[NDArray[np.intp], ...]:
    """Points sorted by content, the group of each, and one place for each group."""
    content = np.ascontiguousarray(np.column_stack([X, y, u]))
    width = content.shape[1] * content.itemsize
    order = np.argsort(content.view(np.dtype((np.void, width))).ravel(), kind="stable")
    same = (content[order[1:], :-1] == content[order[:-1], :-1]).all(axis=1)
    numbers = np.concatenate([[0], np.cumsum(~same)]) if len(order) else np.zeros(0, dtype=np.intp)
    group = np.empty(len(order), dtype=np.intp)
    group[order] = numbers
    return order, group, order[np.flatnonzero(np.concatenate([[True], ~same]))[: len(order)]]


def _group_sums(group: NDArray[np.intp], values: Floats, n: int) -> Floats:
    """Sums by group, one value after the other."""
    return np.asarray(np.bincount(group, weights=values, minlength=n), dtype=np.float64)


def _margin(
    values: _Values,
    M: NDArray[np.intp],
    outside: NDArray[np.intp],
    labels: Floats,
    a: Floats,
    b: float,
    held: Floats,
) -> tuple[bool, float]:
    """Fill α of the margin groups; where they depend on each other, as the path left them."""
    G = values.between(M, M)
    c = labels[outside] * a[outside]
    p = labels[M] - values.combine(M, outside, c, exact=True)
    q = -_sum(c)
    rho = _sum(np.ascontiguousarray(G.diagonal())) / len(M)
    rho = rho if rho > 0.0 else 1.0
    R = G + rho
    limit = SOUND * R.diagonal().copy()
    if not _cholesky(R) or not (R.diagonal() ** 2 > limit).all():
        a[M] = held[M]
        return False, b
    x, b = _solve(R, rho, p, q)
    rest = p - sum_of_rows(G, np.arange(len(M)), x, np.zeros(len(M))) - b
    fix, lift = _solve(R, rho, rest, q - _sum(x))
    a[M] = labels[M] * (x + fix)
    return True, b + lift


def _doubt(g: Floats, a: Floats, U: Floats, size: float) -> tuple[float, float]:
    """The ambiguity, and what it must exceed to be certain."""
    inside, outside = a <= 0.0, a >= U
    margin = ~(inside | outside)
    wrong = np.where(inside, -g, g)
    scale = np.minimum(U, a.max(initial=0.0))
    away = np.where(margin, np.minimum(a, U - a) / np.where(scale > 0.0, scale, 1.0), -wrong)
    doubt = max(_CERTAIN, 10 * _EPS * float(a.sum()) * size)
    return float(away.min(initial=np.inf)), doubt
