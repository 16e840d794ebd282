"""Columns, given by number, by name or by a mask, as numbers in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Names = Sequence[str] | NDArray[Any] | None


def column_numbers(
    columns: Any,
    n_features: int,
    names: Names = None,
    single: Sequence[str] = (),
) -> tuple[Any, ...]:
    """Numbers of the columns that are to go: in order, each once, and not all of them.

    Parameters
    ----------
    columns : int, str, sequence of either, or boolean mask of shape (n_features,)
        Negative numbers count from the last column.
    n_features : int
    names : sequence of str, optional
        The names of all columns, where they have names.
    single : sequence of str
        Names of features that may go without their column; they stay names, after the numbers.
    """
    given = columns.tolist() if hasattr(columns, "tolist") else columns
    several = isinstance(given, Iterable) and not isinstance(given, str)
    given = list(given) if several else [given]
    alone = dict.fromkeys(name for name in given if isinstance(name, str) and name in single)
    given = [name for name in given if not isinstance(name, str) or name not in alone]
    if given and all(isinstance(value, bool | np.bool_) for value in given):
        if len(given) != n_features:
            raise ValueError(
                f"A mask of columns must have one entry for each of the {n_features} columns, got "
                f"{len(given)}."
            )
        given = [column for column, goes in enumerate(given) if goes]
    find = _named if all(isinstance(value, str) for value in given) else _numbered
    ordered = sorted(find(value, n_features, names) for value in given)
    twice = [a for a, b in pairwise(ordered) if a == b]
    if twice:
        name = twice[0] if names is None else repr(str(names[twice[0]]))
        raise ValueError(f"Column {name} is given twice; give each once.")
    if not ordered and not alone:
        raise ValueError("There are no columns to forget: none was given.")
    if len(ordered) == n_features:
        raise ValueError(
            f"All {n_features} columns would be forgotten; at least one must stay. To forget "
            "everything, fit a new model."
        )
    return (*ordered, *alone)


def _named(name: str, n_features: int, names: Names) -> int:
    if names is None:
        raise ValueError(
            f"There is no column {name!r}: the rows had no column names. Give numbers from 0 to "
            f"{n_features - 1}."
        )
    found = [column for column, known in enumerate(names) if known == name]
    if len(found) != 1:
        what = f"{len(found)} columns are called" if found else "There is no column"
        listed = ", ".join(map(str, names[:10])) + (", ..." if len(names) > 10 else "")
        raise ValueError(f"{what} {name!r}; the columns are {listed}.")
    return found[0]


def _numbered(number: Any, n_features: int, _: Names) -> int:
    if isinstance(number, bool | np.bool_) or not isinstance(number, int | np.integer):
        raise ValueError(
            "columns must be whole numbers, names, or a mask of all columns (one kind, not "
            f"several); got {number!r}."
        )
    if not -n_features <= number < n_features:
        raise ValueError(f"There is no column {number}: there are {n_features}, counted from 0.")
    return int(number) % n_features
