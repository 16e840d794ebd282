"""What is published: the same bits whatever the history, and checked before anyone sees it.

Equal rows with equal labels are one group, its bound the sum of theirs; groups are sorted by
content. Given which groups are on the margin (E) and which beyond it, at their bound (O),

    [K_EE 1; 1ᵀ 0] [c; b] = [level_E - K_EO c_O; total - 1ᵀc_O],      f = Σ c k + b

is solved with one order of evaluation (kernel values of `traceless.hinge.kernels`, unblocked
Cholesky, one refinement, no BLAS). So f depends on the data alone, as long as the two sets do.

The sets are taken from g = y (f - level), not from α: f is unique (it minimises a strictly convex
function), while many α may belong to it. A first solution has the sides of the path's α; all of
g is computed from it, and E is where |g| is rounding. Where the rows of E depend on each other
(columns of zeros and ones with a linear kernel) the equations of a largest independent subset
imply the others, so c is computed on that, and is the α of no group; the α that is published with
it is the path's.

Everything is measured from scratch: what violates the conditions, and by how much. Where the
solution above does so by more than the path's own, the path's own is published, flagged.

With a linear kernel f is w·x + b, and w and b are refined once more where g should be 0, so that
they are accurate also where Σ c x cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.hinge.active_set import is_one_sided
from traceless.hinge.groups import BLOCK, CEILING, MEASURED_AGAIN, PROMISE, Groups, Solution
from traceless.hinge.kernel_cache import KernelCache, Slots
from traceless.hinge.kernels import Kernel, products
from traceless.hinge.margin import sum_of_rows
from traceless.hinge.solver import PathEnd
from traceless.knowledge.training_rows import byte_order

_SEEN = 0.1  # over k(x, x): an α of 1e-9 of this adds less than the promise to f, which is near 1
_WIDE = 4.0  # how many times further from a threshold than it is itself everything has to be


@dataclass(frozen=True)
class Canonical:
    """A solution as it is published.

    Attributes
    ----------
    group : number of the group of each point, in the order the points came
    first : place of one point of each group
    alpha, bounds : of each group
    shares : y c of each group, where f = Σ c k + b: mostly its α
    intercept : float
    certain : bool
        Whether the sides are beyond doubt. If not, another history may end in other bits.
    residual : float
        The largest violation of a KKT condition by α and f, over all points.
    noise : float
        How much of g rounding may explain: ten times what it typically leaves.
    support, coefficients : the rows with c ≠ 0, in order, and their c
    weights : of the columns, with a linear kernel
    """

    kernel: Kernel
    group: NDArray[np.intp]
    first: NDArray[np.intp]
    alpha: Floats
    bounds: Floats
    shares: Floats
    constant: float  # b, of centred rows
    certain: bool
    residual: float
    noise: float
    support: Floats
    coefficients: Floats
    weights: Floats | None

    @property
    def intercept(self) -> float:
        """The b for rows that are not centred."""
        if self.weights is None or self.kernel.centre is None:
            return self.constant
        return math.fsum([self.constant, *(-self.weights * self.kernel.centre).tolist()])

    def decision_function(self, X: Floats) -> Floats:
        """Decision values: the same bits for a row whatever batch it comes in."""
        if self.weights is not None:
            return products(self.kernel.centred(X), self.weights) + self.constant
        out = np.zeros(len(X))
        step = max(1, BLOCK // max(1, len(self.support)))
        support = np.ascontiguousarray(self.support.T)
        for start in range(0, len(X), step):
            V = np.ascontiguousarray(self.kernel.exact_values(X[start : start + step], support).T)
            sum_of_rows(V, np.arange(len(V)), self.coefficients, out[start : start + step])
        return out + self.constant

    def alpha_of_points(self, bounds: Floats) -> Floats:
        """The α of each point: a part of the α of its group, in proportion to its bound."""
        alpha, whole = self.alpha[self.group], self.bounds[self.group]
        part = np.minimum(alpha * (bounds / whole), bounds)
        return np.where(alpha >= whole, bounds, part)

    def excess(self, tol: float) -> float:
        """The residual, if it is to be reported, or 0.

        Rounding explains some of it, but nothing above `CEILING`: there it comes near the size
        of the margin, and answers are wrong whatever the reason.
        """
        if self.residual > max(tol, min(self.noise, CEILING)):
            return self.residual
        blurred = max(self.residual, 0.1 * self.noise)  # measured again it might be that
        return blurred if blurred > max(tol, CEILING) else 0.0

    def violation(self, X: Floats, y: Floats, bounds: Floats, level: Floats, total: float) -> float:
        """The largest violation of a KKT condition by points, with f computed anew."""
        alpha = self.alpha_of_points(bounds)
        return _violation(y * (self.decision_function(X) - level), alpha, bounds, y, total)


def canonical(
    cache: KernelCache, slots: Slots, path: PathEnd, level: Floats, total: float
) -> Canonical:
    """The canonical solution of points in these slots, from the end of a path."""
    y = cache.y[slots]
    order, group, first = _groups(cache.rows[:, slots], y, level, path.bounds)
    # sums by group, one value after the other
    U, held = (
        np.asarray(np.bincount(group[order], values[order], len(first)), dtype=np.float64)
        for values in (path.bounds, path.alpha)
    )
    held = np.minimum(held, U)
    own = path.intercept, path.slopes[first], level[first], total
    groups = Groups(cache, slots[first], U, held, *own)
    with np.errstate(all="ignore"):  # a residual that is not finite is refused by `_best`
        best = _best(groups)
    used = np.flatnonzero(best.c)
    return Canonical(
        kernel=cache.kernel,
        group=group,
        first=first,
        alpha=best.alpha,
        bounds=U,
        shares=groups.y * best.c,
        constant=best.b,
        certain=best.certain,
        residual=best.residual,
        noise=groups.noise(best),
        support=np.ascontiguousarray(cache.rows[:, slots[first[used]]].T),
        coefficients=best.c[used],
        weights=best.w,
    )


def _groups(XT: Floats, *others: Floats) -> tuple[NDArray[np.intp], ...]:
    """Points sorted by the bytes of their content, the group of each, one place of each group.

    The last of the others is the bound, which does not tell groups apart.
    """
    first = XT[0].view(np.uint64).byteswap()
    order, group = np.argsort(first, kind="stable"), np.empty(len(first), dtype=np.intp)
    if (first[order[1:]] != first[order[:-1]]).all():  # the first column tells all apart
        group[order] = np.arange(len(order))
        return order, group, order
    content = np.ascontiguousarray(np.column_stack([XT.T, *others]))
    order, starts = byte_order(content), np.ones(len(order), dtype=bool)
    starts[1:] = (content[order[1:], :-1] != content[order[:-1], :-1]).any(axis=1)
    group[order] = np.cumsum(starts) - 1
    return order, group, order[starts]


def _best(points: Groups) -> Solution:
    """The canonical solution where it holds, else the path's, each with what it violates."""
    y, U = points.y, points.U
    if is_one_sided(y, points.total):  # one class, or none: f is its label
        w = None if points.X is None else np.zeros(points.X.shape[1])
        none = np.zeros(len(U))
        return Solution(none, points.b, w, none, free=True, certain=True)
    found = _canonical(points)
    noise = math.inf if found is None else points.dual_noise(found.alpha)
    limit = MEASURED_AGAIN * max(PROMISE, min(noise, CEILING))
    if found is None or not found.residual <= limit:
        own = points.own()
        _measure(points, own)
        if found is None or not found.residual <= own.residual:
            found = own
        found.certain = False
    if not math.isfinite(found.residual):
        raise OverflowError(
            "No solution was found whose decision values are finite: kernel values up to "
            f"{float(points.root.max()) ** 2:.3g} and bounds up to {float(U.max()):.3g} are beyond "
            "float64. Scale the columns, for example with sklearn.preprocessing.StandardScaler, or "
            "make C smaller."
        )
    return found


