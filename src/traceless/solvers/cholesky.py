"""The default solver: knowledge, solved to the last bit when coefficients are asked for.

A solver is a value that an estimator holds: it begins with the knowledge of some rows,
`updated` gives the next one after a change, and `coefficients` answers for a ρ. It is never
changed, so threads that still read the one before read on. `traceless.solvers.woodbury` is the
other: it keeps float64 coefficients ready after each change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from traceless.arithmetic.integers import Floats, Integers, wide
from traceless.arithmetic.products import Coefficients
from traceless.exceptions import MismatchError
from traceless.features.feature_map import BoundMap
from traceless.knowledge.responses import Label, n_rows
from traceless.solvers.class_weights import Coding, Weights
from traceless.solvers.rounded import Mixture, correctly_rounded_solve, ridge_in_steps

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe, Rows


class Cholesky:
    """Knowledge, solved when first asked for; asking again is free.

    Attributes
    ----------
    recipe : Recipe
        How the rows became knowledge.
    responses : tuple
        Class labels in order, or the numbers of the targets.
    counts : tuple of int
        Rows per class; one number for regression; rows with each label, and all rows.
    other : Cholesky or None
        The same rows for another solver, once asked for.
    """

    solver = "cholesky"

    def __init__(self, recipe: Recipe, knowledge: Knowledge) -> None:
        self.recipe, self._known = recipe, knowledge
        self.responses: tuple[Label, ...] = knowledge.responses
        self.counts: tuple[int, ...] = knowledge.counts
        self.other: Cholesky | None = None
        self._solved: tuple[tuple[float, Weights | None], Coefficients] | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return n_rows(self.recipe.task, self.counts)

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
        self, rho: float, phi: BoundMap, code: Coding, class_weights: Weights | None
    ) -> Coefficients:
        """Correctly rounded coefficients in steps of the grids: codes(x) @ Z predicts."""
        question, solved = (rho, class_weights), self._solved
        if solved is None or solved[0] != question:
            known = self.knowledge()
            ridge = ridge_in_steps(rho, phi.steps, known.weight_bits)
            if class_weights is not None:
                Z = solve_weighted(known, class_weights, ridge, code)
            else:
                S, V = known.normal_equations()
                Z = correctly_rounded_solve(S, ridge, code(V.astype(object)))
            Z.setflags(write=False)
            solved = self._solved = question, Coefficients(Z)
        return solved[1]


def solve_weighted(known: Knowledge, weights: Weights, ridge: Floats, code: Coding) -> Floats:
    """Correctly rounded coefficients of class-wise knowledge, in steps of the grids."""
    if not known.classwise:
        raise MismatchError(
            "Class weights need what is known of each class apart, and the knowledge of this "
            "model is pooled. Learn with class_weight set, or with classwise=True to be able to "
            "set it later; or set class_weight=None."
        )
    J = known.n_outputs
    M, V = known.sums[:, :J, :J], known.response_sums
    if len(weights) == 1:
        return _solve(list(M), V, weights[0], ridge, code)
    everything, v = known.feature_gram, wide(V).sum(axis=1)
    columns = [
        _solve(
            (everything - M[k], M[k]), np.column_stack([v - V[:, k], V[:, k]]), pair, ridge, code
        )
        for k, pair in enumerate(weights)
    ]
    return np.hstack(columns)


def _solve(
    M: Sequence[Integers], V: Integers, weights: Sequence[float], ridge: Floats, code: Coding
) -> Floats:
    """One system; classes of weight 0 are left out of the matrix, and all ω v are 0."""
    S = Mixture.of(M, weights)
    Q = code(wide(V) * np.array(S.weights, dtype=object))
    kept = [c for c, weight in enumerate(weights) if weight]
    if not kept:
        return np.zeros(Q.shape)
    S = Mixture([M[c] for c in kept], tuple(S.weights[c] for c in kept), S.unit)
    return correctly_rounded_solve(S, ridge, Q)
