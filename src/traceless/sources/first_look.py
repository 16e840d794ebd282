"""The first rows of each task, looked at while they are learned.

A model warns of columns that its grid is too coarse for. To read some rows for that, before or
after the pass, would compute whatever they depend on once more: a shuffle, a join, a query. So
the tasks themselves keep up to three rows that stand for the others: the least and the largest
value of each column, and one off its grid, if there is one. Like knowledge, they add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from traceless.arithmetic.integers import Floats
from traceless.features.grid import dense_rows
from traceless.knowledge.sums import Knowledge, Recipe, Rows

ROWS = 4096  # looked at in each batch


@dataclass(frozen=True)
class Looked:
    """Knowledge, with some rows for those that it was made of."""

    knowledge: Knowledge
    X: Floats
    y: Floats
    steps: Floats
    target_step: float

    def __add__(self, other: Looked) -> Looked:
        X = _corners(np.vstack([self.X, other.X]), self.steps)
        y = _corners(np.vstack([self.y, other.y]), self.target_step)
        return Looked(self.knowledge + other.knowledge, X, y, self.steps, self.target_step)


@dataclass(frozen=True)
class LookingRecipe(Recipe):
    """A recipe whose knowledge comes with rows to look at."""

    input_steps: Floats | None = None

    @classmethod
    def of(cls, recipe: Recipe, input_steps: Floats) -> LookingRecipe:
        """The same recipe; `input_steps` are the grids of the columns."""
        made = recipe.phi, recipe.task, recipe.target_resolution, recipe.classwise
        return cls(*made, recipe.fingerprint, recipe.verbose, input_steps=input_steps)

    def knowledge(self, rows: Rows) -> Any:
        """The knowledge of rows, and some of them."""
        known = super().knowledge(rows)
        X = dense_rows(rows[0], slice(0, ROWS))
        y = np.empty((len(X), 0))
        if self.task == "regression":
            y = np.asarray(rows[1][:ROWS], dtype=np.float64)
            y = y if y.ndim == 2 else y[:, None]
        steps, step = np.asarray(self.input_steps), self.target_resolution
        return Looked(known, _corners(X, steps), _corners(y, step), steps, step)


def _corners(given: Any, steps: Any) -> Floats:
    """At most three rows: the least and the largest of each column, and one off its grid."""
    values: Floats = np.asarray(given, dtype=np.float64)
    if len(values) <= 2:
        return values.copy()
    known = np.nan_to_num(values)
    off = (np.rint(known / steps) != known / steps).argmax(axis=0)
    least, largest = np.fmin.reduce(values), np.fmax.reduce(values)  # NaN is an absent value
    return np.stack([least, largest, values[off, np.arange(len(off))]])
