"""Many classes: what becomes of the values of their binary problems.

Two classes are one problem. More are one problem for each pair (one-vs-one), or one for each class
against the rest (one-vs-rest). One-vs-one is as in LIBSVM and scikit-learn: the pair (i, j), i < j,
votes for i where its value is positive, the class with most votes wins, and of equals the
first. Values for each class are votes plus the sum of the pairs' values, squeezed to less than half
a vote.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats

Coefficients = tuple[NDArray[np.intp], Floats]  # places of support vectors, and their yα


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
