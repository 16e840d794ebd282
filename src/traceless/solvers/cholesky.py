"""The default solver: knowledge, solved to the last bit when coefficients are asked for.

A solver is a value that an estimator holds: it begins with the knowledge of some rows,
`updated` gives the next one after a change, and `coefficients` answers for a ρ. It is never
changed, so threads that still read the one before read on. `traceless.solvers.woodbury` is the
other: it keeps float64 coefficients ready after each change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from traceless.arithmetic.integers import Floats, Integers, wide
from traceless.arithmetic.products import Coefficients
from traceless.exceptions import MismatchError
from traceless.features.feature_map import BoundMap
from traceless.knowledge.responses import Label
from traceless.solvers.centring import shifted, shifted_right_side, whole_means
from traceless.solvers.class_weights import Coding, Weights
from traceless.solvers.moments import Moments, moments
from traceless.solvers.refinement import Mixture
from traceless.solvers.ridge import Penalty, Ridge
from traceless.solvers.rounded import correctly_rounded_solve

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe, Rows
    from traceless.solvers.probabilities import Discriminant


class Cholesky:
    """Knowledge, solved when first asked for; asking again is free.

    Attributes
    ----------
    recipe : Recipe
        How the rows became knowledge.
    responses : tuple
        Class labels in order, or the numbers of the targets.
    counts : tuple of int
        Rows per class; one number for regression.
    other : Cholesky or None
        The same rows for another solver, once asked for.
    """

    solver = "cholesky"
    probabilities: tuple[Moments, Discriminant] | None = None  # made from these moments

    def __init__(self, recipe: Recipe, knowledge: Knowledge) -> None:
        self.recipe, self._known = recipe, knowledge
        self.responses: tuple[Label, ...] = knowledge.responses
        self.counts: tuple[int, ...] = knowledge.counts
        self.other: Cholesky | None = None
        self._solved: tuple[tuple[Penalty, Weights | None], Solution] | None = None
        self._moments: tuple[tuple[Penalty, tuple[float, ...] | None], Moments] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: what is made of the sums can be made again."""
        return self.__dict__ | {"_moments": None, "probabilities": None}

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return sum(self.counts)

    def knowledge(self) -> Knowledge:
        """The exact knowledge of all rows."""
        return self._known

    def sealed(self) -> Cholesky:
        """The same with correctly rounded coefficients."""
        return self

    def updated(
        self,
        add: Rows | Any | None,
        forget: Rows | Any | None,
        gather: Callable[[Any], Knowledge],
        certain: bool = False,
    ) -> Cholesky:
        """The solver after a change; this one stays what it was.

        Parameters
        ----------
        add, forget : rows or a source of rows, or None
        gather : callable
            Makes the knowledge of rows, or of a source.
        certain : bool
            Whether the rows to be forgotten are known to be held, so that sums need no check.
        """
        known = self.knowledge()
        if add is not None:
            known = known + gather(add)
        if forget is not None:
            known = known - gather(forget)
            known = known if certain else known.check_possible()
        return type(self)(self.recipe, known)

    def coefficients(
        self, penalty: Penalty, phi: BoundMap, code: Coding, class_weights: Weights | None
    ) -> Solution:
        """Correctly rounded coefficients, in steps of the grids."""
        question, solved = (penalty, class_weights), self._solved
        if solved is None or solved[0] != question:
            solution = solve(self.knowledge(), penalty, phi, code, class_weights)
            solved = self._solved = question, solution
        return solved[1]

    def moments(
        self, penalty: Penalty, phi: BoundMap, class_weights: tuple[float, ...] | None
    ) -> Moments:
        """Means and covariances of the rows, in float64; asking again is free."""
        question, found = (penalty, class_weights), self._moments
        if found is None or found[0] != question:
            made = moments(self.knowledge(), penalty, phi, class_weights)
            found = self._moments = question, made
        return found[1]


