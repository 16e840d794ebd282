"""The default solver: knowledge, solved to the last bit when coefficients are asked for.

A solver is a value that an estimator holds: it begins with the knowledge of some rows,
`updated` gives the next one after a change, and `coefficients` answers for a ρ. It is never
changed, so threads that still read the one before read on. `traceless.solvers.woodbury` is the
other: it keeps float64 coefficients ready after each change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from traceless.arithmetic.products import Coefficients
from traceless.features import BoundMap
from traceless.knowledge.responses import Label
from traceless.knowledge.sums import Knowledge, Recipe, Rows
from traceless.parameters import positive
from traceless.solvers.class_weights import Coding, Weights, solve_weighted
from traceless.solvers.rounded import correctly_rounded_solve, ridge_in_steps


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

    def __init__(self, recipe: Recipe, knowledge: Knowledge) -> None:
        self.recipe, self._known = recipe, knowledge
        self.responses: tuple[Label, ...] = knowledge.responses
        self.counts: tuple[int, ...] = knowledge.counts
        self.other: Cholesky | None = None
        self._solved: tuple[tuple[float, Weights | None], Coefficients] | None = None

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
        self, rho: float, phi: BoundMap, code: Coding, class_weights: Weights | None
    ) -> Coefficients:
        """Correctly rounded coefficients in steps of the grids: codes(x) @ Z predicts."""
        question, solved = (rho, class_weights), self._solved
        if solved is None or solved[0] != question:
            known = self.knowledge()
            ridge = ridge_in_steps(positive("rho", rho), phi.steps, known.weight_bits)
            if class_weights is not None:
                Z = solve_weighted(known, class_weights, ridge, code)
            else:
                Q = code(known.response_sums.astype(object))
                Z = correctly_rounded_solve(known.feature_gram, ridge, Q)
            Z.setflags(write=False)
            solved = self._solved = question, Coefficients(Z)
        return solved[1]
