"""Forgetting columns: the knowledge that the same rows give without some of their columns.

Where features are made of single columns, or of products of columns, those that stay have the
codes they would have had if the others had never been there. So with K the features that stay,

    Σ ω [φ_K; r] [φ_K; r]ᵀ     is a submatrix of     Σ ω [φ; r] [φ; r]ᵀ

integers and all. Which features stay, and of what map they are the features, is for the feature
map to say (`FeatureMap.without_columns`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from traceless.features.bound_map import PROBE
from traceless.features.columns import column_numbers
from traceless.features.kinds import from_facts
from traceless.knowledge.specifications import check_same_specification

if TYPE_CHECKING:
    from traceless.features.feature_map import FeatureMap


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