@dataclass(frozen=True)
class Solution:
    """Coefficients in steps of the grids: (codes(x) - shift) @ Z predicts.

    Attributes
    ----------
    coefficients : Coefficients
        Z, one column for each class or target; the last row is that of the constant feature.
    shift : float64 array of shape (J,), or None
        Whole numbers near the means of the codes, from which a free intercept counts.
    intercept : float64 array of shape (K,), or None
        The intercept of codes that are not shifted, where there is a shift.
    """

    coefficients: Coefficients
    shift: Floats | None = None
    intercept: Floats | None = None

    @classmethod
    def of(cls, Z: Floats, shift: Integers | None) -> Solution:
        """From what `correctly_rounded_solve` returns."""
        Z.setflags(write=False)
        if shift is None:
            return cls(Coefficients(Z))
        return cls(Coefficients(Z[:-1]), shift.astype(np.float64), Z[-1])

    @property
    def Z(self) -> Floats:  # noqa: N802
        """The coefficients of shifted codes."""
        return self.coefficients.Z

    def scores(self, codes: Floats) -> Floats:
        """The scores of some rows; `codes` is given away for that."""
        if self.shift is not None:
            codes -= self.shift
        return self.coefficients.times(codes)


def solve(
    known: Knowledge,
    penalty: Penalty,
    phi: BoundMap,
    code: Coding,
    class_weights: Weights | None = None,
) -> Solution:
    """Correctly rounded coefficients of some knowledge, in steps of the grids."""
    ridge = penalty.ridge(known, phi)
    shift = whole_means(known.feature_gram) if ridge.is_free else None
    if class_weights is not None:
        Z = _solve_weighted(known, class_weights, ridge, code, shift)
    else:
        S, V = known.normal_equations()
        Z = _solve(S, code(V.astype(object)), ridge, shift)
    return Solution.of(Z, shift)


def _solve(S: Integers | Mixture, Q: Integers, ridge: Ridge, shift: Integers | None) -> Floats:
    """One system, of features that are shifted where the intercept is free."""
    if shift is None:
        return correctly_rounded_solve(S, ridge, Q)
    if isinstance(S, Mixture):
        moved: Any = replace(S, parts=[shifted(part, shift) for part in S.parts])
    else:
        moved = shifted(S, shift)
    return correctly_rounded_solve(moved, ridge, shifted_right_side(Q, shift), shift)


def _solve_weighted(
    known: Knowledge, weights: Weights, ridge: Ridge, code: Coding, shift: Integers | None
) -> Floats:
    """Coefficients of class-wise knowledge; problems share weights, or have some of their own."""
    if not known.classwise:
        raise MismatchError(
            "Class weights need what is known of each class apart, and the knowledge of this "
            "model is pooled. Learn with class_weight set, or with classwise=True to be able to "
            "set it later; or set class_weight=None."
        )
    J = known.n_outputs
    M, V = known.sums[:, :J, :J], known.response_sums
    if len(weights) == 1:
        return _solve_mixture(list(M), V, weights[0], ridge, code, shift)
    everything, v = known.feature_gram, wide(V).sum(axis=1)
    columns = [
        _solve_mixture(
            (everything - M[k], M[k]),
            np.column_stack([v - V[:, k], V[:, k]]),
            pair,
            ridge,
            code,
            shift,
        )
        for k, pair in enumerate(weights)
    ]
    return np.hstack(columns)


def _solve_mixture(
    M: Sequence[Integers],
    V: Integers,
    weights: Sequence[float],
    ridge: Ridge,
    code: Coding,
    shift: Integers | None,
) -> Floats:
    """One system; classes of weight 0 are left out of the matrix, and all ω v are 0."""
    S = Mixture.of(M, weights)
    Q = code(wide(V) * np.array(S.weights, dtype=object))
    kept = [c for c, weight in enumerate(weights) if weight]
    if not kept:
        return np.zeros((len(Q) + (shift is not None), Q.shape[1]))
    S = Mixture([M[c] for c in kept], tuple(S.weights[c] for c in kept), S.unit)
    return _solve(S, Q, ridge, shift)
