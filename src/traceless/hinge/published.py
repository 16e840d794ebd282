"""What a solved binary problem says: decision values, and how far they can be relied upon.

The end of a path is within its KKT residual of the solution. What is published is `canonical`:
computed from there when it is first asked for, with bits that depend on the data alone. Where only
signs are wanted, the end of the path will do for all values that are not near 0 (`doubt`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge.canonical import Canonical, canonical
from traceless.hinge.groups import CEILING, MEASURED_AGAIN, PROMISE
from traceless.hinge.kernel_cache import KernelCache, Slots
from traceless.hinge.kernels import Kernel
from traceless.hinge.solver import PathEnd
from traceless.knowledge.training_rows import TrainingRows

Terms = tuple[Integers, Floats, float]  # ids of points, c and b of f = Σ c k + b


class Held(NamedTuple):
    """The slots of a kernel cache that hold the points of a problem."""

    cache: KernelCache
    token: object  # by which the cache knows the problem
    slots: Slots  # of the rows, in the order they came
    lent: bool = False  # whether another problem needs these slots: they are only read then


class SolvedProblem:
    """A solved problem, only to be read. `traceless.hinge.problem` says what its numbers are."""

    kernel: Kernel
    width: int
    rows: TrainingRows
    ids: Integers
    y: Floats
    levels: Floats
    total: float
    bounds: Floats
    copies: int
    alpha: Floats
    slopes: Floats
    sides: Integers
    intercept: float
    residual: float
    is_ahead: bool
    is_reported: bool  # whether a caller was told of the KKT residual
    _held: Held
    _end: PathEnd
    _largest: float  # k(x, x) of a point
    _canonical: Canonical | None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def X(self) -> Floats:  # noqa: N802
        """Rows of the points, in the order they came."""
        return self._rows_of(self.rows, self.ids)

    def _rows_of(self, rows: TrainingRows, ids: Integers) -> Floats:
        return rows.values(np.searchsorted(rows.ids, ids // self.copies))

    def canonical(self) -> Canonical:
        """The solution that is published: a function of the data alone, or flagged.

        It is computed when it is first asked for, with the kernel matrix as long as that is ours.
        """
        found, (cache, token, slots, _) = self._canonical, self._held
        if found is None:
            end = self._end._replace(alpha=self._net(self.alpha)), self.levels, self.total
            with cache.lock:
                if cache.serves(token):
                    found = canonical(cache, slots, *end)
            if found is None:
                cache, none = KernelCache(self.kernel, self.width, 0), np.zeros(0, np.intp)
                found = canonical(cache, cache.place(self.X, self.y, none, None), *end)
            self._canonical = found
        return found

    def _net(self, alpha: Floats) -> Floats:
        """The same f by smaller α: what the two copies of a row have in common cancels.

        With ε = 0 both may be as large as their bound, and f would be the difference of large
        numbers.
        """
        if self.copies == 1:
            return alpha
        common = alpha.reshape(-1, self.copies).min(axis=1)
        return np.asarray(alpha - np.repeat(common, self.copies))

    def decision_function(self, X: ArrayLike) -> Floats:
        """The f of other rows."""
        return self.canonical().decision_function(np.asarray(X, dtype=np.float64) + 0.0)

    def terms(self, as_path: bool) -> Terms:
        """The c and the b of f = Σ c k + b, as published or of the path, and ids of the points.

        The order is that in which the terms are to be added.
        """
        if as_path:
            used, b = np.flatnonzero(self.alpha), self.intercept
            c = self.y[used] * self.alpha[used]
        else:
            solution = self.canonical()
            used, b = solution.first[np.flatnonzero(solution.shares)], solution.constant
            c = solution.coefficients
        return self.ids[used], c, b

    @property
    def is_published(self) -> bool:
        """Whether the canonical solution was computed already."""
        return self._canonical is not None

    @property
    def tells_b(self) -> bool:
        """Whether a row is between its bounds, so that there is one b.

        Else any b of an interval will do: its middle is published, and paths end anywhere in it.
        """
        middle = 0.5 * self.bounds
        return bool((np.abs(self.alpha - middle) < (1.0 - 2e-9) * middle).any())

    def doubt(self, X: Floats) -> float:
        """How small an f at the end of the path may be so that its published sign is in doubt.

        The primal objective is strongly convex: where no condition is violated by more than r, the
        solution is no further away than  ½ ‖Δf‖² ≤ r Σα,  so  |Δf(x)| ≤ √(2 r Σα k(x, x))  without
        b, and b follows from f on the margin, if that has rows. Twice that for each of the two
        solutions: r is the most that either may violate.
        """
        if not self.tells_b:
            return math.inf
        size = max(self._largest, float(np.abs(self.kernel.diagonal(X)).max(initial=0.0)))
        return 4.0 * math.sqrt(2.0 * self._limit() * float(self.alpha.sum()) * size)

    def _noise(self) -> float:
        """How much of g rounding may explain: ten times what it typically leaves."""
        return 10 * float(np.finfo(np.float64).eps) * float(self.alpha.sum()) * self._largest

    def _limit(self) -> float:
        """What `canonical` may violate before the end of the path is published in its place."""
        return MEASURED_AGAIN * max(PROMISE, min(self._noise(), CEILING))

    def kkt_residual(self) -> float:
        """The largest violation of a KKT condition by what is published, from scratch."""
        points = self.X, self.y, self.bounds, self.levels, self.total
        return self.canonical().violation(*points)

    def certified(self, tol: float) -> bool:
        """Whether the end of the path is so good that what is published need not be reported.

        What is published is no worse than this limit, or is the end of the path itself.
        """
        exact = self.residual <= self._limit() and 0.1 * self._noise() <= CEILING
        return tol >= PROMISE and exact

    def excess(self, tol: float, asked: bool) -> float:
        """The KKT residual, if it is to be reported and has not been yet, or 0.

        What the path certifies needs no report before the solution is `asked` for: then it is
        computed, and measured on all rows, so that nothing wrong is published without a word.
        """
        if self.is_ahead or self.is_reported:
            return 0.0
        if self.certified(tol) and not (asked or self.is_published):
            return 0.0
        found = self.canonical().excess(tol)
        self.is_reported = True
        return found

    def spares(self) -> bool:
        """Whether rows with α = 0 can go without a change of the solution."""
        solution = self.canonical()
        margin = (solution.alpha > 0.0) & (solution.alpha < solution.bounds)
        return bool(solution.certain and margin.any())
