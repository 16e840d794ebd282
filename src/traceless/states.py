"""What an estimator holds of its rows, and the plain form of it: settled.

A *settled* state is the knowledge, and coefficients that are solved to the last bit when
they are asked for. A *live* one (`traceless.live`) keeps float64 coefficients ready after
each change. Both give the exact knowledge at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from traceless.exact import Floats
from traceless.features import BoundMap
from traceless.gather import Label, Task
from traceless.knowledge import Knowledge
from traceless.solve import correctly_rounded_solve, ridge_in_steps

Rows = tuple[Any, ...]  # (X, y, sample_weight)
Coding = Callable[[Any], Any]  # responses to right-hand sides, linear: ±1 coding for classes


@dataclass(frozen=True)
class Recipe:
    """How rows become knowledge."""

    phi: BoundMap
    task: Task
    target_resolution: float
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
            verbose=self.verbose,
        )


class State(Protocol):
    """The common face of both."""

    solver: str
    recipe: Recipe

    @property
    def responses(self) -> tuple[Label, ...]:
        """Class labels in order, or numbers of the targets."""

    @property
    def n_samples(self) -> int:
        """Number of rows."""

    def knowledge(self) -> Knowledge:
        """The exact knowledge of all rows."""

    def updated(self, add: Rows | None, forget: Rows | None) -> State:
        """The state after learning and forgetting; raises with nothing changed."""

    def seal(self) -> None:
        """Make the coefficients correctly rounded."""

    def weights(self, rho: float, phi: BoundMap, code: Coding) -> Floats:
        """Coefficients in steps of the grids, so that predictions are codes(x) @ weights."""


class Settled:
    """Knowledge, solved when first asked for; asking again is free."""

    solver = "cholesky"

    def __init__(self, recipe: Recipe, knowledge: Knowledge) -> None:
        self.recipe, self._known = recipe, knowledge
        self._rho: float | None = None
        self._Z: Floats | None = None

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

    def updated(self, add: Rows | None, forget: Rows | None) -> Settled:
        """A new state that knows more, or less."""
        known = self._known
        if add is not None:
            known = known + self.recipe.knowledge(add)
        if forget is not None:
            known = (known - self.recipe.knowledge(forget)).check_possible()
        return Settled(self.recipe, known)

    def seal(self) -> None:
        """Nothing to do: coefficients are always correctly rounded."""

    def weights(self, rho: float, phi: BoundMap, code: Coding) -> Floats:
        """Correctly rounded coefficients."""
        if self._Z is None or self._rho != rho:
            known = self._known
            ridge = ridge_in_steps(rho, phi.steps, known.weight_bits)
            Q = code(known.response_sums.astype(object))
            self._Z, self._rho = correctly_rounded_solve(known.feature_gram, ridge, Q), rho
        return self._Z
