"""Many classes: the binary problems they make, and what becomes of the values of these.

Two classes are one problem. More are one problem for each pair (one-vs-one), or one for each class
against the rest (one-vs-rest). One-vs-one is as in LIBSVM and scikit-learn: the pair (i, j), i < j,
votes for i where its value is positive, the class with most votes wins, and of equals the
first. Values for each class are votes plus the sum of the pairs' values, squeezed to less than half
a vote.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.hinge.rows import Target, TrainingRows
from traceless.hinge.settings import Settings

Pair = tuple[Any, Any]  # labels of the negative and the positive class
REST = None  # in place of the label of the negative class: all the others
Coefficients = tuple[NDArray[np.intp], Floats]  # places of support vectors, and their yα


def targets(rows: TrainingRows, settings: Settings) -> dict[Pair, Target]:
    """The points of each binary problem, in scikit-learn's order; those with bound 0 are out."""
    classes, labels = rows.classes, rows.classes.tolist()
    none = settings.class_weight is None
    weights = np.ones(len(labels)) if none else _class_weights(settings.class_weight, rows)
    bounds = settings.C * weights[np.searchsorted(classes, rows.y)] * rows.weight
    if not np.isfinite(bounds).all():
        raise ValueError("C times the weights is beyond the largest float64: make one smaller.")
    one_vs_one = settings.strategy == "ovo" or len(labels) <= 2
    pairs = combinations(labels, 2) if one_vs_one else ((REST, label) for label in labels)
    found = {}
    for negative, positive in pairs:
        ours = rows.y == positive
        at = np.flatnonzero((ours | (rows.y == negative) | (negative is REST)) & (bounds > 0.0))
        found[negative, positive] = Target(rows.ids[at], np.where(ours[at], 1.0, -1.0), bounds[at])
    return found


def _class_weights(rule: Any, rows: TrainingRows) -> Floats:
    """The weight of each class, in order."""
    classes = rows.classes
    if isinstance(rule, str) and rule == "balanced":  # a row of weight 2 counts as two
        totals = [math.fsum(rows.weight[rows.y == name]) for name in classes]
        return np.array([math.fsum(totals) / (len(totals) * total) for total in totals])
    weights = np.array([rule.get(name, 1.0) for name in classes.tolist()], dtype=np.float64)
    if not ((weights >= 0.0) & (weights < np.inf)).all():
        raise ValueError(f"Class weights must be finite and not negative, got {rule!r}.")
    return weights


def votes(pairs: Floats, n_classes: int) -> Floats:
    """How many of its pairs each class wins; one column for each class."""
    won = np.zeros((len(pairs), n_classes))
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        won[:, i] += pairs[:, k] > 0
        won[:, j] += pairs[:, k] <= 0
    return won


def class_values(pairs: Floats, n_classes: int) -> Floats:
    """Votes, ties broken by the values of the pairs: ``decision_function_shape="ovr"``.

    As in scikit-learn, a value of exactly 0 counts for the first class here, and for the
    second in `votes`.
    """
    total, lost = np.zeros((len(pairs), n_classes)), votes(-pairs, n_classes)
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        total[:, i] += pairs[:, k]
        total[:, j] -= pairs[:, k]
    return np.asarray((n_classes - 1 - lost) + total / (3 * (np.abs(total) + 1)))


def dual_coefficients(
    found: Sequence[Coefficients], support: NDArray[np.intp], label: NDArray[np.intp], n_pairs: int
) -> Floats:
    """``dual_coef_``: one column for each support vector.

    One row for each problem, or with `n_pairs` classes one-vs-one LIBSVM's layout: for each support
    vector one row for each of the other classes.

    Parameters
    ----------
    found : (places, coefficients) for each problem, in order
    support : places of the support vectors
    label : number of the class of each support vector
    n_pairs : int
        Number of classes if the problems are pairs of several, else 0.
    """
    column = np.empty(support.max(initial=-1) + 1, dtype=np.intp)
    column[support] = np.arange(len(support))
    out = np.zeros((n_pairs - 1 if n_pairs else len(found), len(support)))
    pairs = combinations(range(n_pairs), 2) if n_pairs else enumerate(range(len(found)))
    for (i, j), (places, values) in zip(pairs, found, strict=True):
        at = column[places]
        out[np.where(label[at] == i, j - 1, i) if n_pairs else i, at] = values
    return out
