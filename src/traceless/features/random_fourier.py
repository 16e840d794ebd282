"""Random Fourier features, whose angles Wx are exact."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from traceless import elementary
from traceless.exact import Floats
from traceless.features.feature_map import BoundMap, FeatureMap, Later
from traceless.features.grid import blocks, grid_steps
from traceless.features.parameters import count, positive, seed
from traceless.features.projection import on_grid, projections


class RandomFourier(FeatureMap):
    """Random Fourier features of the RBF kernel exp(-γ ‖x - z‖²).

    φ(x) = √(2/D) [cos(2π Wx), sin(2π Wx)] with D/2 random frequencies W, so that
    φ(x)·φ(z) approximates the kernel [1]_; paired sines and cosines have a lower
    variance than cosines with random phases, and halve the product Wx.

    Parameters
    ----------
    n_components : int, default=100
        Number D of features, without the bias.
    gamma : float, default=0.1
        A number: "scale" would be a trace of the training data.
    random_state : int, default=0
        Seed, part of the specification.
    bias : bool, default=True
    resolution : float, default=2**-20
        Step of the features, which are at most √(2/D) in size.
    input_resolution : float, default=2**-14
        Step of the grid that the rows are rounded to.

    References
    ----------
    .. [1] A. Rahimi and B. Recht, "Random features for large-scale kernel machines",
       NIPS 2007.

    Examples
    --------
    >>> phi = RandomFourier(2000, gamma=0.5, random_state=0, bias=False)
    >>> F = phi.transform([[0.0, 0.0], [1.0, 0.0]])
    >>> (F @ F.T).round(1)  # exp(-0.5) = 0.61
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    def __init__(
        self,
        n_components: int = 100,
        gamma: float = 0.1,
        random_state: int = 0,
        bias: bool = True,
        resolution: float = 2**-20,
        input_resolution: float = 2**-14,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.random_state = random_state
        self.bias = bias
        self.resolution = resolution
        self.input_resolution = input_resolution

    def n_outputs(self, n_features: int) -> int:  # noqa: ARG002, D102
        return count("n_components", self.n_components) + bool(self.bias)

    def bind(self, n_features: int) -> BoundMap:  # noqa: D102
        D = count("n_components", self.n_components)
        gamma, entropy = positive("gamma", self.gamma), seed(self.random_state)
        steps = grid_steps(self.resolution, D)
        input_step = float(grid_steps(self.input_resolution, 1, "input_resolution")[0])
        make = partial(
            _encoder, entropy, n_features, D, gamma, input_step, math.sqrt(2.0 / D) / steps[0]
        )
        return self._bound(n_features, steps, Later(make))


def _encoder(
    entropy: int, n_features: int, D: int, gamma: float, input_step: float, scale: float
) -> partial[None]:
    pairs = (D + 1) // 2
    # x·W in turns: frequencies are N(0, 2γ) radians per unit
    spread = math.sqrt(2.0 * gamma) / (2.0 * math.pi)
    draws = elementary.normal(entropy, "frequencies", n_features * pairs)
    W, step = on_grid(spread * draws.reshape(n_features, pairs), spread)
    return partial(
        _encode_fourier,
        W=W,
        turn=1.0 / (step * input_step),
        input_scale=1.0 / input_step,
        scale=scale,
    )


def _encode_fourier(
    X: Floats, out: Floats, *, W: Floats, turn: float, input_scale: float, scale: float
) -> None:
    pairs, D = W.shape[1], out.shape[1]
    for rows, products in projections(X, W, input_scale):
        turns = np.zeros((rows.stop - rows.start, pairs))
        for shift, product in products:  # whole turns drop out, exactly
            product *= 2.0**shift / turn
            product -= np.rint(product)
            turns += product
        for block in blocks(*turns.shape):
            target = out[rows][block]
            np.rint(elementary.cosine(turns[block], scale), out=target[:, :pairs])
            sine = elementary.cosine(turns[block][:, : D - pairs] - 0.25, scale)
            np.rint(sine, out=target[:, pairs:])
