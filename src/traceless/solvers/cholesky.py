"""What an estimator holds of its rows, and the plain form of it: settled.

A *settled* state is the knowledge, and coefficients that are solved to the last bit when
they are asked for. A *live* one (`traceless.solvers.woodbury`) keeps float64 coefficients ready
after each change. Both give the exact knowledge at any time, and are never changed: an estimator
goes from one state to the next, and threads that still read the one before read on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from traceless.arithmetic.products import Coefficients
from traceless.features import BoundMap
from traceless.files.saving import Pieces
from traceless.knowledge.gathering import Label, Task
from traceless.knowledge.sums import Knowledge
from traceless.solvers.class_weights import Coding, Weights, solve_weighted
from traceless.solvers.rounded import correctly_rounded_solve, ridge_in_steps

Rows = tuple[Any, ...]  # (X, y, sample_weight)


@dataclass(frozen=True)
class Recipe:
    """How rows become knowledge."""

    phi: BoundMap
    task: Task
    target_resolution: float
    classwise: bool = False
    fingerprint: bool = False
    verbose: bool = False

    @property
    def specification(self) -> dict[str, Any]:
        """What the features (and targets) are."""
        targets = {"target_resolution": self.target_resolution}
        return self.phi.describe() | (targets if self.task == "regression" else {})

    def knowledge(self, rows: Rows) -> Knowledge:
        """The knowledge of some rows."""
        return Knowledge.of(
            self.phi,
            *rows,
            task=self.task,
            target_resolution=self.target_resolution,
            classwise=self.classwise,
            fingerprint=self.fingerprint,
            verbose=self.verbose,
        )


class State(Protocol):
    """The interface of both kinds."""

    solver: str
    recipe: Recipe
    other: State | None  # the same rows for another solver, once asked for

    @property
    def responses(self) -> tuple[Label, ...]:
        """Class labels in order, or numbers of the targets."""

    @property
    def n_samples(self) -> int:
        """Number of rows."""

    def knowledge(self) -> Knowledge:
        """The exact knowledge of all rows."""

    def pieces(self) -> Pieces:
        """What a file needs to make this state again."""

    def sealed(self) -> State:
        """The same with correctly rounded coefficients."""

    def weights(
        self, rho: float, phi: BoundMap, code: Coding, class_weights: Weights | None
    ) -> Coefficients:
        """Coefficients in steps of the grids, so that predictions are codes(x) @ weights."""


class Settled:
    """Knowledge, solved when first asked for; asking again is free."""

    solver = "cholesky"

    def __init__(self, recipe: Recipe, knowledge: Knowledge) -> None:
        self.recipe, self._known = recipe, knowledge
        self.other: State | None = None
        self._solved: tuple[tuple[float, Weights | None], Coefficients] | None = None

    @property
    def responses(self) -> tuple[Label, ...]:
        """Class labels in order, or numbers of the targets."""
        return self._known.responses

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self._known.n_samples

    def knowledge(self) -> Knowledge:
        """The exact knowledge of all rows."""
        return self._known

    def pieces(self) -> Pieces:
        """What a file needs to make this state again."""
        facts, tensors = self._known._pieces()
        return {"knowledge": facts}, tensors

    def sealed(self) -> Settled:
        """The same: coefficients are always correctly rounded."""
        return self

    def weights(
        self, rho: float, phi: BoundMap, code: Coding, class_weights: Weights | None
    ) -> Coefficients:
        """Correctly rounded coefficients."""
        question, solved = (rho, class_weights), self._solved
        if solved is None or solved[0] != question:
            known = self._known
            ridge = ridge_in_steps(rho, phi.steps, known.weight_bits)
            if class_weights is not None:
                Z = solve_weighted(known, class_weights, ridge, code)
            else:
                Q = code(known.response_sums.astype(object))
                Z = correctly_rounded_solve(known.feature_gram, ridge, Q)
            Z.setflags(write=False)
            solved = self._solved = question, Coefficients(Z)
        return solved[1]
