"""From the values of binary problems to classes, and LIBSVM's layout of their coefficients.

One against one, as LIBSVM and scikit-learn have it: the pair (i, j), i < j, votes for i where
its value is positive, the class with most votes wins, and of equals the first. Values for each
class are votes plus the sum of the pairs' values, squeezed to less than half a vote.
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
    total = np.zeros((len(pairs), n_classes))
    won = np.zeros((len(pairs), n_classes))
    for k, (i, j) in enumerate(combinations(range(n_classes), 2)):
        total[:, i] += pairs[:, k]
        total[:, j] -= pairs[:, k]
        won[:, i] += pairs[:, k] >= 0
        won[:, j] += pairs[:, k] < 0
    return np.asarray(won + total / (3 * (np.abs(total) + 1)))


def pair_layout(
    found: Sequence[Coefficients], support: NDArray[np.intp], label: NDArray[np.intp], n: int
) -> Floats:
    """LIBSVM's ``dual_coef``: for each support vector one row for each of the other classes.

    Parameters
    ----------
    found : (places, coefficients) for each pair, in order
    support : places of the support vectors, one column for each
    label : number of the class of each support vector
    n : int
        Number of classes.
    """
    column = np.empty(support.max(initial=-1) + 1, dtype=np.intp)
    column[support] = np.arange(len(support))
    out = np.zeros((n - 1, len(support)))
    for (i, j), (places, values) in zip(combinations(range(n), 2), found, strict=True):
        at = column[places]
        out[np.where(label[at] == i, j - 1, i), at] = values
    return out


def rest_layout(found: Sequence[Coefficients], support: NDArray[np.intp]) -> Floats:
    """One row for each problem, one column for each support vector."""
    column = np.empty(support.max(initial=-1) + 1, dtype=np.intp)
    column[support] = np.arange(len(support))
    out = np.zeros((len(found), len(support)))
    for row, (places, values) in zip(out, found, strict=True):
        row[column[places]] = values
    return out
