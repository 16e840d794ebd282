"""Rows that P and U have taken in, and the knowledge has not: copies, whoever gave them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceless.features.grid import dense_rows
from traceless.knowledge.responses import Label, responses_of
from traceless.knowledge.sample_weights import rounded_weights
from traceless.solvers.inverse import Change, spread

if TYPE_CHECKING:
    from traceless.knowledge.sums import Recipe, Rows


class QueuedRows(NamedTuple):
    """Rows to be added or removed: as they came, and in float64 for P and U.

    Attributes
    ----------
    rows : tuple
        X, labels or targets, and weights.
    change : Change
        Features and responses of the rows with positive weight.
    names, counts : tuples
        The responses that `change` has, and the rows of each.
    """

    rows: Rows
    change: Change
    names: tuple[Label, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, recipe: Recipe, rows: Rows, sign: int) -> QueuedRows:
        """Copy rows that come (sign 1) or go (sign -1)."""
        X, y, sample_weight = rows
        rounded = rounded_weights(sample_weight, X.shape[0])
        responses = responses_of(y, rounded, recipe.task, recipe.target_resolution)
        # a copy: the caller may write into his own again
        dense = np.array(X if isinstance(X, np.ndarray) else dense_rows(X, slice(None)), np.float64)
        F = recipe.phi.codes(dense) * recipe.phi.steps
        Y = np.empty((len(F), len(responses.names)))
        responses.encode(slice(None), Y)
        weights = np.ones(len(F)) if rounded is None else rounded
        change = Change(F, Y, weights, sign)
        if rounded is not None and not weights.all():
            alive = weights > 0
            change = Change(F[alive], Y[alive], weights[alive], sign)
        if recipe.task == "regression":
            kept = np.array(y, dtype=np.float64).reshape(len(F), -1)
        elif recipe.task == "multilabel":
            kept = Y[:, :-1]  # without the constant
        else:  # Python's own labels: NumPy would make floats of large numbers of two types
            kept = np.array([*responses.names, None], dtype=object)[Y.argmax(axis=1)]
        sample_weight = None if rounded is None else weights
        return cls((dense, kept, sample_weight), change, responses.names, responses.counts)

    def aligned(self, responses: tuple[Label, ...]) -> Change:
        """The change with a column for each of these responses."""
        if self.names == responses:
            return self.change
        return self.change._replace(Y=spread(self.change.Y, self.names, responses))
