"""Knowledge of folds that stays in float64, where all of it is exact there.

    S₋ = S - S_F,     S = Σ [φ; r][φ; r]ᵀ over all rows, S_F over those of a fold

No number in S is larger than the largest on its diagonal (Cauchy-Schwarz). While that is below
2^53, float64 holds all of them, S_F and S₋ too, and none is ever rounded. So the triangles that
BLAS has added up are subtracted, and solved (`traceless.solvers.rounded`), as they are. Whole
matrices of int64 are made of them if somebody asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, Self

import numpy as np

from traceless.arithmetic.integers import LARGEST, Floats, Integers
from traceless.arithmetic.words import Sums
from traceless.knowledge.gathering import Gathering
from traceless.knowledge.responses import Responses, responses_of
from traceless.knowledge.sums import Knowledge, Recipe
from traceless.solvers.triangle import Triangle


def without_each(
    recipe: Recipe, X: Any, y: Any, folds: Sequence[Any]
) -> tuple[Knowledge, list[Knowledge]] | None:
    """The knowledge of all rows, and of those without each fold; None if float64 is too short.

    Rows have no weights, and each is in one fold.
    """
    responses = responses_of(y, None, recipe.task, recipe.target_resolution)
    gathering = Gathering(recipe.phi, X, responses, None, verbose=recipe.verbose)
    parts: list[Floats] = []
    total = np.zeros(())
    for upper in gathering.triangles(folds):
        if upper is None:
            return None
        total = np.add(total, upper, out=total if parts else None)
        parts.append(upper)
        if not total.diagonal().max() < LARGEST:
            return None
    sizes = [len(y[fold]) for fold in folds]
    rests = [np.subtract(total, upper, out=upper) for upper in parts]
    known = [
        TriangularKnowledge.of_rest(recipe, responses, upper, n)
        for upper, n in zip([total, *rests], [0, *sizes], strict=True)
    ]
    return known[0], [rest._canonical() for rest in known[1:]]


class TriangularKnowledge(Knowledge):
    """Knowledge that has the upper triangle of its sums, and makes the matrix when it must."""

    upper: Floats

    @classmethod
    def of_rest(cls, recipe: Recipe, responses: Responses, upper: Floats, left_out: int) -> Self:
        """Of rows with these responses, but for some that are left out."""
        J, counts = len(recipe.phi.steps), [responses.counts[0] - left_out]
        if recipe.task == "classification":  # indicators are their own squares
            counts = upper.diagonal()[J:].astype(np.int64).tolist()
        known = cls.__new__(cls)
        known.__dict__ |= {
            "specification": dict(recipe.specification),
            "task": recipe.task,
            "responses": responses.names,
            "counts": tuple(counts),
            "weight_bits": 0,
            "fingerprint": None,
            "n_outputs": J,
            "classwise": False,
            "upper": upper,
        }
        return known

    @cached_property
    def total(self) -> Sums:
        """The whole matrix in integers."""
        total = Triangle(self.upper).whole()
        total.setflags(write=False)
        return total

    def normal_equations(self) -> tuple[Any, Integers]:
        """Σ φφᵀ, of which there is the upper triangle, and Σ φ rᵀ."""
        if "upper" not in vars(self):  # a sum, or what else was made of it
            return super().normal_equations()
        J = self.n_outputs
        return Triangle(self.upper[:J, :J]), self.upper[:J, J:].astype(np.int64)

    def __reduce__(self) -> Any:
        """Copies, and what pickle makes, are knowledge as any other."""
        return Knowledge, tuple(getattr(self, field.name) for field in fields(Knowledge))
