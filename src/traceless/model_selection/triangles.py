"""Knowledge of folds that stays in float64, where all of it is exact there.

    S₋ = S - S_F,     S = Σ [φ; r][φ; r]ᵀ over all rows, S_F over those of a fold

The triangles that BLAS has added up are subtracted, and solved, as they are
(`traceless.knowledge.triangular`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from traceless.arithmetic.integers import LARGEST, Floats
from traceless.knowledge.gathering import Gathering
from traceless.knowledge.responses import responses_of
from traceless.knowledge.sums import Knowledge, Recipe


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
    for triangle in gathering.triangles(folds):
        if triangle is None:
            return None
        total = np.add(total, triangle, out=total if parts else None)
        parts.append(triangle)
        if not total.diagonal().max() < LARGEST:
            return None
    rests = [np.subtract(total, part, out=part) for part in parts]
    J, K, n = recipe.n_outputs, len(responses.names), responses.counts[0]

    def known(triangle: Floats, left_out: int) -> Knowledge:
        counts = [n - left_out]
        if recipe.task == "classification":  # indicators are their own squares
            counts = triangle.diagonal()[J : J + K].astype(np.int64).tolist()
        return Knowledge.of_triangle(recipe, responses.names, counts, triangle)

    sizes = [len(y[fold]) for fold in folds]
    return known(total, 0), [
        known(rest, size)._canonical() for rest, size in zip(rests, sizes, strict=True)
    ]
