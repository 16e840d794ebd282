"""Forgetting columns: the knowledge that the same rows give without some of their columns.

Where features are made of single columns, or of products of columns, those that stay have the
codes they would have had if the others had never been there. So with K the features that stay,

    Σ ω [φ_K; r] [φ_K; r]ᵀ     is a submatrix of     Σ ω [φ; r] [φ; r]ᵀ

integers and all. Which features stay, and of what map they are the features, is for the feature
map to say (`FeatureMap.without_columns`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from traceless.features.bound_map import PROBE
from traceless.features.kinds import from_facts
from traceless.knowledge.specifications import check_same_specification

if TYPE_CHECKING:
    from traceless.features.feature_map import FeatureMap

Names = Sequence[str] | NDArray[Any] | None


def without_columns(
    specification: Mapping[str, Any], columns: Any, feature_map: FeatureMap | None
) -> tuple[dict[str, Any], NDArray[np.intp]]:
    """The specification of knowledge without some columns, and the features that stay.

    Parameters
    ----------
    specification : mapping
        That of the knowledge that there is.
    columns : int, str, sequence of either, or boolean mask
    feature_map : FeatureMap, optional
        The map of the knowledge, where its specification does not say all of it.
    """
    n_features = int(specification["n_features"])
    phi = _described(specification["features"]) if feature_map is None else feature_map
    now = dict(specification) | phi.bind(n_features).describe()
    check_same_specification(specification, now)
    gone = column_numbers(columns, n_features, single=phi.single_features)
    left, outputs = phi.without_columns(gone, n_features)
    bound = left.bind(n_features - sum(isinstance(column, int) for column in gone))
    if len(outputs) != len(bound.steps):
        raise ValueError(
            f"{type(phi).__name__}.without_columns keeps {len(outputs)} features, and the map "
            f"that it leaves makes {len(bound.steps)}. Nothing was changed."
        )
    return now | bound.describe(), np.asarray(outputs, dtype=np.intp)


def _described(features: Mapping[str, Any]) -> FeatureMap:
    """The map that a specification describes; arrays are in it as hashes only."""
    from traceless.features import MAPS  # here alone is a map made from its name

    parameters = {k: v for k, v in features.items() if k not in ("map", "version", PROBE)}
    if features["map"] == "Table" and features["columns"] is not None:
        parameters["columns"] = list(map(from_facts, features["columns"]))
    if "table" in features:
        parameters["table"] = _described(features["table"])
    hashed = [name for name, value in parameters.items() if isinstance(value, Mapping)]
    kind = MAPS.get(features["map"])
    if PROBE in features or hashed or kind is None:
        what = f"a hash of its {hashed[0]}" if hashed else "a hash of what it computes"
        raise TypeError(
            f"The specification of {features['map']} has only {what}: pass the map that the rows "
            "were learned with as feature_map. Nothing was changed."
        )
    phi: FeatureMap = kind(**parameters)
    return phi


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
