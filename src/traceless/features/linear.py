"""The linear map φ(x) = [x, 1]."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from traceless.features.bound_map import BoundMap
from traceless.features.feature_map import FeatureMap
from traceless.features.grid import encode_linear, grid_steps, per_unit
from traceless.parameters import FLAG, STEPS, check_parameters


class Linear(FeatureMap):
    """φ(x) = [x, 1]: the rows themselves, rounded to the grid.

    Parameters
    ----------
    bias : bool, default=True
        Append the constant feature 1, whose coefficient is the intercept.
    resolution : float or sequence of float, default=2**-14
        Step of the grid, a power of two; one for all columns, or one each. The default
        suits columns that vary by a hundredth or more. Large values cost speed, not correctness.

    Examples
    --------
    >>> Linear(resolution=2**-2).transform([[0.3, -1.0]])
    array([[ 0.25, -1.  ,  1.  ]])
    """

    constraints: ClassVar = {"bias": FLAG, "resolution": STEPS}
    features_are_columns = True

    def __init__(self, bias: bool = True, resolution: Any = 2**-14) -> None:
        self.bias = bias
        self.resolution = resolution

    def n_outputs(self, n_features: int) -> int:  # noqa: D102
        return n_features + bool(self.bias)

    def bind(self, n_features: int) -> BoundMap:  # noqa: D102
        check_parameters(self)
        steps = grid_steps(self.resolution, n_features)
        return self._bound(n_features, steps, partial(encode_linear, per_unit(self.resolution)))