def _canonical(points: Groups) -> Solution | None:
    """The solution whose sides are those of g, from one whose sides are those of the path's α."""
    least = _SEEN / max(float(points.root.max()) ** 2, np.finfo(float).tiny)
    small = 1e-9 * np.minimum(points.U, max(points.held.max(), least))
    at_bound = points.held >= points.U - small
    sides = np.where(at_bound, -1.0, np.where(points.held > small, 0.0, 1.0))
    s = points.solved(np.flatnonzero(sides == 0.0), np.flatnonzero(sides < 0.0))
    if s is None:
        return None
    alpha = s.alpha if _as_dual(points, s) else points.held
    threshold = max(PROMISE, points.noise(s))
    found = _sides(points.slopes(s), threshold)
    if not np.array_equal(found, sides):
        s = points.solved(np.flatnonzero(found == 0.0), np.flatnonzero(found < 0.0))
        if s is None:
            return None
        if not _as_dual(points, s):
            s.alpha = alpha
    _measure(points, s)
    g = points.slopes(s)
    # no group is anywhere near the threshold
    narrow, wide = _sides(g, threshold / _WIDE), _sides(g, threshold * _WIDE)
    s.certain = np.array_equal(narrow, found) and np.array_equal(wide, found)
    s.certain = s.certain and points.is_definite()
    return s


def _sides(g: Floats, threshold: float) -> Floats:
    """The side of each group: 0 on the margin, 1 inside, -1 outside."""
    return np.where(np.abs(g) <= threshold, 0.0, np.sign(g))


def _as_dual(points: Groups, s: Solution) -> bool:
    """Use c as α, if it is within the bounds up to rounding; returns whether it is."""
    alpha = points.y * s.c
    slack = 1e-9 * np.minimum(points.U, np.abs(alpha).max())
    if not (s.free and (alpha >= -slack).all() and (alpha <= points.U + slack).all()):
        return False
    s.alpha = np.clip(alpha, 0.0, points.U) + 0.0
    if not np.array_equal(s.alpha, alpha):
        s.c, s.f = points.y * s.alpha, None
    return True


def _measure(points: Groups, s: Solution) -> None:
    """Set the KKT residual of a solution, of its f and of its α."""
    g = points.slopes(s)
    s.residual = _violation(g, s.alpha, points.U, points.y, points.total)
    if s.w is not None or not np.array_equal(points.y * s.c, s.alpha):  # α has a g of its own
        dual = Solution(points.y * s.alpha, s.b, None, s.alpha, free=True)
        apart = float(np.abs(points.slopes(dual) - g).max())
        s.residual = max(s.residual, 0.0 if apart <= points.dual_noise(s.alpha) else apart)


def _violation(g: Floats, alpha: Floats, bounds: Floats, y: Floats, total: float) -> float:
    """The largest violation of a KKT condition; infinite where one is not a number."""
    if is_one_sided(y, total):
        return 0.0
    wrong = np.where(alpha <= 0.0, -g, np.where(alpha >= bounds, g, np.abs(g)))
    balance = abs(float((y * alpha).sum()) - total) / max(1.0, float(alpha.sum()))
    worst = max(0.0, float(wrong.max()), balance) if np.isfinite(wrong).all() else math.inf
    return worst if math.isfinite(balance) else math.inf
