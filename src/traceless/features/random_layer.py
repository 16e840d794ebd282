"""A random hidden layer g(Wx + b), whose sums are exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from traceless.arithmetic import elementary
from traceless.arithmetic.integers import Floats
from traceless.features.grid import InputGrid, blocks
from traceless.features.projection import Projected, on_grid, projections
from traceless.parameters import COUNT, POSITIVE, choice


class RandomLayer(Projected):
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
    table : Table, optional
        What the columns of a frame mean; its features, without the constant one, are the columns
        of this map.

    Examples
    --------
    >>> phi = RandomLayer(50, activation="tanh", random_state=1)
    >>> phi.transform([[0.0, 1.0]]).shape
    (1, 51)
    """

    size = "n_units"
    constraints: ClassVar = {
        "n_units": COUNT,
        "activation": choice("sigmoid", "tanh", "relu", "sine"),
        "scale": POSITIVE,
    } | Projected.constraints

    def __init__(
        self,
        n_units: int = 100,
        activation: str = "sigmoid",
        scale: float = 1.0,
        random_state: int = 0,
        bias: bool = True,
        resolution: Any = 2**-14,
        input_resolution: Any = 2**-14,
        table: Any = None,
    ) -> None:
        self.n_units = n_units
        self.activation = activation
        self.scale = scale
        self.random_state = random_state
        self.bias = bias
        self.resolution = resolution
        self.input_resolution = input_resolution
        self.table = table

    def encoder(  # noqa: D102
        self, shape: tuple[int, int], grid: InputGrid, scale: Floats | float
    ) -> partial[None]:
        (n_features, n_units), spread = shape, float(self.scale)
        entropy, n = int(self.random_state), (n_features + 1) * n_units
        draws = 2.0 * elementary.uniform(entropy, "layer", n) - 1.0
        W, step = on_grid(spread * draws.reshape(-1, n_units), spread)
        return partial(
            _encode_layer,
            W=np.ascontiguousarray(W[:-1]),
            offset=W[-1] * step,
            unit=step * grid.step,
            grid=grid,
            activation=_ACTIVATIONS[self.activation],
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
