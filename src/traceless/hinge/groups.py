"""Groups of equal points as one problem, and solutions of it for given sides.

Which groups are on the margin (E) and which at their bound (O) is for `traceless.hinge.canonical`
to say; here c and b with g = 0 on E are computed from that, in one order of evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf

from traceless.arithmetic.integers import Floats
from traceless.hinge.active_set import middle
from traceless.hinge.kernel_cache import KernelCache, Slots
from traceless.hinge.kernels import products
from traceless.hinge.margin import (
    MarginSystem,
    Places,
    gather,
    independent,
    sum_in_order,
    sum_of_rows,
)

_EPS = float(np.finfo(np.float64).eps)
PROMISE = 1e-9  # the largest violation of a condition, unless rounding explains more
CEILING = 1e-6  # beyond which rounding explains nothing
_MANY = 4000  # groups whose kernel matrix is not made again only to look at it
_SLIGHT = 1e-10  # part of the diagonal: negative eigenvalues up to this are rounding
BLOCK = 1 << 21  # kernel values at once
MEASURED_AGAIN = 0.8  # of a limit: below, a violation is within it also if measured again


@dataclass(eq=False)
class Solution:
    """The c, b and w of f, and the α that is published with them."""

    c: Floats
    b: float
    w: Floats | None
    alpha: Floats
    free: bool  # whether c is on all groups of the margin, so that it is their α too
    f: Floats | None = None  # Σ c k at all groups, if that was computed on the way
    residual: float = 0.0
    certain: bool = False


class Groups:
    """Groups of equal points, their kernel values, and the end of the path for them."""

    def __init__(
        self,
        cache: KernelCache,
        slots: Slots,
        U: Floats,
        held: Floats,
        b: float,
        g: Floats,
        level: Floats,
        total: float,
    ) -> None:
        self.cache, self.slots, self.kernel = cache, slots, cache.kernel
        self.U, self.held, self.b, self.g = U, held, b, g
        self.level, self.total = level, total
        self.y, self.root = cache.y[slots], cache.root[slots]
        self.largest = float(self.root.max(initial=0.0))
        self.all = np.arange(len(U))
        self.kept = cache.whole and cache.kernel.exact  # kernel values with bits of their own
        self.X = None
        if self.kernel.name == "linear":
            self.X = self.kernel.centred(cache.rows[:, slots].T)

    def between(self, a: Places, b: Places, exact: bool = True) -> Floats:
        """Kernel values: from the cache where they are the same bits, else anew."""
        if self.kept or (self.cache.whole and not exact):
            out = np.empty((len(a), len(b)))
            return gather(self.cache.gram, self.slots[a], self.slots[b], out)
        rows = self.cache.rows
        make = self.kernel.exact_values if exact else self.kernel.values
        A = np.ascontiguousarray(rows[:, self.slots[a]].T)
        return np.ascontiguousarray(make(A, np.ascontiguousarray(rows[:, self.slots[b]])))

    def combined(self, of: Places, c: Floats, at: Places, exact: bool = True) -> Floats:
        """Σ_s c_s k(s, ·) at some groups, over others in order."""
        if self.kept or (self.cache.whole and not exact):
            f = sum_of_rows(self.cache.gram, self.slots[of], c, np.zeros(self.cache.n))
            return np.asarray(f[self.slots[at]])
        out = np.zeros(len(at))
        step = 4 * max(1, BLOCK // max(4, 4 * len(at)))  # four at a time, as in `sum_of_rows`
        for start in range(0, len(of), step):
            part = slice(start, start + step)
            V = self.between(of[part], at, exact)
            sum_of_rows(V, np.arange(len(V)), c[part], out)
        return out

    def values(self, s: Solution) -> Floats:
        """The f of all groups without b, from scratch."""
        if self.X is not None:
            return products(self.X, s.w if s.w is not None else self.weights(s.c))
        if s.f is None:
            used = np.flatnonzero(s.c)
            s.f = self.combined(used, s.c[used], self.all, exact=False)
        return s.f

    def slopes(self, s: Solution) -> Floats:
        """The g of a solution: from scratch, unless kernel values had to be computed for that.

        In that case it is the g at the end of the path, plus the effect of what has changed since.
        """
        if self.X is None and s.f is None and not self.cache.whole:
            change = s.c - self.y * self.held
            moved = np.flatnonzero(change)
            lines = self.cache.line[self.slots[moved]]
            kept, others = moved[lines >= 0], moved[lines < 0]
            f = np.zeros(self.cache.n)
            sum_of_rows(self.cache.gram, lines[lines >= 0], change[kept], f)
            f = f[self.slots] + self.combined(others, change[others], self.all, exact=False)
            return np.asarray(self.g + self.y * (f + (s.b - self.b)))
        return self.y * (self.values(s) + s.b - self.level)

    def weights(self, c: Floats) -> Floats:
        """Σ c x."""
        assert self.X is not None
        used = np.flatnonzero(c)
        rows = np.ascontiguousarray(self.X[used])
        return sum_of_rows(rows, np.arange(len(used)), c[used], np.zeros(rows.shape[1]))

    def noise(self, s: Solution) -> float:
        """How much of g rounding may explain: ten times what it typically leaves."""
        if s.w is None or self.X is None:
            return self.dual_noise(s.alpha)
        size = float((np.abs(self.X) @ np.abs(s.w)).max(initial=0.0)) + abs(s.b)
        return 10 * _EPS * size

    def dual_noise(self, alpha: Floats) -> float:
        """The same where f is computed from α."""
        return 10 * _EPS * float(alpha.sum()) * self.largest**2

    def is_definite(self) -> bool:
        """Whether their kernel matrix is seen to be positive semidefinite, up to rounding.

        Only then is f unique. It need be so only where Σc = 0, as of the difference of two
        solutions: hence the shift. Of kernels that are so whatever the rows nothing is computed.
        """
        if self.kernel.definite:
            return True
        if not self.cache.whole and len(self.all) > _MANY:
            return False
        G = self.between(self.all, self.all, exact=False)
        G += MarginSystem.shift(G)
        G[np.diag_indices_from(G)] += _SLIGHT * self.largest**2
        return bool(dpotrf(G.T, lower=0, clean=0, overwrite_a=1)[1] == 0)

    # --- solving ---------------------------------------------------------------------------

    def solved(self, E: Places, O: Places) -> Solution | None:  # noqa: E741
        """The solution with these groups on the margin and those at their bounds, if there is one.

        Its α is that of the path; `traceless.hinge.canonical` decides whether c replaces it.
        """
        c, y, f = np.zeros(len(self.U)), self.y, None
        c[O] = y[O] * self.U[O]
        if not len(E):
            return self._centred(c)
        if self.X is not None:
            f_E = products(self.X[E], self.weights(c))
        elif self.kept:
            f = self.combined(O, c[O], self.all)
            f_E = f[E]
        else:
            f_E = self.combined(O, c[O], E)
        G = self.between(E, E)
        margin, basis = MarginSystem(G), np.arange(len(E))
        if not margin.sound:  # some depend on others: c is on a largest independent set
            basis = independent(G)
            if len(basis):
                margin = MarginSystem(np.ascontiguousarray(G[np.ix_(basis, basis)]))
            if not margin.sound:
                return None
        x, b = margin.refined((self.level[E] - f_E)[basis], self.total - sum_in_order(c[O]))
        B = E[basis]
        c[B] = x
        s = Solution(c, b, None, self.held, free=len(B) == len(E))
        if self.X is not None:
            self._refine(s, B, margin)
        elif f is not None:
            s.f = f + self.combined(B, x, self.all)
        return s

    def _refine(self, s: Solution, B: Places, margin: MarginSystem) -> None:
        """Give f a w such that g = 0 on the margin as exactly as w can say it."""
        assert self.X is not None
        s.w, rows = self.weights(s.c), np.ascontiguousarray(self.X[B])
        for _ in range(2):
            z, lift = margin.solved(self.level[B] - products(rows, s.w) - s.b, 0.0)
            s.w = s.w + sum_of_rows(rows, np.arange(len(B)), z, np.zeros(len(s.w)))
            s.c[B] += z
            s.b += lift

    def _centred(self, c: Floats) -> Solution:
        """Without a margin b is an interval: its `middle`."""
        s = Solution(c, 0.0, None, np.abs(c), free=True)
        if self.X is not None:
            s.w = self.weights(c)
        else:
            used = np.flatnonzero(c)
            s.f = self.combined(used, c[used], self.all)
        t = self.level - self.values(s)  # the b at which g would be 0
        low = (c != 0.0) == (self.y < 0)
        s.b = middle(t[low], t[~low])
        return s

    def own(self) -> Solution:
        """The path's solution as it is."""
        c = self.y * self.held
        w = None if self.X is None else self.weights(c)
        return Solution(c, self.b, w, self.held, free=True)
