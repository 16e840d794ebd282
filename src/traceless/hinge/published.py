"""What is published of a solved problem: a value that answers without locks and without the engine.

It is computed at the end of each change, from the end of the path (``src/core/publish.cpp``): one
solution f = Σ c k + b with bits that depend on the data alone, or flagged, and measured from
scratch over all points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from traceless.arithmetic.integers import Floats, Integers
from traceless.hinge.core import core
from traceless.hinge.gram import Gram, Place, Slots
from traceless.hinge.kernels import Kernel, products
from traceless.hinge.target import Target
from traceless.knowledge.training_rows import TrainingRows

_CEILING = 1e-6  # beyond which rounding explains nothing
_MANY = 4000  # groups whose kernel matrix is not looked at
_SLIGHT = 1e-10  # part of the diagonal: negative eigenvalues up to this are rounding
_BLOCK = 1 << 21  # kernel values at once

Terms = tuple[NDArray[np.intp], Floats, float]  # places of rows, c and b of f = Σ c k + b


@dataclass(frozen=True, eq=False)
class Published:
    """A solution as it is published. Equal points are one group.

    Attributes
    ----------
    ids : of one point of each group, in the order of their content
    group : number of the group of each point, in the order the points came
    y, alpha, bounds : of each group
    shares : y c of each group: mostly its α
    constant : b, of centred rows
    intercept : b
    weights : of the columns, with a linear kernel
    certain : bool
        Whether the sides are beyond doubt. If not, another history may end in other bits.
    residual : float
        The largest violation of a KKT condition by α and f, over all points.
    noise : float
        How much of g rounding may explain: ten times what it typically leaves.
    """

    ids: Integers
    group: NDArray[np.intp]
    y: Floats
    alpha: Floats
    bounds: Floats
    shares: Floats
    constant: float
    intercept: float
    weights: Floats | None
    certain: bool
    residual: float
    noise: float

    def terms(self) -> tuple[Integers, Floats, float]:
        """The ids of the points with c ≠ 0 in the order in which they are added, c and b."""
        used = np.flatnonzero(self.shares)
        return self.ids[used], self.y[used] * self.shares[used], self.constant

    def alpha_of_points(self, bounds: Floats) -> Floats:
        """The α of each point: a part of the α of its group, in proportion to its bound."""
        alpha, whole = self.alpha[self.group], self.bounds[self.group]
        part = np.minimum(alpha * (bounds / whole), bounds)
        return np.where(alpha >= whole, bounds, part)

    def excess(self, tol: float) -> float:
        """The residual, if it is to be reported, or 0.

        Rounding explains some of it, but nothing above 1e-6: there it comes near the size of the
        margin, and answers are wrong whatever the reason.
        """
        if self.residual > max(tol, min(self.noise, _CEILING)):
            return self.residual
        blurred = max(self.residual, 0.1 * self.noise)  # measured again it might be that
        return blurred if blurred > max(tol, _CEILING) else 0.0

    @property
    def spares(self) -> bool:
        """Whether rows with α = 0 can go without a change of the solution."""
        return bool(self.certain and ((self.alpha > 0.0) & (self.alpha < self.bounds)).any())


def published(place: Place, rows: TrainingRows, points: Target, end: Any) -> Published:
    """What is published of points, from the end of a path."""
    gram, kernel = place.gram, place.gram.kernel

    def exactly(i: int, others: Sequence[int]) -> Floats:
        X = rows.values(np.searchsorted(rows.ids, points.ids[[i, *others]] // points.copies))
        return np.asarray(kernel.values(X[:1], X[1:])[0])

    group, first, alpha, bounds, shares, b, w, certain, *measured = core.publish(
        gram.lines, end, points.copies, kernel.name == "linear", None if kernel.exact else exactly
    )
    if not math.isfinite(measured[0]):
        raise OverflowError(
            "No solution was found whose decision values are finite: kernel values up to "
            f"{float(gram.diagonal(place.slots).max()):.3g} and bounds up to "
            f"{float(bounds.max()):.3g} are beyond float64. Scale the columns, for example with "
            "sklearn.preprocessing.StandardScaler, or make C smaller."
        )
    if certain and not kernel.definite:
        certain = _is_definite(gram, place.of(points.ids[first] // points.copies))
    intercept = b
    if w is not None and kernel.centre is not None:
        intercept = math.fsum([b, *(-w * kernel.centre).tolist()])
    which = points.ids[first], group, points.y[first]
    return Published(*which, alpha, bounds, shares, b, intercept, w, certain, *measured)


def at_end_of_path(points: Target, end: Any) -> Published | None:
    """The end of a path as it is, without a measure; None where it leaves b open.

    Where no row is between its bounds any b of an interval will do: its middle is published, and
    paths end anywhere in it.
    """
    alpha, bounds, b, middle = end.alpha, points.bounds, end.b, 0.5 * points.bounds
    if not (np.abs(alpha - middle) < (1.0 - 2e-9) * middle).any():
        return None
    numbers = alpha, bounds, alpha, b, b, None, False, math.nan, math.nan
    return Published(points.ids, np.arange(len(alpha)), points.y, *numbers)


def _is_definite(gram: Gram, slots: Slots) -> bool:
    """Whether the kernel matrix of groups is seen to be positive semidefinite, up to rounding.

    Only then is f unique. It need be so only where Σc = 0, as of the difference of two solutions:
    hence the shift.
    """
    if len(slots) > _MANY:
        return False
    G = gram.values(slots, slots)
    diagonal = G.diagonal().copy()
    mean = diagonal.mean() if len(diagonal) else 1.0
    G += mean if mean > 0.0 else 1.0
    G[np.diag_indices_from(G)] += _SLIGHT * diagonal.max(initial=0.0)
    return bool(dpotrf(G.T, lower=0, clean=0, overwrite_a=1)[1] == 0)


def kernel_sums(
    kernel: Kernel, X: Floats, rows: TrainingRows, terms: Sequence[Terms]
) -> list[Floats]:
    """Σ c k(x, ·) + b over some of the rows, for each of the terms; the same bits in any batch.

    Each kernel value is computed once.
    """
    places = [at for at, _, _ in terms]
    used = np.unique(np.concatenate(places)) if len(terms) > 1 else places[0]
    lines = (
        [np.searchsorted(used, at) for at in places] if len(terms) > 1 else [np.arange(len(used))]
    )
    support, out = rows.values(used), np.zeros((len(terms), len(X)))
    step = max(1, _BLOCK // max(1, len(used)))
    for start in range(0, len(X), step):
        part = slice(start, start + step)
        V = kernel.each(support, X[part])
        for f, line, (_, c, _) in zip(out, lines, terms, strict=True):
            core.sum_of_rows(V, line, c, f[part])
    return [f + b for f, (_, _, b) in zip(out, terms, strict=True)]


def linear_values(kernel: Kernel, X: Floats, solutions: Sequence[Published]) -> list[Floats]:
    """The w·x + b of some solutions."""
    X = kernel.centred(X)
    return [products(X, np.asarray(s.weights)) + s.constant for s in solutions]
