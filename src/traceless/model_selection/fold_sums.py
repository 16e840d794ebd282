"""Sums of folds that stay in float64, where all of them are exact there.

    S₋ = S - S_F,     S = Σ [φ; r][φ; r]ᵀ over all rows, S_F over those of a fold

No number in S is larger than the largest on its diagonal (Cauchy-Schwarz). While that is below
2^53, float64 holds all of them, S_F and S₋ too, and none is ever rounded. So what BLAS has added up
is subtracted, and solved (`traceless.solvers.rounded`), as it is: half a matrix each time. The
knowledge, whole matrices of int64, is made of it if somebody asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from traceless.arithmetic.integers import LARGEST, Floats, Integers, in_full
from traceless.knowledge.gathering import Gathering
from traceless.knowledge.responses import Label, n_rows, responses_of
from traceless.knowledge.sums import Knowledge, Recipe
from traceless.solvers.cholesky import Cholesky


@dataclass(frozen=True, eq=False)
class FoldSums:
    """What some rows without weights add up to, in float64, exactly.

    Attributes
    ----------
    recipe : Recipe
    responses : tuple
        Those of all rows, whichever of them these rows have.
    counts : tuple of int
        Rows per class, or one number.
    upper : ndarray of shape (J + K, J + K)
        Of Σ [φ; r][φ; r]ᵀ the upper triangle.
    """

    recipe: Recipe
    responses: tuple[Label, ...]
    counts: tuple[int, ...]
    upper: Floats
    weight_bits: ClassVar[int] = 0

    @classmethod
    def of_all_but(
        cls, recipe: Recipe, X: Any, y: Any, folds: Sequence[Any]
    ) -> tuple[FoldSums, list[FoldSums]] | None:
        """The sums of all rows, and those without each fold; None if float64 is too short.

        The folds together are all rows, once each.
        """
        responses = responses_of(y, None, recipe.task, recipe.target_resolution)
        gathering = Gathering(recipe.phi, X, responses, None, verbose=recipe.verbose)
        found: list[Floats] = []
        total = np.zeros(())
        for upper in gathering.triangles(folds):
            if upper is None:
                return None
            total = np.add(total, upper, out=total if found else None)
            found.append(upper)
            if not total.diagonal().max() < LARGEST:
                return None
        both = cls(recipe, responses.names, responses.counts, total)
        sizes = [len(y[fold]) for fold in folds]
        return both, [both._without(*fold) for fold in zip(found, sizes, strict=True)]

    def _without(self, upper: Floats, n: int) -> FoldSums:
        """These sums without those of n of the rows, in whose memory the difference is kept."""
        np.subtract(self.upper, upper, out=upper)
        counts = [self.n_samples - n]
        if self.recipe.task == "classification":  # indicators are their own squares
            counts = upper.diagonal()[self.n_outputs :].astype(np.int64).tolist()
        return replace(self, counts=tuple(counts), upper=upper)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return n_rows(self.recipe.task, self.counts)

    @property
    def n_outputs(self) -> int:
        """Number J of features."""
        return len(self.recipe.phi.steps)

    def normal_equations(self) -> tuple[Floats, Integers]:
        """Of Σ φφᵀ the upper triangle, and Σ φ rᵀ."""
        J = self.n_outputs
        return self.upper[:J, :J], self.upper[:J, J:].astype(np.int64)

    @cached_property
    def knowledge(self) -> Knowledge:
        """The same as knowledge, of classes that these rows have."""
        total = in_full(self.upper)
        total.setflags(write=False)
        recipe = self.recipe
        said = dict(recipe.specification), recipe.task, self.responses, self.counts
        return Knowledge(*said, total)._canonical()


class FoldState(Cholesky):
    """What a fold's model holds: it is solved from its sums, and has knowledge if asked for."""

    def __init__(self, sums: FoldSums) -> None:
        super().__init__(sums.recipe, sums)  # type: ignore[arg-type]
        self._sums = sums

    def knowledge(self) -> Knowledge:
        """The exact knowledge of all rows."""
        return self._sums.knowledge

    def updated(self, *change: Any, **said: Any) -> Cholesky:
        """The solver after a change, which has knowledge as any other."""
        return Cholesky(self.recipe, self.knowledge()).updated(*change, **said)

    def _known_sums(self) -> FoldSums:
        return self._sums
