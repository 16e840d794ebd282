"""The machines of the family: what makes one problem for `traceless.hinge.problem` of some rows.

All are  min ½ αᵀQα - Σ y t α,  0 ≤ α ≤ u,  Σ yα = τ  with  g = y (f - t),  f = Σ yα k + b:

    classifier   y = ±1                        t = y              u = C ω      τ = 0
    regressor    y = -1 and +1 for each row    t = target - y ε   u = C ω      τ = 0
    one class    y = +1                        t = 0              u = ω        τ = ν Σω

A regressor has each row twice, at the two sides of its tube: f - t is 0 at the upper side for
y = -1 and at the lower side for y = +1, and the coefficient of the row is α₊ - α₋. With ε > 0 at
most one of the two is not 0. The b of one class is scikit-learn's -ρ.

The promise of the solver is absolute (1e-9 of g), and levels of classes are ±1. So the other two
are solved in units in which f is near 1, powers of two, so that a change of units is exact: for a
regressor the largest |target - m|, where m (`centre_of`) takes a large value out that all targets
share; for one class the f that one row gives to itself, min(ω, τ) k(x, x). Both depend on the
rows held now and on nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from traceless.arithmetic.integers import Floats
from traceless.hinge.settings import centre_of
from traceless.hinge.target import Target
from traceless.knowledge.training_rows import TrainingRows

if TYPE_CHECKING:  # it needs the core, and parameters do not
    from traceless.hinge.kernels import Kernel

Pair = tuple[Any, Any]  # labels of the negative and the positive class
REST = None  # in place of the label of the negative class: all the others
ALONE: Pair = (None, None)  # of the only problem, where there are no classes


@dataclass(frozen=True)
class Classifier:
    """Two classes are one problem, more are pairs of classes or each against the rest."""

    C: float
    class_weight: Any
    strategy: str
    is_balanced = True  # whether Σyα is 0
    said = "strategy"  # in a digest, besides the bounds of rows

    @property
    def structure(self) -> Any:
        """What requires a new fit if it changes."""
        return self.strategy

    @property
    def needs_all_rows(self) -> bool:
        """Whether the solution depends also on rows with α = 0: bounds follow the counts."""
        return self.class_weight is not None

    def targets(self, rows: TrainingRows, _: Kernel) -> dict[Pair, Target]:
        """The points of each problem, in scikit-learn's order; those with bound 0 are out."""
        classes, labels = rows.classes, rows.classes.tolist()
        weights = class_weights(self.class_weight, rows)
        bounds = _bounds(self.C * weights[np.searchsorted(classes, rows.y)] * rows.weight)
        one_vs_one = self.strategy == "ovo" or len(labels) <= 2
        pairs = combinations(labels, 2) if one_vs_one else ((REST, label) for label in labels)
        found = {}
        for negative, positive in pairs:
            ours = rows.y == positive
            at = np.flatnonzero((ours | (rows.y == negative) | (negative is REST)) & (bounds > 0.0))
            y = np.where(ours[at], 1.0, -1.0)
            found[negative, positive] = Target(rows.ids[at], y, bounds[at], y)
        return found


@dataclass(frozen=True)
class Regressor:
    """The ε-insensitive loss: one problem, each row twice."""

    C: float
    epsilon: float
    is_balanced = True
    said = "epsilon"
    structure = None
    needs_all_rows = False

    def targets(self, rows: TrainingRows, _: Kernel) -> dict[Pair, Target]:
        """The points of the problem; none without rows."""
        if not len(rows):
            return {}
        centre = centre_of(rows.y[:, None])
        middle = 0.0 if centre is None else float(centre[0])
        apart = rows.y - middle
        scale = _unit(max(float(np.abs(apart).max()), self.epsilon))
        y = np.tile([-1.0, 1.0], len(rows))
        levels = (np.repeat(apart, 2) - y * self.epsilon) / scale
        bounds = _bounds(self.C * rows.weight / scale)
        ids = np.repeat(2 * rows.ids, 2) + (y > 0)
        return {ALONE: Target(ids, y, np.repeat(bounds, 2), levels, 0.0, scale, middle, 2)}


@dataclass(frozen=True)
class OneClass:
    """Where rows are: a part ν of their weight, or less, is beyond."""

    nu: float
    is_balanced = False
    said = "nu"
    structure = None
    needs_all_rows = True

    def targets(self, rows: TrainingRows, kernel: Kernel) -> dict[Pair, Target]:
        """The points of the problem; none without rows."""
        if not len(rows):
            return {}
        total, weight = self.nu * math.fsum(rows.weight), rows.weight
        with np.errstate(over="ignore"):  # who computes the kernel matrix says so
            # of the rows held, or with a row that is only left out to look: any unit would do
            size = float(np.abs(kernel.diagonal(rows.held)).max())
        scale = _unit(min(total, float(weight.max())) * size)
        bounds, ones = _bounds(weight / scale), np.ones(len(rows))
        return {ALONE: Target(rows.ids, ones, bounds, 0.0 * ones, total / scale, scale)}


Machine = Classifier | Regressor | OneClass


def _bounds(bounds: Floats) -> Floats:
    if not np.isfinite(bounds).all():
        raise ValueError("C times the weights is beyond the largest float64: make one smaller.")
    return bounds


def _unit(size: float) -> float:
    """The power of two at or just below a size; 1 of nothing."""
    return math.ldexp(1.0, math.frexp(size)[1] - 1) if 0.0 < size < math.inf else 1.0


def class_weights(rule: Any, rows: TrainingRows) -> Floats:
    """The weight of each class, in order."""
    classes = rows.classes
    if rule is None:
        return np.ones(len(classes))
    if isinstance(rule, str) and rule == "balanced":  # a row of weight 2 counts as two
        totals = [math.fsum(rows.weight[rows.y == name]) for name in classes]
        return np.array([math.fsum(totals) / (len(totals) * total) for total in totals])
    assert isinstance(rule, Mapping)
    weights = np.array([rule.get(name, 1.0) for name in classes.tolist()], dtype=np.float64)
    if not ((weights >= 0.0) & (weights < np.inf)).all():
        raise ValueError(f"Class weights must be finite and not negative, got {rule!r}.")
    return weights
