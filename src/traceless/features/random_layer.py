"""A random hidden layer g(Wx + b), whose sums are exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from traceless.arithmetic import elementary
from traceless.arithmetic.integers import Floats
from traceless.features.bound_map import BoundMap, Later
from traceless.features.feature_map import FeatureMap
from traceless.features.grid import InputGrid, blocks, grid_steps, per_unit
from traceless.features.projection import on_grid, projections
from traceless.parameters import COUNT, FLAG, POSITIVE, SEED, STEPS, check_parameters, choice


class RandomLayer(FeatureMap):
    """The random hidden layer of an extreme learning machine: φ(x) = g(Wx + b).

    Parameters
    ----------
    n_units : int, default=100
    activation : {"sigmoid", "tanh", "relu", "sine"}, default="sigmoid"
    scale : float, default=1.0
        W and b are uniform in ±scale.
    random_state : int, default=0
    bias : bool, default=True
    resolution : float or sequence of float, default=2**-14
        Step of the features; one for all, or one for each unit.
    input_resolution : float or sequence of float, default=2**-14
        Step of the grid that the rows are rounded to; one for all columns, or one each. No
        value may exceed 2^53 of the finest step.

    Examples
    --------
    >>> phi = RandomLayer(50, activation="tanh", random_state=1)
    >>> phi.transform([[0.0, 1.0]]).shape
    (1, 51)
    """

    has_units = False
    constraints: ClassVar = {
        "n_units": COUNT,
        "activation": choice("sigmoid", "tanh", "relu", "sine"),
        "scale": POSITIVE,
        "random_state": SEED,
        "bias": FLAG,
        "resolution": STEPS,
        "input_resolution": STEPS,
    }

    def __init__(
        self,
        n_units: int = 100,
        activation: str = "sigmoid",
        scale: float = 1.0,
        random_state: int = 0,
        bias: bool = True,
        resolution: Any = 2**-14,
        input_resolution: Any = 2**-14,
    ) -> None:
        self.n_units = n_units
        self.activation = activation
        self.scale = scale
        self.random_state = random_state
        self.bias = bias
        self.resolution = resolution
        self.input_resolution = input_resolution

    def n_outputs(self, n_features: int) -> int:  # noqa: ARG002, D102
        check_parameters(self)
        return int(self.n_units) + bool(self.bias)

    def bind(self, n_features: int) -> BoundMap:  # noqa: D102
        check_parameters(self)
        n_units, scale, entropy = int(self.n_units), float(self.scale), int(self.random_state)
        steps = grid_steps(self.resolution, n_units)
        grid = InputGrid.of(self.input_resolution, n_features)
        shape = n_features + 1, n_units
        make = partial(
            _encoder,
            entropy,
            shape,
            scale,
            grid,
            self.activation,
            per_unit(self.resolution, steps),
        )
        return self._bound(n_features, steps, Later(make))


def _encoder(
    entropy: int,
    shape: tuple[int, int],
    spread: float,
    grid: InputGrid,
    activation: str,
    scale: Floats | float,
) -> partial[None]:
    draws = 2.0 * elementary.uniform(entropy, "layer", shape[0] * shape[1]) - 1.0
    W, step = on_grid(spread * draws.reshape(shape), spread)
    return partial(
        _encode_layer,
        W=np.ascontiguousarray(W[:-1]),
        offset=W[-1] * step,
        unit=step * grid.step,
        grid=grid,
        activation=_ACTIVATIONS[activation],
        scale=scale,
    )


def _encode_layer(
    X: Floats,
    out: Floats,
    *,
    W: Floats,
    offset: Floats,
    unit: float,
    grid: InputGrid,
    activation: Callable[[Floats], Floats],
    scale: Floats | float,
) -> None:
    for rows, products in projections(X, W, grid):
        z = np.zeros((rows.stop - rows.start, W.shape[1]))
        for shift, product in products:
            z += product * 2.0**shift
        for block in blocks(*z.shape):
            values = activation(z[block] * unit + offset)
            np.rint(values * scale, out=out[rows][block])


def _sigmoid(z: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + elementary.exponential(-z)))


def _tanh(z: Floats) -> Floats:
    return np.asarray(1.0 - 2.0 / (1.0 + elementary.exponential(2.0 * z)))


def _relu(z: Floats) -> Floats:
    return np.maximum(z, 0.0)


def _sine(z: Floats) -> Floats:
    return elementary.cosine(z / (2.0 * math.pi) - 0.25)


_ACTIVATIONS = {"sigmoid": _sigmoid, "tanh": _tanh, "relu": _relu, "sine": _sine}
