"""A random hidden layer g(Wx + b), whose sums are exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from traceless import elementary
from traceless.exact import Floats
from traceless.features.feature_map import BoundMap, FeatureMap, Later
from traceless.features.grid import blocks, grid_steps
from traceless.features.parameters import count, positive, seed
from traceless.features.projection import on_grid, projections


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
    resolution, input_resolution : float, default=2**-14

    Examples
    --------
    >>> phi = RandomLayer(50, activation="tanh", random_state=1)
    >>> phi.transform([[0.0, 1.0]]).shape
    (1, 51)
    """

    def __init__(
        self,
        n_units: int = 100,
        activation: str = "sigmoid",
        scale: float = 1.0,
        random_state: int = 0,
        bias: bool = True,
        resolution: float = 2**-14,
        input_resolution: float = 2**-14,
    ) -> None:
        self.n_units = n_units
        self.activation = activation
        self.scale = scale
        self.random_state = random_state
        self.bias = bias
        self.resolution = resolution
        self.input_resolution = input_resolution

    def n_outputs(self, n_features: int) -> int:  # noqa: ARG002, D102
        return count("n_units", self.n_units) + bool(self.bias)

    def bind(self, n_features: int) -> BoundMap:  # noqa: D102
        n_units = count("n_units", self.n_units)
        if self.activation not in _ACTIVATIONS:
            raise ValueError(
                f"activation must be one of {sorted(_ACTIVATIONS)}, got {self.activation!r}."
            )
        scale, entropy = positive("scale", self.scale), seed(self.random_state)
        steps = grid_steps(self.resolution, n_units)
        input_step = float(grid_steps(self.input_resolution, 1, "input_resolution")[0])
        shape = n_features + 1, n_units
        make = partial(
            _encoder, entropy, shape, scale, input_step, self.activation, float(1.0 / steps[0])
        )
        return self._bound(n_features, steps, Later(make))


def _encoder(
    entropy: int,
    shape: tuple[int, int],
    spread: float,
    input_step: float,
    activation: str,
    scale: float,
) -> partial[None]:
    draws = 2.0 * elementary.uniform(entropy, "layer", shape[0] * shape[1]) - 1.0
    W, step = on_grid(spread * draws.reshape(shape), spread)
    return partial(
        _encode_layer,
        W=np.ascontiguousarray(W[:-1]),
        offset=W[-1] * step,
        unit=step * input_step,
        input_scale=1.0 / input_step,
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
    input_scale: float,
    activation: Callable[[Floats], Floats],
    scale: float,
) -> None:
    for rows, products in projections(X, W, input_scale):
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
